//! This engine against Oniguruma, which `tokenizers` uses.

mod costs;
mod refusals;
#[cfg(not(target_arch = "wasm32"))]
mod twins;

use std::ops::Range;

use super::*;

/// The matches of a pattern that there is.
fn ours(pattern: &str, text: &str) -> Result<Vec<Range<usize>>, TooHard> {
    let mut found = Vec::new();
    let regex = Regex::new(pattern).unwrap_or_else(|fault| panic!("{pattern:?}: {fault:?}"));
    regex.each_match(text, |range| found.push(range))?;
    Ok(found)
}

/// Patterns of published tokenizers.
const PUBLISHED: &[&str] = &[
    // GPT-2, RoBERTa, StarCoder, ModernBERT (`ByteLevel`).
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    // cl100k, Llama 3; Qwen 2; Command R.
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    // o200k, and GPT-OSS; Mistral's Tekken.
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    // Bloom.
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    // Falcon, StarCoder: digits; DeepSeek LLM, Coder and V3.
    r"[0-9][0-9][0-9]",
    r"\d",
    r"[\r\n]",
    r"\s?\p{L}+",
    r"\s?\p{P}+",
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗ]+",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"\s+$",
    r"[一-龥ࠀ-一가-퟿]+",
    r"\p{N}{1,3}",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
    r"[一-龥぀-ゟ゠-ヿ]+",
    // Kimi.
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    // CLIP.
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    // `Replace` of XLM-R, T5, Gemma, DeBERTa, Whisper.
    " {2,}",
    " +",
    r"\s+",
    r"\n| +",
    r" +\n",
    r"^\s+|\s+$",
    r"(``|'')",
    r"[\n\r\t]",
    r"\s*[\r\n]+",
    r"\u00a0|\x{3000}",
];

/// Others that use every part of the syntax.
const MADE_UP: &[&str] = &[
    "",
    "^",
    "$",
    "^$",
    r"\A|\z|\Z",
    "a*",
    "a*?b|a+?",
    "(?:a|ab)(?:c|bcd)?",
    "(a|b)*?c|(?:a?)*",
    "(?:ab?){2,3}|(?:b|é){0,2}a",
    "(?>a+)b|(?>a|ab)c|a",
    r"\ba+\b|\Bb",
    r"^a|b$|^$",
    r"(?m).\z|\Aa.",
    "(?<=a)b|(?<!a)b(?=c)|(?<=ab|é!)c|(?<=abc|d)!",
    r"[^a-cé\-]|[]a]|[a\]-]|[a-]|[+--]|[a-z-9]",
    r"[a-zé&&[^c]&&[^b]]+|[[a]b[^c]]",
    r"\x41|\u00e9|\x{1F600}|\t|[\b]|\a\e\f\v",
    "(?i)k|S+",
    r"(?i:[a-z]x)|(?i)\w+x|[\da]|\S\W",
    r"a(?i)b|C",
    r"\d+|\D\W|\h+|\H",
    r"\R|\N\O",
    "a{2}|a{,1}b|}|{a}|a{x|a{,}",
    r"a{2}?|a{1,2}+b|a{3,1}|b{2}+",
    "(?<other>b)|(?#no)a(?#more)+",
    r"\p{^L}|\P{^Lu}|\p{ Cased_Letter }",
    r"\w|[\w]+|\p{Word}|[^\W]",
    r"[[:punct:][:digit:]]+|[[:^space:]]",
];

/// Texts that tell such patterns apart.
const TEXTS: &[&str] = &[
    "I'll say: it's 12345 o'clock, DON'T  worry \n\n  be\thappy   ",
    "Ünïcode é\u{301} 野口 ひらがな カタカナ 한국어 ١٢٣ Ⅷ ½ x² ½",
    "aabbcc abcd éé! a{x {a} ab aab \u{17f}K\u{212a}k S ``q''",
    "\r\n\r\n  \u{a0}\u{3000}x\u{200b}😀👩\u{200d}👩 — …",
    "HTTPServer camelCase ǅ ﬁ ß A\u{8}é\u{7}\u{1b}\u{c}\u{b}",
    "",
    "\n",
    "a\n",
    "\n\na\n\nb",
    "  a  \n  b  \n",
];
