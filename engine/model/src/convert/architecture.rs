//! A hash of the values in `config.json` that affect vectors.
//!
//! Weights alone do not say what a model computes: with 6 heads instead of 12, or another base of its rotary
//! positions, the same tensors give other vectors. Each family lists the values that its conversion reads and that no
//! tensor's shape shows, in one canonical form: a missing value equals its default, and two names of one activation
//! are equal. A model that is published as safetensors and as ONNX therefore has one hash for both. For families that
//! are not converted all known keys count, as they are written.

use isovec_engine::error::Result;
use serde_json::Value;

use super::config::Config;
use super::{
    Family, Half, bert, clip, deberta, dinov2, dinov3, distilbert, gemma3, gte, jina, jina_v3,
    llama, modernbert, mpnet, nomicbert, qwen, roberta, static_embedding, t5, vit,
};

/// What decides vectors: names and values in their canonical form.
pub(super) type Deciding = Vec<(&'static str, String)>;

/// Another list of what is hashed is another version.
const VERSION: &str = "1";

/// The longest `config.json` that is looked at; a longer one is none that anybody published.
const MAX_BYTES: usize = 4 << 20;

/// Keys that decide vectors in one family or another, for families that are not converted.
const KEYS: &[&str] = &[
    "activation",
    "activation_function",
    "attention_bias",
    "attention_probs_scale",
    "attn_logit_softcapping",
    "causal",
    "dim",
    "emb_layer_norm_before",
    "embedding_size",
    "global_attn_every_n_layers",
    "global_rope_theta",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "hidden_dim",
    "hidden_size",
    "intermediate_size",
    "is_causal",
    "is_decoder",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layer_norm_type",
    "layer_types",
    "local_attention",
    "local_rope_theta",
    "logn_attention_scale",
    "lora_adaptations",
    "lora_alpha",
    "lora_rank",
    "max_trained_positions",
    "max_window_layers",
    "mlp_bias",
    "mlp_fc1_bias",
    "mlp_fc2_bias",
    "model_type",
    "n_embd",
    "n_head",
    "n_heads",
    "n_inner",
    "n_layer",
    "n_layers",
    "norm_bias",
    "norm_eps",
    "norm_rel_ebd",
    "num_attention_heads",
    "num_experts",
    "num_hidden_layers",
    "num_key_value_heads",
    "pad_token_id",
    "parallel_block",
    "partial_rotary_factor",
    "pos_att_type",
    "position_biased_input",
    "position_buckets",
    "position_embedding_type",
    "prenorm",
    "qkv_proj_bias",
    "query_pre_attn_scalar",
    "relative_attention",
    "relative_attention_num_buckets",
    "rms_norm_eps",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "rotary_scaling_factor",
    "sliding_window",
    "sliding_window_pattern",
    "type_vocab_size",
    "use_bidirectional_attention",
    "use_rms_norm",
    "use_sliding_window",
];

/// A hash of the values in a `config.json` that affect vectors and that weights do not show: heads, epsilon,
/// activation, positions, windows. `None` if it cannot be read.
pub fn architecture(config_json: &[u8]) -> Option<String> {
    if config_json.len() > MAX_BYTES {
        return None;
    }
    let config = Config::parse("config.json", config_json).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    add(VERSION);
    match deciding(&config) {
        Ok((family, deciding)) => {
            add(family.name());
            for (name, value) in deciding {
                add(name);
                add(&value);
            }
        }
        Err(_) => {
            add("as it is written");
            for &key in KEYS {
                if let Some(value) = config.value(key) {
                    add(key);
                    add(&written(value));
                }
            }
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}

fn deciding(config: &Config) -> Result<(Family, Deciding)> {
    let family = Family::of(config, Half::Texts)?;
    let deciding = match family {
        Family::Bert => bert::deciding(config),
        Family::Roberta => roberta::deciding(config),
        Family::Mpnet => mpnet::deciding(config),
        Family::DistilBert => distilbert::deciding(config),
        Family::ModernBert => modernbert::deciding(config),
        Family::NomicBert => nomicbert::deciding(config),
        Family::Gte => gte::deciding(config),
        Family::JinaBert => jina::deciding(config),
        Family::JinaV3 => jina_v3::deciding(config),
        Family::DebertaV2 => deberta::deciding(config),
        Family::T5 => t5::deciding(config),
        Family::EuroBert => llama::eurobert(config).map(|decoder| decoder.deciding()),
        Family::Qwen2 => qwen::qwen2(config).map(|decoder| decoder.deciding()),
        Family::Qwen3 => qwen::qwen3(config).map(|decoder| decoder.deciding()),
        Family::Llama => llama::llama(config).map(|decoder| decoder.deciding()),
        Family::Mistral => llama::mistral(config).map(|decoder| decoder.deciding()),
        Family::Gemma3 => gemma3::gemma3(config).map(|decoder| decoder.deciding()),
        Family::Vit => vit::deciding(config),
        Family::Dinov2 => dinov2::deciding(config),
        Family::Dinov3 => dinov3::deciding(config),
        Family::ClipText | Family::ClipVision | Family::SiglipText | Family::SiglipVision => {
            clip::deciding(config)
        }
        Family::Static => static_embedding::deciding(config),
    };
    Ok((family, deciding?))
}

/// A value as JSON with sorted keys, numbers by their value: `1`, `1.0` and `1e0` are one.
fn written(value: &Value) -> String {
    match value {
        Value::Number(value) => value.as_f64().map_or_else(|| value.to_string(), number),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(written).collect();
            format!("[{}]", values.join(","))
        }
        Value::Object(values) => {
            let mut values: Vec<(&String, &Value)> = values.iter().collect();
            values.sort_by_key(|(key, _)| *key);
            let entry = |(key, value): (&String, &Value)| format!("{key:?}:{}", written(value));
            let values: Vec<String> = values.into_iter().map(entry).collect();
            format!("{{{}}}", values.join(","))
        }
        other => other.to_string(),
    }
}

/// A number by its value.
pub(super) fn number(value: f64) -> String {
    format!("{value:e}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> String {
        architecture(value.to_string().as_bytes()).unwrap()
    }

    fn minilm() -> Value {
        json!({
            "model_type": "bert", "hidden_size": 384, "num_attention_heads": 12,
            "num_hidden_layers": 6, "intermediate_size": 1536, "hidden_act": "gelu",
            "layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "vocab_size": 30522,
            "max_position_embeddings": 512, "type_vocab_size": 2
        })
    }

    fn with(mut value: Value, key: &str, other: Value) -> Value {
        value[key] = other;
        value
    }

    #[test]
    fn heads_epsilon_and_activation_decide() {
        let plain = of(&minilm());
        for (key, other) in [
            ("num_attention_heads", json!(6)),
            ("layer_norm_eps", json!(1e-5)),
            ("hidden_act", json!("relu")),
            ("num_hidden_layers", json!(5)),
            ("model_type", json!("roberta")),
            // Not converted, and another model all the same.
            ("position_embedding_type", json!("relative_key")),
            ("is_decoder", json!(true)),
        ] {
            assert_ne!(of(&with(minilm(), key, other)), plain, "{key}");
        }
    }

    #[test]
    fn what_says_the_same_in_other_words_does_not() {
        let plain = of(&minilm());
        for (key, other) in [
            ("layer_norm_eps", Value::Null),
            ("hidden_act", json!("gelu_python")),
            ("position_embedding_type", Value::Null),
            ("architectures", json!(["BertForMaskedLM"])),
            ("_name_or_path", json!("elsewhere")),
            ("torch_dtype", json!("float16")),
            ("transformers_version", json!("4.1")),
            ("isovec", json!({"files": {}})),
        ] {
            assert_eq!(of(&with(minilm(), key, other)), plain, "{key}");
        }
    }

    #[test]
    fn families_that_are_not_converted_count_as_they_are_written() {
        let plain = json!({"model_type": "albert", "num_attention_heads": 12, "rope_theta": 1.0});
        assert_eq!(of(&with(plain.clone(), "vocab_size", json!(7))), of(&plain));
        assert_eq!(of(&with(plain.clone(), "rope_theta", json!(1))), of(&plain));
        for (key, other) in [
            ("num_attention_heads", json!(6)),
            ("rope_theta", json!(2)),
            ("rope_scaling", json!({"type": "linear", "factor": 2})),
        ] {
            assert_ne!(of(&with(plain.clone(), key, other)), of(&plain), "{key}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        for json in ["", "[]", "{"] {
            assert_eq!(architecture(json.as_bytes()), None);
        }
    }
}
