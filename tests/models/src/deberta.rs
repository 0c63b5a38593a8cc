//! Tiny DeBERTas of the second version with seeded random weights, and their last hidden state at f64, written from the papers
//! (<https://arxiv.org/abs/2006.03654>, <https://arxiv.org/abs/2111.09543>) and from the names and shapes of the published tensors: each
//! pair of tokens looks its distance's vectors up and projects them, so that there is no table and no rearranged score.

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::models::{HIDDEN, Maker, VOCABULARY, WIDE};
use crate::reference::{
    BERT_NAMES, Rows, add, after_attention, average, each, layer_norm, linear, product, row, size,
};

/// A model of a configuration's sizes.
pub fn deberta_like(seed: u64, config: Value) -> Checkpoint {
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
    if config["position_biased_input"] == true {
        let positions = size(&config, "max_position_embeddings");
        maker.table("embeddings.position_embeddings", positions, hidden);
    }
    if size(&config, "type_vocab_size") > 0 {
        let types = size(&config, "type_vocab_size");
        maker.table("embeddings.token_type_embeddings", types, hidden);
    }
    maker.norm("embeddings.LayerNorm", hidden, true);
    let distances = [2 * span(&config) as usize, hidden];
    maker.tensor("encoder.rel_embeddings.weight", &distances, 0.0, 1.0);
    if config["norm_rel_ebd"] == "layer_norm" {
        maker.norm("encoder.LayerNorm", hidden, true);
    }
    for layer in 0..size(&config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        let mut parts = vec![
            "self.query_proj",
            "self.key_proj",
            "self.value_proj",
            "output.dense",
        ];
        if config["share_att_key"] == false {
            parts.extend(["self.pos_key_proj", "self.pos_query_proj"]);
        }
        for part in parts {
            maker.linear(&name(&format!("attention.{part}")), hidden, hidden, true);
        }
        maker.norm(&name("attention.output.LayerNorm"), hidden, true);
        maker.feed_forward(&name(""), hidden, wide);
    }
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny model as DeBERTa-v3 is one.
pub fn deberta() -> Checkpoint {
    deberta_like(
        92,
        json!({
            "architectures": ["DebertaV2Model"],
            "model_type": "deberta-v2",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": WIDE,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-7,
            "max_position_embeddings": 64,
            "max_relative_positions": -1,
            "norm_rel_ebd": "layer_norm",
            "pad_token_id": 0,
            "pooler_dropout": 0,
            "pooler_hidden_act": "gelu",
            "pooler_hidden_size": HIDDEN,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": false,
            "position_buckets": 8,
            "relative_attention": true,
            "share_att_key": true,
            "type_vocab_size": 0
        }),
    )
}

/// One with every option that the published third version leaves: distances without buckets and without a norm, projections of their
/// own, positions and token types.
pub fn deberta_plain() -> Checkpoint {
    let config = deberta()
        .with("max_relative_positions", 12)
        .with("norm_rel_ebd", "none")
        .with("position_biased_input", true)
        .with("position_buckets", -1)
        .with("pos_att_type", "c2p|p2c")
        .with("share_att_key", false)
        .with("type_vocab_size", 2)
        .config;
    deberta_like(93, config)
}

/// Distances on each side.
fn span(config: &Value) -> i64 {
    match config["position_buckets"].as_i64() {
        Some(buckets) if buckets > 0 => buckets,
        _ => furthest(config),
    }
}

fn furthest(config: &Value) -> i64 {
    match config["max_relative_positions"].as_i64() {
        Some(furthest) if furthest > 0 => furthest,
        _ => size(config, "max_position_embeddings") as i64,
    }
}

/// The bucket of a distance with a sign.
fn bucket(config: &Value, distance: i64) -> i64 {
    let Some(buckets) = config["position_buckets"].as_i64().filter(|&all| all > 0) else {
        return distance;
    };
    let exact = buckets / 2;
    if distance.abs() <= exact {
        return distance;
    }
    let far = distance.abs() as f64 / exact as f64;
    let last = (furthest(config) - 1) as f64 / exact as f64;
    let place = libm::log(far) / libm::log(last) * (exact - 1) as f64;
    distance.signum() * (exact + libm::ceil(place) as i64)
}

/// The last hidden state.
pub(crate) fn hidden_state(model: &Checkpoint, ids: &[i64], types: &[i64]) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_eps"].as_f64().expect("an epsilon");
    let act = config["hidden_act"].as_str().expect("an activation");
    let embedded = ids.iter().zip(types).enumerate().map(|(at, (&id, &kind))| {
        let mut sum = row(model, "embeddings.word_embeddings", id as usize);
        if config["position_biased_input"] == true {
            sum = add(&sum, &row(model, "embeddings.position_embeddings", at));
        }
        if size(config, "type_vocab_size") > 0 {
            let kind = row(model, "embeddings.token_type_embeddings", kind as usize);
            sum = add(&sum, &kind);
        }
        layer_norm(model, "embeddings.LayerNorm", epsilon, &sum)
    });
    let mut x: Rows = embedded.collect();
    let span = span(config);
    let vectors: Rows = (0..2 * span as usize)
        .map(|at| {
            let vector = row(model, "encoder.rel_embeddings", at);
            match config["norm_rel_ebd"] == "layer_norm" {
                true => layer_norm(model, "encoder.LayerNorm", epsilon, &vector),
                false => vector,
            }
        })
        .collect();
    for layer in 0..size(config, "num_hidden_layers") {
        let layer = format!("encoder.layer.{layer}");
        let context = attend(model, &format!("{layer}.attention.self"), &x, &vectors);
        x = after_attention(model, &layer, BERT_NAMES, (&x, &context), (act, epsilon));
    }
    x
}

fn attend(model: &Checkpoint, name: &str, x: &Rows, vectors: &Rows) -> Rows {
    let config = &model.config;
    let named = config["pos_att_type"].to_string();
    let (of_queries, of_keys) = (named.contains("c2p"), named.contains("p2c"));
    let project =
        |rows: &Rows, part: &str| each(rows, |row| linear(model, &format!("{name}.{part}"), row));
    let (query, key) = (project(x, "query_proj"), project(x, "key_proj"));
    let value = project(x, "value_proj");
    let [key_part, query_part] = match config["share_att_key"] == true {
        true => ["key_proj", "query_proj"],
        false => ["pos_key_proj", "pos_query_proj"],
    };
    let position_key = project(vectors, key_part);
    let position_query = project(vectors, query_part);
    let heads = size(config, "num_attention_heads");
    let head_size = size(config, "hidden_size") / heads;
    let terms = 1 + usize::from(of_queries) + usize::from(of_keys);
    let scale = 1.0 / ((head_size * terms) as f64).sqrt();
    let span = span(config);
    average(x.len(), &value, heads, |head, from, to| {
        let product = |a: &[f64], b: &[f64]| product(a, b, head, head_size);
        let distance = bucket(config, from as i64 - to as i64);
        let place = (distance + span).clamp(0, 2 * span - 1) as usize;
        let mut score = product(&query[from], &key[to]);
        if of_queries {
            score += product(&query[from], &position_key[place]);
        }
        if of_keys {
            score += product(&key[to], &position_query[place]);
        }
        scale * score
    })
}
