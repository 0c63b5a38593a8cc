//! A model with an adapter for each task: the prompt of a call chooses it, on every engine, alone and in company, and the vectors are those
//! of an independent implementation at f64.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use isovec::blocking::{Embedder, export};
use isovec::config::EmbeddingConfig;
use isovec::{DynamicBatcher, EmbedOptions, ExportOptions, ModelSource, Prompt};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::jina_v3::{NONE, config, jina_v3_like};
use isovec_test_models::reference::{last_hidden_state, mean_normalised};
use isovec_test_models::tiny;
use isovec_test_support::{Which, engines};
use serde_json::{Value, json};

/// The largest difference of a component of a unit vector.
const NEAR: f64 = 1e-6;

const TEXTS: [&str; 3] = [
    "the dog is an animal",
    "a",
    "money in the bank, and a king who has a house near the sea and a horse",
];

/// What stands before queries.
const QUERY: &str = "the king: ";

fn model() -> Checkpoint {
    let mut config = config();
    config["vocab_size"] = tiny::vocabulary().len().into();
    jina_v3_like(79, config)
}

/// The files as the model's authors publish them, with the tiny tokenizer.
fn files(model: &Checkpoint) -> BTreeMap<String, Vec<u8>> {
    let published = model.clone().prefixed("roberta.");
    let json = |value: &Value| serde_json::to_vec(value).unwrap();
    let modules = json!([
        {"idx": 0, "name": "transformer", "path": "", "type": "custom_st.Transformer", "kwargs": ["task"]},
        {"idx": 1, "name": "pooler", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "normalizer", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
    ]);
    let pooling = json!({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": true});
    // The last of the adapters has no text of its own, and `topic` is no adapter's name.
    let prompts = json!({"prompts": {"retrieval.query": QUERY, "retrieval.passage": "", "topic": "the sea "}});
    [
        ("config.json", published.config_json()),
        ("model.safetensors", published.file(Stored::F32)),
        (
            "tokenizer.json",
            json(&tiny::tokenizer(&tiny::vocabulary())),
        ),
        ("modules.json", json(&modules)),
        ("1_Pooling/config.json", json(&pooling)),
        ("config_sentence_transformers.json", json(&prompts)),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .into()
}

fn source(files: BTreeMap<String, Vec<u8>>) -> ModelSource {
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    ModelSource::bytes("a model with adapters", files)
}

fn load(which: Which, config: EmbeddingConfig) -> Embedder {
    let builder = Embedder::builder(source(files(&model())));
    builder.config(which.configure(config)).load().unwrap()
}

/// Prompts, with the adapter and the text that each stands for, and what a set says of it.
fn prompts() -> [(Prompt, i64, &'static str, Option<&'static str>); 7] {
    let named = |name: &str| Prompt::Named(name.into());
    [
        (Prompt::Query, 0, QUERY, Some("query")),
        (named("retrieval.query"), 0, QUERY, Some("retrieval.query")),
        (Prompt::Passage, 1, "", Some("retrieval.passage")),
        (named("separation"), 2, "", Some("separation")),
        (Prompt::Default, NONE, "", None),
        (named("topic"), NONE, "the sea ", Some("topic")),
        (
            Prompt::Text("a horse: ".into()),
            NONE,
            "a horse: ",
            Some("text"),
        ),
    ]
}

fn expected(adapter: i64, text: &str) -> Vec<f64> {
    let ids = tiny::tokenise(&tiny::vocabulary(), text);
    mean_normalised(&last_hidden_state(
        &model(),
        &ids,
        &vec![adapter; ids.len()],
    ))
}

fn near(own: &[f32], adapter: i64, text: &str, what: &str) {
    let wanted = expected(adapter, text);
    assert_eq!(own.len(), wanted.len());
    for (own, wanted) in own.iter().zip(wanted) {
        let apart = (f64::from(*own) - wanted).abs();
        assert!(apart <= NEAR, "{what}, {text:?}: {own} and {wanted}");
    }
}

#[test]
fn a_prompt_chooses_its_adapter_on_every_engine() {
    for which in engines() {
        // Kept vectors of one task are not those of another.
        let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
        let embedder = load(which, config.with_max_batch_size(2));
        for _ in 0..2 {
            for (prompt, adapter, before, name) in prompts() {
                let what = format!("{}, {prompt:?}", which.name());
                let options = EmbedOptions::default().with_prompt(prompt);
                let set = embedder.embed_with(TEXTS, options).unwrap();
                assert_eq!(set.prompt(), name, "{what}");
                for (row, text) in set.iter().zip(TEXTS) {
                    near(row, adapter, &format!("{before}{text}"), &what);
                }
            }
        }
        let kept = embedder.stats().embedding_cache.unwrap();
        // The two names of the first prompt are one.
        assert_eq!((kept.misses, kept.hits), (18, 24), "{}", which.name());
        let query = embedder.embed_query(TEXTS[0]).unwrap();
        let text = format!("{QUERY}{}", TEXTS[0]);
        near(query.get(0).unwrap(), 0, &text, which.name());
        let error = embedder
            .embed_with(
                TEXTS,
                EmbedOptions::default().with_prompt(Prompt::Named("x".into())),
            )
            .unwrap_err();
        assert!(error.to_string().contains("separation"), "{error}");
    }
}

#[test]
fn texts_of_several_tasks_go_through_one_batch() {
    for which in engines() {
        // They wait for companions, so that they run together.
        let config = EmbeddingConfig::default()
            .with_preferred_batch_size(8)
            .with_max_wait(Duration::from_millis(50));
        let embedder = isovec::Embedder::from(load(which, config));
        let batcher = DynamicBatcher::new(&embedder);
        let calls = prompts().into_iter().map(|(prompt, adapter, before, _)| {
            let options = EmbedOptions::default().with_prompt(prompt);
            let call = batcher.embed_with([TEXTS[0]], options);
            async move { (call.await, adapter, before) }
        });
        for (set, adapter, before) in pollster::block_on(join_all(calls)) {
            let row = set.unwrap();
            let text = format!("{before}{}", TEXTS[0]);
            near(row.get(0).unwrap(), adapter, &text, which.name());
        }
        assert!(embedder.stats().calls.batches < 7, "{}", which.name());
    }
}

#[test]
fn an_exported_model_has_its_adapters() {
    let folder = tempfile::tempdir().unwrap();
    let options = ExportOptions::default();
    export(
        source(files(&model())),
        folder.path(),
        EmbeddingConfig::default(),
        options,
    )
    .unwrap();
    for which in engines() {
        let builder = Embedder::builder(folder.path());
        let config = which.configure(EmbeddingConfig::default());
        let embedder = builder.config(config).load().unwrap();
        for (prompt, adapter, before, _) in prompts() {
            let what = format!("{}, {prompt:?}", which.name());
            let options = EmbedOptions::default().with_prompt(prompt);
            let set = embedder.embed_with(TEXTS, options).unwrap();
            for (row, text) in set.iter().zip(TEXTS) {
                near(row, adapter, &format!("{before}{text}"), &what);
            }
        }
    }
}

#[test]
fn what_no_tensor_shows_decides_the_fingerprint() {
    let of = |change: &dyn Fn(&mut Value)| {
        let mut model = model();
        change(&mut model.config);
        let loaded = Embedder::load(source(files(&model))).unwrap();
        loaded.fingerprint().clone()
    };
    let plain = of(&|_| {});
    assert_eq!(of(&|config| config["lora_dropout_p"] = json!(0.1)), plain);
    for (key, value) in [
        ("lora_alpha", json!(2)),
        ("rotary_emb_base", json!(10_000.0)),
        (
            "lora_adaptations",
            json!(["retrieval.query", "separation", "retrieval.passage"]),
        ),
    ] {
        let other = of(&|config| config[key] = value.clone());
        assert_ne!(other, plain, "{key}");
    }
}

#[test]
fn adapters_that_are_missing_are_named() {
    let refused = |change: &dyn Fn(&mut Checkpoint)| {
        let mut model = model();
        change(&mut model);
        let error = Embedder::load(source(files(&model))).unwrap_err();
        (error.kind(), error.to_string())
    };
    let (kind, said) = refused(&|model| {
        let name = "encoder.layers.1.mlp.fc2.parametrizations.weight.0.lora_B";
        model.tensors.remove(name).unwrap();
    });
    assert!(
        kind == "Weight" && said.contains("fc2.parametrizations.weight.0.lora_B"),
        "{said}"
    );
    // The config names fewer than the checkpoint holds, and none.
    let (kind, said) = refused(&|model| model.config["lora_adaptations"] = json!(["separation"]));
    assert!(kind == "Weight" && said.contains("lora_A"), "{said}");
    let (_, said) = refused(&|model| model.config["lora_adaptations"] = json!([]));
    assert!(said.contains("lora_adaptations"), "{said}");
    for wrong in [json!("separation"), json!([1, 2, 3])] {
        let (_, said) = refused(&|model| model.config["lora_adaptations"] = wrong.clone());
        assert!(said.contains("lora_adaptations"), "{said}");
    }
    // Another model's own step is still refused.
    let mut other = files(&tiny::of_words(isovec_test_models::gte::gte()));
    other.insert(
        "tokenizer.json".into(),
        files(&model())["tokenizer.json"].clone(),
    );
    let error = Embedder::load(source(other)).unwrap_err();
    assert!(
        error.to_string().contains("custom_st.Transformer"),
        "{error}"
    );
}
