//! Sets of tokens' vectors as files (`docs/embeddings-format.md`).

use std::borrow::Cow;
use std::sync::Arc;

use super::MultiVectorEmbeddings;
use super::embeddings::Vectors;
use crate::embeddings::layout::{
    self, Column, F32, File, I8, Metadata, TOKENS, U8, U32, f32s, has_loose_bits, marks, u32s,
    words,
};
use crate::embeddings::saved::saved_as_file;
use crate::error::Result;
use crate::similarity::Similarity;

/// Every tensor that a file may hold: `scales` with 8-bit numbers only.
const TENSORS: [&str; 5] = [
    "embeddings",
    "scales",
    "vector_counts",
    "token_counts",
    "truncated",
];

saved_as_file!(MultiVectorEmbeddings, parse, too_large: "a text has 2^32 vectors or more");

impl MultiVectorEmbeddings {
    fn file(&self) -> Result<Vec<Cow<'_, [u8]>>> {
        let embeddings = |dtype, row: usize, data| Column {
            name: "embeddings",
            dtype,
            shape: vec![self.offsets[self.len()], row],
            data,
        };
        let counts = [
            layout::of_rows("vector_counts", &self.offsets)?,
            Column {
                name: "token_counts",
                dtype: U32,
                shape: vec![self.token_counts.len()],
                data: words(&self.token_counts, u32::to_le_bytes),
            },
        ];
        // Larger elements first, so that all lie at multiples of their size.
        let mut tensors = Vec::new();
        match &self.vectors {
            Vectors::Whole(values) => {
                tensors.push(embeddings(F32, self.dim, words(values, f32::to_le_bytes)));
                tensors.extend(counts);
            }
            Vectors::Int8(codes, scales) => {
                tensors.push(Column {
                    name: "scales",
                    dtype: F32,
                    shape: vec![scales.len()],
                    data: words(scales, f32::to_le_bytes),
                });
                tensors.extend(counts);
                tensors.push(embeddings(I8, self.dim, Cow::Borrowed(codes)));
            }
            Vectors::Binary(codes) => {
                tensors.extend(counts);
                tensors.push(embeddings(U8, self.dim.div_ceil(8), Cow::Borrowed(codes)));
            }
        }
        let truncated: Vec<u8> = self.truncated.iter().copied().map(u8::from).collect();
        tensors.push(Column {
            name: "truncated",
            dtype: U8,
            shape: vec![truncated.len()],
            data: truncated.into(),
        });
        let metadata = Metadata {
            format_version: TOKENS,
            model: self.model.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            metric: Similarity::Dot,
            prompt: self.prompt.clone(),
            dimension: Some(self.dim),
        };
        layout::file(&metadata, tensors)
    }
}

fn parse(origin: &str, bytes: &[u8]) -> Result<MultiVectorEmbeddings> {
    let (file, metadata) = File::open(origin, bytes)?;
    if metadata.format_version != TOKENS {
        return Err(file.other(metadata.format_version));
    }
    let dim = metadata.dimension.filter(|&dim| dim > 0);
    let dim = dim.ok_or_else(|| file.fail("it does not say how many components a vector has"))?;
    file.has_only(&TENSORS)?;
    let offsets = file.offsets("vector_counts")?;
    let texts = offsets.len() - 1;
    let vectors = read_vectors(&file, dim, offsets[texts])?;
    let (_, counts) = file.tensor("token_counts", U32, 4, 1)?;
    let token_counts: Vec<u32> = u32s(counts).collect();
    let truncated = marks(&file)?;
    if [token_counts.len(), truncated.len()] != [texts, texts] {
        return Err(file.fail(format!(
            "`token_counts` or `truncated` does not have {texts} entries"
        )));
    }
    Ok(MultiVectorEmbeddings {
        dim,
        offsets,
        vectors,
        token_counts,
        truncated,
        fingerprint: metadata.fingerprint,
        prompt: metadata.prompt,
        model: metadata.model,
    })
}

/// So many vectors of `dim` components, in whatever form they are.
fn read_vectors(file: &File<'_>, dim: usize, many: usize) -> Result<Vectors> {
    let dtype = file.dtype("embeddings").unwrap_or_default();
    let (size, row) = match dtype {
        F32 => (4, dim),
        I8 => (1, dim),
        _ => (1, dim.div_ceil(8)),
    };
    let known = [F32, I8].into_iter().find(|known| *known == dtype);
    let (shape, data) = file.tensor("embeddings", known.unwrap_or(U8), size, 2)?;
    if shape != [many, row] {
        return Err(file.fail(format!(
            "`embeddings` is {shape:?}, and {many} vectors of {dim} components are [{many}, {row}]"
        )));
    }
    let finite = |values: &[f32], name: &str| match values.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(file.fail(format!("`{name}` holds what is no finite number"))),
    };
    if dtype != I8 && file.has("scales") {
        return Err(file.fail("it holds `scales`, which only 8-bit vectors have"));
    }
    Ok(match dtype {
        F32 => {
            let values = f32s(data);
            finite(&values, "embeddings")?;
            Vectors::Whole(values)
        }
        I8 => {
            let scales = f32s(file.tensor("scales", F32, 4, 1)?.1);
            finite(&scales, "scales")?;
            if scales.len() != many || scales.iter().any(|&scale| scale < 0.0) {
                return Err(file.fail(format!("`scales` is not {many} numbers from 0 on")));
            }
            Vectors::Int8(data.to_vec(), scales)
        }
        _ => {
            if has_loose_bits(data, dim) {
                return Err(file.fail("a vector has bits behind its last component"));
            }
            Vectors::Binary(data.to_vec())
        }
    })
}
