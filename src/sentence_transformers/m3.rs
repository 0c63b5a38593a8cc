//! The two heads that BGE-M3 has beside that of its dense vectors.
//!
//! FlagEmbedding (<https://github.com/FlagOpen/FlagEmbedding>, `finetune/embedder/encoder_only/m3/modeling.py` and
//! `inference/embedder/encoder_only/m3.py`) keeps each as the state dict of a linear layer beside the model. `sparse_linear.pt` gives a
//! token the weight relu(w·h + b); a word has the largest weight of its tokens, and the special tokens of classification, of the end, of
//! padding and of unknown words have none. `colbert_linear.pt` makes the vectors of late interaction, of all tokens but the first; texts
//! have no markers, queries are not filled up, and vectors are scaled to unit length.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_model::head::{Activation, Dense};
use isovec_model::state_dict::{FloatTensor, read_state_dict};
use serde_json::Value;

use super::{Folder, LateFiles, Result};

const SPARSE: &str = "sparse_linear.pt";
const COLBERT: &str = "colbert_linear.pt";

/// Special tokens without weight, by their names in the tokenizer's files, and as XLM-R has them.
const UNWEIGHED: [(&str, &str); 4] = [
    ("cls_token", "<s>"),
    ("eos_token", "</s>"),
    ("pad_token", "<pad>"),
    ("unk_token", "<unk>"),
];

/// What weighs the tokens of a text one by one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenWeightFiles {
    /// The layer with one output behind the transformer.
    pub(crate) layer: Dense,
    /// Tokens that have no weight.
    pub(crate) unweighed: Vec<String>,
    /// The file that says so.
    pub(crate) from: &'static str,
}

/// What BGE-M3's files say of sparse vectors, where a model has them.
///
/// # Errors
/// [`EngineError::InvalidModel`](isovec_engine::EngineError::InvalidModel) and
/// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) for a file that is no linear layer.
pub(crate) fn m3_token_weights(
    origin: &str,
    files: &BTreeMap<String, Bytes>,
) -> Result<Option<TokenWeightFiles>> {
    let folder = Folder { origin, files };
    let Some(layer) = folder.linear(SPARSE)? else {
        return Ok(None);
    };
    Ok(Some(TokenWeightFiles {
        layer,
        unweighed: folder.unweighed()?,
        from: SPARSE,
    }))
}

/// What BGE-M3's files say of late interaction, where a model has them.
///
/// # Errors
/// As [`m3_token_weights`].
pub(crate) fn m3_late(origin: &str, files: &BTreeMap<String, Bytes>) -> Result<Option<LateFiles>> {
    let layer = Folder { origin, files }.linear(COLBERT)?;
    Ok(layer.map(|layer| LateFiles {
        dense: vec![layer],
        query_marker: None,
        passage_marker: None,
        query_length: None,
        passage_length: None,
        expansion: None,
        skipped: Vec::new(),
        skips_first: true,
        strips: true,
        from: COLBERT,
    }))
}

impl Folder<'_> {
    /// A linear layer in a file of its own, where there is one.
    fn linear(&self, file: &str) -> Result<Option<Dense>> {
        let Some(bytes) = self.files.get(file) else {
            return Ok(None);
        };
        let mut tensors = read_state_dict(&format!("{}: {file}", self.origin), bytes)?;
        let (weight, bias) = (tensors.remove("weight"), tensors.remove("bias"));
        if let Some(other) = tensors.keys().next() {
            let detail = format!("it holds {other}, and a linear layer has a weight and a bias");
            return Err(self.invalid(file, detail));
        }
        let Some(FloatTensor { shape, values }) = weight else {
            return Err(self.invalid(file, "it has no weight"));
        };
        let [out_features, in_features] = shape[..] else {
            return Err(self.invalid(file, format!("its weight is {shape:?}")));
        };
        if out_features == 0 || in_features == 0 {
            return Err(self.invalid(file, format!("its weight is {shape:?}")));
        }
        if let Some(bias) = bias.as_ref().filter(|bias| bias.shape != [out_features]) {
            let detail = format!("its weight is {shape:?}, and its bias {:?}", bias.shape);
            return Err(self.invalid(file, detail));
        }
        Ok(Some(Dense {
            in_features,
            out_features,
            weight: values,
            bias: bias.map(|bias| bias.values),
            activation: Activation::Identity,
        }))
    }

    /// The special tokens without weight: as the tokenizer's files name them, else as XLM-R does.
    fn unweighed(&self) -> Result<Vec<String>> {
        let mut named: Vec<Value> = Vec::new();
        for file in ["special_tokens_map.json", "tokenizer_config.json"] {
            named.extend(self.json::<Value>(file)?);
        }
        let tokens = UNWEIGHED.iter().map(|(kind, usual)| {
            let own = named.iter().map(|names| &names[*kind]);
            // By itself, or with its settings.
            let mut own = own.filter_map(|token| token.as_str().or(token["content"].as_str()));
            own.next().unwrap_or(usual).to_owned()
        });
        Ok(tokens.collect())
    }
}
