//! A made-up tokenizer.json and texts, against Hugging Face's crate `tokenizers` with Oniguruma: the
//! same ids, alone, in pairs and cut to a length, or a refusal by name.

use arbitrary::Unstructured;
use isovec_tokenize::{Limits, TruncationSide};

use crate::tokenizer_json;
use crate::tokenizers_twin::Twins;

/// Tries one input.
pub fn run(data: &[u8]) {
    let _ = tried(&mut Unstructured::new(data));
}

fn tried(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let json = tokenizer_json::tokenizer(input)?;
    let Ok(mut twins) = Twins::new(&json) else {
        return Ok(());
    };
    let mut before: Option<String> = None;
    for _ in 0..16 {
        let text = tokenizer_json::text(input)?;
        let side = match input.arbitrary()? {
            true => TruncationSide::Start,
            false => TruncationSide::End,
        };
        let limits = twins.limits(input.int_in_range(0..=12)?, side);
        for second in [None, before.as_deref()] {
            twins.compare(&text, second, Limits::default());
            twins.compare(&text, second, limits);
        }
        before = Some(text);
        if input.is_empty() {
            break;
        }
    }
    Ok(())
}
