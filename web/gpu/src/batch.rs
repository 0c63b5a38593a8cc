//! A batch in the form that kernels read: words, in the layout of `wgsl/batch.wgsl`.

use isovec_encoder::Texts;
use isovec_engine::engine::Batch;
use isovec_engine::{EngineError, Result};

use crate::kernels::HEAD;

/// The words of a batch: the numbers of tokens and texts, where the parts begin, the texts' first
/// tokens, the text of each token, and the caller's numbers for them.
pub(crate) fn words(
    texts: &Texts,
    batch: &Batch,
    inputs: &[String],
    ids: &[(String, usize)],
) -> Result<Vec<u32>> {
    let of_tokens = HEAD + texts.offsets().len();
    let given = of_tokens + texts.tokens();
    let mut words = Vec::with_capacity(given + inputs.len() * texts.tokens());
    words.resize(HEAD, 0);
    words[..5].copy_from_slice(&[
        texts.tokens() as u32,
        texts.count() as u32,
        of_tokens as u32,
        f32::NAN.to_bits(),
        given as u32,
    ]);
    words.extend(texts.offsets().iter().map(|&offset| offset as u32));
    words.extend(texts.of_tokens().iter().map(|&text| text as u32));
    for name in inputs {
        let values = texts.input(batch, name)?;
        for (_, rows) in ids.iter().filter(|(of, _)| of == name) {
            let outside = |value: &&f32| **value < 0.0 || **value >= *rows as f32;
            if let Some(id) = values.iter().find(outside) {
                return Err(EngineError::InvalidInput {
                    name: name.clone(),
                    detail: format!("id {id} is not in a table of {rows} rows"),
                });
            }
        }
        words.extend(values.iter().map(|value| value.to_bits()));
    }
    Ok(words)
}
