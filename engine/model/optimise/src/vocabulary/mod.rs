//! A smaller vocabulary: tokens that no text of a corpus has lose their pieces and their rows.
//!
//! A multilingual model spends most of its bytes on its table of tokens: 250,002 rows of 384 are 384 MB of
//! multilingual-e5-small's 471 MB. Texts whose tokens are all kept have the same vectors, bit for bit: the rows are the
//! same, and nothing else computes with ids.

mod affix;
mod gathered;
mod settings;
mod tables;
mod tokenizer;

use std::collections::BTreeSet;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::StringStringEntryProto;
use isovec_engine::weights::WeightsIdentity;
use isovec_model::convert::VOCABULARY;
use isovec_tokenize::TOKENIZER_FILE;

use self::gathered::Gathered;
use self::tables::Tables;
use crate::error::{OptimizeError, Result};
use crate::history;

pub use tokenizer::{TrimmedTokenizer, trim_tokenizer};

/// What trimming took out of a model.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct TrimmedVocabulary {
    /// Tokens before.
    pub tokens_before: usize,
    /// Tokens now.
    pub tokens: usize,
    /// Rows of all tables of tokens, before.
    pub rows_before: usize,
    /// Bytes of those tables before, as they are stored.
    pub table_bytes_before: u64,
    /// Bytes of those tables now.
    pub table_bytes: u64,
}

/// Takes all tokens out of a model that are not in `used`, which holds the ids of texts as the model's tokenizer makes
/// them. Its tokenizer is `tokenizer.json` in `folder`, which is empty for the root. The new model has an identity of its
/// own, and its metadata names the original ([`history`]).
///
/// # Errors
/// [`OptimizeError::Texts`] where nothing is used; [`OptimizeError::AlreadyQuantized`], [`OptimizeError::SharedWeights`] and
/// [`OptimizeError::Unsuitable`] for models whose table cannot be cut; those of [`trim_tokenizer`].
pub fn trim_vocabulary(
    bundle: &ModelBundle,
    folder: &str,
    used: &BTreeSet<u32>,
) -> Result<(ModelBundle, TrimmedVocabulary)> {
    if used.is_empty() {
        return Err(OptimizeError::Texts(
            "the texts whose tokens are to be kept have no token; give texts like those that will be embedded".into(),
        ));
    }
    let path = match folder {
        "" => TOKENIZER_FILE.to_owned(),
        folder => format!("{folder}/{TOKENIZER_FILE}"),
    };
    let unsuitable = |reason: String, hint: &str| OptimizeError::Unsuitable {
        origin: bundle.origin.clone(),
        reason,
        hint: hint.into(),
    };
    let json = bundle.files.get(&path).ok_or_else(|| {
        let hint = "Save the model's fast tokenizer beside it: AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)";
        unsuitable(format!("it has no {path}"), hint)
    })?;
    let tables = Tables::of(bundle)?;
    let fixed = tables.compared.last().map_or(0, |&id| id + 1);
    let trimmed = trim_tokenizer(&bundle.origin, json, used, fixed)?;
    let ids = trimmed.ids();
    if let Some(id) = tables.compared.iter().find(|id| ids.get(id) != Some(id)) {
        return Err(unsuitable(
            format!("its graph compares tokens with id {id}, which cannot keep its place"),
            "Leave the vocabulary as it is",
        ));
    }
    let highest = trimmed.rows.iter().max().copied().unwrap_or(0) as usize;
    let extents = tables::rows(bundle, &tables);
    if let Some((table, extent)) = extents.iter().find(|(_, extent)| **extent <= highest) {
        return Err(unsuitable(
            format!("table {table} has {extent} rows, and its tokenizer has an id {highest}"),
            "The tokenizer belongs to another model",
        ));
    }
    let bytes = |bundle: &ModelBundle| {
        let weights = bundle.weights.weights().iter();
        let tables = weights.filter(|info| tables.names.contains(&info.name));
        tables.map(|info| info.byte_len() as u64).sum::<u64>()
    };
    let new = cut(bundle, &tables.names, &trimmed.rows)?;
    let report = TrimmedVocabulary {
        tokens_before: trimmed.before,
        tokens: trimmed.rows.len(),
        rows_before: extents.values().sum(),
        table_bytes_before: bytes(bundle),
        table_bytes: bytes(&new),
    };
    let mut new = history::noted(
        new,
        &bundle.identity.0,
        format!(
            "vocabulary: {} of {} tokens",
            report.tokens, report.tokens_before
        ),
    );
    new.files.insert(path, trimmed.json.into());
    settings::update(&mut new.files, &ids);
    Ok((new, report))
}

/// The same model with these rows of its tables.
fn cut(bundle: &ModelBundle, names: &BTreeSet<String>, rows: &[u32]) -> Result<ModelBundle> {
    let mut graph = bundle.graph.clone();
    if let Some(inner) = &mut graph.graph {
        // They state extents that are no longer true.
        inner
            .value_info
            .retain(|value| !names.contains(&value.name));
        let inline = inner.initializer.iter_mut();
        for tensor in inline.filter(|tensor| names.contains(&tensor.name)) {
            let extent = tensor
                .dims
                .first()
                .and_then(|&rows| usize::try_from(rows).ok());
            let taken = gathered::take(&tensor.raw_data, extent.unwrap_or(0), rows);
            let taken = taken.filter(|taken| !taken.is_empty());
            tensor.raw_data = taken
                .map(Into::into)
                .ok_or_else(|| OptimizeError::Unsuitable {
                    origin: bundle.origin.clone(),
                    reason: format!("table {} is not stored as raw bytes", tensor.name),
                    hint: "Export the model again".into(),
                })?;
            tensor.dims[0] = rows.len() as i64;
        }
    }
    let entries = &mut graph.metadata_props;
    if let Some(at) = entries.iter().position(|entry| entry.key == VOCABULARY) {
        entries[at] = StringStringEntryProto {
            key: VOCABULARY.into(),
            value: rows.len().to_string(),
        };
    }
    let mut hash = blake3::Hasher::new();
    hash.update(b"isovec vocabulary 1");
    hash.update(bundle.identity.0.as_bytes());
    for row in rows {
        hash.update(&row.to_le_bytes());
    }
    let rows: Arc<[u32]> = rows.into();
    Ok(ModelBundle {
        graph,
        weights: Arc::new(Gathered::new(bundle.weights.clone(), names, rows)),
        identity: WeightsIdentity(hash.finalize().to_hex().to_string()),
        ..bundle.clone()
    })
}
