//! The answer of OpenAI's `/v1/embeddings`, as it is written.

use serde::Serialize;

/// An answer.
#[derive(Debug, Serialize)]
pub struct Answer<'a, E, T> {
    object: &'static str,
    data: Vec<Row<E>>,
    model: T,
    usage: Usage,
    fingerprint: T,
    truncated: &'a [usize],
}

#[derive(Debug, Serialize)]
struct Row<E> {
    object: &'static str,
    index: usize,
    embedding: E,
}

/// Tokens that the model saw, as Jina's answers have them, too.
#[derive(Debug, Serialize)]
pub struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl Usage {
    /// That the model saw so many.
    pub fn of(tokens: u64) -> Self {
        Self {
            prompt_tokens: tokens,
            total_tokens: tokens,
        }
    }
}

impl<'a, E, T> Answer<'a, E, T> {
    /// The vectors of texts, in their order; the model's name and fingerprint; the tokens that it saw; and the places of the texts
    /// of which it saw only a part.
    pub fn new(
        vectors: impl Iterator<Item = E>,
        [model, fingerprint]: [T; 2],
        tokens: u64,
        truncated: &'a [usize],
    ) -> Self {
        let row = |(index, embedding)| Row {
            object: "embedding",
            index,
            embedding,
        };
        Self {
            object: "list",
            data: vectors.enumerate().map(row).collect(),
            model,
            usage: Usage::of(tokens),
            fingerprint,
            truncated,
        }
    }
}
