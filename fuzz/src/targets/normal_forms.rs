//! NFC, NFD, NFKC and NFKD, against the crate `unicode-normalization`. That knows a newer Unicode than
//! published tokenizers, whose version is `unicode-normalization-alignments`': what the two make
//! differently is newer than both ours and those.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use isovec_tokenize::Tokenizer;
use serde_json::json;

use crate::bounds::ours;
use crate::spelt;

static FORMS: LazyLock<[Tokenizer; 4]> = LazyLock::new(|| {
    ["NFC", "NFD", "NFKC", "NFKD"]
        .map(|form| spelt::tokenizer(json!({"type": form})).expect("a plain tokenizer"))
});

/// Tries one input: characters from blocks that have something to normalise, or any.
pub fn run(data: &[u8]) {
    let _ = tried(&mut Unstructured::new(data), data.len());
}

fn tried(input: &mut Unstructured<'_>, length: usize) -> arbitrary::Result<()> {
    let mut text = String::new();
    while !input.is_empty() {
        let code = match input.int_in_range(0..=9_u8)? {
            0 => u32::from(input.arbitrary::<char>()?),
            1 => input.int_in_range(0x20..=0x7e)?,
            2 => input.int_in_range(0xa0..=0x24f)?,
            3 => input.int_in_range(0x300..=0x36f)?,
            4 => input.int_in_range(0x1100..=0x11ff)?,
            5 => input.int_in_range(0xac00..=0xd7a3)?,
            6 => input.int_in_range(0x1e00..=0x1fff)?,
            7 => input.int_in_range(0x591..=0xdff)?,
            8 => input.int_in_range(0x3040..=0x33ff)?,
            _ => input.int_in_range(0xf900..=0xffef)?,
        };
        text.extend(char::from_u32(code));
    }
    let (newer, older) = (newer(&text), older(&text));
    ours(length + text.len(), || {
        for ((tokenizer, newer), older) in FORMS.iter().zip(&newer).zip(&older) {
            if newer == older {
                let found = spelt::normalized(tokenizer, &text);
                assert_eq!(found.as_ref(), Ok(newer), "{text:?}");
            }
        }
    });
    Ok(())
}

fn newer(text: &str) -> [String; 4] {
    use unicode_normalization::UnicodeNormalization as _;
    [
        text.nfc().collect(),
        text.nfd().collect(),
        text.nfkc().collect(),
        text.nfkd().collect(),
    ]
}

fn older(text: &str) -> [String; 4] {
    use unicode_normalization_alignments::UnicodeNormalization as _;
    [
        text.nfc().map(|(character, _)| character).collect(),
        text.nfd().map(|(character, _)| character).collect(),
        text.nfkc().map(|(character, _)| character).collect(),
        text.nfkd().map(|(character, _)| character).collect(),
    ]
}
