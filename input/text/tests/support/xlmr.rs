//! A tokenizer file of the shape and size of XLM-RoBERTa's, from a seed.
//!
//! The real file cannot be shipped. This one has its layout (special tokens 0 to 3 and the mask
//! last, WhitespaceSplit and Metaspace, `<s> $A </s>`, Unigram with scores printed from f32,
//! indented as `save_pretrained` writes it) and its mixture: a share of pieces in each of many
//! scripts, half of them at the start of a word, one to a dozen characters long, common pieces
//! short. Its normaliser, which is a table of 240 KB and costs nothing beside the vocabulary, is
//! left out.

use std::collections::HashSet;
use std::fmt::Write as _;

/// XLM-RoBERTa's number of pieces.
pub const PIECES: usize = 250_002;

/// The identity of the tokenizer of seed 7 and full size: the same on every target.
pub const IDENTITY: &str = "2cc78f0db8fd496eb92e917e579f5a5fb719095ff917ca300776b917f1776a23";

/// What that tokenizer makes of [`MIXED`], on every target.
pub const MIXED_IDS: &[u32] = &[0, 3, 17996, 2145, 250_001, 3, 3, 2];

/// Letters, an added token and characters that no piece holds.
pub const MIXED: &str = "野口 <mask>\0 ?";

/// SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>): the same numbers everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// First and last letter of a script's block, its share in a hundred, and its longest piece.
const SCRIPTS: &[(char, char, usize, usize)] = &[
    ('a', 'z', 38, 12),
    ('A', 'Z', 6, 8),
    ('à', 'ÿ', 4, 6),
    ('ā', 'ž', 4, 8),
    ('а', 'я', 14, 11),
    ('α', 'ω', 3, 10),
    ('א', 'ת', 2, 7),
    ('ء', 'ي', 6, 8),
    ('अ', 'ह', 4, 7),
    ('ก', 'ฮ', 2, 8),
    ('ა', 'ჰ', 1, 9),
    ('ぁ', 'ん', 3, 6),
    ('ァ', 'ン', 2, 7),
    ('一', '鿿', 6, 4),
    ('가', '힣', 5, 4),
];

/// A word of letters from one script; the first letters of a block are the common ones.
fn word(random: &mut Random, out: &mut String) {
    let mut ticket = random.below(100);
    let script = SCRIPTS
        .iter()
        .find(|script| match ticket.checked_sub(script.2) {
            Some(rest) => {
                ticket = rest;
                false
            }
            None => true,
        });
    let &(first, last, _, longest) = script.unwrap_or(&SCRIPTS[0]);
    let letters = last as usize - first as usize + 1;
    for _ in 0..1 + (random.below(longest) + random.below(longest)) / 2 {
        let letter = random.below(letters).min(random.below(letters));
        out.extend(char::from_u32(first as u32 + letter as u32));
    }
}

/// A text of words of the same kind, for encoding.
pub fn text(seed: u64, words: usize) -> String {
    let mut random = Random(seed);
    let mut text = String::new();
    for _ in 0..words {
        word(&mut random, &mut text);
        text.push(' ');
    }
    text
}

/// The file, with `pieces` pieces.
pub fn tokenizer_json(seed: u64, pieces: usize) -> String {
    let mut random = Random(seed);
    let mut seen = HashSet::with_capacity(pieces);
    let mut json = String::with_capacity(pieces * 76 + 4096);
    json.push_str("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [\n");
    let added = [
        (0, "<s>"),
        (1, "<pad>"),
        (2, "</s>"),
        (3, "<unk>"),
        (pieces - 1, "<mask>"),
    ];
    for (place, (id, content)) in added.iter().enumerate() {
        let lstrip = *content == "<mask>";
        let comma = if place + 1 < added.len() { "," } else { "" };
        let _ = writeln!(
            json,
            "    {{\n      \"id\": {id},\n      \"content\": \"{content}\",\n      \"single_word\": false,\n      \"lstrip\": {lstrip},\n      \"rstrip\": false,\n      \"normalized\": false,\n      \"special\": true\n    }}{comma}"
        );
    }
    json.push_str(
        r#"  ],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "Sequence",
    "pretokenizers": [
      { "type": "WhitespaceSplit" },
      { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true }
    ]
  },
  "post_processor": {
    "type": "TemplateProcessing",
    "single": [
      { "SpecialToken": { "id": "<s>", "type_id": 0 } },
      { "Sequence": { "id": "A", "type_id": 0 } },
      { "SpecialToken": { "id": "</s>", "type_id": 0 } }
    ],
    "pair": [
      { "SpecialToken": { "id": "<s>", "type_id": 0 } },
      { "Sequence": { "id": "A", "type_id": 0 } },
      { "SpecialToken": { "id": "</s>", "type_id": 0 } },
      { "SpecialToken": { "id": "</s>", "type_id": 0 } },
      { "Sequence": { "id": "B", "type_id": 0 } },
      { "SpecialToken": { "id": "</s>", "type_id": 0 } }
    ],
    "special_tokens": {
      "<s>": { "id": "<s>", "ids": [0], "tokens": ["<s>"] },
      "</s>": { "id": "</s>", "ids": [2], "tokens": ["</s>"] }
    }
  },
  "decoder": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true },
  "model": {
    "type": "Unigram",
    "unk_id": 3,
    "vocab": [
"#,
    );
    for special in ["<s>", "<pad>", "</s>", "<unk>"] {
        let _ = writeln!(
            json,
            "      [\n        \"{special}\",\n        0.0\n      ],"
        );
    }
    // Single letters first, as in a trained vocabulary, so that few characters are unknown.
    let mut letters = SCRIPTS.iter().flat_map(|&(first, last, ..)| first..=last);
    let mut piece = String::new();
    let mut rank = 4;
    while rank + 1 < pieces {
        piece.clear();
        match letters.next() {
            Some(letter) => piece.push(letter),
            None => {
                if random.below(2) == 0 {
                    piece.push('▁');
                }
                word(&mut random, &mut piece);
            }
        }
        if !seen.insert(hash(&piece)) {
            continue;
        }
        let share = rank as f64 / pieces as f64;
        let noise = random.below(1000) as f64 * 1e-6;
        let score = f64::from((-3.4 - 10.2 * share.powf(0.25) - noise) as f32);
        let _ = writeln!(
            json,
            "      [\n        \"{piece}\",\n        {score:?}\n      ],"
        );
        rank += 1;
    }
    json.push_str("      [\n        \"<mask>\",\n        0.0\n      ]\n    ]\n  }\n}\n");
    json
}

/// FNV-1a: telling pieces apart by a number keeps the generator small beside what it feeds.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
