//! A model of no use, loaded and run once while the weights of the one that was asked for are
//! still on their way.
//!
//! A browser compiles a function when it is first called, and well only after it was called often.
//! Loading a model calls thousands of functions, so the first load in a page takes twice to three
//! times as long as the next. The network leaves time for a first one that nobody waits for.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec::{Cancel, EmbedOptions, Embedder, EmbeddingConfig, LoadOptions, ModelSource};
use serde_json::{Value, json};

const HIDDEN: usize = 32;
const INNER: usize = 64;
const LAYERS: usize = 2;
const POSITIONS: usize = 16;
const WORDS: [&str; 7] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "word", "##s"];

/// Loads the model and embeds a text, until done or cancelled. What comes of it is of no interest,
/// nor is an error.
pub(crate) async fn rehearse(cancel: Cancel) {
    let options = LoadOptions::default().with_cancel(cancel.clone());
    let source = ModelSource::bytes("rehearsal", files());
    let loaded = Embedder::load_with(source, EmbeddingConfig::default(), options).await;
    if let Ok(embedder) = loaded {
        let options = EmbedOptions::default().with_cancel(cancel);
        let _ = embedder.embed_with(["a word", "words"], options).await;
    }
}

/// A small BERT as safetensors, with what stands beside it.
fn files() -> Vec<(String, Bytes)> {
    let text = |name: &str, content: Value| (name.to_owned(), Bytes::from(content.to_string()));
    vec![
        text(
            "config.json",
            json!({
                "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu",
                "hidden_size": HIDDEN, "intermediate_size": INNER, "layer_norm_eps": 1e-12,
                "max_position_embeddings": POSITIONS, "num_attention_heads": 4,
                "num_hidden_layers": LAYERS, "pad_token_id": 0, "type_vocab_size": 2,
                "position_embedding_type": "absolute", "vocab_size": WORDS.len()
            }),
        ),
        text("tokenizer.json", tokenizer()),
        text(
            "modules.json",
            json!([
                {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
            ]),
        ),
        text(
            "1_Pooling/config.json",
            json!({"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": true}),
        ),
        ("model.safetensors".to_owned(), checkpoint().into()),
    ]
}

fn tokenizer() -> Value {
    let vocabulary: BTreeMap<&str, usize> = WORDS.into_iter().zip(0..).collect();
    let special = |id: usize| {
        json!({"id": id, "content": WORDS[id], "special": true, "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": false})
    };
    let token = |name: &str| json!({"SpecialToken": {"id": name, "type_id": 0}});
    let sequence = json!({"Sequence": {"id": "A", "type_id": 0}});
    json!({
        "version": "1.0",
        "added_tokens": [special(0), special(1), special(2), special(3)],
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
            "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [token("[CLS]"), sequence, token("[SEP]")],
            "pair": [token("[CLS]"), sequence, token("[SEP]"),
                {"Sequence": {"id": "B", "type_id": 1}}, token("[SEP]")],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "model": {"type": "WordPiece", "unk_token": "[UNK]",
            "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": vocabulary}
    })
}

/// The tensors' names and shapes as BERT has them.
fn shapes() -> Vec<(String, Vec<usize>)> {
    let mut all = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![WORDS.len(), HIDDEN],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![POSITIONS, HIDDEN],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, HIDDEN],
        ),
        ("embeddings.LayerNorm.weight".to_owned(), vec![HIDDEN]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![HIDDEN]),
    ];
    for layer in 0..LAYERS {
        let mut linear = |name: &str, out: usize, inside: usize| {
            let name = format!("encoder.layer.{layer}.{name}");
            all.push((format!("{name}.weight"), vec![out, inside]));
            all.push((format!("{name}.bias"), vec![out]));
        };
        for part in ["query", "key", "value"] {
            linear(&format!("attention.self.{part}"), HIDDEN, HIDDEN);
        }
        linear("attention.output.dense", HIDDEN, HIDDEN);
        linear("intermediate.dense", INNER, HIDDEN);
        linear("output.dense", HIDDEN, INNER);
        for norm in ["attention.output.LayerNorm", "output.LayerNorm"] {
            for part in ["weight", "bias"] {
                all.push((format!("encoder.layer.{layer}.{norm}.{part}"), vec![HIDDEN]));
            }
        }
    }
    all
}

/// A safetensors file (<https://github.com/huggingface/safetensors#format>) whose values differ
/// and are small.
fn checkpoint() -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for (name, shape) in shapes() {
        let start = data.len();
        let count: usize = shape.iter().product();
        data.extend((0..count).flat_map(|n| (0.01 * (n % 13) as f32 - 0.05).to_le_bytes()));
        header.insert(
            name,
            json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]}),
        );
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.extend(data);
    file
}

// Blocking callers exist natively alone.
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use isovec::blocking;

    use super::*;

    #[test]
    fn the_model_loads_and_runs() {
        let source = ModelSource::bytes("rehearsal", files());
        let config = EmbeddingConfig::default().with_engine(isovec::EngineChoice::Portable);
        let embedder = blocking::Embedder::load(source, config).unwrap();
        let vectors = embedder.embed(["a word", "words"]).unwrap();
        assert_eq!((vectors.len(), vectors.dim()), (2, HIDDEN));
        assert_eq!(vectors.token_counts(), [4, 4]);
    }
}
