//! Sets of sparse vectors as files (`docs/embeddings-format.md`).

use std::borrow::Cow;
use std::sync::Arc;

use super::SparseEmbeddings;
use super::embeddings::SparseParts;
use crate::embeddings::layout::{
    self, Column, F32, File, Metadata, SPARSE, U8, U32, f32s, marks, u32s, words,
};
use crate::embeddings::saved::saved_as_file;
use crate::error::Result;
use crate::similarity::Similarity;

/// Every tensor that a file holds.
const TENSORS: [&str; 5] = [
    "values",
    "indices",
    "word_counts",
    "token_counts",
    "truncated",
];

saved_as_file!(SparseEmbeddings, parse, too_large: "a vector has 2^32 weights or more");

impl SparseEmbeddings {
    fn file(&self) -> Result<Vec<Cow<'_, [u8]>>> {
        let truncated: Vec<u8> = self.truncated.iter().copied().map(u8::from).collect();
        let column = |name, dtype, entries, data| Column {
            name,
            dtype,
            shape: vec![entries],
            data,
        };
        // Larger elements first, so that all lie at multiples of their size.
        let (rows, all) = (self.len(), self.values.len());
        let tensors = vec![
            column("values", F32, all, words(&self.values, f32::to_le_bytes)),
            column("indices", U32, all, words(&self.indices, u32::to_le_bytes)),
            layout::of_rows("word_counts", &self.offsets)?,
            column(
                "token_counts",
                U32,
                rows,
                words(&self.token_counts, u32::to_le_bytes),
            ),
            column("truncated", U8, rows, truncated.into()),
        ];
        let metadata = Metadata {
            format_version: SPARSE,
            model: self.model.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            metric: Similarity::Dot,
            prompt: self.prompt.clone(),
            dimension: Some(self.vocabulary_size),
        };
        layout::file(&metadata, tensors)
    }
}

fn parse(origin: &str, bytes: &[u8]) -> Result<SparseEmbeddings> {
    let (file, metadata) = File::open(origin, bytes)?;
    if metadata.format_version != SPARSE {
        return Err(file.other(metadata.format_version));
    }
    let vocabulary_size = metadata.dimension;
    let vocabulary_size =
        vocabulary_size.ok_or_else(|| file.fail("it does not say how many words there are"))?;
    file.has_only(&TENSORS)?;
    let offsets = file.offsets("word_counts")?;
    let (_, values) = file.tensor("values", F32, 4, 1)?;
    let (_, indices) = file.tensor("indices", U32, 4, 1)?;
    let (_, token_counts) = file.tensor("token_counts", U32, 4, 1)?;
    let parts = SparseParts {
        vocabulary_size,
        offsets,
        indices: u32s(indices).collect(),
        values: f32s(values),
        token_counts: u32s(token_counts).collect(),
        truncated: marks(&file)?,
        fingerprint: metadata.fingerprint,
        prompt: metadata.prompt,
        model: metadata.model,
    };
    parts.checked(origin)
}
