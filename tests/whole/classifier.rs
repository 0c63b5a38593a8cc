//! Texts become labels: on every engine, on every way in, the scores of an independent implementation at f64.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use isovec::{
    Classifications, Classifier, ClassifyOptions, Embedder, EmbeddingConfig, Error, ModelSource,
    Scores,
};
use isovec_test_support::{data, engines, tiny_model};
use serde::Deserialize;

/// The largest difference of two logits.
const NEAR: f64 = 1e-5;
/// The most tokens that the model reads.
const POSITIONS: usize = 64;

#[derive(Deserialize)]
struct Reference {
    labels: Vec<String>,
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    logits: Vec<f64>,
}

fn reference() -> Reference {
    let text = std::fs::read_to_string(data("tiny-classifier").join("reference.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn load(source: impl Into<ModelSource>, config: EmbeddingConfig) -> isovec::Result<Classifier> {
    smol::block_on(Classifier::builder(source).config(config).load())
}

/// The model's files with another `config.json`.
fn with_config(
    change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
) -> ModelSource {
    let folder = data("tiny-classifier");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let mut config = serde_json::from_slice(&read("config.json")).unwrap();
    change(&mut config);
    let files = [
        ("config.json", serde_json::to_vec(&config).unwrap()),
        ("model.safetensors", read("model.safetensors")),
        ("tokenizer.json", read("tokenizer.json")),
    ];
    ModelSource::bytes(
        "a classifier",
        files.map(|(name, bytes)| (name.to_owned(), bytes.into())),
    )
}

#[test]
fn who_waits_gets_the_same() {
    use isovec::blocking::Classifier as Waiting;
    let classifier = load(data("tiny-classifier"), EmbeddingConfig::default()).unwrap();
    let waiting = Waiting::load(data("tiny-classifier")).unwrap();
    let texts = ["the dog is an animal", "money in the bank", ""];
    let said = smol::block_on(classifier.classify(texts)).unwrap();
    assert_eq!(waiting.classify(&texts).unwrap(), said);
    assert_eq!(
        waiting.classify_one(texts[1]).unwrap(),
        said.ranked(1).unwrap()
    );
    let each = waiting.classify_iter(texts, ClassifyOptions::default());
    for (at, one) in each.enumerate() {
        assert_eq!(one.unwrap().labels, said.ranked(at).unwrap());
    }
    assert_eq!(waiting.labels(), classifier.labels());
    let shared = Waiting::from(classifier.clone());
    shared.classify(&texts).unwrap();
    assert_eq!(classifier.stats().calls.texts, 6);
}

fn near(said: &Classifications, wanted: &[Text]) {
    assert_eq!(said.len(), wanted.len());
    for (at, text) in wanted.iter().enumerate() {
        let scores = said.scores(at).unwrap();
        assert_eq!(scores.len(), text.logits.len());
        for (score, wanted) in scores.iter().zip(&text.logits) {
            let far = (f64::from(*score) - wanted).abs();
            assert!(
                far <= NEAR,
                "{:?}: {scores:?} and {:?}",
                text.text,
                text.logits
            );
        }
        assert_eq!(said.token_counts()[at] as usize, text.ids.len());
    }
}

/// Holds two results to each other.
fn same(said: &Classifications, wanted: &Classifications) {
    assert_eq!(said.len(), wanted.len());
    for at in 0..said.len() {
        let (a, b) = (said.scores(at).unwrap(), wanted.scores(at).unwrap());
        let far = a.iter().zip(b).map(|(a, b)| f64::from(a - b).abs());
        assert!(far.fold(0.0, f64::max) <= NEAR, "{a:?} and {b:?}");
    }
}

#[test]
fn logits_are_the_references_on_every_engine_and_every_way_in() {
    let Reference { labels, texts } = reference();
    let all: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
    let logits = ClassifyOptions::default().with_scores(Scores::Logits);
    for engine in engines() {
        let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(5));
        let classifier = load(data("tiny-classifier"), config).unwrap();
        assert_eq!(classifier.provider().engine, engine.name());
        assert_eq!(classifier.labels(), labels);
        smol::block_on(async {
            let said = classifier
                .classify_with(&all, logits.clone())
                .await
                .unwrap();
            near(&said, &texts);
            let streamed = classifier.classify_stream(stream::iter(all.clone()), logits.clone());
            let streamed: Vec<_> = streamed.collect().await;
            for (at, one) in streamed.into_iter().enumerate() {
                let one = one.unwrap();
                let mut of_label = vec![0.0; labels.len()];
                for label in &one.labels {
                    assert_eq!(label.label, labels[label.index]);
                    of_label[label.index] = f64::from(label.score);
                }
                for (score, wanted) in of_label.iter().zip(&texts[at].logits) {
                    assert!((score - wanted).abs() <= NEAR);
                }
                assert!(one.labels.is_sorted_by(|a, b| a.score >= b.score));
            }
            let batcher = classifier.batcher();
            let calls = all
                .iter()
                .map(|text| batcher.classify_with([text], logits.clone()));
            for (at, said) in join_all(calls).await.into_iter().enumerate() {
                near(&said.unwrap(), &texts[at..=at]);
            }
        });
    }
}

/// Pairs of the reference's texts, each with its logits by the independent implementation.
fn pairs() -> Vec<((String, String), Text)> {
    let texts = reference().texts;
    let model = isovec_test_models::classifier::model();
    let vocabulary = isovec_test_models::tiny::vocabulary();
    let of = |text: &str| isovec_test_models::tiny::tokenise(&vocabulary, text);
    let others = texts.iter().cycle().skip(3);
    let pair = |(a, b): (&Text, &Text)| {
        let (first, second) = (of(&a.text), of(&b.text));
        // The second text's own [CLS] does not stand between them.
        let ids = [&first[..], &second[1..]].concat();
        let types: Vec<i64> = (0..ids.len())
            .map(|at| i64::from(at >= first.len()))
            .collect();
        let logits = isovec_test_models::heads::logits(&model, &ids, &types);
        let wanted = Text {
            text: format!("{} | {}", a.text, b.text),
            ids: ids.iter().map(|&id| id as u32).collect(),
            logits,
        };
        ((a.text.clone(), b.text.clone()), wanted)
    };
    let fits = |(a, b): &(&Text, &Text)| a.ids.len() + b.ids.len() <= POSITIONS;
    let pairs: Vec<_> = texts.iter().zip(others).filter(fits).map(pair).collect();
    assert!(pairs.len() > 5, "{} pairs", pairs.len());
    pairs
}

#[test]
fn pairs_are_read_together_on_every_engine_and_every_way_in() {
    use isovec::blocking::Classifier as Waiting;
    let (asked, wanted): (Vec<(String, String)>, Vec<Text>) = pairs().into_iter().unzip();
    let logits = ClassifyOptions::default().with_scores(Scores::Logits);
    for engine in engines() {
        let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(5));
        let classifier = load(data("tiny-classifier"), config).unwrap();
        smol::block_on(async {
            let said = classifier.classify_pairs_with(asked.clone(), logits.clone());
            near(&said.await.unwrap(), &wanted);
            let batcher = classifier.batcher();
            let calls = asked
                .iter()
                .map(|(a, b)| batcher.classify_pairs_with([(a, b)], logits.clone()));
            for (at, said) in join_all(calls).await.into_iter().enumerate() {
                near(&said.unwrap(), &wanted[at..=at]);
            }
            // A probability for each label, as texts get by default.
            let said = batcher.classify_pairs([&asked[0]].map(|(a, b)| (a, b)));
            let shared = said.await.unwrap().scores(0).unwrap().iter().sum::<f32>();
            assert!((shared - 1.0).abs() < 1e-6);
        });
        let waiting = Waiting::from(classifier);
        let said = waiting.classify_pairs_with(asked.clone(), &logits).unwrap();
        near(&said, &wanted);
        assert_eq!(waiting.stats().calls.texts as usize, 3 * asked.len() + 1);
    }
}

#[test]
fn a_kept_row_is_that_of_the_pair_and_of_no_other_texts() {
    let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let classifier = load(data("tiny-classifier"), config).unwrap();
    let plain = load(data("tiny-classifier"), EmbeddingConfig::default()).unwrap();
    // Joined by what a tokenizer skips, their texts would be the same.
    let pairs = [
        ("a dog", "in the bank"),
        ("a dog in", "the bank"),
        ("a dog in the bank", ""),
    ];
    smol::block_on(async {
        let alone = plain.classify_pairs(pairs).await.unwrap();
        for hits in [0, 3] {
            let said = classifier.classify_pairs(pairs).await.unwrap();
            same(&said, &alone);
            assert_eq!(classifier.stats().embedding_cache.unwrap().hits, hits);
        }
        classifier.classify([pairs[2].0]).await.unwrap();
        let kept = classifier.stats().embedding_cache.unwrap();
        assert_eq!((kept.hits, kept.misses), (3, 4));
    });
}

#[test]
fn pairs_that_are_too_long_lose_the_end_of_the_longer_text() {
    let config = EmbeddingConfig::default().with_max_length(9);
    let classifier = load(data("tiny-classifier"), config).unwrap();
    smol::block_on(async {
        let long = "the dog is an animal ".repeat(9);
        let said = classifier.classify_pairs([(&*long, "a dog"), ("a dog", &*long)]);
        let said = said.await.unwrap();
        assert_eq!(said.token_counts(), [9, 9]);
        assert_eq!(said.truncated(), [true, true]);
        // 9 tokens: three special ones, two of "a dog", and four of the other.
        let cut =
            classifier.classify_pairs([("the dog is an", "a dog"), ("a dog", "the dog is an")]);
        let cut = cut.await.unwrap();
        assert_eq!(cut.truncated(), [false, false]);
        same(&said, &cut);
        let none: [(&str, &str); 0] = [];
        assert!(classifier.classify_pairs(none).await.unwrap().is_empty());
        let empty = classifier.classify_pairs([("", "")]).await.unwrap();
        assert_eq!(empty.token_counts(), [3]);
    });
}

#[test]
fn scores_are_what_the_config_or_the_call_asks_for() {
    let Reference { texts, .. } = reference();
    let text = &texts[0];
    let powers: Vec<f64> = text.logits.iter().map(|logit| logit.exp()).collect();
    let softmax: Vec<f64> = powers
        .iter()
        .map(|power| power / powers.iter().sum::<f64>())
        .collect();
    let sigmoid: Vec<f64> = text
        .logits
        .iter()
        .map(|logit| 1.0 / (1.0 + (-logit).exp()))
        .collect();
    let with_problem = |problem: &str| {
        let problem = problem.to_owned();
        with_config(|config| {
            config.insert("problem_type".into(), problem.into());
        })
    };
    for (source, wanted) in [
        (with_config(|_| {}), &softmax),
        (with_problem("single_label_classification"), &softmax),
        (with_problem("multi_label_classification"), &sigmoid),
        (with_problem("regression"), &text.logits),
    ] {
        let classifier = load(source, EmbeddingConfig::default()).unwrap();
        let said = smol::block_on(classifier.classify([&text.text])).unwrap();
        for (score, wanted) in said.scores(0).unwrap().iter().zip(wanted) {
            assert!((f64::from(*score) - wanted).abs() <= NEAR, "{said:?}");
        }
        let one = smol::block_on(classifier.classify_one(&text.text)).unwrap();
        assert_eq!(one, said.ranked(0).unwrap());
        let asked = ClassifyOptions::default().with_scores(Scores::Sigmoid);
        let said = smol::block_on(classifier.classify_with([&text.text], asked)).unwrap();
        for (score, wanted) in said.scores(0).unwrap().iter().zip(&sigmoid) {
            assert!((f64::from(*score) - wanted).abs() <= NEAR, "{said:?}");
        }
    }
}

#[test]
fn kept_rows_are_scored_as_each_call_asks() {
    let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let classifier = load(data("tiny-classifier"), config).unwrap();
    let texts = ["the dog is an animal", "money in the bank"];
    smol::block_on(async {
        let first = classifier.classify(texts).await.unwrap();
        let logits = ClassifyOptions::default().with_scores(Scores::Logits);
        let raw = classifier.classify_with(texts, logits).await.unwrap();
        assert_ne!(first, raw);
        assert_eq!(classifier.classify(texts).await.unwrap(), first);
        let kept = classifier.stats().embedding_cache.unwrap();
        assert_eq!((kept.hits, kept.misses), (4, 2));
    });
}

#[test]
fn an_empty_list_gives_an_empty_set_and_a_call_is_cancelled() {
    let classifier = load(data("tiny-classifier"), EmbeddingConfig::default()).unwrap();
    let none: [&str; 0] = [];
    assert!(
        smol::block_on(classifier.classify(none))
            .unwrap()
            .is_empty()
    );
    let cancel = isovec::Cancel::new();
    cancel.cancel();
    let options = ClassifyOptions::default().with_cancel(cancel);
    let cancelled = smol::block_on(classifier.classify_with(["a"], options));
    assert!(cancelled.unwrap_err().is_cancelled());
    let stats = classifier.stats();
    assert_eq!((stats.calls.failed, stats.calls.cancelled), (0, 1));
}

#[test]
fn a_model_is_loaded_for_what_it_is() {
    let unsupported = |error: Error| {
        assert_eq!(error.kind(), "UnsupportedModel", "{error}");
        error.to_string()
    };
    // Hidden states can be pooled, so a checkpoint that classifies gives vectors as well.
    let config = EmbeddingConfig::default().with_pooling(isovec::config::Pooling::Mean);
    let vectors = Embedder::builder(data("tiny-classifier")).config(config);
    let vectors = smol::block_on(vectors.load()).unwrap();
    let tiny = smol::block_on(Embedder::load(tiny_model())).unwrap();
    let of = |embedder: &Embedder| smol::block_on(embedder.embed_one("a cat")).unwrap();
    assert_eq!(of(&vectors), of(&tiny));

    let said = unsupported(load(tiny_model(), EmbeddingConfig::default()).unwrap_err());
    assert!(said.contains("logits"), "{said}");
    for config in [
        EmbeddingConfig::default().with_dimension(2),
        EmbeddingConfig::default().with_normalize(true),
        EmbeddingConfig::default().with_pooling(isovec::config::Pooling::Cls),
    ] {
        let error = load(data("tiny-classifier"), config).unwrap_err();
        assert_eq!(error.kind(), "Config");
        assert!(error.to_string().contains("classifier"), "{error}");
    }
    let two = with_config(|config| {
        config.insert(
            "id2label".into(),
            serde_json::json!({"0": "no", "1": "yes"}),
        );
    });
    let error = load(two, EmbeddingConfig::default()).unwrap_err();
    assert_eq!(error.kind(), "InvalidModel");
    assert!(error.to_string().contains("id2label"), "{error}");
}

#[test]
fn the_files_are_what_the_generator_writes() {
    let folder = data("tiny-classifier");
    let written: BTreeMap<String, Vec<u8>> = isovec_test_models::classifier::files();
    for (name, bytes) in &written {
        assert!(
            std::fs::read(folder.join(name)).unwrap() == *bytes,
            "{name} differs"
        );
    }
    let there = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
    assert_eq!(there(&folder), written.len());
}
