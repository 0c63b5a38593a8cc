//! Texts become weights of words: on every engine, on every way in, the numbers of an independent implementation at f64.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use isovec::{
    Cancel, EmbeddingConfig, Error, ModelSource, Prompt, SparseEmbedder, SparseEmbeddings,
    SparseOptions, SparseRow,
};
use isovec_engine::budget::Budget;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::weights::WeightsIdentity;
use isovec_model::convert::{Wanted, convert_within};
use isovec_model::sparse::TOKEN_LOGITS;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::sparse::{self, MAX, Mistake, WORDS, Weighing};
use isovec_test_models::tiny;
use isovec_test_support::{Which, data, engines};

/// The largest difference of two weights, relative to the weight, or to a quarter for smaller ones.
const NEAR: f64 = 1e-5;

/// Texts of several lengths, so that a batch of them is padded.
const TEXTS: [&str; 6] = [
    "the dog is an animal",
    "a",
    "money in the bank",
    "Search vectors in the browser, the same as on the server: the mountain and the river and the sea",
    "",
    "the king and the queen",
];

fn source(model: &Checkpoint, weighing: Weighing) -> ModelSource {
    of_files(sparse::files(model, weighing))
}

fn of_files(files: BTreeMap<String, Vec<u8>>) -> ModelSource {
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    ModelSource::bytes("a sparse model", files)
}

/// The first class: a BERT with tied weights.
fn bert() -> Checkpoint {
    sparse::all().swap_remove(0).1
}

fn load(source: ModelSource, config: EmbeddingConfig) -> isovec::Result<SparseEmbedder> {
    smol::block_on(SparseEmbedder::builder(source).config(config).load())
}

fn expected(
    model: &Checkpoint,
    text: &str,
    weighing: Weighing,
    mistake: Option<Mistake>,
) -> Vec<f64> {
    let ids = tiny::tokenise(&tiny::vocabulary(), text);
    let types = vec![0; ids.len()];
    sparse::weights_with(model, &ids, &types, weighing, mistake)
}

/// The largest difference of a vector's weights, in units of what is allowed.
fn far(row: SparseRow<'_>, wanted: &[f64]) -> f64 {
    assert!(row.indices.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(row.values.iter().all(|&value| value > 0.0));
    let mut weights = vec![0.0; wanted.len()];
    for (index, value) in row.iter() {
        weights[index as usize] = f64::from(value);
    }
    let differences = weights.iter().zip(wanted);
    differences
        .map(|(weight, wanted)| (weight - wanted).abs() / (NEAR * wanted.max(0.25)))
        .fold(0.0, f64::max)
}

#[track_caller]
fn near(row: SparseRow<'_>, wanted: &[f64]) {
    let far = far(row, wanted);
    assert!(far <= 1.0, "{far} times as far as it may be");
}

#[test]
fn every_class_has_its_own_layers_on_every_engine() {
    for (class, model) in sparse::all() {
        let wanted = TEXTS.map(|text| expected(&model, text, MAX, None));
        for engine in engines() {
            let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
            let loaded = load(source(&model, MAX), config).unwrap();
            assert_eq!(loaded.provider().engine, engine.name(), "{class}");
            assert_eq!(loaded.vocabulary_size(), WORDS);
            let set = smol::block_on(loaded.embed(TEXTS)).unwrap();
            assert_eq!(set.len(), TEXTS.len());
            for (row, wanted) in set.iter().zip(&wanted) {
                near(row, wanted);
                // Some words have no weight, and words of every block have one.
                assert!(row.len() < WORDS && row.indices.iter().any(|&index| index >= 2048));
            }
        }
    }
}

#[test]
fn words_are_weighed_as_the_files_say() {
    for (sum, twice) in [(true, false), (false, true), (true, true)] {
        let weighing = Weighing { sum, twice };
        for (class, model) in sparse::all().into_iter().take(3) {
            let wanted = TEXTS.map(|text| expected(&model, text, weighing, None));
            for engine in engines() {
                let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
                let loaded = load(source(&model, weighing), config).unwrap();
                assert_eq!(loaded.provider().engine, engine.name(), "{class}");
                let set = smol::block_on(loaded.embed(TEXTS)).unwrap();
                for (row, wanted) in set.iter().zip(&wanted) {
                    near(row, wanted);
                }
            }
        }
    }
}

#[test]
fn classic_mistakes_are_farther_than_is_allowed() {
    let model = bert();
    let sum = Weighing {
        sum: true,
        twice: false,
    };
    for (weighing, mistake) in [
        (sum, Mistake::LogarithmAfterSum),
        (sum, Mistake::PaddingPooled),
        (MAX, Mistake::PaddingPooled),
        (MAX, Mistake::NoBias),
        (MAX, Mistake::SpecialLeftOut),
    ] {
        let loaded = load(source(&model, weighing), EmbeddingConfig::default()).unwrap();
        let set = smol::block_on(loaded.embed(TEXTS)).unwrap();
        let wrong = expected(&model, TEXTS[0], weighing, Some(mistake));
        let far = far(set.get(0).unwrap(), &wrong);
        assert!(far > 100.0, "{mistake:?} is only {far}");
    }
}

#[test]
fn every_way_in_gives_the_same() {
    let model = bert();
    let wanted = TEXTS.map(|text| expected(&model, text, MAX, None));
    for engine in engines() {
        let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
        let mut cached = config.clone();
        cached.embedding_cache.memory = Some(1 << 20);
        for config in [config, cached] {
            let keeps = config.embedding_cache.memory.is_some();
            let loaded = load(source(&model, MAX), config).unwrap();
            smol::block_on(async {
                let options = SparseOptions::default();
                let set = loaded.embed(TEXTS).await.unwrap();
                let streamed = loaded.embed_stream(stream::iter(TEXTS), options.clone());
                let streamed: Vec<_> = streamed.collect().await;
                let batcher = loaded.batcher();
                let calls = TEXTS.map(|text| batcher.embed([text, TEXTS[0]]));
                let calls = join_all(calls).await;
                for (at, wanted) in wanted.iter().enumerate() {
                    near(set.get(at).unwrap(), wanted);
                    let one = streamed[at].as_ref().unwrap();
                    near(one.vector.as_row(), wanted);
                    assert_eq!(one.tokens, set.token_counts()[at]);
                    let call = calls[at].as_ref().unwrap();
                    near(call.get(0).unwrap(), wanted);
                    near(
                        call.get(1).unwrap(),
                        &self::expected(&model, TEXTS[0], MAX, None),
                    );
                }
                let hits = loaded.stats().embedding_cache.map(|cache| cache.hits);
                assert_eq!(hits.is_some_and(|hits| hits >= 12), keeps);
            });
            let waiting = isovec::blocking::SparseEmbedder::from(loaded.clone());
            let set = waiting.embed(TEXTS).unwrap();
            let each = waiting.embed_iter(TEXTS, SparseOptions::default());
            for (at, one) in each.enumerate() {
                near(set.get(at).unwrap(), &wanted[at]);
                near(one.unwrap().vector.as_row(), &wanted[at]);
            }
            assert_eq!(waiting.embed_passages(TEXTS).unwrap().len(), TEXTS.len());
        }
    }
}

#[test]
fn a_call_says_the_prompt_and_how_many_weights_stay() {
    let model = bert();
    let loaded = load(source(&model, MAX), EmbeddingConfig::default()).unwrap();
    smol::block_on(async {
        let query = loaded.embed_query("cat").await.unwrap();
        assert_eq!(query.prompt(), Some("query"));
        near(
            query.get(0).unwrap(),
            &expected(&model, "the query cat", MAX, None),
        );
        let passages = loaded.embed_passages(TEXTS).await.unwrap();
        near(
            passages.get(2).unwrap(),
            &expected(&model, TEXTS[2], MAX, None),
        );

        let few = SparseOptions::default().with_top_k(5);
        let few = loaded.embed_with(TEXTS, few).await.unwrap();
        let all = loaded.embed(TEXTS).await.unwrap();
        for (few, all) in few.iter().zip(all.iter()) {
            assert_eq!(few.len(), 5);
            let least = few.values.iter().copied().fold(f32::MAX, f32::min);
            let larger = all.values.iter().filter(|&&value| value > least).count();
            assert!(larger < 5);
        }
        let none: [&str; 0] = [];
        assert!(loaded.embed(none).await.unwrap().is_empty());
        let refused = loaded.embed_with(TEXTS, SparseOptions::default().with_top_k(0));
        assert_eq!(refused.await.unwrap_err().kind(), "Config");
        let unknown = Prompt::Named("no such prompt".into());
        let refused = loaded.embed_with(TEXTS, SparseOptions::default().with_prompt(unknown));
        assert_eq!(refused.await.unwrap_err().kind(), "Config");
        let cancel = Cancel::new();
        cancel.cancel();
        let options = SparseOptions::default().with_cancel(cancel);
        assert!(
            loaded
                .embed_with(TEXTS, options)
                .await
                .unwrap_err()
                .is_cancelled()
        );
    });
}

#[test]
fn a_search_finds_the_largest_products_and_refuses_other_models() {
    let model = bert();
    let loaded = load(source(&model, MAX), EmbeddingConfig::default()).unwrap();
    let index = smol::block_on(loaded.embed_passages(TEXTS)).unwrap();
    let query = smol::block_on(loaded.embed_query("animal")).unwrap();
    let wanted = expected(&model, "the query animal", MAX, None);
    let mut products: Vec<(usize, f64)> = TEXTS
        .iter()
        .map(|text| expected(&model, text, MAX, None))
        .map(|row| row.iter().zip(&wanted).map(|(a, b)| a * b).sum())
        .enumerate()
        .collect();
    products.sort_by(|a, b| b.1.total_cmp(&a.1));
    let hits = index.search_one(&query, 3).unwrap();
    assert_eq!(hits.len(), 3);
    for (hit, &(place, product)) in hits.iter().zip(&products) {
        assert_eq!(hit.index, place);
        assert!((f64::from(hit.score) - product).abs() <= NEAR * product);
        let (row, query) = (index.get(place).unwrap(), query.get(0).unwrap());
        assert!((row.dot(query) - hit.score).abs() <= 1e-5 * hit.score);
    }
    assert_eq!(index.search(&query, 3).unwrap(), [hits]);
    let two = smol::block_on(loaded.embed(["a", "b"])).unwrap();
    assert_eq!(index.search_one(&two, 1).unwrap_err().kind(), "NotOneQuery");

    let (_, other) = sparse::all().swap_remove(1);
    let twice = Weighing {
        sum: false,
        twice: true,
    };
    for other in [source(&other, MAX), source(&model, twice)] {
        let other = load(other, EmbeddingConfig::default()).unwrap();
        let query = smol::block_on(other.embed_query("animal")).unwrap();
        let refused = index.search_one(&query, 1).unwrap_err();
        assert_eq!(refused.kind(), "IncompatibleIndex");
    }
}

#[test]
fn a_vector_is_read_by_people_and_by_programs() {
    let loaded = load(source(&bert(), MAX), EmbeddingConfig::default()).unwrap();
    let set = smol::block_on(loaded.embed(TEXTS)).unwrap();
    let row = set.get(0).unwrap();
    let words = loaded.words(row, usize::MAX).unwrap();
    assert_eq!(words.len(), row.len());
    assert!(words.is_sorted_by(|a, b| a.weight >= b.weight));
    let vocabulary = tiny::vocabulary();
    for word in &words {
        let token = vocabulary.get(word.index as usize);
        assert_eq!(word.token, token.map_or("", String::as_str));
    }
    assert_eq!(loaded.words(row, 2).unwrap(), words[..2]);
    let beyond = isovec::SparseVector::default();
    assert!(loaded.words(beyond.as_row(), 2).unwrap().is_empty());

    let text = serde_json::to_string(&set).unwrap();
    assert_eq!(
        serde_json::from_str::<SparseEmbeddings>(&text).unwrap(),
        set
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, wrong) in [
        ("vocabulary_size", serde_json::json!(3)),
        ("offsets", serde_json::json!([0])),
        ("values", serde_json::json!([])),
        ("truncated", serde_json::json!([])),
    ] {
        let mut value = value.clone();
        value[key] = wrong;
        assert!(
            serde_json::from_value::<SparseEmbeddings>(value).is_err(),
            "{key}"
        );
    }
    let mut falling = value.clone();
    falling["indices"][1] = falling["indices"][0].clone();
    assert!(serde_json::from_value::<SparseEmbeddings>(falling).is_err());
    let mut nothing = value;
    nothing["values"][0] = serde_json::json!(0.0);
    assert!(serde_json::from_value::<SparseEmbeddings>(nothing).is_err());
}

#[test]
fn a_set_is_saved_and_whatever_is_read_is_checked() {
    let loaded = load(source(&bert(), MAX), EmbeddingConfig::default()).unwrap();
    let set = smol::block_on(loaded.embed_queries(TEXTS)).unwrap();
    let none: [&str; 0] = [];
    let empty = smol::block_on(loaded.embed(none)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.safetensors");
    for set in [&set, &empty, &set.top_k(2)] {
        set.save(&path).unwrap();
        assert_eq!(&SparseEmbeddings::load(&path).unwrap(), set);
        let bytes = set.to_bytes().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert_eq!(&SparseEmbeddings::from_bytes(&bytes).unwrap(), set);
        let mut written = Vec::new();
        set.write_to(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
    let few = set.top_k(2);
    let bytes = few.to_bytes().unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let shape = |name: &str| file.tensor(name).unwrap().shape().to_vec();
    assert_eq!(shape("values"), [2 * TEXTS.len()]);
    assert_eq!(shape("word_counts"), [TEXTS.len()]);
    for length in 0..bytes.len() {
        let cut = SparseEmbeddings::from_bytes(&bytes[..length]);
        assert_eq!(cut.unwrap_err().kind(), "InvalidEmbeddings", "{length}");
    }
    // A flipped bit is refused or changes something, and never panics.
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        if let Ok(read) = SparseEmbeddings::from_bytes(&flipped) {
            assert_eq!(read.offsets().len(), read.len() + 1);
            assert!(
                read.iter()
                    .all(|row| row.indices.is_sorted_by(|a, b| a < b))
            );
            assert!(read.values().iter().all(|&value| value > 0.0));
        }
    }
    for refused in [
        isovec::Embeddings::from_bytes(&bytes).map(drop),
        isovec::CompactEmbeddings::from_bytes(&bytes).map(drop),
        isovec::MultiVectorEmbeddings::from_bytes(&bytes).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("SparseEmbeddings"), "{error}");
    }
    let fingerprint = set.fingerprint().clone();
    let dense = isovec::Embeddings::new(2, vec![0.6, 0.8], fingerprint).unwrap();
    for (other, word) in [
        (dense.to_bytes().unwrap(), "as Embeddings"),
        (
            dense
                .compact(isovec::CompactForm::Int8)
                .unwrap()
                .to_bytes()
                .unwrap(),
            "CompactEmbeddings",
        ),
    ] {
        let error = SparseEmbeddings::from_bytes(&other).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_stream_reports_its_progress_and_passes_errors_on() {
    let loaded = load(source(&bert(), MAX), EmbeddingConfig::default()).unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&seen);
    let texts = (0..20).map(|at| match at {
        12 => Err(Error::Config(vec!["the source ended".into()])),
        at => Ok(TEXTS[at % TEXTS.len()]),
    });
    let rows = loaded.try_embed_stream(
        stream::iter(texts),
        SparseOptions::default(),
        move |progress: isovec::stream::StreamProgress| {
            told.store(progress.texts, Ordering::Relaxed);
        },
    );
    let rows: Vec<isovec::Result<_>> = smol::block_on(rows.collect());
    assert_eq!(rows.len(), 13);
    assert!(rows[..12].iter().all(Result::is_ok));
    assert!(
        rows[12]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("the source ended")
    );
    assert_eq!(seen.load(Ordering::Relaxed), 12);
}

#[test]
fn what_gives_no_weights_says_why() {
    let refused = |source: ModelSource, words: &[&str]| {
        let error = load(source, EmbeddingConfig::default()).unwrap_err();
        for word in words {
            assert!(error.to_string().contains(word), "{error}");
        }
        error.kind()
    };
    for (class, model) in sparse::all() {
        let named = model
            .clone()
            .with("architectures", serde_json::json!(["SomethingElse"]));
        let kind = refused(source(&named, MAX), &["[SomethingElse]", class]);
        assert_eq!(kind, "UnsupportedModel");
        // A layer that the checkpoint lacks.
        let layers = model.tensors.keys().filter(|name| {
            ["cls.", "vocab_", "lm_head.", "head.", "decoder."]
                .iter()
                .any(|start| name.starts_with(start))
        });
        for layer in layers {
            let mut model = model.clone();
            model.tensors.remove(layer);
            let name = match layer.as_str() {
                "cls.predictions.decoder.bias" => "cls.predictions.bias",
                layer => layer,
            };
            assert_eq!(refused(source(&model, MAX), &[name]), "Weight");
        }
    }
    let files = |name: &str, text: &str| {
        let mut files = sparse::files(&bert(), MAX);
        files.insert(name.into(), text.into());
        of_files(files)
    };
    let pooling = "1_SpladePooling/config.json";
    for (source, word) in [
        (
            files(pooling, r#"{"pooling_strategy": "mean"}"#),
            "\"mean\"",
        ),
        (
            files(pooling, r#"{"activation_function": "tanh"}"#),
            "\"tanh\"",
        ),
        (
            files(
                "modules.json",
                r#"[{"path": "", "type": "sentence_transformers.sparse_encoder.models.MLMTransformer"},
                    {"path": "1_SpladePooling", "type": "sentence_transformers.sparse_encoder.models.SpladePooling"},
                    {"path": "", "type": "sentence_transformers.models.Normalize"}]"#,
            ),
            "Normalize",
        ),
        (ModelSource::from(data("tiny-bert")), "BertForMaskedLM"),
    ] {
        // What the weights are for is known before their names are looked at, or after; it is refused in any case.
        assert_eq!(refused(source, &[word]), "UnsupportedModel", "{word}");
    }
    let mut none = sparse::files(&bert(), MAX);
    none.remove("modules.json");
    let loaded = load(of_files(none), EmbeddingConfig::default()).unwrap();
    let set = smol::block_on(loaded.embed([TEXTS[0]])).unwrap();
    near(set.get(0).unwrap(), &expected(&bert(), TEXTS[0], MAX, None));

    let vectors = EmbeddingConfig::default().with_dimension(3);
    assert_eq!(
        load(source(&bert(), MAX), vectors).unwrap_err().kind(),
        "Config"
    );
    let dense = isovec::Embedder::load(source(&bert(), MAX));
    let error = smol::block_on(dense).unwrap_err();
    assert!(error.to_string().contains("SparseEmbedder"), "{error}");
}

#[test]
fn what_decides_a_weight_is_in_the_fingerprint() {
    let fingerprint = |model: &Checkpoint, weighing| {
        let loaded = load(source(model, weighing), EmbeddingConfig::default()).unwrap();
        loaded.fingerprint().clone()
    };
    let mut all = sparse::all().into_iter();
    let modern = all.find(|(class, _)| *class == "ModernBertForMaskedLM");
    let (_, modern) = modern.unwrap();
    let first = fingerprint(&modern, MAX);
    assert_eq!(first, fingerprint(&modern.clone(), MAX));
    let relu = modern.clone().with("classifier_activation", "relu");
    assert_ne!(first, fingerprint(&relu, MAX));
    let sum = Weighing {
        sum: true,
        twice: false,
    };
    assert_ne!(first, fingerprint(&modern, sum));
}

#[test]
fn the_files_are_what_the_generator_writes() {
    let folder = data("tiny-splade");
    for (name, bytes) in sparse::tiny_files() {
        assert!(
            std::fs::read(folder.join(&name)).unwrap() == bytes,
            "{name} differs"
        );
    }
    let loaded = load(folder.into(), EmbeddingConfig::default()).unwrap();
    let set = smol::block_on(loaded.embed(sparse::TEXTS)).unwrap();
    for (row, text) in set.iter().zip(sparse::TEXTS) {
        near(row, &expected(&sparse::tiny(), text, MAX, None));
    }
}

#[test]
fn a_cache_on_disk_says_that_it_is_not_used() {
    let mut config = Which::Portable.configure(EmbeddingConfig::default());
    config.embedding_cache.disk = Some(1 << 20);
    let loaded = load(source(&bert(), MAX), config).unwrap();
    let effective = loaded.effective_config().to_string();
    assert!(
        effective.contains("sparse vectors and vectors of tokens are kept in memory alone"),
        "{effective}"
    );
}

/// A masked language model as an ONNX file whose output has this name, with what its graph does to padding or without.
fn onnx_file(output: &str, guards_padding: bool) -> ModelSource {
    let model = bert();
    let tensors = model.tensor_set(Stored::F32);
    let wanted = Wanted {
        vocabulary: true,
        ..Wanted::default()
    };
    let mut budget = Budget::for_files(tensors.byte_len().max(1 << 20));
    let config = model.config_json();
    let converted = convert_within(&config, &[], tensors, wanted, &mut budget).unwrap();
    let mut bundle = ModelBundle {
        graph: converted.graph,
        weights: converted.weights,
        identity: WeightsIdentity("0".repeat(64)),
        files: BTreeMap::new(),
        model_file: "model.safetensors".into(),
        origin: "a model of the tests".into(),
    };
    let graph = bundle.graph.graph.as_mut().unwrap();
    graph.output.retain(|value| value.name == TOKEN_LOGITS);
    graph.output[0].name = output.into();
    for node in &mut graph.node {
        for name in &mut node.output {
            if name == TOKEN_LOGITS {
                *name = output.into();
            }
        }
        if node.op_type == "Where" && !guards_padding {
            node.op_type = "Identity".into();
            node.input = vec![node.input[1].clone()];
        }
    }
    let file = smol::block_on(isovec_model::onnx::write_model(&bundle)).unwrap();
    let mut files = sparse::files(&model, MAX);
    files.remove("model.safetensors");
    files.insert("model.onnx".into(), file);
    of_files(files)
}

#[test]
fn padding_is_left_out_of_an_onnx_file_too_and_is_seen_where_it_is_not() {
    let wanted = TEXTS.map(|text| expected(&bert(), text, MAX, None));
    let farthest = |source: ModelSource, engine: Which| {
        let mut config = engine.configure(EmbeddingConfig::default().with_max_batch_size(6));
        // All in one batch, whatever that costs.
        config.runtime.io.batch_optimization = Some(false);
        let loaded = load(source, config).unwrap();
        let set = smol::block_on(loaded.embed(TEXTS)).unwrap();
        let each = set
            .iter()
            .zip(&wanted)
            .map(|(row, wanted)| far(row, wanted));
        each.fold(0.0, f64::max)
    };
    for engine in engines() {
        for guards in [true, false] {
            let far = farthest(onnx_file("logits", guards), engine);
            assert!(far <= 1.0, "{far} on {}", engine.name());
        }
        assert!(farthest(onnx_file(TOKEN_LOGITS, true), engine) <= 1.0);
        // Only ONNX Runtime computes padding.
        if engine == Which::OnnxRuntime {
            let far = farthest(onnx_file(TOKEN_LOGITS, false), engine);
            assert!(far > 100.0, "only {far}");
        }
    }
}
