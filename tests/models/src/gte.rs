//! A tiny model of GTE's newer architecture with seeded random weights, and its last hidden state at f64, written from the paper
//! (<https://arxiv.org/abs/2407.19669>), from its authors' description of how positions are stretched
//! (<https://kexue.fm/archives/9706>, formula 6) and from the names and shapes of the published tensors.

use serde_json::{Value, json};

use crate::checkpoint::{Array, Checkpoint};
use crate::models::{HIDDEN, Maker, VOCABULARY, WIDE};
use crate::reference::{
    Rows, activate, add, attend, each, layer_norm, linear, row, size, sum, turn,
};

/// A model of a configuration's sizes.
pub fn gte_like(seed: u64, config: Value) -> Checkpoint {
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
    if types > 0 {
        maker.table("embeddings.token_type_embeddings", types, hidden);
    }
    maker.norm("embeddings.LayerNorm", hidden, true);
    for layer in 0..size(&config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        if config["pack_qkv"] == true {
            maker.linear(&name("attention.qkv_proj"), hidden, 3 * hidden, true);
        } else {
            for part in ["q_proj", "k_proj", "v_proj"] {
                maker.linear(&name(&format!("attention.{part}")), hidden, hidden, true);
            }
        }
        maker.linear(&name("attention.o_proj"), hidden, hidden, true);
        maker.norm(&name("attn_ln"), hidden, true);
        maker.linear(&name("mlp.up_gate_proj"), hidden, 2 * wide, false);
        maker.linear(&name("mlp.down_proj"), wide, hidden, true);
        maker.norm(&name("mlp_ln"), hidden, true);
    }
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny GTE with two types of tokens, positions stretched four times.
pub fn gte() -> Checkpoint {
    gte_like(75, config())
}

/// What `config.json` of a tiny GTE says.
pub fn config() -> Value {
    json!({
        "architectures": ["NewModel"],
        "auto_map": {"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"},
        "model_type": "new",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": WIDE,
        "hidden_act": "gelu",
        "layer_norm_type": "layer_norm",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 64,
        "position_embedding_type": "rope",
        "rope_theta": 500.0,
        "rope_scaling": {"type": "ntk", "factor": 4.0},
        "type_vocab_size": 2,
        "pack_qkv": true,
        "logn_attention_scale": false,
        "logn_attention_clip1": false,
        "unpad_inputs": false,
        "use_memory_efficient_attention": false,
        "pad_token_id": 0
    })
}

/// The same model as transformers saves it: under other names, nothing packed, and the ways to stretch positions that it has. Together
/// they turn pairs as formula 6 does.
pub fn newer(mut model: Checkpoint) -> Checkpoint {
    let mut tensors = std::collections::BTreeMap::new();
    for (name, array) in std::mem::take(&mut model.tensors) {
        let name = name
            .replace("encoder.layer.", "layers.")
            .replace("attention.", "self_attn.")
            .replace("attn_ln", "post_attention_layernorm")
            .replace("mlp_ln", "post_mlp_layernorm");
        let parts: &[&str] = match name.as_str() {
            name if name.contains("qkv_proj") => &["q_proj", "k_proj", "v_proj"],
            name if name.contains("up_gate_proj") => &["up_proj", "gate_proj"],
            _ => {
                tensors.insert(name, array);
                continue;
            }
        };
        for (part, own) in parts.iter().zip(split(&array, parts.len())) {
            let name = name.replace("qkv_proj", part).replace("up_gate_proj", part);
            tensors.insert(name, own);
        }
    }
    model.tensors = tensors;
    let config = model.config.as_object_mut().expect("an object");
    config.remove("auto_map");
    config.remove("rope_scaling");
    let head = config["hidden_size"].as_f64().expect("a size")
        / config["num_attention_heads"].as_f64().expect("a count");
    config.insert("model_type".into(), json!("gte"));
    config.insert(
        "rope_parameters".into(),
        json!({"rope_type": "linear", "rope_theta": 2000.0, "factor": libm::pow(4.0, 2.0 / head)}),
    );
    model
}

/// Equal groups of a tensor's rows.
fn split(array: &Array, parts: usize) -> Vec<Array> {
    let mut shape = array.shape.clone();
    shape[0] /= parts;
    let groups = array.values.chunks(array.values.len() / parts);
    let group = |values: &[f32]| Array {
        shape: shape.clone(),
        values: values.to_vec(),
    };
    groups.map(group).collect()
}

/// By how much pair `i` of a head turns from one position to the next.
fn angle(config: &Value, i: usize, size: usize) -> f64 {
    let base = config["rope_theta"].as_f64().expect("a base");
    let plain = |base: f64| libm::pow(base, -2.0 * i as f64 / size as f64);
    match config["rope_scaling"]["factor"].as_f64() {
        None => plain(base),
        Some(factor) => plain(base * factor) / libm::pow(factor, 2.0 / size as f64),
    }
}

/// The last hidden state of the authors' layout.
pub(crate) fn hidden_state(model: &Checkpoint, ids: &[i64], types: &[i64]) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_eps"].as_f64().expect("an epsilon");
    let act = config["hidden_act"].as_str().expect("an activation");
    let heads = size(config, "num_attention_heads");
    let (hidden, wide) = (
        size(config, "hidden_size"),
        size(config, "intermediate_size"),
    );
    let embedded = ids.iter().zip(types).map(|(&id, &kind)| {
        let word = row(model, "embeddings.word_embeddings", id as usize);
        let kind = match size(config, "type_vocab_size") {
            0 => vec![0.0; hidden],
            // One type is that of every token.
            1 => row(model, "embeddings.token_type_embeddings", 0),
            _ => row(model, "embeddings.token_type_embeddings", kind as usize),
        };
        layer_norm(model, "embeddings.LayerNorm", epsilon, &add(&word, &kind))
    });
    let mut x: Rows = embedded.collect();
    for layer in 0..size(config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        let norm = |rows: &Rows, part: &str| {
            each(rows, |row| layer_norm(model, &name(part), epsilon, row))
        };
        let projected = ["q_proj", "k_proj", "v_proj"].into_iter().enumerate();
        let projected = projected.map(|(at, part)| match config["pack_qkv"] == true {
            true => each(&x, |row| {
                let all = linear(model, &name("attention.qkv_proj"), row);
                all[at * hidden..(at + 1) * hidden].to_vec()
            }),
            false => each(&x, |row| {
                linear(model, &name(&format!("attention.{part}")), row)
            }),
        });
        let projected: Vec<Rows> = projected.collect();
        let angle = |i, size| angle(config, i, size);
        let (query, key) = (
            turn(&projected[0], heads, &angle),
            turn(&projected[1], heads, &angle),
        );
        let context = attend(&query, &key, &projected[2], heads, |_, _, _, score| score);
        let attended = each(&context, |row| {
            linear(model, &name("attention.o_proj"), row)
        });
        x = norm(&sum(&x, &attended), "attn_ln");
        let fed = each(&x, |row| {
            let both = linear(model, &name("mlp.up_gate_proj"), row);
            let gated = (0..wide).map(|i| both[i] * activate(act, both[wide + i]));
            linear(model, &name("mlp.down_proj"), &gated.collect::<Vec<_>>())
        });
        x = norm(&sum(&x, &fed), "mlp_ln");
    }
    x
}
