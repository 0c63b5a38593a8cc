//! Compact sets as files (`docs/embeddings-format.md`).

use std::borrow::Cow;
use std::sync::Arc;

use super::super::layout::{
    self, COMPACT, Column, F32, File, I8, Metadata, U8, f32s, has_loose_bits, words,
};
use super::super::saved::saved_as_file;
use super::{CompactEmbeddings, CompactForm, bytes_of_row};
use crate::error::Result;

/// Every tensor that a file may hold: `scales` with int8 only, the last two only together.
const TENSORS: [&str; 4] = ["embeddings", "scales", "label_ends", "label_text"];

saved_as_file!(CompactEmbeddings, parse, too_large: "the labels take 4 GiB or more");

impl CompactEmbeddings {
    fn file(&self) -> Result<Vec<Cow<'_, [u8]>>> {
        let row = bytes_of_row(self.form, self.dim);
        // Larger elements first, so that all lie at multiples of their size.
        let mut tensors = Vec::new();
        if self.form == CompactForm::Int8 {
            tensors.push(Column {
                name: "scales",
                dtype: F32,
                shape: vec![self.len()],
                data: words(&self.scales, f32::to_le_bytes),
            });
        }
        let codes = Column {
            name: "embeddings",
            dtype: match self.form {
                CompactForm::Int8 => I8,
                CompactForm::Binary => U8,
            },
            shape: vec![self.len(), row],
            data: Cow::Borrowed(&self.codes),
        };
        match &self.labels {
            Some(labels) => {
                let [ends, text] = layout::of_labels(labels)?;
                tensors.extend([ends, codes, text]);
            }
            None => tensors.push(codes),
        }
        let metadata = Metadata {
            format_version: COMPACT,
            model: self.model.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            metric: self.metric,
            prompt: self.prompt.clone(),
            dimension: Some(self.dim),
        };
        layout::file(&metadata, tensors)
    }
}

fn parse(origin: &str, bytes: &[u8]) -> Result<CompactEmbeddings> {
    let (file, metadata) = File::open(origin, bytes)?;
    let dim = match metadata.dimension {
        Some(dim) if metadata.format_version == COMPACT && dim > 0 => dim,
        _ if metadata.format_version != COMPACT => {
            return Err(file.other(metadata.format_version));
        }
        _ => return Err(file.fail("it does not say how many components a vector has")),
    };
    let form = match file.has("scales") {
        true => CompactForm::Int8,
        false => CompactForm::Binary,
    };
    let (shape, codes) = match form {
        CompactForm::Int8 => file.tensor("embeddings", I8, 1, 2)?,
        CompactForm::Binary => file.tensor("embeddings", U8, 1, 2)?,
    };
    let row = bytes_of_row(form, dim);
    if shape[1..] != [row] {
        return Err(file.fail(format!(
            "`embeddings` is {shape:?}, and {dim} components take {row} bytes in {form}"
        )));
    }
    let rows = codes.len() / row;
    let scales = match form {
        CompactForm::Int8 => f32s(file.tensor("scales", F32, 4, 1)?.1),
        CompactForm::Binary => Vec::new(),
    };
    if form == CompactForm::Int8 && scales.len() != rows {
        return Err(file.fail(format!("`scales` does not have {rows} entries")));
    }
    if let Some(at) = scales
        .iter()
        .position(|scale| !(scale.is_finite() && *scale >= 0.0))
    {
        return Err(file.fail(format!("entry {at} of `scales` is no scale")));
    }
    if form == CompactForm::Binary && has_loose_bits(codes, dim) {
        return Err(file.fail("a row has bits behind its last component"));
    }
    file.has_only(&TENSORS)?;
    let labels = file.labels()?;
    if labels.as_ref().is_some_and(|labels| labels.len() != rows) {
        return Err(file.fail(format!("`label_ends` does not have {rows} entries")));
    }
    CompactEmbeddings {
        form,
        dim,
        codes: codes.to_vec(),
        scales,
        inverse_lengths: Vec::new(),
        labels,
        fingerprint: metadata.fingerprint,
        metric: metadata.metric,
        prompt: metadata.prompt,
        model: metadata.model,
    }
    .with_lengths(origin)
}
