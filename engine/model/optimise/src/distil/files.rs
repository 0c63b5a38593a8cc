//! The files of a static model, in the format of Model2Vec, which isovec, sentence-transformers and model2vec load.

use std::collections::BTreeMap;

use half::{bf16, f16};
use isovec_model::precision::quantize_weights;
use isovec_model::safetensors::header_of;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{SIF_COEFFICIENT, StaticTable};
use crate::error::{OptimizeError, Result};
use crate::history::{HISTORY_KEY, History};

/// How a static table is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaticPrecision {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
    /// Whole numbers of 8 bits, and a factor for each token.
    Int8,
}

/// The files by their names, in a root folder.
pub type StaticFiles = BTreeMap<String, Vec<u8>>;

/// Makes the files of a static model whose tokens are those of `tokenizer_json`.
///
/// In int8 the table's rows are whole numbers of -127 to 127, and `weights` has the factor of each row: its largest
/// magnitude / 127.
///
/// # Errors
/// [`OptimizeError::Unsuitable`] where a file cannot be written.
pub fn static_files(
    table: &StaticTable,
    tokenizer_json: &[u8],
    history: &History,
    stored: StaticPrecision,
) -> Result<StaticFiles> {
    let pretty = |value: &Value| format!("{value:#}\n").into_bytes();
    let config = json!({
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "apply_pca": table.width,
        "sif_coefficient": SIF_COEFFICIENT,
        "hidden_dim": table.width,
        "seq_length": 1_000_000,
        "normalize": true,
    });
    let step = |path: &str, class: &str| json!({"path": path, "type": format!("sentence_transformers.models.{class}")});
    let modules = json!([
        step(".", "StaticEmbedding"),
        step("1_Normalize", "Normalize")
    ]);
    Ok(BTreeMap::from([
        ("config.json".into(), pretty(&config)),
        ("modules.json".into(), pretty(&modules)),
        ("tokenizer.json".into(), uncut(tokenizer_json)?),
        ("model.safetensors".into(), tensors(table, history, stored)?),
    ]))
}

fn tensors(table: &StaticTable, history: &History, stored: StaticPrecision) -> Result<Vec<u8>> {
    let rows = table.values.len().checked_div(table.width).unwrap_or(0);
    let shape = [rows, table.width];
    let mut factors: Vec<u8> = Vec::new();
    let (dtype, values): (_, Vec<u8>) = match stored {
        StaticPrecision::F32 => {
            let values = table.values.iter();
            (
                "F32",
                values.flat_map(|value| value.to_le_bytes()).collect(),
            )
        }
        StaticPrecision::F16 => {
            let halves = table.values.iter().map(|&value| f16::from_f32(value));
            ("F16", halves.flat_map(|half| half.to_le_bytes()).collect())
        }
        StaticPrecision::Bf16 => {
            let halves = table.values.iter().map(|&value| bf16::from_f32(value));
            ("BF16", halves.flat_map(|half| half.to_le_bytes()).collect())
        }
        StaticPrecision::Int8 => {
            let whole = quantize_weights(&table.values, &shape, Some(0))?;
            let scales = whole.channels.scales.iter();
            factors.extend(scales.flat_map(|scale| scale.to_le_bytes()));
            (
                "I8",
                whole.values.iter().map(|&value| value as u8).collect(),
            )
        }
    };
    // Larger elements first, so that all lie at multiples of their size.
    let mut listed = Vec::new();
    if !factors.is_empty() {
        listed.push(("weights", "F32", &shape[..1], factors.len()));
    }
    listed.push(("embeddings", dtype, &shape[..], values.len()));
    let told = |error: serde_json::Error| unwritable(&error);
    let metadata = BTreeMap::from([(HISTORY_KEY, serde_json::to_string(history).map_err(told)?)]);
    let mut file = header_of(&metadata, &listed).map_err(told)?;
    file.extend(factors);
    file.extend(values);
    Ok(file)
}

/// A tokenizer that cuts and fills no text: a mean has no longest text.
fn uncut(tokenizer_json: &[u8]) -> Result<Vec<u8>> {
    let told = |error: serde_json::Error| unwritable(&error);
    let mut file: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(tokenizer_json).map_err(told)?;
    for member in ["truncation", "padding"] {
        file.insert(
            member.into(),
            RawValue::from_string("null".into()).map_err(told)?,
        );
    }
    serde_json::to_vec(&file).map_err(told)
}

fn unwritable(error: &serde_json::Error) -> OptimizeError {
    OptimizeError::Unsuitable {
        origin: "the static model".into(),
        reason: format!("a file of it cannot be written: {error}"),
        hint: "Use a model with a valid tokenizer.json".into(),
    }
}

#[cfg(test)]
mod tests {
    use isovec_test_models::tiny;

    use super::*;

    #[test]
    fn files_hold_what_they_should_and_are_the_same_every_time() {
        let table = StaticTable {
            width: 2,
            values: vec![0.0, 0.0, 1.0, -0.5, 0.01, 0.02],
            explained: 1.0,
        };
        let history = History {
            original: "abc".into(),
            steps: vec!["static".into()],
        };
        let mut tokenizer = tiny::tokenizer(&tiny::vocabulary());
        tokenizer["truncation"] =
            json!({"max_length": 128, "strategy": "LongestFirst", "stride": 0});
        let tokenizer = tokenizer.to_string();
        for (stored, bytes) in [
            (StaticPrecision::F32, 24),
            (StaticPrecision::F16, 12),
            (StaticPrecision::Bf16, 12),
            (StaticPrecision::Int8, 6),
        ] {
            let made = || static_files(&table, tokenizer.as_bytes(), &history, stored).unwrap();
            let files = made();
            assert_eq!(files, made());
            let read = safetensors::SafeTensors::deserialize(&files["model.safetensors"]).unwrap();
            assert_eq!(read.tensor("embeddings").unwrap().data().len(), bytes);
            assert_eq!(
                read.tensor("weights").is_ok(),
                stored == StaticPrecision::Int8
            );
            let tokenizer: Value = serde_json::from_slice(&files["tokenizer.json"]).unwrap();
            assert_eq!(tokenizer["truncation"], Value::Null);
        }
    }
}
