//! Sets of characters.

use crate::error::Fault;
use crate::unicode::{CATEGORIES, CATEGORY_NAMES, SCRIPT_NAMES, SCRIPTS, WORDS};

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
        Self::range(character, character)
    }

    pub(crate) fn range(first: char, last: char) -> Self {
        Self(vec![(first.into(), last.into())])
    }

    /// Every character, as `.` with the flag `s`.
    pub(crate) fn all() -> Self {
        Self(vec![(0, LAST)])
    }

    /// Every character but the line feed, as `.`.
    pub(crate) fn all_but_line_feed() -> Self {
        Self::of('\n').negated()
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
        Self::new(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.negated().union(&other.negated()).negated()
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.negated())
    }

    /// The set with the characters that differ from its members in case alone, where it holds no
    /// letters outside ASCII.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] where it does.
    pub(crate) fn without_case(&self) -> Result<Self, Fault> {
        let mut ranges = self.0.clone();
        for &(start, end) in &self.0 {
            for code in start..=end.min(127) {
                let letter = char::from(code as u8);
                if letter.is_ascii_alphabetic() {
                    let other = u32::from(letter) ^ 0x20;
                    ranges.push((other, other));
                }
                // The long s and the sign of Kelvin.
                match letter {
                    's' | 'S' => ranges.push((0x17f, 0x17f)),
                    'k' | 'K' => ranges.push((0x212a, 0x212a)),
                    _ => {}
                }
            }
            let mut others = (start.max(128)..=end).filter_map(char::from_u32);
            if let Some(letter) = others.find(|c| has_case(*c)) {
                return Err(Fault::Unsupported(format!(
                    "a pattern that ignores the case of {letter:?}"
                )));
            }
        }
        Ok(Self::new(ranges))
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

fn has_case(character: char) -> bool {
    !character.to_lowercase().eq([character])
        || !character.to_uppercase().eq([character])
        || character.is_lowercase()
        || character.is_uppercase()
}

/// `\d`, `\s` and `\w`, by their letter in lower case.
pub(crate) fn perl(letter: char) -> Option<Set> {
    Some(match letter {
        'd' => category("Nd")?,
        'w' => Set(WORDS.ranges(|is_word| is_word != 0)),
        's' => Set::new(
            // White space has not grown since Unicode 6.3, and is in the first planes.
            (0..0x4000)
                .filter(|&code| char::from_u32(code).is_some_and(char::is_whitespace))
                .map(|code| (code, code))
                .collect(),
        ),
        _ => return None,
    })
}

/// The set that `\p{...}` names.
///
/// # Errors
/// [`Fault::Unsupported`] for a name that is not known.
pub(crate) fn property(name: &str) -> Result<Set, Fault> {
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, ' ' | '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let value = match plain.split_once(['=', ':']) {
        Some(("gc" | "generalcategory" | "sc" | "script", value)) => value,
        _ => plain.as_str(),
    };
    let short = LONG_NAMES
        .iter()
        .find(|(long, _)| *long == value)
        .map_or(value, |(_, short)| short);
    let known = category(short).or_else(|| script(value));
    known.ok_or_else(|| Fault::Unsupported(format!("a pattern with the property {name:?}")))
}

/// Names of categories in words, for those that patterns use.
const LONG_NAMES: &[(&str, &str)] = &[
    ("letter", "l"),
    ("mark", "m"),
    ("number", "n"),
    ("other", "c"),
    ("punctuation", "p"),
    ("separator", "z"),
    ("symbol", "s"),
    ("uppercaseletter", "lu"),
    ("lowercaseletter", "ll"),
    ("titlecaseletter", "lt"),
    ("modifierletter", "lm"),
    ("otherletter", "lo"),
    ("nonspacingmark", "mn"),
    ("decimalnumber", "nd"),
];

/// A general category by its short name, or a group of them by their first letter.
fn category(name: &str) -> Option<Set> {
    let wanted: Vec<bool> = CATEGORY_NAMES
        .iter()
        .map(|known| match name.len() {
            1 => known[..1].eq_ignore_ascii_case(name),
            _ => known.eq_ignore_ascii_case(name),
        })
        .collect();
    if !wanted.contains(&true) {
        return None;
    }
    let is_wanted = |value: u8| wanted.get(usize::from(value)) == Some(&true);
    Some(Set(CATEGORIES.ranges(is_wanted)))
}

fn script(name: &str) -> Option<Set> {
    let index = SCRIPT_NAMES
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name))?;
    Some(Set(SCRIPTS.ranges(|value| usize::from(value) == index + 1)))
}
