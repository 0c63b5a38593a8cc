//! A property of every code point, kept as runs of equal values.

/// The runs, each by its first code point, in order.
#[derive(Debug)]
pub(crate) struct Runs(Vec<(u32, u8)>);

impl Runs {
    /// Reads a table: the number of runs, the length of each, the value of each. A number is in groups of seven bits, the
    /// lowest first, the high bit set on all but the last. Numbers of one kind lie together, which compressors like: a page
    /// downloads the tables.
    pub(crate) fn read(mut table: &[u8]) -> Self {
        let mut start = 0;
        let mut runs: Vec<(u32, u8)> = Vec::new();
        for _ in 0..varint(&mut table) {
            runs.push((start, 0));
            start += varint(&mut table);
        }
        for (_, value) in &mut runs {
            *value = byte(&mut table);
        }
        Self(runs)
    }

    /// The value of a character.
    pub(crate) fn get(&self, character: char) -> u8 {
        let after = self
            .0
            .partition_point(|&(start, _)| start <= u32::from(character));
        match after.checked_sub(1).and_then(|run| self.0.get(run)) {
            Some(&(_, value)) => value,
            None => 0,
        }
    }

    /// The code points whose value is wanted, as ranges that include both ends.
    pub(crate) fn ranges(&self, wanted: impl Fn(u8) -> bool) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (index, &(start, value)) in self.0.iter().enumerate() {
            if !wanted(value) {
                continue;
            }
            let end = match self.0.get(index + 1) {
                Some(&(next, _)) => next - 1,
                None => u32::from(char::MAX),
            };
            match ranges.last_mut() {
                Some(last) if last.1 + 1 == start => last.1 = end,
                _ => ranges.push((start, end)),
            }
        }
        ranges
    }
}

/// Takes a number off the front of a table; 0 at its end.
pub(crate) fn varint(table: &mut &[u8]) -> u32 {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let next = byte(table);
        number |= u32::from(next & 0x7f) << shift;
        if next < 0x80 {
            break;
        }
    }
    number
}

/// Takes so many numbers off the front of a table, each as its difference from the one before: doubled, and with one less
/// and its sign gone where it is negative.
pub(crate) fn differences(table: &mut &[u8], count: u32) -> Vec<u32> {
    let mut last = 0_u32;
    let mut next = || {
        let coded = varint(table);
        last = last.wrapping_add(coded >> 1 ^ 0_u32.wrapping_sub(coded & 1));
        last
    };
    (0..count).map(|_| next()).collect()
}

/// Takes a byte off the front of a table; 0 at its end.
pub(crate) fn byte(table: &mut &[u8]) -> u8 {
    match table.split_first() {
        Some((&first, rest)) => {
            *table = rest;
            first
        }
        None => 0,
    }
}
