//! The Unicode tables of the original's crates, each in the same version, in a tenth of their size.
//!
//! A page has to download these tables, so they are stored as runs of equal values ([`runs`]) and expanded on first
//! use. `tests.rs` makes them from the crates that `tokenizers` uses (regex-syntax, unicode_categories,
//! unicode-normalization-alignments, unicode-segmentation) and fails where a byte differs; with `ISOVEC_WRITE_TABLES`
//! set it writes them.

pub(crate) mod graphemes;
pub(crate) mod normal;
mod runs;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::LazyLock;

pub(crate) use runs::Runs;

/// The general categories, by the value that stands for them in [`CATEGORIES`].
pub(crate) const CATEGORY_NAMES: [&str; 30] = [
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co",
];

/// The scripts that a pattern can name, by the value that stands for them in [`SCRIPTS`], from 1.
pub(crate) const SCRIPT_NAMES: [&str; 30] = [
    "Arabic",
    "Armenian",
    "Bengali",
    "Bopomofo",
    "Common",
    "Cyrillic",
    "Devanagari",
    "Ethiopic",
    "Georgian",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Kannada",
    "Katakana",
    "Khmer",
    "Lao",
    "Latin",
    "Malayalam",
    "Mongolian",
    "Myanmar",
    "Sinhala",
    "Tamil",
    "Telugu",
    "Thai",
    "Tibetan",
];

/// General category, as patterns see it.
pub(crate) static CATEGORIES: LazyLock<Runs> =
    LazyLock::new(|| Runs::read(include_bytes!("tables/categories.bin")));

/// Script, as patterns see it; 0 for those that [`SCRIPT_NAMES`] leaves out.
pub(crate) static SCRIPTS: LazyLock<Runs> =
    LazyLock::new(|| Runs::read(include_bytes!("tables/scripts.bin")));

/// Whether a character is part of a word, as the pre-tokeniser `Whitespace` has it, and patterns of
/// files with a few exceptions.
pub(crate) static WORDS: LazyLock<Runs> =
    LazyLock::new(|| Runs::read(include_bytes!("tables/words.bin")));

/// The script that the pre-tokeniser `UnicodeScripts` goes by; 0 belongs with any.
pub(crate) static SENTENCEPIECE_SCRIPTS: LazyLock<Runs> =
    LazyLock::new(|| Runs::read(include_bytes!("tables/sentencepiece_scripts.bin")));

/// What normalisers and pre-tokenisers ask of a character, one bit each.
static TRAITS: LazyLock<Runs> = LazyLock::new(|| Runs::read(include_bytes!("tables/traits.bin")));

/// Control, format and private use: the categories Cc, Cf and Co.
const OTHER: u8 = 1;
/// Punctuation: the categories Pc, Pd, Pe, Pf, Pi, Po and Ps.
const PUNCTUATION: u8 = 2;
/// A mark without a width of its own: the category Mn.
const NONSPACING: u8 = 4;
/// A mark of any kind, as `StripAccents` understands it.
const COMBINING: u8 = 8;

pub(crate) fn is_other(character: char) -> bool {
    TRAITS.get(character) & OTHER != 0
}

pub(crate) fn is_punctuation(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_punctuation()
    } else {
        TRAITS.get(character) & PUNCTUATION != 0
    }
}

pub(crate) fn is_mark_nonspacing(character: char) -> bool {
    !character.is_ascii() && TRAITS.get(character) & NONSPACING != 0
}

pub(crate) fn is_combining_mark(character: char) -> bool {
    !character.is_ascii() && TRAITS.get(character) & COMBINING != 0
}

/// Whether a character is part of a word, as the pre-tokeniser `Whitespace` has it.
pub(crate) fn is_word(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_alphanumeric() || character == '_'
    } else {
        WORDS.get(character) != 0
    }
}
