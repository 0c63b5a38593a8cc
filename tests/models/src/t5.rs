//! Tiny encoders of T5 with seeded random weights, and their last hidden state at f64, written from the paper
//! (<https://arxiv.org/abs/1910.10683>) and from the names and shapes of the published tensors. The logarithm of its buckets is
//! compared by powers.

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::models::{HIDDEN, Maker, VOCABULARY, WIDE};
use crate::reference::{Rows, activate, array, average, each, linear, product, row, size, sum};

/// A model of a configuration's sizes.
pub fn t5_like(seed: u64, config: Value) -> Checkpoint {
    let (hidden, wide) = (size(&config, "d_model"), size(&config, "d_ff"));
    let heads = size(&config, "num_heads");
    let inner = heads * size(&config, "d_kv");
    let mut maker = Maker::new(seed);
    let words = [size(&config, "vocab_size"), hidden];
    maker.tensor("shared.weight", &words, 0.0, 1.0);
    let buckets = [size(&config, "relative_attention_num_buckets"), heads];
    maker.tensor(
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        &buckets,
        0.0,
        1.0,
    );
    for layer in 0..size(&config, "num_layers") {
        let name = |part: &str| format!("encoder.block.{layer}.layer.{part}");
        // Scores are not scaled, so queries are made smaller in training.
        let deviation = 1.2 / ((hidden * size(&config, "d_kv")) as f64).sqrt();
        let query = name("0.SelfAttention.q.weight");
        maker.tensor(&query, &[inner, hidden], 0.0, deviation);
        maker.linear(&name("0.SelfAttention.k"), hidden, inner, false);
        maker.linear(&name("0.SelfAttention.v"), hidden, inner, false);
        maker.linear(&name("0.SelfAttention.o"), inner, hidden, false);
        maker.norm(&name("0.layer_norm"), hidden, false);
        let widening = match is_gated(&config) {
            true => vec!["wi_0", "wi_1"],
            false => vec!["wi"],
        };
        for part in widening {
            let part = name(&format!("1.DenseReluDense.{part}"));
            maker.linear(&part, hidden, wide, false);
        }
        maker.linear(&name("1.DenseReluDense.wo"), wide, hidden, false);
        maker.norm(&name("1.layer_norm"), hidden, false);
    }
    maker.norm("encoder.final_layer_norm", hidden, false);
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny model as sentence-t5 and gtr-t5 are: of the first version.
pub fn t5() -> Checkpoint {
    t5_like(96, config("relu"))
}

/// A tiny model of version 1.1, with heads that are together wider than a token's vector.
pub fn t5_gated() -> Checkpoint {
    let mut config = config("gated-gelu");
    config["num_heads"] = json!(3);
    config["d_kv"] = json!(12);
    t5_like(97, config)
}

fn config(feed_forward: &str) -> Value {
    json!({
        "architectures": ["T5EncoderModel"],
        "model_type": "t5",
        "vocab_size": VOCABULARY,
        "d_model": HIDDEN,
        "d_kv": 8,
        "d_ff": WIDE,
        "num_layers": 3,
        "num_heads": 4,
        "relative_attention_num_buckets": 16,
        "relative_attention_max_distance": 40,
        "layer_norm_epsilon": 1e-6,
        "feed_forward_proj": feed_forward,
        "is_encoder_decoder": true,
        "n_positions": 64,
        "pad_token_id": 0
    })
}

fn is_gated(config: &Value) -> bool {
    config["feed_forward_proj"] == "gated-gelu"
}

/// Half of the buckets are for keys after the query; of a half, the first half is exact, and place `k` after it begins at the distance
/// `exact (furthest / exact)^(k / rest)`.
fn bucket(config: &Value, from: usize, to: usize) -> usize {
    let side = size(config, "relative_attention_num_buckets") / 2;
    let furthest = size(config, "relative_attention_max_distance") as f64;
    let exact = side / 2;
    let n = from.abs_diff(to);
    let within = if n < exact {
        n
    } else {
        let (rest, near) = ((side - exact) as f64, exact as f64);
        let begins = |k: usize| near * libm::pow(furthest / near, k as f64 / rest);
        let passed = (1..side - exact).filter(|&k| n as f64 + 1e-9 >= begins(k));
        exact + passed.count()
    };
    if to > from { side + within } else { within }
}

fn rms_norm(model: &Checkpoint, name: &str, x: &[f64]) -> Vec<f64> {
    let epsilon = model.config["layer_norm_epsilon"].as_f64();
    let squares = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    let root = (squares + epsilon.expect("an epsilon")).sqrt();
    let weight = &array(model, &format!("{name}.weight")).values;
    let scaled = x.iter().zip(weight);
    scaled.map(|(v, w)| v / root * f64::from(*w)).collect()
}

/// The last hidden state.
pub(crate) fn hidden_state(model: &Checkpoint, ids: &[i64]) -> Rows {
    let config = &model.config;
    let mut x: Rows = ids
        .iter()
        .map(|&id| row(model, "shared", id as usize))
        .collect();
    for layer in 0..size(config, "num_layers") {
        let name = |part: &str| format!("encoder.block.{layer}.layer.{part}");
        let normed = each(&x, |row| rms_norm(model, &name("0.layer_norm"), row));
        let context = attend(model, &name("0.SelfAttention"), &normed);
        let attended = each(&context, |row| {
            linear(model, &name("0.SelfAttention.o"), row)
        });
        x = sum(&x, &attended);
        let fed = each(&x, |row| {
            let normed = rms_norm(model, &name("1.layer_norm"), row);
            let product =
                |part: &str| linear(model, &name(&format!("1.DenseReluDense.{part}")), &normed);
            let active: Vec<f64> = match is_gated(config) {
                true => {
                    let gated = product("wi_0").into_iter().zip(product("wi_1"));
                    gated
                        .map(|(gate, v)| activate("gelu_new", gate) * v)
                        .collect()
                }
                false => product("wi").into_iter().map(|v| v.max(0.0)).collect(),
            };
            linear(model, &name("1.DenseReluDense.wo"), &active)
        });
        x = sum(&x, &fed);
    }
    each(&x, |row| rms_norm(model, "encoder.final_layer_norm", row))
}

fn attend(model: &Checkpoint, name: &str, x: &Rows) -> Rows {
    let config = &model.config;
    let project = |part: &str| each(x, |row| linear(model, &format!("{name}.{part}"), row));
    let (query, key, value) = (project("q"), project("k"), project("v"));
    let (heads, head_size) = (size(config, "num_heads"), size(config, "d_kv"));
    let table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias";
    average(x.len(), &value, heads, |head, from, to| {
        let bias = row(model, table, bucket(config, from, to))[head];
        product(&query[from], &key[to], head, head_size) + bias
    })
}
