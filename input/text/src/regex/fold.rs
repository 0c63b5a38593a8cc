//! Case folding. ASCII's letters are supported, with the two other characters that fold to one of them. A pattern
//! with any other letter that has a case is refused.

use std::sync::LazyLock;

use crate::error::Fault;
use crate::regex::class::Set;

/// Where letters with a case end.
const LAST_CASED: u32 = 0x2_0000;

/// The characters beyond ASCII that have another case.
static CASED: LazyLock<Set> = LazyLock::new(|| {
    let cased = (0x80..LAST_CASED).filter(|&code| char::from_u32(code).is_some_and(has_case));
    Set::new(cased.map(|code| (code, code)).collect())
});

/// Pairs of characters that, case ignored, are one character as well, such as an eszett.
const ONE: &[(char, char)] = &[
    ('s', 's'),
    ('s', 't'),
    ('f', 'f'),
    ('f', 'i'),
    ('f', 'l'),
    ('i', '\u{307}'),
    ('j', '\u{30c}'),
    ('h', '\u{331}'),
    ('t', '\u{308}'),
    ('w', '\u{30a}'),
    ('y', '\u{30a}'),
    ('a', '\u{2be}'),
    ('\u{2bc}', 'n'),
];

pub(super) fn may_be_one(first: char, second: char) -> bool {
    ONE.contains(&(first, second))
}

/// A character in lower case, for [`may_be_one`].
pub(super) fn lower(character: char) -> char {
    character.to_ascii_lowercase()
}

/// The set with the characters that differ from its members in case alone.
///
/// # Errors
/// [`Fault::Unsupported`] where it holds letters outside ASCII.
pub(super) fn without_case(set: &Set) -> Result<Set, Fault> {
    if !set.is_ascii() {
        let single = match (set.len(), set.ranges().next()) {
            (1, Some((start, end))) if start == end => Some(start),
            _ => None,
        };
        let cased = match single {
            Some(code) => Some(code).filter(|&c| char::from_u32(c).is_some_and(has_case)),
            None => set.intersection(&CASED).ranges().next().map(|(c, _)| c),
        };
        if let Some(letter) = cased.and_then(char::from_u32) {
            return Err(Fault::Unsupported(format!(
                "a pattern that ignores the case of {letter:?}"
            )));
        }
    }
    let mut ranges: Vec<(u32, u32)> = set.ranges().collect();
    for (start, end) in set.ranges() {
        for code in start..=end.min(127) {
            let letter = char::from(code as u8);
            if letter.is_ascii_alphabetic() {
                let other = code ^ 0x20;
                ranges.push((other, other));
            }
            // The long s and the sign of Kelvin.
            match letter {
                's' | 'S' => ranges.push((0x17f, 0x17f)),
                'k' | 'K' => ranges.push((0x212a, 0x212a)),
                _ => {}
            }
        }
    }
    Ok(Set::new(ranges))
}

/// Whether a character has another case. What has an upper case is lower-case by its properties, as a test knows, so the
/// standard library's table of upper cases is not asked, and no page downloads it.
fn has_case(character: char) -> bool {
    !character.to_lowercase().eq([character])
        || character.is_lowercase()
        || character.is_uppercase()
}

#[cfg(test)]
mod tests {
    use super::has_case;

    #[test]
    fn what_has_an_upper_case_has_a_case() {
        let other = |c: &char| !c.to_uppercase().eq([*c]);
        let cased: Vec<char> = (0..=u32::from(char::MAX))
            .filter_map(char::from_u32)
            .filter(other)
            .collect();
        assert!(cased.len() > 1000);
        let missed: Vec<&char> = cased.iter().filter(|c| !has_case(**c)).collect();
        assert!(missed.is_empty(), "{missed:?}");
    }
}
