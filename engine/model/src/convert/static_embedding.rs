//! Static embeddings: a vector for each token, whatever stands beside it. A text's vector is the mean over its tokens.
//!
//! Model2Vec (<https://github.com/MinishLab/model2vec>) stores the table `embeddings`. A quantised vocabulary adds `mapping`, the
//! row of each token, and `weights`, a factor for each token. sentence-transformers' `StaticEmbedding` stores the table
//! `embedding.weight`. The graph ends before the mean, which is the head's.

use isovec_engine::error::{EngineError, Result};

use super::architecture::Deciding;
use super::config::Config;
use super::embeddings::{ATTENTION_MASK, INPUT_IDS, declare_input, declare_output};
use super::net::Net;
use super::source::{Recipe, is_float, whole_numbers};
use crate::safetensors::{SourceDType, SourceTensor, TensorSet};

/// Names of the table: sentence-transformers', and Model2Vec's.
const TABLES: [&str; 2] = ["embedding.weight", "embeddings"];

/// The row of each token, i32 or i64 `[tokens]`; without it a token's row is its id.
const MAPPING: &str = "mapping";

/// What each token's row is multiplied with, floats `[tokens]`.
const WEIGHTS: &str = "weights";

/// The `model_type` in the files of Model2Vec.
const MODEL2VEC: &str = "model2vec";

/// The longest sequence: no table of positions ends, and the portable engine takes no longer one.
pub const LONGEST: usize = 1 << 20;

/// Stands for the `config.json` that a model of sentence-transformers' `StaticEmbedding` does not have.
pub(crate) const CONFIG: &[u8] = br#"{"model_type": "static_embedding"}"#;

/// Whether a `config.json` is one of Model2Vec's, whose vectors leave unknown tokens out.
pub fn is_model2vec(config_json: &[u8]) -> bool {
    let config = Config::parse("config.json", config_json);
    config.is_ok_and(|config| config.text_or("model_type", "").ok() == Some(MODEL2VEC))
}

/// The table's name in a checkpoint. Where it has none, an error will name Model2Vec's.
pub(super) fn anchor(tensors: &TensorSet) -> &'static str {
    let ends = |anchor: &&&str| tensors.names().any(|name| name.ends_with(**anchor));
    TABLES.iter().find(ends).unwrap_or(&TABLES[1])
}

/// What decides vectors and no tensor shows: which tokens are left out.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let left_out = match config.text_or("model_type", "")? {
        MODEL2VEC => "left out",
        _ => "kept",
    };
    Ok(vec![("unknown tokens", left_out.to_owned())])
}

/// Builds the graph; returns the number of tokens that have a vector.
pub(super) fn build(net: &mut Net<'_>, table: &str) -> Result<usize> {
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    net.scope("embeddings");
    let (tensor, source) = tensor(net, table)?;
    let &[rows, width] = &source.shape[..] else {
        return Err(wrong(&tensor, source, "[rows, components]"));
    };
    let is_number = is_float(source.dtype) || source.dtype == SourceDType::I8;
    if rows == 0 || width == 0 || !is_number {
        return Err(wrong(&tensor, source, "[rows, components] of floats or i8"));
    }
    let (ids, tokens) = match net.holds(MAPPING) {
        true => mapped(net, rows)?,
        false => (INPUT_IDS.to_owned(), rows),
    };
    let table = net.recipe(table.to_owned(), vec![rows, width], Recipe::Copy { tensor });
    let x = net.gather(&table, &ids, 0);
    if net.holds(WEIGHTS) {
        let (tensor, source) = self::tensor(net, WEIGHTS)?;
        if source.shape != [tokens] || !is_float(source.dtype) {
            return Err(wrong(&tensor, source, &format!("[{tokens}] of floats")));
        }
        let weights = net.recipe(WEIGHTS.to_owned(), vec![tokens, 1], Recipe::Copy { tensor });
        let factor = net.gather(&weights, INPUT_IDS, 0);
        net.node("Mul", &[&x, &factor], vec![]);
    }
    declare_output(net, width);
    Ok(tokens)
}

/// The rows of a text's tokens in a table of so many, and how many tokens there are.
fn mapped(net: &mut Net<'_>, rows: usize) -> Result<(String, usize)> {
    let (tensor, source) = tensor(net, MAPPING)?;
    let whole = matches!(source.dtype, SourceDType::I32 | SourceDType::I64);
    let &[tokens] = &source.shape[..] else {
        return Err(wrong(&tensor, source, "[tokens] of i32 or i64"));
    };
    if tokens == 0 || !whole {
        return Err(wrong(&tensor, source, "[tokens] of i32 or i64"));
    }
    let mapping = whole_numbers(&tensor, source)?;
    let outside = |row: &i32| usize::try_from(*row).map_or(true, |row| row >= rows);
    if let Some(token) = mapping.iter().position(outside) {
        let row = mapping[token];
        return Err(EngineError::Weight {
            name: tensor,
            detail: format!("it maps token {token} to row {row} of a table of {rows}"),
        });
    }
    let mapping = net.recipe(MAPPING.to_owned(), vec![tokens], Recipe::Whole { tensor });
    Ok((net.gather(&mapping, INPUT_IDS, 0), tokens))
}

/// A tensor with its name in the checkpoint.
fn tensor<'n>(net: &'n Net<'_>, name: &str) -> Result<(String, &'n SourceTensor)> {
    net.source(name).ok_or_else(|| EngineError::Weight {
        name: name.to_owned(),
        detail: "the checkpoint does not hold it".into(),
    })
}

fn wrong(name: &str, source: &SourceTensor, expected: &str) -> EngineError {
    EngineError::Weight {
        name: name.to_owned(),
        detail: format!(
            "it is {:?} of {}, and a model of static embeddings has {expected}",
            source.shape, source.dtype
        ),
    }
}
