//! A batch in the form that kernels read: words, in the layout of `wgsl/batch.wgsl`.

use isovec_encoder::Texts;
use isovec_engine::engine::Batch;
use isovec_engine::{EngineError, Result};

use crate::kernels::HEAD;

/// A tensor of the caller's, by its name in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A whole number for each token.
    Number(String),
    /// So many floats for each token.
    Values(String, usize),
}

impl Given {
    /// Columns of its own among those of all tensors.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Number(_) => 1,
            Self::Values(_, width) => *width,
        }
    }
}

/// The words of a batch: the numbers of tokens and texts, where the parts begin, the texts' first
/// tokens, the token behind the last one of each text that is seen, the text of each token, and the caller's numbers for them.
pub(crate) fn words(
    texts: &Texts,
    batch: &Batch,
    inputs: &[Given],
    ids: &[(String, usize)],
) -> Result<Vec<u32>> {
    let ends = HEAD + texts.offsets().len();
    let of_tokens = ends + texts.count();
    let given = of_tokens + texts.tokens();
    let columns: usize = inputs.iter().map(Given::width).sum();
    let mut words = Vec::with_capacity(given + columns * texts.tokens());
    words.resize(HEAD, 0);
    words[..6].copy_from_slice(&[
        texts.tokens() as u32,
        texts.count() as u32,
        of_tokens as u32,
        f32::NAN.to_bits(),
        given as u32,
        ends as u32,
    ]);
    words.extend(texts.offsets().iter().map(|&offset| offset as u32));
    words.extend(match texts.seen() {
        None => texts.offsets()[1..]
            .iter()
            .map(|&end| end as u32)
            .collect::<Vec<_>>(),
        Some(seen) => {
            let ends = texts.offsets().iter().zip(seen);
            ends.map(|(first, seen)| (first + seen) as u32).collect()
        }
    });
    words.extend(texts.of_tokens().iter().map(|&text| text as u32));
    for input in inputs {
        let name = match input {
            Given::Number(name) => name,
            Given::Values(name, width) => {
                let values = texts.values(batch, name, *width)?;
                words.extend(values.iter().map(|value| value.to_bits()));
                continue;
            }
        };
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
