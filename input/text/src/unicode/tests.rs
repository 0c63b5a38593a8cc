//! Makes the tables from the crates that `tokenizers` uses, and compares them with the stored ones.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use tokenizers::pre_tokenizers::unicode_scripts::UnicodeScripts;
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};
use unicode_categories::UnicodeCategories as _;
use unicode_normalization_alignments::UnicodeNormalization as _;
use unicode_normalization_alignments::char as theirs;
use unicode_segmentation::UnicodeSegmentation as _;

use super::graphemes::{self, graphemes};
use super::normal::{Edit, Kind, compose, decompose};
use super::*;

fn characters() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

fn varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A table of runs from a value for each code point.
fn table(value: impl Fn(u32) -> u8) -> Vec<u8> {
    let end = u32::from(char::MAX) + 1;
    let mut runs: Vec<(u32, u8)> = Vec::new();
    let mut start = 0;
    for code in 1..=end {
        if code == end || value(code) != value(start) {
            runs.push((code - start, value(start)));
            start = code;
        }
    }
    let mut out = Vec::new();
    varint(runs.len() as u32, &mut out);
    runs.iter()
        .for_each(|&(length, _)| varint(length, &mut out));
    out.extend(runs.iter().map(|&(_, value)| value));
    out
}

/// Numbers, each as its difference from the one before.
fn differences(numbers: impl Iterator<Item = u32>, out: &mut Vec<u8>) {
    let mut last = 0;
    for number in numbers {
        let difference = number.wrapping_sub(last) as i32;
        varint((difference << 1 ^ difference >> 31) as u32, out);
        last = number;
    }
}

/// The value of each code point, from the characters of numbered classes of a pattern.
fn classes<'a>(patterns: impl IntoIterator<Item = (u8, &'a str)>) -> Vec<u8> {
    let mut values = vec![0; u32::from(char::MAX) as usize + 1];
    for (value, pattern) in patterns {
        for (start, end) in ranges(pattern) {
            values[start as usize..=end as usize].fill(value);
        }
    }
    values
}

/// What a class of a pattern holds, in the original's words.
pub(crate) fn ranges(pattern: &str) -> Vec<(u32, u32)> {
    use regex_syntax::hir::{Class, HirKind};
    match regex_syntax::parse(pattern).unwrap().into_kind() {
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges().iter();
            ranges
                .map(|range| (range.start().into(), range.end().into()))
                .collect()
        }
        // A class of one character.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).unwrap();
            text.chars().map(|c| (c.into(), c.into())).collect()
        }
        other => panic!("{pattern} is a class, not {other:?}"),
    }
}

/// Fails where a kept table differs from the one that was made, or writes it where that is asked.
fn holds(name: &str, kept: &[u8], made: &[u8]) {
    if std::env::var_os("ISOVEC_WRITE_TABLES").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/unicode/tables");
        std::fs::write(folder.join(name), made).unwrap();
    } else {
        assert!(
            kept == made,
            "{name} is not what the crates say; ISOVEC_WRITE_TABLES=1 writes it anew"
        );
    }
}

#[test]
fn categories_are_the_originals() {
    let patterns: Vec<(u8, String)> = CATEGORY_NAMES
        .iter()
        .enumerate()
        .filter(|&(_, &name)| name != "Cs")
        .map(|(value, name)| (value as u8, format!(r"\p{{{name}}}")))
        .collect();
    let values = classes(patterns.iter().map(|(value, name)| (*value, name.as_str())));
    // Surrogates are no characters; their value only keeps the runs together.
    let made = table(|code| match code {
        0xd800..=0xdfff => 28,
        _ => values[code as usize],
    });
    holds(
        "categories.bin",
        include_bytes!("tables/categories.bin"),
        &made,
    );
}

#[test]
fn scripts_are_the_originals() {
    let patterns: Vec<String> = SCRIPT_NAMES
        .iter()
        .map(|name| format!(r"\p{{{name}}}"))
        .collect();
    let values = classes((1..).zip(patterns.iter().map(String::as_str)));
    let made = table(|code| values[code as usize]);
    holds("scripts.bin", include_bytes!("tables/scripts.bin"), &made);
}

#[test]
fn words_are_the_originals() {
    let values = classes([(1, r"\w")]);
    let made = table(|code| values[code as usize]);
    holds("words.bin", include_bytes!("tables/words.bin"), &made);
}

#[test]
fn traits_are_the_originals() {
    let made = table(|code| {
        let Some(c) = char::from_u32(code) else {
            return 0;
        };
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        bit(c.is_other(), OTHER)
            | bit(c.is_punctuation(), PUNCTUATION)
            | bit(c.is_mark_nonspacing(), NONSPACING)
            | bit(theirs::is_combining_mark(c), COMBINING)
    });
    holds("traits.bin", include_bytes!("tables/traits.bin"), &made);
    for c in characters() {
        let ascii = c.is_ascii_punctuation();
        assert_eq!(is_punctuation(c), ascii || c.is_punctuation(), "{c:?}");
        assert_eq!(is_other(c), c.is_other(), "{c:?}");
        assert_eq!(is_mark_nonspacing(c), c.is_mark_nonspacing(), "{c:?}");
        assert_eq!(is_combining_mark(c), theirs::is_combining_mark(c), "{c:?}");
    }
}

#[test]
fn combining_classes_are_the_originals() {
    let made = table(|code| char::from_u32(code).map_or(0, theirs::canonical_combining_class));
    holds(
        "combining_classes.bin",
        include_bytes!("tables/combining_classes.bin"),
        &made,
    );
}

/// Where the original cuts a text between two scripts.
fn cut(text: &str) -> Vec<String> {
    let mut pieces = PreTokenizedString::from(text);
    UnicodeScripts.pre_tokenize(&mut pieces).unwrap();
    pieces
        .get_splits(OffsetReferential::Original, OffsetType::Byte)
        .into_iter()
        .map(|(piece, ..)| piece.to_owned())
        .collect()
}

#[test]
fn sentencepiece_scripts_are_the_originals() {
    // The original keeps its table to itself: a character belongs with a script when it is not
    // cut off from a character of that script, and with any when it is cut off from none.
    let together = |a: char, b: char| cut(&format!("{a}{b}")).len() == 1;
    let (latin, han) = ('a', '\u{4e00}');
    let mut members: Vec<char> = Vec::new();
    let mut last = 0;
    let mut value = |c: char| {
        if together(latin, c) && together(han, c) {
            return 0;
        }
        if last > 0 && together(members[last - 1], c) {
            return last as u8;
        }
        let found = members.iter().position(|&member| together(member, c));
        last = 1 + found.unwrap_or_else(|| {
            members.push(c);
            members.len() - 1
        });
        last as u8
    };
    let mut values = vec![0; u32::from(char::MAX) as usize + 1];
    for c in characters() {
        values[u32::from(c) as usize] = value(c);
    }
    let made = table(|code| values[code as usize]);
    holds(
        "sentencepiece_scripts.bin",
        include_bytes!("tables/sentencepiece_scripts.bin"),
        &made,
    );
}

fn full(c: char) -> Vec<char> {
    let mut parts = Vec::new();
    theirs::decompose_canonical(c, |part| parts.push(part));
    parts
}

#[test]
fn decompositions_are_the_originals() {
    let is_hangul = |c: char| ('\u{ac00}'..='\u{d7a3}').contains(&c);
    let mut by_decomposition: HashMap<Vec<char>, Vec<char>> = HashMap::new();
    for c in characters() {
        by_decomposition.entry(full(c)).or_default().push(c);
    }
    let mut pairs: Vec<(char, Vec<char>)> = Vec::new();
    let (mut whole, mut compatible) = (Vec::new(), Vec::new());
    for c in characters().filter(|&c| !is_hangul(c)) {
        let canonical = full(c);
        let mut parts = Vec::new();
        theirs::decompose_compatible(c, |part| parts.push(part));
        if parts != canonical {
            compatible.push((c, parts));
        }
        if canonical != [c] {
            let (&second, prefix) = canonical.split_last().unwrap();
            let firsts = by_decomposition.get(prefix).into_iter().flatten();
            let mut firsts = firsts.filter(|&&first| theirs::compose(first, second) == Some(c));
            match firsts.next() {
                Some(&first) => pairs.push((c, vec![first, second])),
                None => whole.push((c, canonical)),
            }
        }
    }
    let mut made = Vec::new();
    for kind in [pairs, whole, compatible] {
        varint(kind.len() as u32, &mut made);
        differences(kind.iter().map(|&(c, _)| c.into()), &mut made);
        made.extend(kind.iter().map(|(_, parts)| parts.len() as u8));
        differences(kind.iter().map(|(_, parts)| parts[0].into()), &mut made);
        let others = kind.iter().flat_map(|(_, parts)| &parts[1..]);
        others.for_each(|&part| varint(part.into(), &mut made));
    }
    holds(
        "decompositions.bin",
        include_bytes!("tables/decompositions.bin"),
        &made,
    );
}

/// All four forms of a text are the original's.
fn same_forms(text: &str) {
    let same = |ours: Vec<Edit>, theirs: Vec<(char, isize)>| {
        let ours: Vec<_> = ours.into_iter().map(|(c, n)| (c, n as isize)).collect();
        assert_eq!(ours, theirs, "{text:?}");
    };
    same(decompose(text, Kind::Canonical), text.nfd().collect());
    same(decompose(text, Kind::Compatible), text.nfkd().collect());
    same(compose(text, Kind::Canonical), text.nfc().collect());
    same(compose(text, Kind::Compatible), text.nfkc().collect());
}

#[test]
fn every_character_is_normalised_as_the_original_does() {
    for c in characters() {
        let text: String = [c, '\u{301}', 'a', c, '\u{323}', '\u{345}', c]
            .iter()
            .collect();
        same_forms(&text);
    }
    // Every pair that composes is the decomposition of something.
    for c in characters() {
        same_forms(&full(c).iter().collect::<String>());
    }
}

proptest! {
    #[test]
    fn any_text_is_normalised_as_the_original_does(
        text in any::<String>(),
        marks in "[a\u{e9}\u{301}\u{323}\u{327}\u{345}\u{5b0}\u{3b1}\u{1100}\u{1161}\u{11a8}\u{ac00}\u{ac01}\u{212b}\u{fb01}\u{fdfa}\u{1d15e}\u{9d7}\u{9c7}]{0,20}",
    ) {
        same_forms(&text);
        same_forms(&marks);
    }
}

/// Whether the original cuts between the last two characters of a text.
fn is_cut(text: &str) -> bool {
    let last = text.chars().next_back().map_or(0, char::len_utf8);
    text.grapheme_indices(true)
        .any(|(at, _)| at == text.len() - last)
}

/// What a character is to clusters, by how the original cuts beside characters that are known.
fn grapheme_value(c: char) -> u8 {
    use graphemes::*;
    let cut = |text: &[char]| is_cut(&text.iter().collect::<String>());
    let (mark, joiner, picture) = ('\u{300}', '\u{200d}', '\u{1f600}');
    let (flag, consonant, linker) = ('\u{1f1e6}', '\u{915}', '\u{94d}');
    let (l, v, t) = ('\u{1100}', '\u{1161}', '\u{11a8}');
    let class = match c {
        '\r' => CR,
        '\n' => LF,
        _ if c == joiner => ZWJ,
        _ if cut(&[c, mark]) => CONTROL,
        // After a picture the marks that extend it may stand before the joiner, and no others.
        _ if !cut(&['a', c]) && cut(&[picture, c, joiner, picture]) => SPACING,
        _ if !cut(&['a', c]) => EXTEND,
        _ if !cut(&[c, 'a']) => PREPEND,
        _ if !cut(&[flag, c]) => REGIONAL,
        _ if !cut(&[picture, joiner, c]) => PICTURE,
        _ if !cut(&[consonant, linker, c]) => CONSONANT,
        _ if !cut(&[c, l]) => L,
        _ if !cut(&[l, c]) && !cut(&[c, v]) && !cut(&[v, c]) => V,
        _ if !cut(&[l, c]) && !cut(&[c, v]) => LV,
        _ if !cut(&[l, c]) => LVT,
        _ if !cut(&[v, c]) && !cut(&[t, c]) => T,
        _ => 0,
    };
    let links = !cut(&[consonant, c, consonant]);
    let between = !links && !cut(&[consonant, linker, c, consonant]);
    // Nothing is cut behind PREPEND, so what it does in a conjunct cannot be seen.
    match class {
        PREPEND => class,
        _ if links => class | LINKER,
        _ if between => class | BETWEEN,
        _ => class,
    }
}

#[test]
fn graphemes_are_the_originals() {
    let made = table(|code| char::from_u32(code).map_or(graphemes::CONTROL, grapheme_value));
    holds(
        "graphemes.bin",
        include_bytes!("tables/graphemes.bin"),
        &made,
    );
}

proptest! {
    #[test]
    fn any_text_is_cut_as_the_original_cuts_it(text in grapheme_text()) {
        let wanted: Vec<&str> = text.graphemes(true).collect();
        prop_assert_eq!(graphemes(&text).collect::<Vec<_>>(), wanted);
    }
}

/// Characters of every class, close together, among any others.
fn grapheme_text() -> impl Strategy<Value = String> {
    let of_classes = prop::sample::select(
        "a\r\n\u{1}\u{300}\u{200d}\u{903}\u{600}\u{1f1e6}\u{1f1e7}\u{1f600}\u{2764}\u{fe0f}\u{1f3fd}\u{915}\u{937}\u{94d}\u{9cd}\u{93c}\u{1100}\u{1161}\u{11a8}\u{ac00}\u{ac01}\u{200c}\u{11070}\u{e33}"
            .chars()
            .collect::<Vec<char>>(),
    );
    prop::collection::vec(prop_oneof![8 => of_classes, 1 => any::<char>()], 0..12)
        .prop_map(|characters| characters.into_iter().collect())
}
