//! A tiny model of each family with seeded random weights, at a scale where every part of the
//! model shows in its output: scores that differ, layer normalisation of small variances,
//! activations on both sides of zero.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkpoint::{Array, Checkpoint};
use crate::deberta;
use crate::decoders;
use crate::gte;
use crate::jina;
use crate::jina_v3;
use crate::rng::Rng;
use crate::t5;

/// Words of every tiny model.
pub const VOCABULARY: usize = 200;
/// The length of a token's vector in every tiny model.
pub const HIDDEN: usize = 32;
/// The length inside a feed-forward layer of those with one size for all.
pub const WIDE: usize = 64;

pub(crate) struct Maker {
    rng: Rng,
    pub(crate) tensors: BTreeMap<String, Array>,
}

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            tensors: BTreeMap::new(),
        }
    }

    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize], mean: f64, deviation: f64) {
        let values = (0..shape.iter().product())
            .map(|_| (mean + deviation * self.rng.normal()) as f32)
            .collect();
        let array = Array {
            shape: shape.to_vec(),
            values,
        };
        assert!(self.tensors.insert(name.to_owned(), array).is_none());
    }

    pub(crate) fn table(&mut self, name: &str, rows: usize, size: usize) {
        self.tensor(&format!("{name}.weight"), &[rows, size], 0.0, 0.03);
    }

    pub(crate) fn linear(&mut self, name: &str, input: usize, output: usize, bias: bool) {
        let deviation = 1.2 / (input as f64).sqrt();
        self.tensor(&format!("{name}.weight"), &[output, input], 0.0, deviation);
        if bias {
            self.tensor(&format!("{name}.bias"), &[output], 0.0, 0.1);
        }
    }

    pub(crate) fn norm(&mut self, name: &str, size: usize, bias: bool) {
        self.tensor(&format!("{name}.weight"), &[size], 1.0, 0.1);
        if bias {
            self.tensor(&format!("{name}.bias"), &[size], 0.0, 0.1);
        }
    }

    /// The feed-forward of a layer of BERT, and its norm; `layer` ends with a dot.
    pub(crate) fn feed_forward(&mut self, layer: &str, hidden: usize, wide: usize) {
        self.linear(&format!("{layer}intermediate.dense"), hidden, wide, true);
        self.linear(&format!("{layer}output.dense"), wide, hidden, true);
        self.norm(&format!("{layer}output.LayerNorm"), hidden, true);
    }
}

/// The part that BERT and RoBERTa share.
pub fn bert_like(seed: u64, config: serde_json::Value) -> Checkpoint {
    let size = |key: &str| config[key].as_u64().expect("a size") as usize;
    let (hidden, wide) = (size("hidden_size"), size("intermediate_size"));
    let mut maker = Maker::new(seed);
    maker.table("embeddings.word_embeddings", size("vocab_size"), hidden);
    let positions = size("max_position_embeddings");
    maker.table("embeddings.position_embeddings", positions, hidden);
    let types = size("type_vocab_size");
    maker.table("embeddings.token_type_embeddings", types, hidden);
    maker.norm("embeddings.LayerNorm", hidden, true);
    for layer in 0..size("num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        maker.linear(&name("attention.self.query"), hidden, hidden, true);
        maker.linear(&name("attention.self.key"), hidden, hidden, true);
        maker.linear(&name("attention.self.value"), hidden, hidden, true);
        maker.linear(&name("attention.output.dense"), hidden, hidden, true);
        maker.norm(&name("attention.output.LayerNorm"), hidden, true);
        maker.feed_forward(&name(""), hidden, wide);
    }
    maker.linear("pooler.dense", hidden, hidden, true);
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A BERT of the given sizes.
pub fn bert_of(seed: u64, vocabulary: usize, hidden: usize, layers: usize) -> Checkpoint {
    bert_like(
        seed,
        json!({
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": vocabulary,
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "intermediate_size": 2 * hidden,
            "hidden_act": "gelu",
            "max_position_embeddings": 64,
            "type_vocab_size": 2,
            "layer_norm_eps": 1e-12,
            "pad_token_id": 0,
            "position_embedding_type": "absolute"
        }),
    )
}

/// A tiny BERT.
pub fn bert() -> Checkpoint {
    bert_of(1, VOCABULARY, HIDDEN, 3)
}

/// A tiny XLM-RoBERTa.
pub fn roberta() -> Checkpoint {
    bert_like(
        2,
        json!({
            "architectures": ["XLMRobertaModel"],
            "model_type": "xlm-roberta",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": WIDE,
            "hidden_act": "gelu",
            "max_position_embeddings": 66,
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-5,
            "pad_token_id": 1,
            "position_embedding_type": "absolute"
        }),
    )
}

/// An MPNet of a configuration's sizes.
pub fn mpnet_like(seed: u64, config: serde_json::Value) -> Checkpoint {
    let size = |key: &str| config[key].as_u64().expect("a size") as usize;
    let (hidden, wide) = (size("hidden_size"), size("intermediate_size"));
    let mut maker = Maker::new(seed);
    maker.table("embeddings.word_embeddings", size("vocab_size"), hidden);
    let positions = size("max_position_embeddings");
    maker.table("embeddings.position_embeddings", positions, hidden);
    maker.norm("embeddings.LayerNorm", hidden, true);
    let biases = [
        size("relative_attention_num_buckets"),
        size("num_attention_heads"),
    ];
    maker.tensor("encoder.relative_attention_bias.weight", &biases, 0.0, 1.0);
    for layer in 0..size("num_hidden_layers") {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        for part in ["q", "k", "v", "o"] {
            let part = name(&format!("attention.attn.{part}"));
            maker.linear(&part, hidden, hidden, true);
        }
        maker.norm(&name("attention.LayerNorm"), hidden, true);
        maker.feed_forward(&name(""), hidden, wide);
    }
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny MPNet.
pub fn mpnet() -> Checkpoint {
    mpnet_like(
        3,
        json!({
            "architectures": ["MPNetModel"],
            "model_type": "mpnet",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": WIDE,
            "hidden_act": "gelu",
            "max_position_embeddings": 182,
            "relative_attention_num_buckets": 32,
            "layer_norm_eps": 1e-5,
            "pad_token_id": 1
        }),
    )
}

/// A tiny DistilBERT.
pub fn distilbert() -> Checkpoint {
    let mut maker = Maker::new(4);
    maker.table("embeddings.word_embeddings", VOCABULARY, HIDDEN);
    maker.table("embeddings.position_embeddings", 64, HIDDEN);
    maker.norm("embeddings.LayerNorm", HIDDEN, true);
    for layer in 0..2 {
        let name = |module: &str| format!("transformer.layer.{layer}.{module}");
        for part in ["q_lin", "k_lin", "v_lin", "out_lin"] {
            maker.linear(&name(&format!("attention.{part}")), HIDDEN, HIDDEN, true);
        }
        maker.norm(&name("sa_layer_norm"), HIDDEN, true);
        maker.linear(&name("ffn.lin1"), HIDDEN, WIDE, true);
        maker.linear(&name("ffn.lin2"), WIDE, HIDDEN, true);
        maker.norm(&name("output_layer_norm"), HIDDEN, true);
    }
    Checkpoint {
        config: json!({
            "architectures": ["DistilBertModel"],
            "model_type": "distilbert",
            "vocab_size": VOCABULARY,
            "dim": HIDDEN,
            "n_layers": 2,
            "n_heads": 4,
            "hidden_dim": WIDE,
            "activation": "gelu",
            "max_position_embeddings": 64,
            "sinusoidal_pos_embds": false,
            "pad_token_id": 0
        }),
        tensors: maker.tensors,
    }
}

/// A ModernBERT of a configuration's sizes.
pub fn modernbert_like(seed: u64, config: serde_json::Value) -> Checkpoint {
    let size = |key: &str| config[key].as_u64().expect("a size") as usize;
    let (hidden, wide) = (size("hidden_size"), size("intermediate_size"));
    let mut maker = Maker::new(seed);
    maker.table("embeddings.tok_embeddings", size("vocab_size"), hidden);
    maker.norm("embeddings.norm", hidden, false);
    for layer in 0..size("num_hidden_layers") {
        let name = |module: &str| format!("layers.{layer}.{module}");
        if layer > 0 {
            maker.norm(&name("attn_norm"), hidden, false);
        }
        maker.linear(&name("attn.Wqkv"), hidden, 3 * hidden, false);
        maker.linear(&name("attn.Wo"), hidden, hidden, false);
        maker.norm(&name("mlp_norm"), hidden, false);
        maker.linear(&name("mlp.Wi"), hidden, 2 * wide, false);
        maker.linear(&name("mlp.Wo"), wide, hidden, false);
    }
    maker.norm("final_norm", hidden, false);
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny ModernBERT.
pub fn modernbert() -> Checkpoint {
    modernbert_like(
        5,
        json!({
            "architectures": ["ModernBertModel"],
            "model_type": "modernbert",
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 5,
            "num_attention_heads": 2,
            "intermediate_size": WIDE,
            "hidden_activation": "gelu",
            "max_position_embeddings": 64,
            "norm_eps": 1e-5,
            "norm_bias": false,
            "attention_bias": false,
            "mlp_bias": false,
            "global_attn_every_n_layers": 3,
            "local_attention": 12,
            "global_rope_theta": 160000.0,
            "local_rope_theta": 10000.0,
            "position_embedding_type": "absolute",
            "pad_token_id": 0
        }),
    )
}

/// A tiny NomicBERT.
pub fn nomicbert() -> Checkpoint {
    let mut maker = Maker::new(6);
    maker.table("embeddings.word_embeddings", VOCABULARY, HIDDEN);
    maker.table("embeddings.token_type_embeddings", 2, HIDDEN);
    maker.norm("emb_ln", HIDDEN, true);
    for layer in 0..3 {
        let name = |module: &str| format!("encoder.layers.{layer}.{module}");
        maker.linear(&name("attn.Wqkv"), HIDDEN, 3 * HIDDEN, false);
        maker.linear(&name("attn.out_proj"), HIDDEN, HIDDEN, false);
        maker.norm(&name("norm1"), HIDDEN, true);
        maker.linear(&name("mlp.fc11"), HIDDEN, WIDE, false);
        maker.linear(&name("mlp.fc12"), HIDDEN, WIDE, false);
        maker.linear(&name("mlp.fc2"), WIDE, HIDDEN, false);
        maker.norm(&name("norm2"), HIDDEN, true);
    }
    Checkpoint {
        config: json!({
            "architectures": ["NomicBertModel"],
            "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"},
            "model_type": "nomic_bert",
            "vocab_size": VOCABULARY,
            "n_embd": HIDDEN,
            "n_layer": 3,
            "n_head": 4,
            "n_inner": WIDE,
            "n_positions": 64,
            "activation_function": "swiglu",
            "layer_norm_epsilon": 1e-12,
            "type_vocab_size": 2,
            "rotary_emb_base": 1000,
            "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": false,
            "rotary_emb_scale_base": null,
            "rotary_scaling_factor": null,
            "qkv_proj_bias": false,
            "mlp_fc1_bias": false,
            "mlp_fc2_bias": false,
            "prenorm": false,
            "use_rms_norm": false,
            "parallel_block": false,
            "causal": false
        }),
        tensors: maker.tensors,
    }
}

/// A tiny NomicBERT of the second version: no gates, biases everywhere, and experts in every other layer.
pub fn nomicbert_of_experts() -> Checkpoint {
    let mut config = nomicbert().config;
    for (key, value) in [
        ("activation_function", json!("gelu")),
        ("n_layer", json!(4)),
        ("layer_norm_epsilon", json!(1e-5)),
        ("qkv_proj_bias", json!(true)),
        ("mlp_fc1_bias", json!(true)),
        ("mlp_fc2_bias", json!(true)),
        ("num_experts", json!(5)),
        ("num_shared_experts", json!(0)),
        ("moe_top_k", json!(2)),
        ("moe_every_n_layers", json!(2)),
        ("moe_impl", json!("megablocks")),
        ("moe_normalize_expert_weights", json!(false)),
        ("expert_choice_router", json!(false)),
        ("ffn_div", json!(1)),
    ] {
        config[key] = value;
    }
    experts_like(26, config)
}

/// A NomicBERT of the second version with a configuration's sizes.
pub fn experts_like(seed: u64, config: Value) -> Checkpoint {
    let size = |key: &str| config[key].as_u64().expect("a size") as usize;
    let (hidden, wide, experts) = (size("n_embd"), size("n_inner"), size("num_experts"));
    let mut maker = Maker::new(seed);
    maker.table("embeddings.word_embeddings", size("vocab_size"), hidden);
    maker.table(
        "embeddings.token_type_embeddings",
        size("type_vocab_size"),
        hidden,
    );
    maker.norm("emb_ln", hidden, true);
    for layer in 0..size("n_layer") {
        let name = |module: &str| format!("encoder.layers.{layer}.{module}");
        maker.linear(&name("attn.Wqkv"), hidden, 3 * hidden, true);
        maker.linear(&name("attn.out_proj"), hidden, hidden, true);
        maker.norm(&name("norm1"), hidden, true);
        if layer % size("moe_every_n_layers") == 1 {
            maker.linear(&name("mlp.router.layer"), hidden, experts, false);
            let scale = 1.0 / (hidden as f64).sqrt();
            for matrix in ["mlp.experts.mlp.w1", "mlp.experts.mlp.w2"] {
                maker.tensor(&name(matrix), &[experts * wide, hidden], 0.0, scale);
            }
            maker.tensor(&name("mlp.experts.bias"), &[hidden], 0.0, 0.1);
        } else {
            maker.linear(&name("mlp.fc1"), hidden, wide, true);
            maker.linear(&name("mlp.fc2"), wide, hidden, true);
        }
        maker.norm(&name("norm2"), hidden, true);
    }
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// One of each family.
pub fn all() -> Vec<(&'static str, Checkpoint)> {
    vec![
        ("bert", bert()),
        ("roberta", roberta()),
        ("mpnet", mpnet()),
        ("distilbert", distilbert()),
        ("modernbert", modernbert()),
        ("nomicbert", nomicbert()),
        ("nomicbert_of_experts", nomicbert_of_experts()),
        ("qwen3", decoders::qwen3()),
        ("qwen2", decoders::qwen2()),
        ("llama", decoders::llama()),
        ("mistral", decoders::mistral()),
        ("gemma3", decoders::gemma3()),
        ("eurobert", decoders::eurobert()),
        ("gte", gte::gte()),
        ("jina", jina::jina()),
        ("jina_code", jina::jina_code()),
        ("jina_v3", jina_v3::jina_v3()),
        ("deberta", deberta::deberta()),
        ("deberta_plain", deberta::deberta_plain()),
        ("t5", t5::t5()),
        ("t5_gated", t5::t5_gated()),
    ]
}
