//! Newer families of encoders load from `config.json` and safetensors alone, also where their authors publish them with code of their
//! own, and give the vectors of an independent implementation at f64 on every engine.

use isovec::ModelSource;
use isovec::blocking::Embedder;
use isovec::config::{EmbeddingConfig, Pooling};
use isovec::fingerprint::Fingerprint;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::deberta::{deberta, deberta_plain};
use isovec_test_models::decoders::eurobert;
use isovec_test_models::gte::{gte, newer};
use isovec_test_models::jina::{jina, jina_code};
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::t5::{t5, t5_gated};
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

/// A model with the tiny tokenizer. Its tensors have a prefix, as a class with a head stores them.
fn source(model: &Checkpoint, prefix: &str) -> ModelSource {
    let published = model.clone().prefixed(prefix);
    let tokenizer = tiny::tokenizer(&tiny::vocabulary());
    let files = [
        ("config.json", published.config_json()),
        ("model.safetensors", published.file(Stored::F32)),
        ("tokenizer.json", serde_json::to_vec(&tokenizer).unwrap()),
    ];
    ModelSource::bytes(
        "an encoder",
        files.map(|(name, bytes)| (name.to_owned(), bytes.into())),
    )
}

fn config() -> EmbeddingConfig {
    EmbeddingConfig::default().with_pooling(Pooling::Mean)
}

fn expected(model: &Checkpoint, text: &str) -> Vec<f64> {
    let ids = tiny::tokenise(&tiny::vocabulary(), text);
    mean_normalised(&last_hidden_state(model, &ids, &vec![0; ids.len()]))
}

#[test]
fn encoders_are_themselves_on_every_engine() {
    let [gte, jina, jina_code] = [gte(), jina(), jina_code()].map(tiny::of_words);
    let eurobert = tiny::of_words(eurobert());
    let [deberta, deberta_plain] = [deberta(), deberta_plain()].map(tiny::of_words);
    let [t5, t5_gated] = [t5(), t5_gated()].map(tiny::of_words);
    // Under the names of transformers it is the same model.
    let renamed = newer(gte.clone());
    for (published, model, prefix) in [
        (&eurobert, &eurobert, "model."),
        (&gte, &gte, "new."),
        (&renamed, &gte, ""),
        (&jina, &jina, "bert."),
        (&jina_code, &jina_code, ""),
        (&deberta, &deberta, "deberta."),
        (&deberta_plain, &deberta_plain, ""),
        (&t5, &t5, ""),
        (&t5_gated, &t5_gated, ""),
    ] {
        for engine in engines() {
            let embedder = Embedder::builder(source(published, prefix))
                .config(engine.configure(config().with_max_batch_size(3)))
                .load()
                .unwrap();
            assert_eq!(embedder.provider().engine, engine.name());
            let together = embedder.embed(TEXTS).unwrap();
            for (row, text) in together.iter().zip(TEXTS) {
                for (own, wanted) in row.iter().zip(expected(model, text)) {
                    assert!(
                        (f64::from(*own) - wanted).abs() <= NEAR,
                        "{}, {}, {text:?}: {own} and {wanted}",
                        model.config["architectures"],
                        engine.name()
                    );
                }
            }
        }
    }
}

/// The modules that `tests/data/known-models` says a model is refused for.
#[test]
fn a_model_that_begins_with_another_module_is_refused_by_name() {
    let model = tiny::of_words(gte());
    for module in ["CLIPModel", "WordEmbeddings"] {
        let name = format!("sentence_transformers.models.{module}");
        let modules = json!([{"idx": 0, "name": "0", "path": "", "type": name}]);
        let files = [
            ("config.json", model.config_json()),
            ("model.safetensors", model.file(Stored::F32)),
            ("modules.json", serde_json::to_vec(&modules).unwrap()),
        ];
        let files = files.map(|(name, bytes)| (name.to_owned(), bytes.into()));
        let error = Embedder::load(ModelSource::bytes("an encoder", files)).unwrap_err();
        assert_eq!(error.kind(), "UnsupportedModel", "{error}");
        assert!(error.to_string().contains(module), "{error}");
    }
}

/// Numbers that no tensor shows are part of what a model is.
#[test]
fn what_no_tensor_shows_decides_the_fingerprint() {
    let of = |model: &Checkpoint| -> Fingerprint {
        let loaded = Embedder::builder(source(model, "")).config(config()).load();
        loaded.unwrap().fingerprint().clone()
    };
    for (model, key, value) in [
        (eurobert(), "rope_theta", json!(10_000.0)),
        (gte(), "rope_scaling", json!({"type": "ntk", "factor": 8.0})),
        (gte(), "rope_scaling", json!(null)),
        (jina(), "num_attention_heads", json!(8)),
        (jina(), "feed_forward_type", json!("reglu")),
        (deberta(), "pos_att_type", json!("c2p")),
        (deberta(), "max_relative_positions", json!(40)),
        (t5(), "relative_attention_max_distance", json!(64)),
    ] {
        let model = tiny::of_words(model);
        assert_ne!(of(&model), of(&model.clone().with(key, value)), "{key}");
    }
}
