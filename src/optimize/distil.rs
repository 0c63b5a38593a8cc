//! A static model of any embedder: every token alone through the model, and a table of what came out.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::Precision;
use isovec_model::head;
use isovec_optimize::OptimizeError;
use isovec_optimize::distil::{StaticFiles, StaticPrecision, counted_tokens, distil, static_files};
use isovec_optimize::history;
use isovec_tokenize::TOKENIZER_FILE;

use super::Written;
use crate::config::{Dtype, EmbeddingConfig};
use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::sentence_transformers;
use crate::source::ModelSource;

/// A static model that was made.
pub(super) struct Distilled {
    pub(super) files: StaticFiles,
    /// Tokens that have a vector of their own.
    pub(super) tokens: usize,
    /// The share of the variance that is kept.
    pub(super) explained: f64,
    pub(super) precision: Precision,
    /// Components of a vector.
    pub(super) dimension: usize,
}

/// Makes a static model of vectors of so many components. `bundle` is what `source` holds.
pub(super) async fn make(
    bundle: &ModelBundle,
    source: ModelSource,
    config: &EmbeddingConfig,
    stored: Option<Dtype>,
    dimension: usize,
    cancel: &Cancel,
) -> Result<Distilled> {
    let told = sentence_transformers::read(&bundle.origin, &bundle.files)?;
    let unsuitable = |reason: &str, hint: &str| OptimizeError::Unsuitable {
        origin: bundle.origin.clone(),
        reason: reason.into(),
        hint: hint.into(),
    };
    if told.table.is_some() {
        return Err(unsuitable(
            "it is a static model already",
            "Distil the model that it was made of",
        )
        .into());
    }
    if told.lowercase {
        // A static model's files have no word for it.
        return Err(unsuitable(
            "its texts are lower-cased before its tokenizer",
            "Choose another model",
        )
        .into());
    }
    let tokenizer: &Bytes = bundle.files.get(TOKENIZER_FILE).ok_or_else(|| {
        unsuitable(
            "it has no tokenizer.json",
            "Save the model's fast tokenizer beside it",
        )
    })?;
    let counted = counted_tokens(&bundle.origin, tokenizer)?;
    let stored = match stored.and_then(Dtype::precision) {
        Some(Precision::F16) => StaticPrecision::F16,
        Some(Precision::Bf16) => StaticPrecision::Bf16,
        Some(Precision::Int8 | Precision::Int8Fast) => StaticPrecision::Int8,
        _ => StaticPrecision::F32,
    };
    let mut teacher = config.clone();
    teacher.embedding_cache = EmbeddingConfig::default().embedding_cache;
    teacher.text.dimension = None;
    // The length of a token's vector says how much it means. What a graph ends in already cannot be changed.
    let mut entries = bundle.graph.metadata_props.iter();
    if !entries.any(|entry| entry.key == head::METADATA_KEY) {
        teacher.text.normalize = Some(false);
    }
    let builder = Embedder::builder(source).config(teacher);
    let model = builder.cancel(cancel.clone()).load().await?.model;
    let ids: Vec<u32> = (0u32..).take(counted.len()).collect();
    let vectors = model.vectors_of_ids(&ids, cancel).await?;
    let table = distil(&vectors, model.dim, &counted, dimension)?;
    let step = format!(
        "static: {dimension} components of {}, each token alone, PCA, SIF",
        model.dim
    );
    let history = history::continued(&bundle.graph, &bundle.identity.0, step);
    Ok(Distilled {
        files: static_files(&table, tokenizer, &history, stored)?,
        tokens: counted.iter().filter(|counts| **counts).count(),
        explained: table.explained,
        precision: match stored {
            StaticPrecision::F16 => Precision::F16,
            StaticPrecision::Bf16 => Precision::Bf16,
            StaticPrecision::Int8 => Precision::Int8,
            _ => Precision::F32,
        },
        dimension: table.width,
    })
}

/// Writes files into a folder that is there.
pub(super) fn write(made: &Distilled, folder: &Path) -> Result<Written> {
    let mut written = Written {
        files: Vec::new(),
        bytes: 0,
        precision: made.precision,
        dimension: Some(made.dimension),
    };
    for (name, content) in &made.files {
        let path = folder.join(name);
        let done = File::create_new(&path).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        done.map_err(|source| Error::io(&path, source))?;
        written.bytes += content.len() as u64;
        written.files.push(path);
    }
    Ok(written)
}
