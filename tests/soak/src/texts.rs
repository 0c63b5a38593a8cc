//! The texts that are embedded again and again.

use crate::rng::Rng;

/// How many there are.
pub(crate) const COUNT: usize = 192;

const WORDS: [&str; 16] = [
    "the", "cat", "sat", "on", "a", "mat", "and", "stocks", "fell", "while", "rain", "came",
    "over", "old", "hills", "again",
];

/// What is not a sentence.
const ODD: [&str; 8] = [
    "",
    " \t\u{a0} ",
    "\u{0}",
    "e\u{301}\u{301}\u{301}",
    "👩‍👩‍👧‍👦 und ein Kind",
    "漢字かな交じり文",
    "����\u{202e}left",
    "a-b_c.d,e;f:g!h?i(j)k[l]m{n}o",
];

/// The same texts every time: most of up to 12 words, every sixteenth of up to 120, and odd ones.
pub(crate) fn texts() -> Vec<String> {
    let mut rng = Rng::of(7, 0);
    let mut texts: Vec<String> = ODD.iter().map(|text| (*text).to_owned()).collect();
    texts.resize_with(COUNT, || {
        let longest = if rng.once_in(16) { 120 } else { 12 };
        let words = (0..=rng.below(longest)).map(|_| WORDS[rng.below(WORDS.len())]);
        words.collect::<Vec<_>>().join(" ")
    });
    texts
}
