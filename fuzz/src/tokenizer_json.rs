//! A grammar of tokenizer.json, and texts for it: every model, normaliser, pre-tokeniser and
//! post-processor that the format has, with small vocabularies over letters that texts share.

use std::collections::BTreeSet;

use arbitrary::{Result, Unstructured};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isovec_tokenize::fuzzing::generated;
use serde_json::{Map, Value, json};

/// Letters that pieces and texts share: ASCII, two bytes, three, four, marks, the word mark.
const LETTERS: &[&str] = &[
    "a", "b", "c", "é", "▁", "野", "\u{301}", "😀", "!", "A", "1", "Ġ",
];

/// What texts hold besides.
const STRANGE: &[&str] = &[
    " ",
    " ",
    " ",
    "  ",
    "x",
    "É",
    "İ",
    "ß",
    "\u{0}",
    "\t",
    "\n",
    "\r\n",
    "\u{a0}",
    "\u{200d}",
    "\u{3000}",
    "\u{fffd}",
    "\u{feff}",
    "ﬀ",
    "한",
    "\u{1112}\u{1161}\u{11ab}",
    "Ǆ",
    "…",
    "<unk>",
    "<s>",
    "[CLS]",
    "\u{10ffff}",
    "²",
    "½",
    "٣",
    "_",
    "'s",
    "'ll",
    "-",
    "ﷺ",
    "か\u{3099}",
    "Σ",
    "\u{345}",
    "\u{5b0}",
    "\u{94d}",
    "👩\u{200d}🚀",
    "🇩🇪",
    "\u{ad}",
    "\u{85}",
];

const UNKNOWN: &str = "<unk>";
const SPECIAL: [&str; 3] = [UNKNOWN, "<s>", "[CLS]"];

/// Patterns of published tokenizers, and plain ones.
const PATTERNS: &[&str] = &[
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\s+",
    r"[0-9]",
    r"\p{N}",
    r"a+b?",
    r"(?=a)",
    r"[^a-c]+",
    r"\S",
    r"a|ab|abc",
    r" {2,}",
    r".",
    r"\p{P}",
    r"b(?!c)",
    r"(?<=a)b",
    r"\n",
    r"▁",
    r"\p{Han}",
    r"[[:punct:]]",
];

/// Whether, so many times of a hundred.
pub fn chance(input: &mut Unstructured<'_>, percent: u8) -> Result<bool> {
    input.ratio(percent, 100)
}

fn pick<'a>(input: &mut Unstructured<'_>, from: &[&'a str]) -> Result<&'a str> {
    input.choose(from).copied()
}

/// Letters, `least` to `most` of them.
fn letters(input: &mut Unstructured<'_>, least: usize, most: usize) -> Result<String> {
    let count = input.int_in_range(least..=most)?;
    (0..count).map(|_| pick(input, LETTERS)).collect()
}

/// A text.
pub fn text(input: &mut Unstructured<'_>) -> Result<String> {
    let count = input.int_in_range(0..=40_usize)?;
    let mut text = String::new();
    for _ in 0..count {
        match input.int_in_range(0..=15_u8)? {
            0 => text.push(input.arbitrary()?),
            1..=5 => text.push_str(pick(input, STRANGE)?),
            6 => text.push_str(&pick(input, LETTERS)?.repeat(input.int_in_range(2..=9)?)),
            _ => text.push_str(pick(input, LETTERS)?),
        }
    }
    Ok(text)
}

/// A whole file.
pub fn tokenizer(input: &mut Unstructured<'_>) -> Result<Value> {
    let model = model(input)?;
    let processor = post_processor(input)?;
    let padding = json!({"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 1, "pad_type_id": 0, "pad_token": "<s>"});
    let direction = if input.arbitrary()? { "Left" } else { "Right" };
    let truncation =
        json!({"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": direction});
    Ok(json!({
        "version": "1.0",
        // Both must be overruled.
        "truncation": if input.arbitrary()? { truncation } else { Value::Null },
        "padding": if input.arbitrary()? { padding } else { Value::Null },
        "added_tokens": added_tokens(input)?,
        "normalizer": if chance(input, 70)? { normalizer(input, 2)? } else { Value::Null },
        "pre_tokenizer": if chance(input, 80)? { pre_tokenizer(input, 2)? } else { Value::Null },
        "post_processor": processor,
        "decoder": null,
        "model": model,
    }))
}

fn added_tokens(input: &mut Unstructured<'_>) -> Result<Vec<Value>> {
    let mut contents: Vec<String> = Vec::new();
    for special in SPECIAL {
        if chance(input, 80)? {
            contents.push(special.to_owned());
        }
    }
    for _ in 0..input.int_in_range(0..=4)? {
        contents.push(match input.int_in_range(0..=3_u8)? {
            0 => pick(input, STRANGE)?.to_owned(),
            1 => format!("{}{}", pick(input, STRANGE)?, letters(input, 1, 2)?),
            _ => letters(input, 1, 3)?,
        });
    }
    let mut seen = BTreeSet::new();
    contents.retain(|content| seen.insert(content.clone()));
    let mut tokens = Vec::new();
    for (id, content) in contents.into_iter().enumerate() {
        let special = SPECIAL.contains(&&*content) || chance(input, 30)?;
        tokens.push(json!({
            "id": id, "content": content, "special": special,
            "single_word": chance(input, 25)?, "lstrip": chance(input, 30)?,
            "rstrip": chance(input, 30)?, "normalized": chance(input, 40)?,
        }));
    }
    Ok(tokens)
}

/// Pieces with the special tokens first, as a map from piece to id.
fn mapped(pieces: &[String]) -> Value {
    let mut map = Map::new();
    for piece in SPECIAL.into_iter().chain(pieces.iter().map(String::as_str)) {
        let id = map.len();
        map.entry(piece).or_insert(json!(id));
    }
    Value::Object(map)
}

fn singles() -> impl Iterator<Item = String> {
    LETTERS.iter().map(|letter| (*letter).to_owned())
}

fn bytes() -> impl Iterator<Item = String> {
    (0..=255).map(|byte| format!("<0x{byte:02X}>"))
}

fn pieces(input: &mut Unstructured<'_>, most: usize) -> Result<Vec<String>> {
    let count = input.int_in_range(0..=most)?;
    let mut all = (0..count)
        .map(|_| letters(input, 1, 4))
        .collect::<Result<Vec<_>>>()?;
    if chance(input, 60)? {
        all.extend(singles());
    }
    Ok(all)
}

fn unknown(input: &mut Unstructured<'_>) -> Result<&'static str> {
    Ok(if chance(input, 90)? {
        UNKNOWN
    } else {
        "<none>"
    })
}

fn model(input: &mut Unstructured<'_>) -> Result<Value> {
    match input.int_in_range(0..=4_u8)? {
        0 => unigram(input),
        1 => wordpiece(input),
        2 => Ok(json!({"type": "WordLevel", "unk_token": unknown(input)?,
            "vocab": mapped(&pieces(input, 30)?)})),
        _ => bpe(input),
    }
}

fn unigram(input: &mut Unstructured<'_>) -> Result<Value> {
    let mut vocab = vec![
        json!([UNKNOWN, 0.0]),
        json!(["<s>", -1.0]),
        json!(["[CLS]", -2.5]),
    ];
    let mut pieces = pieces(input, 40)?;
    if chance(input, 30)? {
        pieces.extend(bytes());
    }
    for piece in pieces {
        // Quarters, so that sums tie often; and what no f32 is.
        let score = match chance(input, 80)? {
            true => f64::from(input.int_in_range(-24..=8_i8)?) / 4.0,
            false => -f64::from(input.arbitrary::<u32>()?) / 3e8,
        };
        vocab.push(json!([piece, score]));
    }
    let unknown = chance(input, 90)?.then_some(0);
    Ok(
        json!({"type": "Unigram", "unk_id": unknown, "byte_fallback": input.arbitrary::<bool>()?,
        "vocab": vocab}),
    )
}

fn wordpiece(input: &mut Unstructured<'_>) -> Result<Value> {
    let prefix = *input.choose(&["##", "##", "", "é"])?;
    let mut all = pieces(input, 30)?;
    let continued = pieces(input, 30)?;
    all.extend(
        continued
            .into_iter()
            .map(|piece| format!("{prefix}{piece}")),
    );
    let longest = *input.choose(&[100, 100, 5, 1])?;
    Ok(json!({"type": "WordPiece", "unk_token": unknown(input)?,
        "continuing_subword_prefix": prefix, "max_input_chars_per_word": longest,
        "vocab": mapped(&all)}))
}

fn bpe(input: &mut Unstructured<'_>) -> Result<Value> {
    let affixes = chance(input, 25)?;
    let prefix = if affixes {
        *input.choose(&["", "##", "é"])?
    } else {
        ""
    };
    let suffix = if affixes {
        *input.choose(&["", "</w>", "b"])?
    } else {
        ""
    };
    let mut all: Vec<String> = Vec::new();
    for letter in singles() {
        if chance(input, 80)? {
            let ways = [
                letter.clone(),
                format!("{letter}{suffix}"),
                format!("{prefix}{letter}"),
                format!("{prefix}{letter}{suffix}"),
            ];
            for way in ways {
                if !all.contains(&way) {
                    all.push(way);
                }
            }
        }
    }
    let mut merges: Vec<(String, String)> = Vec::new();
    for _ in 0..input.int_in_range(0..=25)? {
        if all.is_empty() {
            break;
        }
        let (left, right) = (input.choose(&all)?.clone(), input.choose(&all)?.clone());
        let Some(tail) = right.strip_prefix(prefix) else {
            continue;
        };
        let whole = format!("{left}{tail}");
        if whole.len() < 40 && !merges.contains(&(left.clone(), right.clone())) {
            if !all.contains(&whole) {
                all.push(whole);
            }
            merges.push((left, right));
        }
    }
    if chance(input, 30)? {
        all.extend(bytes());
    }
    let tuples = input.arbitrary()?;
    let merges: Vec<Value> = merges
        .iter()
        .map(|(left, right)| match tuples {
            true => json!([left, right]),
            false => json!(format!("{left} {right}")),
        })
        .collect();
    let affix = |affix: &str| (!affix.is_empty()).then(|| affix.to_owned());
    let unknown = if chance(input, 70)? {
        Some(unknown(input)?)
    } else {
        None
    };
    Ok(json!({
        "type": "BPE", "dropout": null, "unk_token": unknown,
        "fuse_unk": input.arbitrary::<bool>()?, "byte_fallback": chance(input, 30)?,
        "ignore_merges": chance(input, 30)?, "continuing_subword_prefix": affix(prefix),
        "end_of_word_suffix": affix(suffix), "vocab": mapped(&all), "merges": merges,
    }))
}

fn pattern(input: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match input.int_in_range(0..=3_u8)? {
        0 => json!({"Regex": pick(input, PATTERNS)?}),
        3 => {
            let mut choose = |below: usize| input.int_in_range(0..=below.max(1) - 1).unwrap_or(0);
            json!({"Regex": generated::pattern(&mut choose)})
        }
        1 => json!({"String": pick(input, STRANGE)?}),
        _ => json!({"String": letters(input, 0, 2)?}),
    })
}

fn normalizer(input: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let last = if depth > 0 { 15 } else { 13 };
    Ok(match input.int_in_range(0..=last)? {
        0 => json!({"type": "BertNormalizer", "clean_text": input.arbitrary::<bool>()?,
            "handle_chinese_chars": input.arbitrary::<bool>()?,
            "strip_accents": input.arbitrary::<Option<bool>>()?,
            "lowercase": input.arbitrary::<bool>()?}),
        1 => json!({"type": "Strip", "strip_left": input.arbitrary::<bool>()?,
            "strip_right": input.arbitrary::<bool>()?}),
        2 => json!({"type": "StripAccents"}),
        3 => json!({"type": "NFC"}),
        4 => json!({"type": "NFD"}),
        5 => json!({"type": "NFKC"}),
        6 => json!({"type": "NFKD"}),
        7 => json!({"type": "Lowercase"}),
        8 => json!({"type": "Nmt"}),
        9 => json!({"type": "Precompiled", "precompiled_charsmap": STANDARD.encode(rules(input)?)}),
        10 => json!({"type": "Prepend", "prepend": letters(input, 1, 2)?}),
        11 => json!({"type": "ByteLevel"}),
        12 | 13 => json!({"type": "Replace", "pattern": pattern(input)?,
            "content": letters(input, 0, 2)?}),
        _ => {
            let count = input.int_in_range(0..=3)?;
            let all = (0..count).map(|_| normalizer(input, depth - 1));
            json!({"type": "Sequence", "normalizers": all.collect::<Result<Vec<_>>>()?})
        }
    })
}

fn behavior(input: &mut Unstructured<'_>) -> Result<&'static str> {
    let all = [
        "Removed",
        "Isolated",
        "MergedWithPrevious",
        "MergedWithNext",
        "Contiguous",
    ];
    pick(input, &all)
}

fn pre_tokenizer(input: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let last = if depth > 0 { 14 } else { 12 };
    Ok(match input.int_in_range(0..=last)? {
        0 => json!({"type": "BertPreTokenizer"}),
        1 => json!({"type": "ByteLevel", "add_prefix_space": input.arbitrary::<bool>()?,
            "trim_offsets": input.arbitrary::<bool>()?, "use_regex": input.arbitrary::<bool>()?}),
        2 => {
            json!({"type": "CharDelimiterSplit", "delimiter": *input.choose(&["a", " ", "▁", "!"])?})
        }
        3 | 4 => {
            let scheme = *input.choose(&["first", "never", "always"])?;
            json!({"type": "Metaspace", "replacement": *input.choose(&["▁", "▁", "_", "a"])?,
                "prepend_scheme": scheme, "split": input.arbitrary::<bool>()?})
        }
        5 => json!({"type": "Whitespace"}),
        6 => json!({"type": "WhitespaceSplit"}),
        7 | 8 => json!({"type": "Split", "pattern": pattern(input)?, "behavior": behavior(input)?,
            "invert": input.arbitrary::<bool>()?}),
        9 => json!({"type": "Punctuation", "behavior": behavior(input)?}),
        10 => json!({"type": "Digits", "individual_digits": input.arbitrary::<bool>()?}),
        11 => json!({"type": "UnicodeScripts"}),
        12 => json!({"type": "FixedLength", "length": input.int_in_range(1..=5_usize)?}),
        _ => {
            let count = input.int_in_range(0..=3)?;
            let all = (0..count).map(|_| pre_tokenizer(input, depth - 1));
            json!({"type": "Sequence", "pretokenizers": all.collect::<Result<Vec<_>>>()?})
        }
    })
}

fn post_processor(input: &mut Unstructured<'_>) -> Result<Value> {
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
        "use_regex": true});
    Ok(match input.int_in_range(0..=6_u8)? {
        0 => Value::Null,
        1 => json!({"type": "BertProcessing", "sep": ["<s>", 1], "cls": ["[CLS]", 2]}),
        2 => json!({"type": "RobertaProcessing", "sep": ["<s>", 1], "cls": ["[CLS]", 2],
            "trim_offsets": true, "add_prefix_space": true}),
        3 => bytes,
        4 => json!({"type": "Sequence", "processors": [bytes, template(input)?]}),
        _ => template(input)?,
    })
}

fn template(input: &mut Unstructured<'_>) -> Result<Value> {
    let mut row = |texts: &[&str]| -> Result<Vec<Value>> {
        let mut row = Vec::new();
        for (type_id, text) in texts.iter().enumerate() {
            for _ in 0..input.int_in_range(0..=2)? {
                let id = *input.choose(&["[CLS]", "<s>"])?;
                row.push(
                    json!({"SpecialToken": {"id": id, "type_id": input.int_in_range(0..=1)?}}),
                );
            }
            row.push(json!({"Sequence": {"id": text, "type_id": type_id}}));
        }
        if input.arbitrary()? {
            row.push(json!({"SpecialToken": {"id": "<s>", "type_id": texts.len() - 1}}));
        }
        Ok(row)
    };
    let (single, pair) = (row(&["A"])?, row(&["A", "B"])?);
    let ids = if input.arbitrary()? {
        json!([2])
    } else {
        json!([2, 1])
    };
    let tokens = ids.as_array().map_or(0, Vec::len);
    Ok(json!({
        "type": "TemplateProcessing", "single": single, "pair": pair,
        "special_tokens": {
            "[CLS]": {"id": "[CLS]", "ids": ids, "tokens": vec!["[CLS]"; tokens]},
            "<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
        },
    }))
}

/// SentencePiece's compiled rules for a few strings: a double array in which every state has 256
/// units of its own.
pub fn rules(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut replacements = String::new();
    let mut units = vec![0_u32; 512];
    // The place where each state's units start.
    units[0] = 256 << 10;
    for _ in 0..input.int_in_range(0..=12)? {
        let from = match chance(input, 50)? {
            true => letters(input, 1, 2)?,
            false => pick(input, STRANGE)?.to_owned(),
        };
        let from: Vec<u8> = from.bytes().filter(|&byte| byte != 0).take(8).collect();
        if from.is_empty() {
            continue;
        }
        let to = match chance(input, 70)? {
            true => letters(input, 0, 3)?,
            false => pick(input, STRANGE)?.replace('\0', ""),
        };
        let value = replacements.len() as u32;
        replacements.push_str(&to);
        replacements.push('\0');
        let mut base = 256_usize;
        for (index, &byte) in from.iter().enumerate() {
            let place = base ^ usize::from(byte);
            if units[place] == 0 {
                let next = units.len();
                units.resize(next + 256, 0);
                units[place] = u32::from(byte) | ((place ^ next) as u32) << 10;
            }
            base = place ^ (units[place] >> 10) as usize;
            if index + 1 == from.len() {
                units[place] |= 1 << 8;
                units[base] = value;
            }
        }
    }
    let mut rules = (units.len() as u32 * 4).to_le_bytes().to_vec();
    rules.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    rules.extend(replacements.bytes());
    Ok(rules)
}
