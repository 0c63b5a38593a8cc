//! Bytes as characters that can be seen: the alphabet of GPT-2
//! (<https://github.com/openai/gpt-2>, `src/encoder.py`, `bytes_to_unicode`).

use std::sync::LazyLock;

use crate::budget::Stop;
use crate::error::Fault;
use crate::regex::Regex;
use crate::split::pattern::Pattern;
use crate::split::pieces::Piece;
use crate::unicode::normal::Edit;

/// GPT-2's split into words (the same file).
const WORDS: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The same, compiled once however often a file names it.
pub(crate) fn words() -> Result<&'static Pattern, Fault> {
    static COMPILED: LazyLock<Result<Pattern, Fault>> =
        LazyLock::new(|| Regex::new(WORDS).map(Pattern::Regex));
    COMPILED.as_ref().map_err(Clone::clone)
}

/// Puts the character of each byte in its place.
pub(crate) fn spell(piece: &mut Piece) -> Result<(), Stop> {
    let mut edits: Vec<Edit> = Vec::with_capacity(piece.text().len());
    for c in piece.text().chars() {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).bytes().enumerate();
        edits.extend(bytes.map(|(index, byte)| (character(byte), i32::from(index > 0))));
    }
    piece.edit(&edits, 0)
}

/// A byte that is printed stands for itself; the others, in order, for what follows 255.
fn character(byte: u8) -> char {
    let moved = match byte {
        0..=0x20 => Some(u32::from(byte)),
        0x7f..=0xa0 => Some(u32::from(byte) - 0x7f + 0x21),
        0xad => Some(0x43),
        _ => None,
    };
    moved
        .and_then(|index| char::from_u32(0x100 + index))
        .unwrap_or(char::from(byte))
}

/// The byte that a character stands for; `None` for one that stands for none.
pub(crate) fn byte_of(c: char) -> Option<u8> {
    let byte = match u32::from(c) {
        moved @ 0x100..=0x120 => moved - 0x100,
        moved @ 0x121..=0x142 => moved - 0x121 + 0x7f,
        0x143 => 0xad,
        own => own,
    };
    let byte = u8::try_from(byte).ok()?;
    (character(byte) == c).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_and_no_other_character_is_one() {
        for byte in 0..=u8::MAX {
            assert_eq!(byte_of(character(byte)), Some(byte));
        }
        let all = ('\0'..=char::MAX).filter(|&c| byte_of(c).is_some());
        assert_eq!(all.count(), 256);
    }
}
