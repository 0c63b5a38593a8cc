//! Unicode normalisation (<https://www.unicode.org/reports/tr15/>) with the tables of Unicode 9,
//! those of `unicode-normalization-alignments`, on which published tokenizers rely.
//!
//! Every character comes with its change, as the original's: 0 where it replaces one character of
//! the text, 1 where it is added, -n where it stands for n characters more.

use std::sync::LazyLock;

use crate::unicode::runs::{Runs, byte, differences, varint};

/// A character and its change.
pub(crate) type Edit = (char, i32);

/// Which decompositions are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those that mean the same: NFC and NFD.
    Canonical,
    /// Those that look similar as well: NFKC and NFKD.
    Compatible,
}

/// No text grows by more when it is decomposed: U+FDFA becomes 33 bytes of its 3.
pub(crate) const MOST_DECOMPOSED: usize = 11;

/// Canonical combining classes.
static CLASSES: LazyLock<Runs> =
    LazyLock::new(|| Runs::read(include_bytes!("tables/combining_classes.bin")));

static DECOMPOSITIONS: LazyLock<Decompositions> =
    LazyLock::new(|| Decompositions::read(include_bytes!("tables/decompositions.bin")));

/// Where the characters of a decomposition lie: the first, and behind the last.
type Place = (usize, usize);

#[derive(Debug, Default)]
struct Decompositions {
    /// The characters of all that are no pairs.
    texts: Vec<char>,
    compatible: Vec<(char, Place)>,
    /// Canonical and complete.
    whole: Vec<(char, Place)>,
    /// Canonical pairs, of which the first may have its own, and which compose again.
    pairs: Vec<(char, (char, char))>,
    /// The pairs again, in order: both characters and the one that they make, 21 bits each.
    composed: Vec<u64>,
}

impl Decompositions {
    /// Reads the table: the pairs, the other canonical ones, the compatible ones. Of each kind it has the number, all
    /// characters, the lengths of all decompositions, their first characters, and their other ones.
    fn read(mut table: &[u8]) -> Self {
        let mut all = Self::default();
        let pairs = all.next(&mut table).into_iter();
        all.pairs = pairs
            .filter_map(|(whole, (at, _))| {
                Some((whole, (*all.texts.get(at)?, *all.texts.get(at + 1)?)))
            })
            .collect();
        all.texts.clear();
        all.whole = all.next(&mut table);
        all.compatible = all.next(&mut table);
        let pairs = all.pairs.iter();
        all.composed = pairs
            .map(|&(whole, (first, second))| packed(first, second) | u64::from(whole))
            .collect();
        all.composed.sort_unstable();
        all
    }

    /// The decompositions of the next kind; their characters are added to all.
    fn next(&mut self, table: &mut &[u8]) -> Vec<(char, Place)> {
        // The tables hold nothing but characters; a test makes them.
        let character = |code| char::from_u32(code).unwrap_or_default();
        let count = varint(table);
        let characters = differences(table, count);
        let lengths: Vec<u8> = (0..count).map(|_| byte(table)).collect();
        let firsts = differences(table, count);
        let mut entry = |((code, length), first): ((u32, u8), u32)| {
            let from = self.texts.len();
            self.texts.push(character(first));
            let others = (1..length).map(|_| character(varint(table)));
            self.texts.extend(others);
            (character(code), (from, self.texts.len()))
        };
        let all = characters.into_iter().zip(lengths).zip(firsts);
        all.map(&mut entry).collect()
    }

    /// Hands out the full decomposition of a character, which may be itself.
    fn of(&self, character: char, kind: Kind, out: &mut impl FnMut(char)) {
        if let Some(syllable) = hangul::index(character) {
            return hangul::decompose(syllable, out);
        }
        let whole = match kind {
            Kind::Compatible => find(&self.compatible, &character),
            Kind::Canonical => None,
        };
        if let Some((from, to)) = whole.or_else(|| find(&self.whole, &character)) {
            return self.texts[from..to].iter().copied().for_each(out);
        }
        match find(&self.pairs, &character) {
            Some((first, second)) => {
                self.of(first, Kind::Canonical, out);
                out(second);
            }
            None => out(character),
        }
    }

    fn compose(&self, first: char, second: char) -> Option<char> {
        let composed = hangul::compose(first, second);
        composed.or_else(|| {
            let pair = packed(first, second);
            let after = self.composed.partition_point(|&entry| entry < pair);
            let whole = self.composed.get(after)?.checked_sub(pair)?;
            u32::try_from(whole).ok().and_then(char::from_u32)
        })
    }
}

/// A pair, with room for the character that it makes.
fn packed(first: char, second: char) -> u64 {
    u64::from(first) << 42 | u64::from(second) << 21
}

fn find<K: Ord, V: Copy>(table: &[(K, V)], key: &K) -> Option<V> {
    let at = table.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
    table.get(at).map(|&(_, value)| value)
}

/// A character with its combining class and its change.
pub(crate) type Classed = (u8, char, i32);

/// Decomposes a text and puts its marks in order: NFD and NFKD.
pub(crate) fn decompose(text: &str, kind: Kind) -> Vec<Edit> {
    let mut classed = Vec::with_capacity(text.len());
    decompose_into(text, kind, &mut classed);
    let edits = classed.into_iter();
    edits.map(|(_, c, change)| (c, change)).collect()
}

/// How many bytes a text has when it is decomposed.
pub(crate) fn decomposed_bytes(text: &str, kind: Kind) -> usize {
    let table = &*DECOMPOSITIONS;
    let mut bytes = 0_usize;
    for character in text.chars() {
        let mut add = |part: char| bytes = bytes.saturating_add(part.len_utf8());
        match character.is_ascii() {
            true => add(character),
            false => table.of(character, kind, &mut add),
        }
    }
    bytes
}

/// Decomposes a text and composes it again as far as it goes: NFC and NFKC.
pub(crate) fn compose(text: &str, kind: Kind) -> Vec<Edit> {
    let table = &*DECOMPOSITIONS;
    let mut out = Vec::with_capacity(text.len());
    let mut starter: Option<Edit> = None;
    let mut marks = Vec::new();
    let mut last_class = None;
    let mut classed = Vec::with_capacity(text.len());
    decompose_into(text, kind, &mut classed);
    for (class, character, change) in classed {
        let Some((composed, before)) = starter else {
            match class {
                0 => starter = Some((character, change)),
                _ => out.push((character, change)),
            }
            continue;
        };
        let blocked = last_class.is_some_and(|last| last >= class);
        if !blocked && let Some(whole) = table.compose(composed, character) {
            starter = Some((whole, before + change - 1));
        } else if class == 0 {
            out.push((composed, before));
            out.append(&mut marks);
            starter = Some((character, change));
            last_class = None;
        } else {
            marks.push((character, change));
            last_class = Some(class);
        }
    }
    out.extend(starter);
    out.append(&mut marks);
    out
}

/// The same as [`decompose`], into memory that is there, with the classes.
pub(crate) fn decompose_into(text: &str, kind: Kind, out: &mut Vec<Classed>) {
    let table = &*DECOMPOSITIONS;
    out.clear();
    // Where the marks after the last starter begin.
    let mut marks = 0;
    for character in text.chars() {
        let mut change = 0;
        let mut push = |part: char| {
            let class = if part.is_ascii() {
                0
            } else {
                CLASSES.get(part)
            };
            if class == 0 {
                sort(out, marks);
                marks = out.len() + 1;
            }
            out.push((class, part, change));
            change = 1;
        };
        if character.is_ascii() {
            push(character);
        } else {
            table.of(character, kind, &mut push);
        }
    }
    sort(out, marks);
}

/// Sorts what follows the last starter by class; equals stay in order.
fn sort(out: &mut [Classed], marks: usize) {
    let Some(marks) = out.get_mut(marks..) else {
        return;
    };
    if marks.is_sorted_by_key(|&(class, ..)| class) {
        return;
    }
    // As numbers, class and place: sorting them is compiled anyway.
    let mut order: Vec<u64> = (0_u64..)
        .zip(&*marks)
        .map(|(place, &(class, ..))| u64::from(class) << 32 | place)
        .collect();
    order.sort_unstable();
    let before = marks.to_vec();
    for (mark, key) in marks.iter_mut().zip(order) {
        *mark = before[key as u32 as usize];
    }
}

/// Hangul syllables are composed of their letters by arithmetic (The Unicode Standard, 3.12).
mod hangul {
    const S_BASE: u32 = 0xAC00;
    const L_BASE: u32 = 0x1100;
    const V_BASE: u32 = 0x1161;
    const T_BASE: u32 = 0x11A7;
    const L_COUNT: u32 = 19;
    const V_COUNT: u32 = 21;
    const T_COUNT: u32 = 28;
    const S_COUNT: u32 = L_COUNT * V_COUNT * T_COUNT;

    /// Which syllable a character is, if it is one.
    pub(super) fn index(character: char) -> Option<u32> {
        within(character, S_BASE, S_COUNT)
    }

    pub(super) fn decompose(syllable: u32, out: &mut impl FnMut(char)) {
        let tail = syllable % T_COUNT;
        let letters = [
            L_BASE + syllable / (V_COUNT * T_COUNT),
            V_BASE + syllable % (V_COUNT * T_COUNT) / T_COUNT,
            T_BASE + tail,
        ];
        let count = if tail == 0 { 2 } else { 3 };
        letters
            .into_iter()
            .take(count)
            .filter_map(char::from_u32)
            .for_each(out);
    }

    pub(super) fn compose(first: char, second: char) -> Option<char> {
        if let (Some(lead), Some(vowel)) = (
            within(first, L_BASE, L_COUNT),
            within(second, V_BASE, V_COUNT),
        ) {
            return char::from_u32(S_BASE + (lead * V_COUNT + vowel) * T_COUNT);
        }
        let syllable = index(first).filter(|syllable| syllable % T_COUNT == 0)?;
        let tail = within(second, T_BASE, T_COUNT).filter(|&tail| tail > 0)?;
        char::from_u32(S_BASE + syllable + tail)
    }

    fn within(character: char, base: u32, count: u32) -> Option<u32> {
        u32::from(character)
            .checked_sub(base)
            .filter(|&index| index < count)
    }
}
