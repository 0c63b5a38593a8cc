//! Characters that are seen as one: extended grapheme clusters (<https://www.unicode.org/reports/tr29/>, whose rules the comments
//! name), with the table of Unicode 17, that of `unicode-segmentation`, by which `tokenizers` cuts.

use std::str::CharIndices;
use std::sync::LazyLock;

use super::runs::Runs;

/// What a character is where clusters are cut, in the table's low bits.
pub(super) const CLASS: u8 = 0x0f;
pub(super) const CONTROL: u8 = 1;
pub(super) const CR: u8 = 2;
pub(super) const LF: u8 = 3;
pub(super) const EXTEND: u8 = 4;
pub(super) const ZWJ: u8 = 5;
pub(super) const SPACING: u8 = 6;
pub(super) const PREPEND: u8 = 7;
pub(super) const REGIONAL: u8 = 8;
pub(super) const PICTURE: u8 = 9;
pub(super) const CONSONANT: u8 = 10;
pub(super) const L: u8 = 11;
pub(super) const V: u8 = 12;
pub(super) const T: u8 = 13;
pub(super) const LV: u8 = 14;
pub(super) const LVT: u8 = 15;
/// Joins the consonants of a conjunct (InCB=Linker).
pub(super) const LINKER: u8 = 0x10;
/// May stand between the consonants of a conjunct (InCB=Extend).
pub(super) const BETWEEN: u8 = 0x20;

static GRAPHEMES: LazyLock<Runs> =
    LazyLock::new(|| Runs::read(include_bytes!("tables/graphemes.bin")));

/// The clusters of a text, which are all of it.
pub(crate) fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    Graphemes {
        text,
        from: 0,
        characters: text.char_indices(),
        before: Before::default(),
    }
}

struct Graphemes<'t> {
    text: &'t str,
    /// Where the next cluster begins.
    from: usize,
    characters: CharIndices<'t>,
    before: Before,
}

impl<'t> Iterator for Graphemes<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let from = self.from;
        for (at, character) in self.characters.by_ref() {
            let value = value(character);
            let cut = self.before.cuts(value & CLASS);
            self.before.pass(value);
            if cut && at > from {
                self.from = at;
                return Some(&self.text[from..at]);
            }
        }
        self.from = self.text.len();
        (from < self.from).then(|| &self.text[from..])
    }
}

fn value(character: char) -> u8 {
    match character {
        ' '..='~' => 0,
        _ => GRAPHEMES.get(character),
    }
}

/// What is known of the characters so far.
#[derive(Default)]
struct Before {
    /// The class of the last.
    class: u8,
    /// Regional indicators at the end are odd in number.
    odd: bool,
    /// There is a picture at the end, with nothing but extending characters behind it.
    picture: bool,
    /// The same with a joiner behind that.
    joined: bool,
    /// There is a consonant at the end, with nothing but what may stand in a conjunct behind it.
    consonant: bool,
    /// And a linker is among that.
    linked: bool,
}

impl Before {
    /// Whether a cluster ends before a character of this class.
    fn cuts(&self, next: u8) -> bool {
        match (self.class, next) {
            (CR, LF) => false,                                               // GB3
            (CONTROL | CR | LF, _) | (_, CONTROL | CR | LF) => true,         // GB4, GB5
            (L, L | V | LV | LVT) | (LV | V, V | T) | (LVT | T, T) => false, // GB6 to GB8
            (_, EXTEND | ZWJ | SPACING) | (PREPEND, _) => false,             // GB9 to GB9b
            (_, CONSONANT) => !self.linked,                                  // GB9c
            (ZWJ, PICTURE) => !self.joined,                                  // GB11
            (REGIONAL, REGIONAL) => !self.odd,                               // GB12, GB13
            _ => true,                                                       // GB999
        }
    }

    fn pass(&mut self, value: u8) {
        let class = value & CLASS;
        self.joined = self.picture && class == ZWJ;
        self.picture = class == PICTURE || self.picture && class == EXTEND;
        self.odd = class == REGIONAL && !self.odd;
        self.linked =
            self.consonant && (value & LINKER != 0 || self.linked && value & BETWEEN != 0);
        self.consonant = class == CONSONANT || self.consonant && value & (LINKER | BETWEEN) != 0;
        self.class = class;
    }
}
