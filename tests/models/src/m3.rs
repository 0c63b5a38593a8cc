//! A tiny BGE-M3 with seeded random weights, its two heads beside that of its vectors, and what they give at f64, written from the
//! paper (<https://arxiv.org/abs/2402.03216>) and from what FlagEmbedding documents of itself.

use std::collections::BTreeMap;

use serde_json::json;

use crate::checkpoint::{Checkpoint, Stored};
use crate::heads::published;
use crate::models::{self, HIDDEN, Maker};
use crate::reference::{Rows, each, last_hidden_state, linear};
use crate::tiny::{of_words, pretty, tokenise, tokenizer, vocabulary};
use crate::torch_file::state_dict;

/// Components of a token's vector.
pub const DIM: usize = 24;

const HEADS: [&str; 2] = ["sparse_linear", "colbert_linear"];

/// A mistake in what a head gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A word has the sum of its tokens' weights.
    Sum,
    /// Special tokens have weights too.
    SpecialWeighed,
    /// The layer's bias is left out.
    NoBias,
    /// The first token has a vector too.
    FirstCompared,
    /// The last token has none.
    LastLeftOut,
    /// Vectors keep their lengths.
    NotNormalised,
}

/// The model, with its heads under the names `sparse_linear` and `colbert_linear`, whose numbers f16 holds exactly.
pub fn model() -> Checkpoint {
    let mut maker = Maker::new(300);
    maker.linear(HEADS[0], HIDDEN, 1, true);
    maker.linear(HEADS[1], HIDDEN, DIM, true);
    let heads = Checkpoint {
        config: json!({}),
        tensors: maker.tensors,
    };
    // So that `[UNK]` is not the id of padding.
    let mut model = of_words(models::roberta()).with("pad_token_id", 0);
    model.tensors.extend(heads.rounded(Stored::F16).tensors);
    model
}

/// The weight of every word of a text.
pub fn weights(model: &Checkpoint, text: &str, mistake: Option<Mistake>) -> Vec<f64> {
    let is = |which| mistake == Some(which);
    let words = vocabulary();
    let ids = tokenise(&words, text);
    let mut weights = vec![0.0; words.len()];
    for (row, &id) in last_hidden_state(model, &ids, &vec![0; ids.len()])
        .iter()
        .zip(&ids)
    {
        let special = ["[CLS]", "[SEP]", "[PAD]", "[UNK]"].contains(&words[id as usize].as_str());
        if special && !is(Mistake::SpecialWeighed) {
            continue;
        }
        let mut number = linear(model, HEADS[0], row)[0];
        if is(Mistake::NoBias) {
            number -= f64::from(model.tensors["sparse_linear.bias"].values[0]);
        }
        let own = &mut weights[id as usize];
        *own = match is(Mistake::Sum) {
            true => *own + number.max(0.0),
            false => number.max(*own),
        };
    }
    weights
}

/// The vectors of a text that are compared.
pub fn vectors(model: &Checkpoint, text: &str, mistake: Option<Mistake>) -> Rows {
    let is = |which| mistake == Some(which);
    let ids = tokenise(&vocabulary(), text);
    let mut rows = last_hidden_state(model, &ids, &vec![0; ids.len()]);
    if !is(Mistake::FirstCompared) {
        rows.remove(0);
    }
    if is(Mistake::LastLeftOut) {
        rows.pop();
    }
    each(&rows, |row| {
        let row = linear(model, HEADS[1], row);
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let by = if is(Mistake::NotNormalised) {
            1.0
        } else {
            norm
        };
        row.iter().map(|x| x / by).collect()
    })
}

/// The files that are published of the model.
pub fn files(model: &Checkpoint) -> BTreeMap<String, Vec<u8>> {
    let head = |name: &str| {
        let tensor = |part: &str| &model.tensors[&format!("{name}.{part}")];
        let tensors = [("weight", tensor("weight")), ("bias", tensor("bias"))];
        (
            format!("{name}.pt"),
            state_dict(name, &tensors, Stored::F16),
        )
    };
    let mut encoder = model.clone();
    let is_head = |name: &str| HEADS.iter().any(|head| name.starts_with(head));
    encoder.tensors.retain(|name, _| !is_head(name));
    let encoder = published(encoder);
    let modules = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
    ]);
    let special = json!({
        "cls_token": "[CLS]", "eos_token": {"content": "[SEP]"}, "mask_token": "[MASK]",
        "pad_token": "[PAD]", "unk_token": "[UNK]"
    });
    let mut files = BTreeMap::from([
        ("config.json".into(), pretty(&encoder.config)),
        ("model.safetensors".into(), encoder.file(Stored::F32)),
        ("modules.json".into(), pretty(&modules)),
        (
            "1_Pooling/config.json".into(),
            pretty(&json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})),
        ),
        ("special_tokens_map.json".into(), pretty(&special)),
        ("tokenizer.json".into(), pretty(&tokenizer(&vocabulary()))),
    ]);
    files.extend(HEADS.map(head));
    files
}
