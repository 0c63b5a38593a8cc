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
