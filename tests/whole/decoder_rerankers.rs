//! Decoders rank documents: by the answer that they would give, or by a layer of scores, at the last token of a chat that has the
//! query and the document in it. On every engine, the numbers of an independent implementation at f64.

use std::collections::BTreeMap;

use isovec::blocking::{Classifier, Embedder, Reranker};
use isovec::{EmbeddingConfig, ModelSource, ModelTask, Prompt, RankOptions, ScoreOptions, Scores};
use isovec_test_models::checkpoint::Checkpoint;
use isovec_test_models::decoder_reranker::{
    DOCUMENTS, QUERY, SHORT, TASK, answer, files, ids, plain_files, score, tiny_files, untied,
    with_score, written,
};
use isovec_test_models::decoders::{gemma3, llama, mistral, qwen2, qwen3};
use isovec_test_models::reranker::pair;
use isovec_test_models::tiny;
use isovec_test_support::{data, engines};
use serde_json::json;

/// The largest difference of two scores, relative to the larger of 1 and their size.
const NEAR: f64 = 1e-5;

type Files = BTreeMap<String, Vec<u8>>;

fn source(files: Files) -> ModelSource {
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    ModelSource::bytes("a decoder", files)
}

fn load(files: Files, config: EmbeddingConfig) -> isovec::Result<Reranker> {
    Reranker::builder(source(files)).config(config).load()
}

/// The numbers of pairs as the model gives them.
fn raw(reranker: &Reranker, prompt: Prompt) -> Vec<f32> {
    let options = ScoreOptions::default()
        .with_scores(Scores::Logits)
        .with_prompt(prompt);
    let pairs = DOCUMENTS.map(|document| (QUERY, document));
    reranker.score_with(pairs, &options).unwrap().scores
}

#[track_caller]
fn all_near(scores: &[f32], wanted: impl IntoIterator<Item = f64>) {
    let wanted: Vec<f64> = wanted.into_iter().collect();
    assert_eq!(scores.len(), wanted.len());
    for (&score, wanted) in scores.iter().zip(wanted) {
        let far = (f64::from(score) - wanted).abs();
        assert!(far <= NEAR * wanted.abs().max(1.0), "{score} and {wanted}");
    }
}

fn error(files: Files) -> String {
    let error = load(files, EmbeddingConfig::default()).unwrap_err();
    format!("{}: {error}", error.kind())
}

#[test]
fn the_answer_is_the_score_on_every_engine() {
    let tied = tiny::of_words(qwen3());
    let apart = untied(tiny::of_words(qwen3()));
    for (model, no) in [(&tied, true), (&tied, false), (&apart, true)] {
        let of =
            |task: &str, document: &str| answer(model, &ids(&written(task, QUERY, document)), no);
        // Most pairs are told apart by far more than the bound.
        let [dog, money] = [0, 1].map(|at| of(TASK, DOCUMENTS[at]));
        assert!((dog - money).abs() > 1e-3, "{dog} and {money}");
        for engine in engines() {
            let reranker = load(
                files(model, no),
                engine.configure(EmbeddingConfig::default()),
            )
            .unwrap();
            all_near(
                &raw(&reranker, Prompt::Default),
                DOCUMENTS.map(|document| of(TASK, document)),
            );
            // An instruction of the model's, and one of the caller's.
            for (prompt, task) in [
                (Prompt::Named("short".into()), SHORT),
                (Prompt::Text("which is it?".into()), "which is it?"),
            ] {
                all_near(
                    &raw(&reranker, prompt),
                    DOCUMENTS.map(|document| of(task, document)),
                );
            }
            let ranked = reranker.rank(QUERY, DOCUMENTS).unwrap();
            let best = (0..DOCUMENTS.len())
                .max_by(|&a, &b| of(TASK, DOCUMENTS[a]).total_cmp(&of(TASK, DOCUMENTS[b])));
            assert_eq!(
                ranked[0].index,
                best.unwrap(),
                "the files ask for the numbers as they are"
            );
        }
    }
}

#[test]
fn a_layer_of_scores_reads_the_last_token_on_every_engine() {
    let vocabulary = tiny::vocabulary();
    for (model, class) in [
        (qwen2(), "Qwen2ForSequenceClassification"),
        (qwen3(), "Qwen3ForSequenceClassification"),
        (llama(), "LlamaForSequenceClassification"),
        (mistral(), "MistralForSequenceClassification"),
        (gemma3(), "Gemma3TextForSequenceClassification"),
    ] {
        let model = with_score(tiny::of_words(model), class);
        // Without a template two texts are what the tokenizer makes of a pair.
        let wanted = DOCUMENTS.map(|document| score(&model, &pair_ids(&vocabulary, document)));
        for engine in engines() {
            let reranker = load(
                plain_files(&model),
                engine.configure(EmbeddingConfig::default()),
            )
            .unwrap();
            all_near(&raw(&reranker, Prompt::Default), wanted);
        }
        let mut with_template = plain_files(&model);
        with_template.insert(
            "chat_template.jinja".into(),
            isovec_test_models::decoder_reranker::template().into(),
        );
        let reranker = load(with_template, EmbeddingConfig::default()).unwrap();
        let wanted = DOCUMENTS.map(|document| score(&model, &ids(&written(TASK, QUERY, document))));
        all_near(&raw(&reranker, Prompt::Default), wanted);
    }
}

/// The ids of the query with a document behind it.
fn pair_ids(vocabulary: &[String], document: &str) -> Vec<i64> {
    assert_eq!(QUERY, isovec_test_models::reranker::QUERY);
    pair(vocabulary, document).0
}

#[test]
fn only_the_texts_of_a_long_pair_are_cut() {
    let model = tiny::of_words(qwen3());
    let long = "the dog and the cat and the king and the queen and the house and the sea and the river and the bank";
    let all = ids(&written(TASK, QUERY, long));
    let room = 60;
    assert!(all.len() > room);
    let mut config = EmbeddingConfig::default();
    config.text.max_length = Some(room);
    let reranker = load(files(&model, true), config).unwrap();
    let options = ScoreOptions::default().with_scores(Scores::Logits);
    let scored = reranker.score_with([(QUERY, long)], &options).unwrap();
    assert_eq!(
        (scored.token_counts[0], scored.truncated[0]),
        (room as u32, true)
    );
    // The query is the shorter text, so only the document's end went.
    let words: Vec<&str> = long.split(' ').collect();
    let kept = words[..words.len() - (all.len() - room)].join(" ");
    all_near(
        &scored.scores,
        [answer(&model, &ids(&written(TASK, QUERY, &kept)), true)],
    );

    let mut config = EmbeddingConfig::default();
    config.text.max_length = Some(12);
    let reranker = load(files(&model, true), config).unwrap();
    let error = reranker.score([(QUERY, long)]).unwrap_err().to_string();
    assert!(error.contains("12 tokens"), "{error}");
}

#[test]
fn an_instruction_and_a_text_are_told_apart_by_the_cache() {
    let model = tiny::of_words(qwen3());
    let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let reranker = load(files(&model, true), config).unwrap();
    let of = |task: &str, query: &str| {
        let options = RankOptions::default().with_prompt(Prompt::Text(task.into()));
        reranker.rank_with(query, ["a page"], &options).unwrap()[0].score
    };
    let wanted =
        |task: &str, query: &str| answer(&model, &ids(&written(task, query, "a page")), true);
    // Joined, both are the same words.
    for (task, query) in [
        ("the dog ", "is here"),
        ("the ", "dog is here"),
        ("the dog ", "is here"),
    ] {
        all_near(&[of(task, query)], [wanted(task, query)]);
    }
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let model = tiny::of_words(qwen3());
    let with = |name: &str, content: &str| {
        let mut files = files(&model, true);
        files.insert(name.into(), content.into());
        error(files)
    };
    let without = |name: &str| {
        let mut files = files(&model, true);
        files.remove(name);
        error(files)
    };
    let has = |error: String, words: &[&str]| {
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    };
    has(
        without("chat_template.jinja"),
        &["MissingFile", "chat_template.jinja"],
    );
    has(
        without("1_LogitScore/config.json"),
        &["MissingFile", "1_LogitScore/config.json"],
    );
    has(
        with("1_LogitScore/config.json", "{}"),
        &["InvalidModel", "1_LogitScore/config.json", "true_token_id"],
    );
    has(
        with("1_LogitScore/config.json", r#"{"true_token_id": 99999}"#),
        &["InvalidModel", "vocab_size", "99999"],
    );
    for (template, fault) in [
        ("{% for x %}", "syntax error"),
        (
            "{{ messages[0].content }}",
            "leaves out a message of the role \"document\"",
        ),
        (
            "{{ messages[-1].content }}{{ messages[-2].content }}",
            "the document before the query",
        ),
        (
            "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
            "more than once",
        ),
        ("{{ raise_exception('no pairs') }}", "no pairs"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
            "steps",
        ),
    ] {
        has(
            with("chat_template.jinja", template),
            &["UnsupportedModel", "chat_template.jinja", fault],
        );
    }
    // An instruction needs a place.
    let mut silent = files(&model, true);
    let template = "{% for m in messages if m.role != 'system' %}{{ m.content }} {% endfor %}";
    silent.insert("chat_template.jinja".into(), template.into());
    let reranker = load(silent, EmbeddingConfig::default()).unwrap();
    let options = RankOptions::default().with_prompt(Prompt::Named("short".into()));
    let refused = reranker.rank_with(QUERY, DOCUMENTS, &options).unwrap_err();
    assert_eq!(refused.kind(), "Config");
    assert!(refused.to_string().contains("has no place"), "{refused}");
    reranker.rank(QUERY, DOCUMENTS).unwrap();

    // The matrix is named where it is missing, and a model that cannot score says why.
    let lacks = untied(model.clone());
    let mut tensors = lacks.clone();
    tensors.tensors.remove("lm_head.weight");
    has(error(files(&tensors, true)), &["Weight", "lm_head.weight"]);
    has(
        error(plain_files(&model)),
        &["UnsupportedModel", "LogitScore"],
    );
    let capped = model.clone().with("final_logit_softcapping", 30.0);
    has(
        error(files(&capped, true)),
        &["UnsupportedModel", "final_logit_softcapping"],
    );
    let encoder = isovec_test_models::models::bert();
    let mut encoder_files = files(&model, true);
    encoder_files.extend(plain(&tiny::of_words(encoder)));
    has(
        error(encoder_files),
        &["UnsupportedModel", "LogitScore", "bert"],
    );
    // It is no embedder and no classifier.
    let labels = Classifier::load(source(files(&model, true))).unwrap_err();
    assert!(labels.to_string().contains("`Reranker`"), "{labels}");
    let source = source(files(&model, true));
    let refused = Embedder::load(source.clone()).unwrap_err().to_string();
    assert!(refused.contains("`Reranker`"), "{refused}");
    let task = smol::block_on(ModelTask::of(source, &EmbeddingConfig::default()));
    assert_eq!(task.unwrap(), ModelTask::Rerank);
}

/// The weights and the config of an encoder.
fn plain(model: &Checkpoint) -> Files {
    let mut files = plain_files(model);
    files.retain(|name, _| name != "tokenizer.json");
    files
}

#[test]
fn what_decides_a_score_is_in_the_fingerprint() {
    let model = tiny::of_words(qwen3());
    let of = |files: Files| {
        load(files, EmbeddingConfig::default())
            .unwrap()
            .fingerprint()
            .clone()
    };
    let own = of(files(&model, true));
    assert_eq!(of(files(&model, true)), own);
    let mut other = files(&model, true);
    other.insert(
        "chat_template.jinja".into(),
        isovec_test_models::decoder_reranker::template()
            .replace("say", "tell")
            .into(),
    );
    let mut swapped = files(&model, true);
    let score = json!({"true_token_id": 200, "false_token_id": 201});
    swapped.insert("1_LogitScore/config.json".into(), score.to_string().into());
    for (what, changed) in [
        ("template", other),
        ("answers", swapped),
        ("no", files(&model, false)),
    ] {
        assert_ne!(of(changed).identity, own.identity, "{what}");
    }
}

#[test]
fn the_files_are_what_the_generator_writes() {
    let folder = data("tiny-decoder-reranker");
    for (name, bytes) in tiny_files() {
        assert!(
            std::fs::read(folder.join(&name)).unwrap() == bytes,
            "{name} differs"
        );
    }
    let ranked = Reranker::load(folder)
        .unwrap()
        .rank(QUERY, DOCUMENTS)
        .unwrap();
    assert_eq!(ranked.len(), DOCUMENTS.len());
}
