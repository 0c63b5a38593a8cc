//! Sets of characters.

const LAST: u32 = char::MAX as u32;

/// A set of characters that a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Class {
    /// The members below 128, a bit each.
    ascii: u128,
    /// The others, as in [`Set`].
    ranges: Box<[(u32, u32)]>,
}

impl Class {
    /// How much memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ranges)
    }

    #[inline]
    pub(crate) fn holds(&self, character: char) -> bool {
        let code = u32::from(character);
        if code < 128 {
            return self.ascii >> code & 1 == 1;
        }
        let after = self.ranges.partition_point(|&(start, _)| start <= code);
        match after.checked_sub(1).and_then(|at| self.ranges.get(at)) {
            Some(&(_, end)) => code <= end,
            None => false,
        }
    }
}

/// A set while it is put together: ranges that include both ends, in order, apart from each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Set(Vec<(u32, u32)>);

impl Set {
    pub(crate) fn new(ranges: Vec<(u32, u32)>) -> Self {
        // As numbers: sorting them is compiled anyway.
        let mut packed: Vec<u64> = ranges
            .iter()
            .map(|&(start, end)| u64::from(start) << 32 | u64::from(end))
            .collect();
        packed.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for range in packed {
            let (start, end) = ((range >> 32) as u32, range as u32);
            match joined.last_mut() {
                Some(last) if start <= last.1.saturating_add(1) => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        Self(joined)
    }

    pub(crate) fn of(character: char) -> Self {
        Self(vec![(character.into(), character.into())])
    }

    /// Every character, as `.` with the flag `m`.
    pub(crate) fn all() -> Self {
        Self(vec![(0, LAST)])
    }

    /// Every character but the line feed, as `.`.
    pub(crate) fn all_but_line_feed() -> Self {
        Self::of('\n').negated()
    }

    /// Whether it is that of a dot.
    pub(crate) fn is_dot(&self) -> bool {
        *self == Self::all() || *self == Self::all_but_line_feed()
    }

    pub(crate) fn negated(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(start, end) in &self.0 {
            if start > next {
                gaps.push((next, start - 1));
            }
            next = end + 1;
        }
        if next <= LAST {
            gaps.push((next, LAST));
        }
        Self(gaps)
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        Self::new(self.ranges().chain(other.ranges()).collect())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.ranges().peekable(), other.ranges().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let (start, end) = (a.0.max(b.0), a.1.min(b.1));
            if start <= end {
                both.push((start, end));
            }
            if a.1 < b.1 {
                left.next();
            } else {
                right.next();
            }
        }
        Self(both)
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.negated())
    }

    /// The ranges, both ends included.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// Whether it holds nothing beyond ASCII.
    pub(crate) fn is_ascii(&self) -> bool {
        self.0.last().is_none_or(|&(_, end)| end < 128)
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn class(&self) -> Class {
        let mut ascii = 0;
        let mut ranges = Vec::new();
        for &(start, end) in &self.0 {
            for code in start..=end.min(127) {
                ascii |= 1 << code;
            }
            if end >= 128 {
                ranges.push((start.max(128), end));
            }
        }
        Class {
            ascii,
            ranges: ranges.into(),
        }
    }
}
