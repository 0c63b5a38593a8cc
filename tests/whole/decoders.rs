//! Decoders become embedders: the last token's vector, of tokens that see only those before them, or the mean of tokens that see both
//! ways, as an independent implementation at f64 gives it, on every engine.

use isovec::blocking::Embedder;
use isovec::config::EmbeddingConfig;
use isovec::{EmbedOptions, ModelSource, Prompt};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::decoders::{gemma3, llama, mistral, qwen2, qwen3};
use isovec_test_models::embedding_gemma::{DOCUMENT, EmbeddingGemma, QUERY};
use isovec_test_models::models::HIDDEN;
use isovec_test_models::reference::last_hidden_state;
use isovec_test_models::tiny;
use isovec_test_support::engines;
use serde_json::json;

/// The largest difference of a component of a unit vector.
const NEAR: f64 = 1e-6;

const TEXTS: [&str; 5] = [
    "the dog is an animal",
    "a",
    "money in the bank, and a king who has a house near the sea and a horse",
    "",
    "the bank of the river",
];

/// A tiny decoder with the tiny tokenizer, as sentence-transformers publishes such models. Its tensors begin with `model.`, as those of
/// a decoder do.
fn source(model: &Checkpoint) -> ModelSource {
    let tokenizer = tiny::tokenizer(&tiny::vocabulary());
    let modules = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]);
    let pooling = json!({
        "word_embedding_dimension": HIDDEN,
        "pooling_mode_cls_token": false,
        "pooling_mode_mean_tokens": false,
        "pooling_mode_max_tokens": false,
        "pooling_mode_lasttoken": true,
    });
    let bytes = |value| serde_json::to_vec(&value).unwrap();
    let published = model.clone().prefixed("model.");
    let files = [
        ("config.json", published.config_json()),
        ("model.safetensors", published.file(Stored::F32)),
        ("tokenizer.json", bytes(tokenizer)),
        ("modules.json", bytes(modules)),
        ("1_Pooling/config.json", bytes(pooling)),
    ];
    ModelSource::bytes(
        "a decoder",
        files.map(|(name, bytes)| (name.to_owned(), bytes.into())),
    )
}

/// The last token's vector at length 1.
fn expected(model: &Checkpoint, text: &str) -> Vec<f64> {
    let ids = tiny::tokenise(&tiny::vocabulary(), text);
    let rows = last_hidden_state(model, &ids, &vec![0; ids.len()]);
    let last = rows.last().unwrap();
    let length = last.iter().map(|value| value * value).sum::<f64>().sqrt();
    last.iter().map(|value| value / length).collect()
}

#[test]
fn the_last_token_stands_for_the_text_on_every_engine() {
    // One that sees what follows, too, gives other vectors of the same weights.
    let causal = tiny::of_words(qwen3());
    let both_ways = causal.clone().with("is_causal", false);
    let others = [qwen2(), llama(), mistral(), gemma3()].map(tiny::of_words);
    for model in [&causal, &both_ways].into_iter().chain(&others) {
        for engine in engines() {
            let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(3));
            let embedder = Embedder::builder(source(model))
                .config(config)
                .load()
                .unwrap();
            assert_eq!(embedder.provider().engine, engine.name());
            let together = embedder.embed(TEXTS).unwrap();
            for (row, text) in together.iter().zip(TEXTS) {
                for (own, wanted) in row.iter().zip(expected(model, text)) {
                    assert!(
                        (f64::from(*own) - wanted).abs() <= NEAR,
                        "{text:?}: {own} and {wanted}"
                    );
                }
            }
        }
    }
    let fingerprint = |model| {
        let embedder = Embedder::load(source(model)).unwrap();
        embedder.fingerprint().clone()
    };
    assert_ne!(fingerprint(&causal), fingerprint(&both_ways));
}

/// The files of a published model decide all of it: pieces with bytes for what has none, prompts, the mean, two dense layers.
#[test]
fn a_published_embedding_gemma_is_itself_on_every_engine() {
    let model = EmbeddingGemma::default();
    let texts = [
        "the dog is an animal",
        "Money in the bank, 東京 and café",
        "a",
        "the mountain and the river and the sea and the sun and the rain and the tree and the horse",
    ];
    for engine in engines() {
        let files = model.files().into_iter();
        let files = files.map(|(name, bytes)| (name, bytes.into()));
        let embedder = Embedder::builder(ModelSource::bytes("a gemma", files))
            .config(engine.configure(EmbeddingConfig::default()))
            .load()
            .unwrap();
        for (prompt, before) in [
            (Prompt::Query, QUERY),
            (Prompt::Passage, DOCUMENT),
            (Prompt::None, ""),
        ] {
            let options = EmbedOptions::default().with_prompt(prompt);
            let vectors = embedder.embed_with(texts, options).unwrap();
            for (row, text) in vectors.iter().zip(texts) {
                let wanted = model.vector(&format!("{before}{text}"));
                assert_eq!(row.len(), wanted.len());
                for (own, wanted) in row.iter().zip(wanted) {
                    assert!(
                        (f64::from(*own) - wanted).abs() <= NEAR,
                        "{}, {before}{text}: {own} and {wanted}",
                        engine.name()
                    );
                }
            }
        }
    }
}

#[test]
fn what_a_decoder_cannot_be_is_said() {
    for (key, value, word) in [
        (
            "rope_scaling",
            json!({"type": "yarn", "factor": 4.0}),
            "rope_scaling",
        ),
        (
            "layer_types",
            json!(["full_attention", "chunked_attention", "full_attention"]),
            "chunked_attention",
        ),
        (
            "rope_parameters",
            json!({"rope_type": "yarn", "rope_theta": 1e6}),
            "yarn",
        ),
        ("hidden_act", json!("mish"), "mish"),
    ] {
        let model = tiny::of_words(qwen3()).with(key, value);
        let error = Embedder::load(source(&model)).unwrap_err();
        assert_eq!(error.kind(), "UnsupportedModel", "{key}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let odd = tiny::of_words(qwen3()).with("num_key_value_heads", 3);
    let error = Embedder::load(source(&odd)).unwrap_err();
    assert_eq!(error.kind(), "InvalidModel");
    assert!(error.to_string().contains("num_key_value_heads"), "{error}");
    // The newer name of the base says the same.
    let mut newer = tiny::of_words(qwen3()).with(
        "rope_parameters",
        json!({"rope_type": "default", "rope_theta": 1e6}),
    );
    newer.config.as_object_mut().unwrap().remove("rope_theta");
    let of = |model: &Checkpoint| Embedder::load(source(model)).unwrap().fingerprint().clone();
    assert_eq!(of(&newer), of(&tiny::of_words(qwen3())));
}
