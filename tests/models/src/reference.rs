//! Every family at f64 as plain loops over one unpadded text, written from the papers. It shares
//! nothing with the conversion: no mask (a text stands alone), no tables of angles or buckets.
//! Functions are libm's and not the platform's, so that the numbers are the same everywhere.
//!
//! BERT <https://arxiv.org/abs/1810.04805>, RoBERTa <https://arxiv.org/abs/1907.11692>, MPNet
//! <https://arxiv.org/abs/2004.09297> with the buckets of <https://arxiv.org/abs/1910.10683>,
//! DistilBERT <https://arxiv.org/abs/1910.01108>, ModernBERT <https://arxiv.org/abs/2412.13663>,
//! NomicBERT <https://arxiv.org/abs/2402.01613>, GELU <https://arxiv.org/abs/1606.08415>, rotary
//! positions <https://arxiv.org/abs/2104.09864>. Others are in [`crate::deberta`], [`crate::decoders`], [`crate::gte`], [`crate::jina`], [`crate::jina_v3`] and [`crate::t5`].

use serde_json::Value;

use crate::checkpoint::{Array, Checkpoint};
use crate::deberta;
use crate::decoders;
use crate::gte;
use crate::jina;
use crate::jina_v3;
use crate::t5;

/// One vector a token.
pub type Rows = Vec<Vec<f64>>;

/// The last hidden state of one text. A model with adapters has their numbers in the place of types.
pub fn last_hidden_state(model: &Checkpoint, ids: &[i64], types: &[i64]) -> Rows {
    last_hidden_state_seeing(model, ids, types, ids.len())
}

/// The same where only the first `seen` tokens are seen, by all; of BERT and ModernBERT.
pub fn last_hidden_state_seeing(
    model: &Checkpoint,
    ids: &[i64],
    types: &[i64],
    seen: usize,
) -> Rows {
    match model.config["model_type"].as_str().expect("a model type") {
        "bert" if model.config["position_embedding_type"] != "alibi" => {
            bert(model, ids, types, seen)
        }
        "modernbert" => modernbert(model, ids, seen),
        _ if seen < ids.len() => panic!("no reference with tokens that are not seen"),
        "xlm-roberta" if model.tensors.contains_key("emb_ln.weight") => {
            jina_v3::hidden_state(model, ids, types)
        }
        "roberta" | "xlm-roberta" | "camembert" => roberta(model, ids),
        "mpnet" => mpnet(model, ids),
        "distilbert" => distilbert(model, ids),
        "nomic_bert" => nomicbert(model, ids, types),
        "bert" => jina::hidden_state(model, ids, types),
        "t5" => t5::hidden_state(model, ids),
        "deberta-v2" => deberta::hidden_state(model, ids, types),
        "new" => gte::hidden_state(model, ids, types),
        "qwen2" | "qwen3" | "llama" | "mistral" | "gemma3_text" | "eurobert" => {
            decoders::decoder(model, ids)
        }
        other => panic!("no reference for {other}"),
    }
}

/// The mean of the tokens' vectors, at length 1.
pub fn mean_normalised(rows: &Rows) -> Vec<f64> {
    let mut mean = vec![0.0; rows[0].len()];
    for row in rows {
        for (sum, value) in mean.iter_mut().zip(row) {
            *sum += value / rows.len() as f64;
        }
    }
    let norm = mean.iter().map(|v| v * v).sum::<f64>().sqrt();
    mean.iter().map(|v| v / norm).collect()
}

pub(crate) fn array<'m>(model: &'m Checkpoint, name: &str) -> &'m Array {
    model
        .tensors
        .get(name)
        .unwrap_or_else(|| panic!("no tensor {name}"))
}

pub(crate) fn size(config: &Value, key: &str) -> usize {
    config[key].as_u64().unwrap_or_else(|| panic!("no {key}")) as usize
}

pub(crate) fn row(model: &Checkpoint, name: &str, index: usize) -> Vec<f64> {
    let table = array(model, &format!("{name}.weight"));
    let size = table.shape[1];
    table.values[index * size..(index + 1) * size]
        .iter()
        .map(|&v| f64::from(v))
        .collect()
}

pub(crate) fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

pub(crate) fn linear(model: &Checkpoint, name: &str, x: &[f64]) -> Vec<f64> {
    let weight = array(model, &format!("{name}.weight"));
    let bias = model.tensors.get(&format!("{name}.bias"));
    assert_eq!(weight.shape[1], x.len());
    (0..weight.shape[0])
        .map(|out| {
            let products = (0..x.len()).map(|i| f64::from(weight.values[out * x.len() + i]) * x[i]);
            let bias = bias.map_or(0.0, |bias| f64::from(bias.values[out]));
            products.sum::<f64>() + bias
        })
        .collect()
}

pub(crate) fn layer_norm(model: &Checkpoint, name: &str, epsilon: f64, x: &[f64]) -> Vec<f64> {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let scale = &array(model, &format!("{name}.weight")).values;
    let shift = model.tensors.get(&format!("{name}.bias"));
    (0..x.len())
        .map(|i| {
            let shift = shift.map_or(0.0, |shift| f64::from(shift.values[i]));
            (x[i] - mean) / (variance + epsilon).sqrt() * f64::from(scale[i]) + shift
        })
        .collect()
}

pub(crate) fn activate(name: &str, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    match name {
        "gelu" => x * (1.0 + libm::erf(x / 2f64.sqrt())) / 2.0,
        "gelu_new" | "gelu_pytorch_tanh" => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x * (1.0 + libm::tanh(inner)) / 2.0
        }
        "quick_gelu" => x * sigmoid(1.702 * x),
        "relu" => x.max(0.0),
        "silu" | "swiglu" => x * sigmoid(x),
        other => panic!("no reference for {other}"),
    }
}

/// Attention of all tokens over all; `score` changes the score of (head, from, to), minus
/// infinity hiding it.
pub(crate) fn attend(
    query: &Rows,
    key: &Rows,
    value: &Rows,
    heads: usize,
    score: impl Fn(usize, usize, usize, f64) -> f64,
) -> Rows {
    let size = query[0].len() / heads;
    average(query.len(), value, heads, |head, from, to| {
        let product = product(&query[from], &key[to], head, size);
        score(head, from, to, product / (size as f64).sqrt())
    })
}

/// For each of `count` tokens the average of all values, with the softmax of the scores of (head, from, to) as weights.
pub(crate) fn average(
    count: usize,
    value: &Rows,
    heads: usize,
    score: impl Fn(usize, usize, usize) -> f64,
) -> Rows {
    let size = value[0].len() / heads;
    let mut out = vec![vec![0.0; size * heads]; count];
    for head in 0..heads {
        for (from, out) in out.iter_mut().enumerate() {
            let scores: Vec<f64> = (0..value.len()).map(|to| score(head, from, to)).collect();
            let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| libm::exp(s - highest)).collect();
            let total: f64 = weights.iter().sum();
            for (weight, value) in weights.iter().zip(value) {
                for i in head * size..(head + 1) * size {
                    out[i] += weight / total * value[i];
                }
            }
        }
    }
    out
}

/// The product of two tokens' columns of a head.
pub(crate) fn product(a: &[f64], b: &[f64], head: usize, size: usize) -> f64 {
    let columns = head * size..(head + 1) * size;
    columns.map(|i| a[i] * b[i]).sum()
}

pub(crate) fn each(rows: &Rows, f: impl Fn(&[f64]) -> Vec<f64>) -> Rows {
    rows.iter().map(|row| f(row)).collect()
}

pub(crate) fn sum(a: &Rows, b: &Rows) -> Rows {
    a.iter().zip(b).map(|(a, b)| add(a, b)).collect()
}

/// Names of a layer's modules: query, key, value, output, norm, two feed-forward, norm.
pub(crate) type Names<'n> = [&'n str; 8];

pub(crate) const BERT_NAMES: Names<'static> = [
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
];

/// One layer of BERT.
fn post_norm_layer(
    model: &Checkpoint,
    layer: &str,
    names: Names<'_>,
    x: &Rows,
    (heads, activation, epsilon): (usize, &str, f64),
    bias: &dyn Fn(usize, usize, usize) -> f64,
) -> Rows {
    let name = |index: usize| format!("{layer}.{}", names[index]);
    let project = |index: usize| each(x, |row| linear(model, &name(index), row));
    let (query, key, value) = (project(0), project(1), project(2));
    let context = attend(&query, &key, &value, heads, |head, from, to, score| {
        score + bias(head, from, to)
    });
    after_attention(model, layer, names, (x, &context), (activation, epsilon))
}

/// What a layer of BERT does with what its attention gives.
pub(crate) fn after_attention(
    model: &Checkpoint,
    layer: &str,
    names: Names<'_>,
    (x, context): (&Rows, &Rows),
    (activation, epsilon): (&str, f64),
) -> Rows {
    let name = |index: usize| format!("{layer}.{}", names[index]);
    let attended = each(context, |row| linear(model, &name(3), row));
    let x = each(&sum(x, &attended), |row| {
        layer_norm(model, &name(4), epsilon, row)
    });
    let fed = each(&x, |row| {
        let wide = linear(model, &name(5), row);
        let active: Vec<f64> = wide.iter().map(|&v| activate(activation, v)).collect();
        linear(model, &name(6), &active)
    });
    each(&sum(&x, &fed), |row| {
        layer_norm(model, &name(7), epsilon, row)
    })
}

/// One layer of an encoder that normalises before each part. Names: norm, query, key, value, output, norm, two
/// feed-forward. With `swiglu` the first of these has the gate in its first half; `mlp.gate_proj` is one of its own. What
/// attention and feed-forward give is multiplied with the layer's `layer_scale1` and `layer_scale2`, if it has them.
pub(crate) fn pre_norm_layer(
    model: &Checkpoint,
    layer: &str,
    names: Names<'_>,
    x: &Rows,
    settings: (usize, &str, f64),
    score: &dyn Fn(usize, usize, usize, f64) -> f64,
) -> Rows {
    pre_norm_layer_turned(model, layer, names, x, settings, score, &|rows| rows)
}

/// The same, with queries and keys turned.
pub(crate) fn pre_norm_layer_turned(
    model: &Checkpoint,
    layer: &str,
    names: Names<'_>,
    x: &Rows,
    (heads, activation, epsilon): (usize, &str, f64),
    score: &dyn Fn(usize, usize, usize, f64) -> f64,
    turned: &dyn Fn(Rows) -> Rows,
) -> Rows {
    let name = |index: usize| format!("{layer}.{}", names[index]);
    let scaled = |which: &str, row: Vec<f64>| {
        let scale = model.tensors.get(&format!("{layer}.{which}.lambda1"));
        let scale = |i: usize| scale.map_or(1.0, |scale| f64::from(scale.values[i]));
        row.iter().enumerate().map(|(i, v)| v * scale(i)).collect()
    };
    let normed = each(x, |row| layer_norm(model, &name(0), epsilon, row));
    let project = |index: usize| each(&normed, |row| linear(model, &name(index), row));
    let (query, key, value) = (turned(project(1)), turned(project(2)), project(3));
    let context = attend(&query, &key, &value, heads, score);
    let attended = each(&context, |row| {
        scaled("layer_scale1", linear(model, &name(4), row))
    });
    let x = sum(x, &attended);
    let fed = each(&x, |row| {
        let normed = layer_norm(model, &name(5), epsilon, row);
        let mut wide = linear(model, &name(6), &normed);
        let gate = format!("{layer}.mlp.gate_proj");
        let other = if activation == "swiglu" {
            wide.split_off(wide.len() / 2)
        } else if model.tensors.contains_key(&format!("{gate}.weight")) {
            std::mem::replace(&mut wide, linear(model, &gate, &normed))
        } else {
            vec![1.0; wide.len()]
        };
        let active = wide.iter().zip(other);
        let active: Vec<f64> = active.map(|(&v, w)| activate(activation, v) * w).collect();
        scaled("layer_scale2", linear(model, &name(7), &active))
    });
    sum(&x, &fed)
}

fn bert_layers(model: &Checkpoint, embedded: Rows, seen: usize) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_eps"].as_f64().expect("an epsilon");
    let act = config["hidden_act"].as_str().expect("an activation");
    let heads = size(config, "num_attention_heads");
    let mut x = each(&embedded, |row| {
        layer_norm(model, "embeddings.LayerNorm", epsilon, row)
    });
    for layer in 0..size(config, "num_hidden_layers") {
        let name = format!("encoder.layer.{layer}");
        x = post_norm_layer(
            model,
            &name,
            BERT_NAMES,
            &x,
            (heads, act, epsilon),
            &|_, _, to| if to < seen { 0.0 } else { f64::NEG_INFINITY },
        );
    }
    x
}

fn bert(model: &Checkpoint, ids: &[i64], types: &[i64], seen: usize) -> Rows {
    let embedded = ids.iter().zip(types).enumerate().map(|(at, (&id, &kind))| {
        let word = row(model, "embeddings.word_embeddings", id as usize);
        let place = row(model, "embeddings.position_embeddings", at);
        let kind = row(model, "embeddings.token_type_embeddings", kind as usize);
        add(&add(&word, &place), &kind)
    });
    bert_layers(model, embedded.collect(), seen)
}

/// Tokens count from the padding id plus one; padding itself stands at the padding id.
pub(crate) fn counted(ids: &[i64], padding: i64) -> Vec<usize> {
    let mut next = padding + 1;
    ids.iter()
        .map(|&id| {
            if id == padding {
                return padding as usize;
            }
            next += 1;
            (next - 1) as usize
        })
        .collect()
}

fn roberta(model: &Checkpoint, ids: &[i64]) -> Rows {
    let padding = size(&model.config, "pad_token_id") as i64;
    let kind = row(model, "embeddings.token_type_embeddings", 0);
    let embedded = ids.iter().zip(counted(ids, padding)).map(|(&id, at)| {
        let word = row(model, "embeddings.word_embeddings", id as usize);
        let place = row(model, "embeddings.position_embeddings", at);
        add(&add(&word, &place), &kind)
    });
    bert_layers(model, embedded.collect(), ids.len())
}

/// 16 buckets for each side; in each, 8 exact ones, and then the k-th starts where the distance n
/// has n = 8 * 16^(k / 8), that is n^2 = 64 * 2^k.
fn mpnet_bucket(from: usize, to: usize) -> usize {
    let n = from.abs_diff(to);
    let within = if n < 8 {
        n
    } else {
        let mut bucket = 8;
        while bucket < 15 && n * n >= 64 << (bucket - 7) {
            bucket += 1;
        }
        bucket
    };
    if to > from { 16 + within } else { within }
}

fn mpnet(model: &Checkpoint, ids: &[i64]) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_eps"].as_f64().expect("an epsilon");
    let act = config["hidden_act"].as_str().expect("an activation");
    let heads = size(config, "num_attention_heads");
    let embedded: Rows = ids
        .iter()
        .zip(counted(ids, 1))
        .map(|(&id, at)| {
            let word = row(model, "embeddings.word_embeddings", id as usize);
            add(&word, &row(model, "embeddings.position_embeddings", at))
        })
        .collect();
    let mut x = each(&embedded, |row| {
        layer_norm(model, "embeddings.LayerNorm", epsilon, row)
    });
    let bias = |head: usize, from: usize, to: usize| {
        let bucket = mpnet_bucket(from, to);
        row(model, "encoder.relative_attention_bias", bucket)[head]
    };
    let names = [
        "attention.attn.q",
        "attention.attn.k",
        "attention.attn.v",
        "attention.attn.o",
        "attention.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    ];
    for layer in 0..size(config, "num_hidden_layers") {
        let name = format!("encoder.layer.{layer}");
        x = post_norm_layer(model, &name, names, &x, (heads, act, epsilon), &bias);
    }
    x
}

fn distilbert(model: &Checkpoint, ids: &[i64]) -> Rows {
    let config = &model.config;
    let act = config["activation"].as_str().expect("an activation");
    let embedded: Rows = ids
        .iter()
        .enumerate()
        .map(|(at, &id)| {
            let word = row(model, "embeddings.word_embeddings", id as usize);
            add(&word, &row(model, "embeddings.position_embeddings", at))
        })
        .collect();
    let mut x = each(&embedded, |row| {
        layer_norm(model, "embeddings.LayerNorm", 1e-12, row)
    });
    let names = [
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "attention.out_lin",
        "sa_layer_norm",
        "ffn.lin1",
        "ffn.lin2",
        "output_layer_norm",
    ];
    let heads = size(config, "n_heads");
    for layer in 0..size(config, "n_layers") {
        let name = format!("transformer.layer.{layer}");
        x = post_norm_layer(model, &name, names, &x, (heads, act, 1e-12), &|_, _, _| 0.0);
    }
    x
}

/// Turns each pair (i, i + half) of each head as a complex number.
fn rotate(x: &Rows, heads: usize, theta: f64) -> Rows {
    turn(x, heads, &|i, size| {
        1.0 / libm::pow(theta, 2.0 * i as f64 / size as f64)
    })
}

/// The same by other angles: those of pair `i` of a head of a size, from one position to the next.
pub(crate) fn turn(x: &Rows, heads: usize, angle: &dyn Fn(usize, usize) -> f64) -> Rows {
    let size = x[0].len() / heads;
    let half = size / 2;
    let mut out = x.clone();
    for (at, row) in out.iter_mut().enumerate() {
        for head in 0..heads {
            for i in 0..half {
                let angle = at as f64 * angle(i, size);
                let (a, b) = (head * size + i, head * size + i + half);
                let (re, im) = (row[a], row[b]);
                let (cosine, sine) = (libm::cos(angle), libm::sin(angle));
                row[a] = re * cosine - im * sine;
                row[b] = re * sine + im * cosine;
            }
        }
    }
    out
}

/// Queries, keys and values out of one projection.
fn unpack(packed: &Rows) -> [Rows; 3] {
    let size = packed[0].len() / 3;
    [0, 1, 2].map(|part| each(packed, |row| row[part * size..(part + 1) * size].to_vec()))
}

fn modernbert(model: &Checkpoint, ids: &[i64], seen: usize) -> Rows {
    let config = &model.config;
    let epsilon = config["norm_eps"].as_f64().expect("an epsilon");
    let act = config["hidden_activation"].as_str().expect("an activation");
    let heads = size(config, "num_attention_heads");
    let wide = size(config, "intermediate_size");
    let mut x: Rows = ids
        .iter()
        .map(|&id| {
            let word = row(model, "embeddings.tok_embeddings", id as usize);
            layer_norm(model, "embeddings.norm", epsilon, &word)
        })
        .collect();
    for layer in 0..size(config, "num_hidden_layers") {
        let name = |module: &str| format!("layers.{layer}.{module}");
        let global = match config.get("layer_types") {
            Some(types) => types[layer] == "full_attention",
            None => layer % size(config, "global_attn_every_n_layers") == 0,
        };
        let theta = match (config.get("rope_parameters"), global) {
            (Some(rope), true) => &rope["full_attention"]["rope_theta"],
            (Some(rope), false) => &rope["sliding_attention"]["rope_theta"],
            (None, true) => &config["global_rope_theta"],
            (None, false) => &config["local_rope_theta"],
        };
        let theta = theta.as_f64().expect("a theta");
        let reach = size(config, "local_attention") / 2;
        let normed = each(&x, |row| match layer {
            0 => row.to_vec(),
            _ => layer_norm(model, &name("attn_norm"), epsilon, row),
        });
        let packed = each(&normed, |row| linear(model, &name("attn.Wqkv"), row));
        let [query, key, value] = unpack(&packed);
        let (query, key) = (rotate(&query, heads, theta), rotate(&key, heads, theta));
        let context = attend(&query, &key, &value, heads, |_, from, to, score| {
            if to < seen && (global || from.abs_diff(to) <= reach) {
                score
            } else {
                f64::NEG_INFINITY
            }
        });
        let attended = each(&context, |row| linear(model, &name("attn.Wo"), row));
        x = sum(&x, &attended);
        let fed = each(&x, |row| {
            let normed = layer_norm(model, &name("mlp_norm"), epsilon, row);
            let both = linear(model, &name("mlp.Wi"), &normed);
            let gated: Vec<f64> = (0..wide)
                .map(|i| activate(act, both[i]) * both[wide + i])
                .collect();
            linear(model, &name("mlp.Wo"), &gated)
        });
        x = sum(&x, &fed);
    }
    each(&x, |row| layer_norm(model, "final_norm", epsilon, row))
}

/// What the experts that a router chooses for a token give, each by its weight.
fn of_experts(model: &Checkpoint, mlp: &str, row: &[f64]) -> Vec<f64> {
    let config = &model.config;
    let (wide, hidden) = (size(config, "n_inner"), row.len());
    let logits = linear(model, &format!("{mlp}.router.layer"), row);
    let total: f64 = logits.iter().map(|logit| libm::exp(*logit)).sum();
    let mut experts: Vec<usize> = (0..logits.len()).collect();
    experts.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let matrix = |part: &str| &array(model, &format!("{mlp}.experts.{part}")).values;
    let (first, second) = (matrix("mlp.w1"), matrix("mlp.w2"));
    let mut out: Vec<f64> = matrix("bias").iter().map(|&bias| f64::from(bias)).collect();
    for &expert in &experts[..size(config, "moe_top_k")] {
        let weight = libm::exp(logits[expert]) / total;
        for inner in expert * wide..(expert + 1) * wide {
            let of = |matrix: &[f32], column: usize| f64::from(matrix[inner * hidden + column]);
            let product: f64 = row
                .iter()
                .enumerate()
                .map(|(at, x)| x * of(first, at))
                .sum();
            let active = weight * activate("gelu", product);
            for (column, out) in out.iter_mut().enumerate() {
                *out += active * of(second, column);
            }
        }
    }
    out
}

fn nomicbert(model: &Checkpoint, ids: &[i64], types: &[i64]) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_epsilon"].as_f64().expect("an epsilon");
    let act = config["activation_function"].as_str().expect("one");
    let theta = config["rotary_emb_base"].as_f64().expect("a theta");
    let heads = size(config, "n_head");
    let mut x: Rows = ids
        .iter()
        .zip(types)
        .map(|(&id, &kind)| {
            let word = row(model, "embeddings.word_embeddings", id as usize);
            let kind = row(model, "embeddings.token_type_embeddings", kind as usize);
            layer_norm(model, "emb_ln", epsilon, &add(&word, &kind))
        })
        .collect();
    for layer in 0..size(config, "n_layer") {
        let name = |module: &str| format!("encoder.layers.{layer}.{module}");
        let packed = each(&x, |row| linear(model, &name("attn.Wqkv"), row));
        let [query, key, value] = unpack(&packed);
        let (query, key) = (rotate(&query, heads, theta), rotate(&key, heads, theta));
        let context = attend(&query, &key, &value, heads, |_, _, _, score| score);
        let attended = each(&context, |row| linear(model, &name("attn.out_proj"), row));
        x = each(&sum(&x, &attended), |row| {
            layer_norm(model, &name("norm1"), epsilon, row)
        });
        let fed = each(&x, |row| {
            if model.tensors.contains_key(&name("mlp.router.layer.weight")) {
                return of_experts(model, &name("mlp"), row);
            }
            if act == "gelu" {
                let inner = linear(model, &name("mlp.fc1"), row).into_iter();
                let inner: Vec<f64> = inner.map(|input| activate(act, input)).collect();
                return linear(model, &name("mlp.fc2"), &inner);
            }
            let input = linear(model, &name("mlp.fc11"), row);
            let gate = linear(model, &name("mlp.fc12"), row);
            let gated: Vec<f64> = input
                .iter()
                .zip(&gate)
                .map(|(input, &gate)| input * activate(act, gate))
                .collect();
            linear(model, &name("mlp.fc2"), &gated)
        });
        x = each(&sum(&x, &fed), |row| {
            layer_norm(model, &name("norm2"), epsilon, row)
        });
    }
    x
}
