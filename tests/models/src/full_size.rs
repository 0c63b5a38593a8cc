//! Models of the sizes that people load, with seeded weights.

use serde_json::json;

use crate::checkpoint::Checkpoint;
use crate::decoders::decoder_like;
use crate::models::{bert_like, experts_like, modernbert_like, mpnet_like, nomicbert_of_experts};

/// Makes a model.
type Make = fn() -> Checkpoint;

/// A model's name, and how it is made: one at a time, because each takes up to a gigabyte. The sizes are those of the
/// published configurations of bert-base-uncased, all-mpnet-base-v2, xlm-roberta-base and ModernBERT-base.
pub const ALL: [(&str, Make); 4] = [
    ("BERT-base", bert_base),
    ("MPNet-base", mpnet_base),
    ("XLM-R-base", xlm_r_base),
    ("ModernBERT-base", modernbert_base),
];

/// bert-base-uncased.
pub fn bert_base() -> Checkpoint {
    bert_like(
        11,
        json!({
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": 30_522,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "hidden_act": "gelu",
            "max_position_embeddings": 512,
            "type_vocab_size": 2,
            "layer_norm_eps": 1e-12,
            "pad_token_id": 0,
            "position_embedding_type": "absolute"
        }),
    )
}

fn mpnet_base() -> Checkpoint {
    mpnet_like(
        12,
        json!({
            "architectures": ["MPNetModel"],
            "model_type": "mpnet",
            "vocab_size": 30_527,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "hidden_act": "gelu",
            "max_position_embeddings": 514,
            "relative_attention_num_buckets": 32,
            "layer_norm_eps": 1e-5,
            "pad_token_id": 1
        }),
    )
}

/// Its table of words has 768 MB, which is more than adapters bind by default.
fn xlm_r_base() -> Checkpoint {
    bert_like(
        13,
        json!({
            "architectures": ["XLMRobertaModel"],
            "model_type": "xlm-roberta",
            "vocab_size": 250_002,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "hidden_act": "gelu",
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-5,
            "pad_token_id": 1,
            "position_embedding_type": "absolute"
        }),
    )
}

fn modernbert_base() -> Checkpoint {
    modernbert_like(
        14,
        json!({
            "architectures": ["ModernBertModel"],
            "model_type": "modernbert",
            "vocab_size": 50_368,
            "hidden_size": 768,
            "num_hidden_layers": 22,
            "num_attention_heads": 12,
            "intermediate_size": 1152,
            "hidden_activation": "gelu",
            "max_position_embeddings": 8192,
            "norm_eps": 1e-5,
            "norm_bias": false,
            "attention_bias": false,
            "mlp_bias": false,
            "global_attn_every_n_layers": 3,
            "local_attention": 128,
            "global_rope_theta": 160000.0,
            "local_rope_theta": 10000.0,
            "position_embedding_type": "absolute",
            "pad_token_id": 50_283
        }),
    )
}

/// Qwen3-Embedding-0.6B with fewer layers than its 28, and a tenth of its words.
pub fn qwen3_of(layers: usize) -> Checkpoint {
    decoder_like(
        15,
        json!({
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": 15_167,
            "hidden_size": 1024,
            "num_hidden_layers": layers,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "hidden_act": "silu",
            "max_position_embeddings": 32_768,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1_000_000.0,
            "rope_scaling": null,
            "attention_bias": false,
            "use_sliding_window": false,
            "pad_token_id": 0
        }),
    )
}

/// nomic-embed-text-v2-moe with fewer layers than its 12, and a twentieth of its words.
pub fn nomic_moe_of(layers: usize) -> Checkpoint {
    let mut config = nomicbert_of_experts().config;
    for (key, value) in [
        ("vocab_size", 15_003),
        ("n_embd", 768),
        ("n_inner", 3072),
        ("n_head", 12),
        ("n_layer", layers),
        ("n_positions", 2048),
        ("rotary_emb_base", 10_000),
        ("num_experts", 8),
    ] {
        config[key] = json!(value);
    }
    experts_like(16, config)
}
