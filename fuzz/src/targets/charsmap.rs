//! SentencePiece's compiled rules, good and damaged, against the crate `spm_precompiled`.

use arbitrary::Unstructured;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use spm_precompiled::Precompiled;

use crate::bounds::ours;
use crate::panics::caught;
use crate::{spelt, tokenizer_json};

/// Tries one input.
pub fn run(data: &[u8]) {
    let _ = tried(&mut Unstructured::new(data), data.len());
}

fn tried(input: &mut Unstructured<'_>, length: usize) -> arbitrary::Result<()> {
    let mut rules = match tokenizer_json::chance(input, 80)? {
        true => tokenizer_json::rules(input)?,
        false => input.arbitrary()?,
    };
    for _ in 0..input.int_in_range(0..=2)? {
        if let Some(last) = rules.len().checked_sub(1) {
            rules[input.int_in_range(0..=last)?] = input.arbitrary()?;
        }
    }
    let texts = (0..4).map(|_| tokenizer_json::text(input));
    let texts = texts.collect::<arbitrary::Result<Vec<_>>>()?;
    let normalizer =
        json!({"type": "Precompiled", "precompiled_charsmap": STANDARD.encode(&rules)});
    ours(length + 2 * rules.len(), || {
        // What ours refuses is damaged: theirs panics on some of it in the middle of a text.
        let Ok(tokenizer) = spelt::tokenizer(normalizer) else {
            return;
        };
        let theirs = Precompiled::from(&rules).expect("theirs reads what ours reads");
        for text in &texts {
            let Ok(found) = spelt::normalized(&tokenizer, text) else {
                continue;
            };
            // Theirs panics where a replacement is cut inside a character.
            if let Some(expected) = caught(|| theirs.normalize_string(text)) {
                assert_eq!(found, expected, "{text:?}");
            }
        }
    });
    Ok(())
}
