//! Documents are ranked by a model that reads each with the query: on every engine, on every way in, the numbers of an
//! independent implementation at f64. And every class with a head of labels gives its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use isovec::{
    Cancel, Classifier, ClassifyOptions, Embedder, EmbeddingConfig, Error, ModelSource, Prompt,
    RankOptions, Reranker, ScoreOptions, Scores,
};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::reranker::{self, DOCUMENTS, QUERY};
use isovec_test_models::{heads, tiny};
use isovec_test_support::{data, engines};
use serde_json::{Value, json};

/// The largest difference of two logits, relative to the larger of 1 and their size.
const NEAR: f64 = 1e-5;

/// A model as transformers publishes it, with the tiny tokenizer.
fn source(model: &Checkpoint) -> ModelSource {
    let published = heads::published(model.clone());
    let tokenizer = tiny::tokenizer(&tiny::vocabulary());
    let files = [
        (
            "config.json",
            serde_json::to_vec(&published.config).unwrap(),
        ),
        ("model.safetensors", published.file(Stored::F32)),
        ("tokenizer.json", serde_json::to_vec(&tokenizer).unwrap()),
    ];
    ModelSource::bytes(
        "a reranker",
        files.map(|(name, bytes)| (name.to_owned(), bytes.into())),
    )
}

/// The first class: a BERT with one label.
fn bert() -> Checkpoint {
    heads::all(1).swap_remove(0).1
}

fn load(source: ModelSource, config: EmbeddingConfig) -> isovec::Result<Reranker> {
    smol::block_on(Reranker::builder(source).config(config).load())
}

/// The logits of the pairs of the query with each document, at f64.
fn expected(model: &Checkpoint) -> Vec<Vec<f64>> {
    let vocabulary = tiny::vocabulary();
    let of = |document: &&str| {
        let (ids, kinds) = reranker::pair(&vocabulary, document);
        heads::logits(model, &ids, &kinds)
    };
    DOCUMENTS.iter().map(of).collect()
}

#[track_caller]
fn near(score: f32, wanted: f64) {
    let far = (f64::from(score) - wanted).abs();
    assert!(far <= NEAR * wanted.abs().max(1.0), "{score} and {wanted}");
}

/// The places of numbers, the highest first, equals in order.
fn order(wanted: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[b].total_cmp(&wanted[a]));
    order
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn every_class_has_its_own_head_on_every_engine() {
    let logits = ClassifyOptions::default().with_scores(Scores::Logits);
    for (class, model) in heads::all(3) {
        let wanted = expected(&model);
        for engine in engines() {
            let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
            let classifier = Classifier::builder(source(&model)).config(config).load();
            let classifier = smol::block_on(classifier).unwrap();
            assert_eq!(classifier.provider().engine, engine.name(), "{class}");
            let pairs = DOCUMENTS.map(|document| (QUERY, document));
            let said = classifier.classify_pairs_with(pairs, logits.clone());
            let said = smol::block_on(said).unwrap();
            for (at, wanted) in wanted.iter().enumerate() {
                for (&score, &wanted) in said.scores(at).unwrap().iter().zip(wanted) {
                    near(score, wanted);
                }
            }
        }
    }
}

#[test]
fn documents_come_in_the_order_of_their_scores_on_every_way_in() {
    for (class, model) in heads::all(1) {
        let wanted: Vec<f64> = expected(&model).concat();
        let order = order(&wanted);
        let pairs = DOCUMENTS.map(|document| (QUERY, document));
        for engine in engines() {
            let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
            let loaded = load(source(&model), config).unwrap();
            assert_eq!(loaded.provider().engine, engine.name(), "{class}");
            smol::block_on(async {
                let ranked = loaded.rank(QUERY, DOCUMENTS).await.unwrap();
                let places: Vec<usize> = ranked.iter().map(|found| found.index).collect();
                assert_eq!(places, order, "{class}");
                for found in &ranked {
                    // Nobody says what scores are, so they are probabilities.
                    near(found.score, sigmoid(wanted[found.index]));
                }

                let raw = ScoreOptions::default().with_scores(Scores::Logits);
                let scored = loaded.score_with(pairs, raw.clone()).await.unwrap();
                assert_eq!(scored.scores.len(), DOCUMENTS.len());
                let streamed = loaded.score_stream(stream::iter(pairs), raw.clone());
                let streamed: Vec<_> = streamed.collect().await;
                for (at, &wanted) in wanted.iter().enumerate() {
                    near(scored.scores[at], wanted);
                    let one = streamed[at].as_ref().unwrap();
                    near(one.score, wanted);
                    assert_eq!(one.tokens, scored.token_counts[at]);
                }

                let batcher = loaded.batcher();
                let options = RankOptions::default()
                    .with_scores(Scores::Logits)
                    .with_top_n(2);
                let calls = DOCUMENTS.map(|other| {
                    let documents = [DOCUMENTS[0], other, DOCUMENTS[1]];
                    batcher.rank_with(QUERY, documents, options.clone())
                });
                for (at, ranked) in join_all(calls).await.into_iter().enumerate() {
                    let wanted = [wanted[0], wanted[at], wanted[1]];
                    let places = self::order(&wanted);
                    let ranked = ranked.unwrap();
                    assert_eq!(ranked.len(), 2);
                    for (found, place) in ranked.iter().zip(places) {
                        assert_eq!(found.index, place);
                        near(found.score, wanted[place]);
                    }
                }
                let scored = batcher.score([(QUERY, DOCUMENTS[3])]).await.unwrap();
                near(scored.scores[0], sigmoid(wanted[3]));
            });
            let waiting = isovec::blocking::Reranker::from(loaded.clone());
            let options = RankOptions::default().with_top_n(3);
            let ranked = waiting.rank_with(QUERY, DOCUMENTS, &options).unwrap();
            let places: Vec<usize> = ranked.iter().map(|found| found.index).collect();
            assert_eq!(places, order[..3]);
            assert_eq!(waiting.rank(QUERY, DOCUMENTS).unwrap()[..3], ranked);
            let each = waiting.score_iter(pairs, ScoreOptions::default());
            let each: Vec<f32> = each.map(|one| one.unwrap().score).collect();
            assert_eq!(each, waiting.score(pairs).unwrap().scores);
        }
    }
}

#[test]
fn equal_documents_keep_their_order_and_long_ones_say_that_they_were_cut() {
    let loaded = load(
        source(&bert()),
        EmbeddingConfig::default().with_max_length(12),
    )
    .unwrap();
    let long = "the dog is an animal ".repeat(9);
    let documents = ["a cat", &long, "a cat", "a cat"];
    let ranked = smol::block_on(loaded.rank("a dog", documents)).unwrap();
    let same: Vec<usize> = ranked
        .iter()
        .map(|found| found.index)
        .filter(|&at| at != 1)
        .collect();
    assert_eq!(same, [0, 2, 3]);
    for found in ranked {
        assert_eq!(found.truncated, found.index == 1);
        assert_eq!(found.tokens, if found.index == 1 { 12 } else { 7 });
    }
}

#[test]
fn a_call_says_how_many_and_what_scores_are() {
    let model = bert().with(
        "sentence_transformers",
        json!({"activation_fn": "torch.nn.modules.linear.Identity", "version": "5.1.0"}),
    );
    let wanted: Vec<f64> = expected(&model).concat();
    let loaded = load(source(&model), EmbeddingConfig::default()).unwrap();
    smol::block_on(async {
        for found in loaded.rank(QUERY, DOCUMENTS).await.unwrap() {
            near(found.score, wanted[found.index]);
        }
        let probabilities = RankOptions::default().with_scores(Scores::Sigmoid);
        for found in loaded
            .rank_with(QUERY, DOCUMENTS, probabilities)
            .await
            .unwrap()
        {
            near(found.score, sigmoid(wanted[found.index]));
        }
        let beyond = RankOptions::default().with_top_n(usize::MAX);
        assert_eq!(
            loaded
                .rank_with(QUERY, DOCUMENTS, beyond)
                .await
                .unwrap()
                .len(),
            9
        );
        let none: [&str; 0] = [];
        assert!(loaded.rank(QUERY, none).await.unwrap().is_empty());

        let before = loaded.stats().calls.texts;
        for options in [
            RankOptions::default().with_top_n(0),
            RankOptions::default().with_scores(Scores::Softmax),
        ] {
            let refused = loaded.rank_with(QUERY, DOCUMENTS, options.clone()).await;
            assert_eq!(refused.unwrap_err().kind(), "Config");
            let refused = loaded
                .batcher()
                .rank_with(QUERY, DOCUMENTS, options.clone())
                .await;
            assert_eq!(refused.unwrap_err().kind(), "Config");
            let waiting = isovec::blocking::Reranker::from(loaded.clone());
            let refused = waiting.rank_with(QUERY, DOCUMENTS, &options);
            assert_eq!(refused.unwrap_err().kind(), "Config");
        }
        let cancel = Cancel::new();
        cancel.cancel();
        let options = RankOptions::default().with_cancel(cancel);
        let cancelled = loaded.rank_with(QUERY, DOCUMENTS, options).await;
        assert!(cancelled.unwrap_err().is_cancelled());
        assert_eq!(loaded.stats().calls.texts, before);
    });
}

#[test]
fn a_stream_reports_its_progress_and_passes_errors_on() {
    let loaded = load(source(&bert()), EmbeddingConfig::default()).unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&seen);
    let pairs = (0..100).map(|at| match at {
        40 => Err(Error::Config(vec!["the source ended".into()])),
        at => Ok((QUERY, DOCUMENTS[at % DOCUMENTS.len()])),
    });
    let scores = loaded.try_score_stream(
        stream::iter(pairs),
        ScoreOptions::default(),
        move |progress: isovec::stream::StreamProgress| {
            told.store(progress.texts, Ordering::Relaxed)
        },
    );
    let scores: Vec<isovec::Result<_>> = smol::block_on(scores.collect());
    assert_eq!(scores.len(), 41);
    assert!(scores[..40].iter().all(Result::is_ok));
    assert!(
        scores[40]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("the source ended")
    );
    assert_eq!(seen.load(Ordering::Relaxed), 40);
}

#[test]
fn what_is_no_reranker_says_why() {
    let refused = |model: &Checkpoint| {
        let error = load(source(model), EmbeddingConfig::default()).unwrap_err();
        assert_eq!(error.kind(), "UnsupportedModel", "{error}");
        error.to_string()
    };
    let three = heads::all(3).swap_remove(0).1;
    assert!(refused(&three).contains("3 labels"));
    for (class, model) in heads::all(1) {
        // The config names a head that the weights lack, layer by layer.
        let layers = [
            "classifier",
            "classifier.dense",
            "classifier.out_proj",
            "pre_classifier",
            "head.dense",
            "pooler.dense",
        ];
        for layer in layers {
            let mut model = model.clone();
            // Others may hold a pooler that their classes do not use.
            let pools = ["Bert", "New", "JinaBert"];
            let pools = pools.map(|own| format!("{own}ForSequenceClassification"));
            let of_class = layer != "pooler.dense" || pools.iter().any(|own| own == class);
            if model.tensors.remove(&format!("{layer}.weight")).is_none() || !of_class {
                continue;
            }
            let said = refused(&model);
            assert!(
                said.contains(class) && said.contains(&format!("{layer}.weight")),
                "{said}"
            );
        }
        // The weights have a head that the config does not name.
        let said = refused(&model.with("architectures", json!(["SomethingElse"])));
        assert!(
            said.contains("[SomethingElse]") && said.contains(class),
            "{said}"
        );
    }
    let (_, modern) = heads::all(1).pop().unwrap();
    assert!(refused(&modern.with("classifier_pooling", "max")).contains("classifier_pooling"));
    let tanh = bert().with(
        "sbert_ce_default_activation_function",
        "torch.nn.modules.activation.Tanh",
    );
    assert!(refused(&tanh).contains("Tanh"));
    let vectors = EmbeddingConfig::default().with_dimension(3);
    assert_eq!(load(source(&bert()), vectors).unwrap_err().kind(), "Config");
    assert_eq!(
        load(
            ModelSource::from(data("tiny-bert")),
            EmbeddingConfig::default()
        )
        .unwrap_err()
        .kind(),
        "UnsupportedModel"
    );
}

#[test]
fn what_decides_a_score_is_in_the_fingerprint() {
    let fingerprint = |model: &Checkpoint| {
        let loaded = load(source(model), EmbeddingConfig::default()).unwrap();
        loaded.fingerprint().clone()
    };
    let (_, mean) = heads::all(1).pop().unwrap();
    let mut first = mean.clone();
    let config: &mut Value = &mut first.config;
    config["classifier_pooling"] = json!("cls");
    assert_ne!(fingerprint(&mean), fingerprint(&first));
    assert_eq!(fingerprint(&mean), fingerprint(&mean.clone()));
    let relu = mean.clone().with("classifier_activation", "relu");
    assert_ne!(fingerprint(&mean), fingerprint(&relu));
}

#[test]
fn the_files_are_what_the_generator_writes() {
    let folder = data("tiny-reranker");
    for (name, bytes) in reranker::files() {
        assert!(
            std::fs::read(folder.join(&name)).unwrap() == bytes,
            "{name} differs"
        );
    }
    let ranked = smol::block_on(async {
        let loaded = Reranker::load(folder.clone()).await.unwrap();
        loaded.rank(QUERY, DOCUMENTS).await.unwrap()
    });
    let wanted: Vec<f64> = expected(&reranker::model()).concat();
    let places: Vec<usize> = ranked.iter().map(|found| found.index).collect();
    assert_eq!(places, order(&wanted));
}

/// sentence-transformers writes `modules.json` beside a cross-encoder since its version 5.4, and its settings into a file of their own.
#[test]
fn a_cross_encoder_of_a_newer_library_is_itself() {
    let modules = r#"[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]"#;
    let own = r#"{"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity",
        "prompts": {"topic": "money "}, "default_prompt_name": null}"#;
    let with = |modules: &str| {
        let ModelSource::Contents { origin, mut files } = source(&bert()) else {
            panic!("it is made of bytes");
        };
        for (name, text) in [
            ("modules.json", modules),
            ("config_sentence_transformers.json", own),
        ] {
            files.insert(name.to_owned(), text.as_bytes().to_vec().into());
        }
        ModelSource::contents(origin, files)
    };
    let wanted = expected(&bert()).concat();
    smol::block_on(async {
        let loaded = Reranker::load(with(modules)).await.unwrap();
        let pairs = || DOCUMENTS.map(|document| (QUERY, document));
        let scores = loaded.score(pairs()).await.unwrap().scores;
        scores
            .iter()
            .zip(&wanted)
            .for_each(|(&score, &wanted)| near(score, wanted));
        // A prompt of its own stands before the query.
        let prompted = ScoreOptions::default().with_prompt(Prompt::Named("topic".into()));
        let prompted = loaded.score_with(pairs(), prompted).await.unwrap().scores;
        let query = format!("money {QUERY}");
        let same = loaded
            .score(DOCUMENTS.map(|document| (&*query, document)))
            .await
            .unwrap();
        assert_eq!(prompted, same.scores);
        assert_ne!(prompted, scores);
        let error = Embedder::load(with(modules)).await.unwrap_err().to_string();
        assert!(error.contains("`Reranker`"), "{error}");
        let more = modules.replace(']', r#", {"idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense"}]"#);
        let error = Reranker::load(with(&more)).await.unwrap_err();
        assert_eq!(error.kind(), "UnsupportedModel");
        assert!(error.to_string().contains("models.Dense"), "{error}");
    });
}
