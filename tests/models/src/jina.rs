//! Tiny JinaBERTs with seeded random weights, and their last hidden state at f64, written from the papers (JinaBERT
//! <https://arxiv.org/abs/2310.19923>, ALiBi <https://arxiv.org/abs/2108.12409>, gates <https://arxiv.org/abs/2002.05202>) and from the
//! names and shapes of the published tensors.

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::models::{HIDDEN, Maker, VOCABULARY, WIDE};
use crate::reference::{Rows, activate, add, attend, each, layer_norm, linear, row, size, sum};

/// A model of a configuration's sizes. Its `auto_map` says for which version of the code.
pub fn jina_like(seed: u64, config: Value) -> Checkpoint {
    let (hidden, wide) = (
        size(&config, "hidden_size"),
        size(&config, "intermediate_size"),
    );
    let mut maker = Maker::new(seed);
    maker.table(
        "embeddings.word_embeddings",
        size(&config, "vocab_size"),
        hidden,
    );
    let types = size(&config, "type_vocab_size");
    maker.table("embeddings.token_type_embeddings", types, hidden);
    maker.norm("embeddings.LayerNorm", hidden, true);
    for layer in 0..size(&config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        for part in ["self.query", "self.key", "self.value", "output.dense"] {
            maker.linear(&name(&format!("attention.{part}")), hidden, hidden, true);
        }
        maker.norm(&name("attention.output.LayerNorm"), hidden, true);
        if is_second(&config) {
            maker.norm(&name("attention.self.layer_norm_q"), hidden, true);
            maker.norm(&name("attention.self.layer_norm_k"), hidden, true);
            maker.norm(&name("layer_norm_1"), hidden, true);
            maker.linear(&name("mlp.up_gated_layer"), hidden, 2 * wide, false);
            maker.linear(&name("mlp.down_layer"), wide, hidden, true);
            maker.norm(&name("layer_norm_2"), hidden, true);
        } else {
            maker.linear(&name("mlp.gated_layers"), hidden, 2 * wide, false);
            maker.linear(&name("mlp.wo"), wide, hidden, true);
            maker.norm(&name("mlp.layernorm"), hidden, true);
        }
    }
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny model as jina-embeddings-v2-small-en is one.
pub fn jina() -> Checkpoint {
    jina_like(76, config("jinaai/jina-bert-implementation"))
}

/// A tiny model as jina-embeddings-v2-base-code is one.
pub fn jina_code() -> Checkpoint {
    jina_like(77, config(SECOND))
}

/// The repository of the second version of the code.
const SECOND: &str = "jinaai/jina-bert-v2-qk-post-norm";

/// What `config.json` of a tiny JinaBERT says.
fn config(code: &str) -> Value {
    json!({
        "architectures": ["JinaBertForMaskedLM"],
        "auto_map": {"AutoModel": format!("{code}--modeling_bert.JinaBertModel")},
        "model_type": "bert",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": WIDE,
        "hidden_act": "gelu",
        "feed_forward_type": "geglu",
        "emb_pooler": "mean",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 64,
        "model_max_length": 64,
        "position_embedding_type": "alibi",
        "type_vocab_size": 2,
        "pad_token_id": 0
    })
}

/// Whether the model is for the second version of the code.
fn is_second(config: &Value) -> bool {
    let code = config["auto_map"]["AutoModel"].as_str();
    code.is_some_and(|code| code.starts_with(SECOND))
}

/// A head's slope, as the code of the paper on ALiBi has it.
fn slope(head: usize, heads: usize) -> f64 {
    if heads.is_power_of_two() {
        let start = libm::exp2(-libm::exp2(-(libm::log2(heads as f64) - 3.0)));
        return libm::pow(start, (head + 1) as f64);
    }
    let below = heads.next_power_of_two() / 2;
    match head < below {
        true => slope(head, below),
        false => slope(2 * (head - below), 2 * below),
    }
}

/// The last hidden state.
pub(crate) fn hidden_state(model: &Checkpoint, ids: &[i64], types: &[i64]) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_eps"].as_f64().expect("an epsilon");
    let act = match config["feed_forward_type"].as_str() {
        Some("geglu") => "gelu",
        Some("reglu") => "relu",
        other => panic!("no reference for {other:?}"),
    };
    let (heads, wide) = (
        size(config, "num_attention_heads"),
        size(config, "intermediate_size"),
    );
    let embedded = ids.iter().zip(types).map(|(&id, &kind)| {
        let word = row(model, "embeddings.word_embeddings", id as usize);
        let kind = row(model, "embeddings.token_type_embeddings", kind as usize);
        layer_norm(model, "embeddings.LayerNorm", epsilon, &add(&word, &kind))
    });
    let mut x: Rows = embedded.collect();
    for layer in 0..size(config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        let norm = |rows: &Rows, part: &str| {
            each(rows, |row| layer_norm(model, &name(part), epsilon, row))
        };
        let project = |part: &str| each(&x, |row| linear(model, &name(part), row));
        let mut query = project("attention.self.query");
        let mut key = project("attention.self.key");
        if is_second(config) {
            query = norm(&query, "attention.self.layer_norm_q");
            key = norm(&key, "attention.self.layer_norm_k");
        }
        let value = project("attention.self.value");
        let context = attend(&query, &key, &value, heads, |head, from, to, score| {
            score - slope(head, heads) * from.abs_diff(to) as f64
        });
        let attended = each(&context, |row| {
            linear(model, &name("attention.output.dense"), row)
        });
        let attended = norm(&sum(&x, &attended), "attention.output.LayerNorm");
        x = match is_second(config) {
            true => norm(&sum(&x, &attended), "layer_norm_1"),
            false => attended,
        };
        let fed = each(&x, |row| match is_second(config) {
            true => {
                let both = linear(model, &name("mlp.up_gated_layer"), row);
                let gated = (0..wide).map(|i| both[i] * activate(act, both[wide + i]));
                linear(model, &name("mlp.down_layer"), &gated.collect::<Vec<_>>())
            }
            false => {
                let both = linear(model, &name("mlp.gated_layers"), row);
                let gated = (0..wide).map(|i| activate(act, both[i]) * both[wide + i]);
                linear(model, &name("mlp.wo"), &gated.collect::<Vec<_>>())
            }
        });
        let last = match is_second(config) {
            true => "layer_norm_2",
            false => "mlp.layernorm",
        };
        x = norm(&sum(&x, &fed), last);
    }
    x
}
