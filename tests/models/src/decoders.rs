//! A tiny decoder of each family with seeded random weights, and its last hidden state at f64, written from the papers and from the
//! models' documentation (<https://huggingface.co/docs/transformers>): Qwen2 <https://arxiv.org/abs/2407.10671>, Qwen3
//! <https://arxiv.org/abs/2505.09388>, Llama <https://arxiv.org/abs/2407.21783>, Mistral <https://arxiv.org/abs/2310.06825>, Gemma 3
//! <https://arxiv.org/abs/2503.19786>, EuroBERT <https://arxiv.org/abs/2503.05500>, normalisation <https://arxiv.org/abs/1910.07467>.

use std::f64::consts::TAU;

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::models::{HIDDEN, Maker, VOCABULARY, WIDE};
use crate::reference::{Rows, activate, array, attend, each, linear, row, size, sum, turn};

/// A decoder of a configuration's family and sizes.
pub fn decoder_like(seed: u64, config: Value) -> Checkpoint {
    let (hidden, wide, head) = (
        size(&config, "hidden_size"),
        size(&config, "intermediate_size"),
        head_size(&config),
    );
    let queries = size(&config, "num_attention_heads") * head;
    let keys = size(&config, "num_key_value_heads") * head;
    let family = config["model_type"].as_str().expect("a model type");
    let (is_gemma, is_qwen2) = (family == "gemma3_text", family == "qwen2");
    let flag = |key: &str| config.get(key).is_some_and(|flag| flag == true);
    let bias = flag("attention_bias");
    let mut maker = Maker::new(seed);
    let norm = |maker: &mut Maker, name: &str, size: usize| match is_gemma {
        // Less one than what it multiplies with.
        true => maker.tensor(&format!("{name}.weight"), &[size], 0.0, 0.1),
        false => maker.norm(name, size, false),
    };
    maker.table("embed_tokens", size(&config, "vocab_size"), hidden);
    for layer in 0..size(&config, "num_hidden_layers") {
        let name = |module: &str| format!("layers.{layer}.{module}");
        norm(&mut maker, &name("input_layernorm"), hidden);
        maker.linear(&name("self_attn.q_proj"), hidden, queries, bias || is_qwen2);
        maker.linear(&name("self_attn.k_proj"), hidden, keys, bias || is_qwen2);
        maker.linear(&name("self_attn.v_proj"), hidden, keys, bias || is_qwen2);
        maker.linear(&name("self_attn.o_proj"), queries, hidden, bias);
        if is_gemma || family == "qwen3" {
            norm(&mut maker, &name("self_attn.q_norm"), head);
            norm(&mut maker, &name("self_attn.k_norm"), head);
        }
        norm(&mut maker, &name("post_attention_layernorm"), hidden);
        if is_gemma {
            norm(&mut maker, &name("pre_feedforward_layernorm"), hidden);
        }
        maker.linear(&name("mlp.gate_proj"), hidden, wide, flag("mlp_bias"));
        maker.linear(&name("mlp.up_proj"), hidden, wide, flag("mlp_bias"));
        maker.linear(&name("mlp.down_proj"), wide, hidden, flag("mlp_bias"));
        if is_gemma {
            norm(&mut maker, &name("post_feedforward_layernorm"), hidden);
        }
    }
    norm(&mut maker, "norm", hidden);
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny Qwen3, whose heads together are wider than its vectors.
pub fn qwen3() -> Checkpoint {
    decoder_like(
        7,
        json!({
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": WIDE,
            "hidden_act": "silu",
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1_000_000.0,
            "rope_scaling": null,
            "attention_bias": false,
            "use_sliding_window": false,
            "sliding_window": null,
            "tie_word_embeddings": true,
            "pad_token_id": 0
        }),
    )
}

/// A tiny Qwen2, whose first layer sees everything before a token and whose others see a window, at half the distances.
pub fn qwen2() -> Checkpoint {
    decoder_like(
        70,
        json!({
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": WIDE,
            "hidden_act": "silu",
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10_000.0,
            "rope_scaling": {"type": "linear", "factor": 2.0},
            "use_sliding_window": true,
            "sliding_window": 8,
            "max_window_layers": 1,
            "tie_word_embeddings": false,
            "pad_token_id": 0
        }),
    )
}

/// A tiny Llama with all its biases. Of the four pairs of a head one keeps its wavelength, one is between, and two are stretched.
pub fn llama() -> Checkpoint {
    decoder_like(
        71,
        json!({
            "architectures": ["LlamaModel"],
            "model_type": "llama",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "intermediate_size": WIDE,
            "hidden_act": "silu",
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10.0,
            "rope_scaling": {
                "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0,
                "original_max_position_embeddings": 16
            },
            "attention_bias": true,
            "mlp_bias": true,
            "pretraining_tp": 1,
            "tie_word_embeddings": false,
            "pad_token_id": 0
        }),
    )
}

/// A tiny EuroBERT, an encoder of Llama's layers. Its authors publish it with code of their own.
pub fn eurobert() -> Checkpoint {
    decoder_like(
        78,
        json!({
            "architectures": ["EuroBertForMaskedLM"],
            "auto_map": {"AutoModel": "modeling_eurobert.EuroBertModel"},
            "model_type": "eurobert",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "intermediate_size": WIDE,
            "hidden_act": "silu",
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6,
            "rope_theta": 250_000.0,
            "rope_scaling": null,
            "attention_bias": false,
            "mlp_bias": false,
            "pretraining_tp": 1,
            "tie_word_embeddings": false,
            "pad_token_id": 0
        }),
    )
}

/// A tiny Mistral, every layer of which sees a window.
pub fn mistral() -> Checkpoint {
    decoder_like(
        72,
        json!({
            "architectures": ["MistralModel"],
            "model_type": "mistral",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": WIDE,
            "hidden_act": "silu",
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10_000.0,
            "sliding_window": 12,
            "tie_word_embeddings": false,
            "pad_token_id": 0
        }),
    )
}

/// A tiny EmbeddingGemma: tokens see both ways, one layer of three everything and the others a window.
pub fn gemma3() -> Checkpoint {
    decoder_like(
        73,
        json!({
            "architectures": ["Gemma3TextModel"],
            "model_type": "gemma3_text",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "intermediate_size": WIDE,
            "hidden_activation": "gelu_pytorch_tanh",
            "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6,
            "query_pre_attn_scalar": 24,
            "rope_theta": 1_000_000.0,
            "rope_local_base_freq": 10_000.0,
            "rope_scaling": null,
            "sliding_window": 12,
            "_sliding_window_pattern": 3,
            "attention_bias": false,
            "attn_logit_softcapping": null,
            "final_logit_softcapping": null,
            "use_bidirectional_attention": true,
            "pad_token_id": 0
        }),
    )
}

fn head_size(config: &Value) -> usize {
    match config.get("head_dim") {
        Some(size) => size.as_u64().expect("a size") as usize,
        None => size(config, "hidden_size") / size(config, "num_attention_heads"),
    }
}

/// Each group of `size` numbers over the root of the mean of its squares, times the weight, or one more than it.
fn rms_norm(model: &Checkpoint, name: &str, x: &[f64]) -> Vec<f64> {
    let scale = &array(model, &format!("{name}.weight")).values;
    let epsilon = model.config["rms_norm_eps"].as_f64().expect("an epsilon");
    let more = f64::from(u8::from(model.config["model_type"] == "gemma3_text"));
    x.chunks(scale.len())
        .flat_map(|group| {
            let mean = group.iter().map(|v| v * v).sum::<f64>() / group.len() as f64;
            let root = (mean + epsilon).sqrt();
            group
                .iter()
                .zip(scale)
                .map(move |(v, &scale)| v / root * (more + f64::from(scale)))
        })
        .collect()
}

/// Whether a layer sees a window.
fn sees_window(config: &Value, layer: usize) -> bool {
    if let Some(types) = config["layer_types"].as_array() {
        return types[layer] == "sliding_attention";
    }
    match config["model_type"].as_str().expect("a model type") {
        "mistral" => !config["sliding_window"].is_null(),
        "gemma3_text" => {
            layer % size(config, "_sliding_window_pattern")
                != size(config, "_sliding_window_pattern") - 1
        }
        "qwen2" | "qwen3" => {
            config["use_sliding_window"] == true && layer >= size(config, "max_window_layers")
        }
        _ => false,
    }
}

/// Whether the token at `from` sees that at `to`.
fn sees(config: &Value, layer: usize, from: usize, to: usize) -> bool {
    let both_ways = config["use_bidirectional_attention"] == true
        || config["is_causal"] == false
        || config["model_type"] == "eurobert";
    let mut distance = from.abs_diff(to);
    if to > from && !both_ways {
        return false;
    }
    if config["use_bidirectional_attention"] == true {
        // Half of the window is behind the token, and half before it.
        distance *= 2;
        return !sees_window(config, layer) || distance <= size(config, "sliding_window");
    }
    !sees_window(config, layer) || distance < size(config, "sliding_window")
}

/// By how much pair `i` of a head turns from one position to the next.
fn angle(config: &Value, layer: usize, i: usize, size: usize) -> f64 {
    let kind = match sees_window(config, layer) {
        true => "sliding_attention",
        false => "full_attention",
    };
    let is_local = config["model_type"] == "gemma3_text" && sees_window(config, layer);
    let nested = &config["rope_parameters"][kind];
    let rope = match (nested.is_null(), config["rope_parameters"].is_null()) {
        (false, _) => nested,
        (true, false) => &config["rope_parameters"],
        _ if is_local => &Value::Null,
        _ => &config["rope_scaling"],
    };
    let older = if is_local {
        "rope_local_base_freq"
    } else {
        "rope_theta"
    };
    let base = rope["rope_theta"].as_f64().or(config[older].as_f64());
    let plain = libm::pow(base.expect("a base"), -2.0 * i as f64 / size as f64);
    let number = |key: &str| rope[key].as_f64().unwrap_or_else(|| panic!("no {key}"));
    let name = rope["rope_type"].as_str().or(rope["type"].as_str());
    match name.unwrap_or("default") {
        "default" => plain,
        "linear" => plain / number("factor"),
        "llama3" => {
            let (wavelength, trained) = (TAU / plain, number("original_max_position_embeddings"));
            let (low, high) = (number("low_freq_factor"), number("high_freq_factor"));
            if wavelength < trained / high {
                plain
            } else if wavelength > trained / low {
                plain / number("factor")
            } else {
                let smooth = (trained / wavelength - low) / (high - low);
                (1.0 - smooth) * plain / number("factor") + smooth * plain
            }
        }
        other => panic!("no reference for {other}"),
    }
}

/// The last hidden state of a decoder.
pub(crate) fn decoder(model: &Checkpoint, ids: &[i64]) -> Rows {
    let config = &model.config;
    let is_gemma = config["model_type"] == "gemma3_text";
    let act = config[if is_gemma {
        "hidden_activation"
    } else {
        "hidden_act"
    }]
    .as_str();
    let act = act.expect("an activation");
    let (heads, shared) = (
        size(config, "num_attention_heads"),
        size(config, "num_key_value_heads"),
    );
    let head = head_size(config);
    // Each head of keys and values once for every head of queries that it serves.
    let each_head = |rows: &Rows| -> Rows {
        let row = |row: &[f64]| {
            let own = (0..heads).map(|query| query / (heads / shared));
            own.flat_map(|at| row[at * head..(at + 1) * head].to_vec())
                .collect()
        };
        each(rows, row)
    };
    let hidden = size(config, "hidden_size") as f64;
    let mut x: Rows = ids
        .iter()
        .map(|&id| row(model, "embed_tokens", id as usize))
        .collect();
    if is_gemma {
        x = each(&x, |row| row.iter().map(|v| v * hidden.sqrt()).collect());
    }
    for layer in 0..size(config, "num_hidden_layers") {
        let name = |module: &str| format!("layers.{layer}.{module}");
        let norm = |rows: &Rows, part: &str| each(rows, |row| rms_norm(model, &name(part), row));
        let normed = norm(&x, "input_layernorm");
        let project = |part: &str| each(&normed, |row| linear(model, &name(part), row));
        let (mut query, mut key) = (project("self_attn.q_proj"), project("self_attn.k_proj"));
        if is_gemma || config["model_type"] == "qwen3" {
            query = norm(&query, "self_attn.q_norm");
            key = norm(&key, "self_attn.k_norm");
        }
        let angle = |i, size| angle(config, layer, i, size);
        let (query, key) = (turn(&query, heads, &angle), turn(&key, shared, &angle));
        let (key, value) = (each_head(&key), each_head(&project("self_attn.v_proj")));
        // Attention divides by the root of a head's size.
        let other = config["query_pre_attn_scalar"].as_f64();
        let scale = other.map_or(1.0, |scalar| (head as f64 / scalar).sqrt());
        let context = attend(
            &query,
            &key,
            &value,
            heads,
            |_, from, to, score| match sees(config, layer, from, to) {
                true => score * scale,
                false => f64::NEG_INFINITY,
            },
        );
        let mut attended = each(&context, |row| {
            linear(model, &name("self_attn.o_proj"), row)
        });
        let mut before = "post_attention_layernorm";
        if is_gemma {
            attended = norm(&attended, before);
            before = "pre_feedforward_layernorm";
        }
        x = sum(&x, &attended);
        let mut fed = each(&norm(&x, before), |row| {
            let gate = linear(model, &name("mlp.gate_proj"), row);
            let input = linear(model, &name("mlp.up_proj"), row);
            let gated: Vec<f64> = gate
                .iter()
                .zip(&input)
                .map(|(&gate, input)| activate(act, gate) * input)
                .collect();
            linear(model, &name("mlp.down_proj"), &gated)
        });
        if is_gemma {
            fed = norm(&fed, "post_feedforward_layernorm");
        }
        x = sum(&x, &fed);
    }
    each(&x, |row| rms_norm(model, "norm", row))
}
