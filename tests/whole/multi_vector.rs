//! Texts become a vector for each token: on every engine, on every way in, the numbers of an independent implementation at f64.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use isovec::{
    Cancel, CompactForm, EmbeddingConfig, ModelSource, ModelTask, MultiVectorEmbedder,
    MultiVectorEmbeddings, MultiVectorOptions, Prompt,
};
use isovec_test_models::late::{self, DIM, Late, Mistake};
use isovec_test_support::{data, engines};

/// The largest difference of a component.
const NEAR: f64 = 1e-6;

/// Passages of several lengths, so that a batch of them is padded; some have punctuation, one is longer than it may be.
const PASSAGES: [&str; 6] = [
    "the dog is an animal.",
    "a",
    "money, in the bank! (not much)",
    "Search vectors in the browser, the same as on the server: the mountain and the river and the sea",
    "",
    "the king and the queen",
];

/// Queries, one longer than it may be.
const QUERIES: [&str; 4] = [
    "what is an animal?",
    "",
    "the king and the queen and the sea and the river and the mountain",
    "bank",
];

fn source(late: &Late) -> ModelSource {
    of_files(late.files())
}

fn of_files(files: BTreeMap<String, Vec<u8>>) -> ModelSource {
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    ModelSource::bytes("a model of late interaction", files)
}

/// The first model: PyLate's, whose queries are filled with tokens that nobody sees.
fn first() -> Late {
    late::all().swap_remove(0).1
}

fn load(source: ModelSource, config: EmbeddingConfig) -> isovec::Result<MultiVectorEmbedder> {
    smol::block_on(MultiVectorEmbedder::builder(source).config(config).load())
}

fn queries() -> MultiVectorOptions {
    MultiVectorOptions::default().with_prompt(Prompt::Query)
}

/// The largest difference of a component; infinite for another number of vectors.
fn far(own: &[f32], wanted: &[Vec<f64>]) -> f64 {
    if own.len() != wanted.len() * DIM {
        return f64::INFINITY;
    }
    let wanted = wanted.iter().flatten();
    let far = own
        .iter()
        .zip(wanted)
        .map(|(own, wanted)| (f64::from(*own) - wanted).abs());
    far.fold(0.0, f64::max)
}

#[track_caller]
fn near(own: &[f32], wanted: &[Vec<f64>]) {
    let far = far(own, wanted);
    assert!(
        far <= NEAR,
        "{far:e} with {} of {} vectors",
        own.len() / DIM,
        wanted.len()
    );
}

#[track_caller]
fn all_near(set: &MultiVectorEmbeddings, late: &Late, texts: &[&str], is_query: bool) {
    assert_eq!((set.len(), set.dim()), (texts.len(), DIM));
    for (at, text) in texts.iter().enumerate() {
        let far = far(&set.get(at).unwrap(), &late.vectors(text, is_query, None));
        let name = late.format;
        assert!(
            far <= NEAR,
            "{far:e} in {text:?} of {name:?}, query: {is_query}"
        );
    }
}

#[test]
fn every_format_and_encoder_has_its_own_vectors_on_every_engine() {
    for (name, late) in late::all() {
        for engine in engines() {
            let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
            let loaded = load(source(&late), config).unwrap();
            assert_eq!(loaded.provider().engine, engine.name(), "{name}");
            assert_eq!(loaded.dimension(), DIM);
            let passages = smol::block_on(loaded.embed_passages(PASSAGES)).unwrap();
            all_near(&passages, &late, &PASSAGES, false);
            let asked = smol::block_on(loaded.embed_queries(QUERIES)).unwrap();
            all_near(&asked, &late, &QUERIES, true);
            assert_eq!(
                passages.truncated(),
                [false, false, false, true, false, false]
            );
            assert!(asked.truncated()[2] && !asked.truncated()[3]);
            if late.expansion.is_some() {
                assert_eq!(asked.token_counts(), [late.query_length as u32; 4]);
            }
        }
    }
}

#[test]
fn classic_mistakes_are_farther_than_is_allowed() {
    let late = first();
    let loaded = load(source(&late), EmbeddingConfig::default()).unwrap();
    let query = smol::block_on(loaded.embed_query(QUERIES[0])).unwrap();
    let passage = smol::block_on(loaded.embed_passage(PASSAGES[2])).unwrap();
    for mistake in [
        Mistake::ExpansionSeenOtherwise,
        Mistake::NotExpanded,
        Mistake::MarkerFirst,
        Mistake::OtherMarker,
        Mistake::NotNormalised,
    ] {
        let far = far(
            &query.get(0).unwrap(),
            &late.vectors(QUERIES[0], true, Some(mistake)),
        );
        assert!(far > 1e3 * NEAR, "{mistake:?} is only {far:e}");
    }
    let mistake = Some(Mistake::PunctuationNotRead);
    let far = far(
        &passage.get(0).unwrap(),
        &late.vectors(PASSAGES[2], false, mistake),
    );
    assert!(far > 1e3 * NEAR && far.is_finite(), "{far:e}");
}

#[test]
fn every_way_in_gives_the_same() {
    let late = first();
    for engine in engines() {
        let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
        let mut cached = config.clone();
        cached.embedding_cache.memory = Some(1 << 20);
        for config in [config, cached] {
            let keeps = config.embedding_cache.memory.is_some();
            let loaded = load(source(&late), config).unwrap();
            smol::block_on(async {
                let set = loaded.embed_passages(PASSAGES).await.unwrap();
                let options = MultiVectorOptions::default();
                let streamed = loaded.embed_stream(stream::iter(PASSAGES), options.clone());
                let streamed: Vec<_> = streamed.collect().await;
                let batcher = loaded.batcher();
                let calls =
                    PASSAGES.map(|text| batcher.embed_with([text, PASSAGES[0]], options.clone()));
                let asked = QUERIES.map(|text| batcher.embed_with([text], queries()));
                let (calls, asked) = (join_all(calls).await, join_all(asked).await);
                for (at, text) in PASSAGES.iter().enumerate() {
                    let wanted = late.vectors(text, false, None);
                    near(&set.get(at).unwrap(), &wanted);
                    let one = streamed[at].as_ref().unwrap();
                    near(&one.vectors, &wanted);
                    assert_eq!(one.tokens, set.token_counts()[at]);
                    all_near(
                        calls[at].as_ref().unwrap(),
                        &late,
                        &[*text, PASSAGES[0]],
                        false,
                    );
                }
                for (own, text) in asked.into_iter().zip(QUERIES) {
                    all_near(&own.unwrap(), &late, &[text], true);
                }
                // The same text in the other role is not the same item.
                let query = loaded.embed_query(PASSAGES[0]).await.unwrap();
                all_near(&query, &late, &PASSAGES[..1], true);
                let hits = loaded.stats().embedding_cache.map(|cache| cache.hits);
                assert_eq!(hits.is_some_and(|hits| hits >= 12), keeps);
            });
            let waiting = isovec::blocking::MultiVectorEmbedder::from(loaded.clone());
            all_near(
                &waiting.embed_passages(PASSAGES).unwrap(),
                &late,
                &PASSAGES,
                false,
            );
            all_near(
                &waiting.embed_queries(QUERIES).unwrap(),
                &late,
                &QUERIES,
                true,
            );
            let each = waiting.embed_iter(QUERIES, queries());
            let mut pushed = waiting.empty_set(&queries()).unwrap();
            for one in each {
                pushed.push(one.unwrap()).unwrap();
            }
            all_near(&pushed, &late, &QUERIES, true);
            let mut compact = pushed.compact(CompactForm::Int8);
            let mut again = waiting.embed_iter(QUERIES, queries());
            let one = again.next().unwrap().unwrap();
            assert_eq!(
                compact.push(one.clone()).unwrap_err().kind(),
                "InvalidEmbeddings"
            );
            for (value, last) in [(0.5, true), (f32::NAN, false)] {
                let mut one = one.clone();
                match last {
                    true => one.vectors.push(value),
                    false => one.vectors[0] = value,
                }
                assert_eq!(pushed.push(one).unwrap_err().kind(), "InvalidEmbeddings");
            }
        }
    }
}

#[test]
fn a_search_finds_the_highest_scores_and_refuses_other_models() {
    let late = first();
    let loaded = load(source(&late), EmbeddingConfig::default()).unwrap();
    let index = smol::block_on(loaded.embed_passages(PASSAGES)).unwrap();
    let asked = smol::block_on(loaded.embed_queries(QUERIES)).unwrap();
    let all = index.search(&asked, 3).unwrap();
    for (hits, query) in all.iter().zip(QUERIES) {
        let query = late.vectors(query, true, None);
        let score = |text: &&str| Late::score(&query, &late.vectors(text, false, None));
        let mut scores: Vec<(usize, f64)> = PASSAGES.iter().map(score).enumerate().collect();
        scores.sort_by(|a, b| b.1.total_cmp(&a.1));
        assert_eq!(hits.len(), 3);
        for (hit, (place, score)) in hits.iter().zip(scores) {
            assert_eq!(hit.index, place);
            assert!(
                (f64::from(hit.score) - score).abs() <= 1e-5,
                "{} for {score}",
                hit.score
            );
        }
    }
    let one = smol::block_on(loaded.embed_query(QUERIES[0])).unwrap();
    assert_eq!(index.search_one(&one, 3).unwrap(), all[0]);
    assert_eq!(
        index.search_one(&asked, 1).unwrap_err().kind(),
        "NotOneQuery"
    );

    // Scores do not depend on what else is in the set.
    let mut half = smol::block_on(loaded.embed_passages(&PASSAGES[..2])).unwrap();
    half.append(smol::block_on(loaded.embed_passages(&PASSAGES[2..])).unwrap())
        .unwrap();
    assert_eq!(
        half.search(&asked, 6).unwrap(),
        index.search(&asked, 6).unwrap()
    );
    assert_eq!(half, index);

    for other in late::all().into_iter().skip(1) {
        let other = load(source(&other.1), EmbeddingConfig::default()).unwrap();
        let query = smol::block_on(other.embed_query("animal")).unwrap();
        assert_eq!(
            index.search_one(&query, 1).unwrap_err().kind(),
            "IncompatibleIndex"
        );
        assert_eq!(half.append(query).unwrap_err().kind(), "IncompatibleIndex");
    }
    assert_eq!(half, index);
}

#[test]
fn compact_forms_score_nearly_the_same_and_every_form_is_saved() {
    let late = first();
    let loaded = load(source(&late), EmbeddingConfig::default()).unwrap();
    let index = smol::block_on(loaded.embed_passages(PASSAGES)).unwrap();
    let asked = smol::block_on(loaded.embed_queries(QUERIES)).unwrap();
    let exact = index.search(&asked, 6).unwrap();
    let sets = [
        (index.clone(), 0.0),
        (index.compact(CompactForm::Int8), 0.1),
        (index.compact(CompactForm::Binary), 5.0),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (set, bound) in &sets {
        for (exact, found) in exact.iter().zip(set.search(&asked, 6).unwrap()) {
            for hit in found {
                let score = exact
                    .iter()
                    .find(|other| other.index == hit.index)
                    .unwrap()
                    .score;
                let apart = (hit.score - score).abs();
                assert!(apart <= *bound, "{apart} apart in {:?}", set.form());
                assert_eq!(apart == 0.0, *bound == 0.0);
            }
        }
        let path = folder.path().join("tokens.safetensors");
        set.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&MultiVectorEmbeddings::load(&path).unwrap(), set);
        assert_eq!(
            &MultiVectorEmbeddings::from_bytes(&set.to_bytes().unwrap()).unwrap(),
            set
        );
        safetensors::SafeTensors::deserialize(&bytes).unwrap();
        for refused in [
            isovec::Embeddings::from_bytes(&bytes).map(drop),
            isovec::CompactEmbeddings::from_bytes(&bytes).map(drop),
        ] {
            let error = refused.unwrap_err();
            assert!(
                error.to_string().contains("MultiVectorEmbeddings"),
                "{error}"
            );
        }
        for length in 0..bytes.len() {
            let cut = MultiVectorEmbeddings::from_bytes(&bytes[..length]);
            assert_eq!(cut.unwrap_err().kind(), "InvalidEmbeddings", "{length}");
        }
        // A flipped bit is refused or changes something, and never panics.
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            if let Ok(set) = MultiVectorEmbeddings::from_bytes(&flipped) {
                assert_eq!(set.offsets().len(), set.len() + 1);
                let _ = set.search(&set, 1);
            }
        }
    }
    let [(mut whole, _), (int8, _), _] = sets;
    assert_eq!(
        whole.append(int8.clone()).unwrap_err().kind(),
        "InvalidEmbeddings"
    );
    let mut twice = int8.clone();
    twice.append(int8.clone()).unwrap();
    assert_eq!(twice.get(7).unwrap(), int8.get(1).unwrap());
    let error = MultiVectorEmbeddings::from_bytes(
        &std::fs::read(data("tiny-splade").join("model.safetensors")).unwrap(),
    );
    assert_eq!(error.unwrap_err().kind(), "InvalidEmbeddings");
}

#[test]
fn a_call_says_its_prompt_and_can_be_cancelled() {
    let (_, late) = late::all().pop().unwrap();
    let loaded = load(source(&late), EmbeddingConfig::default()).unwrap();
    smol::block_on(async {
        let query = loaded.embed_query("cat").await.unwrap();
        assert_eq!(query.prompt(), Some("query"));
        let unknown = MultiVectorOptions::default().with_prompt(Prompt::Named("none".into()));
        let refused = loaded.embed_with(PASSAGES, unknown).await;
        assert_eq!(refused.unwrap_err().kind(), "Config");
        let none: [&str; 0] = [];
        let empty = loaded.embed_passages(none).await.unwrap();
        assert!(empty.is_empty() && empty.search_one(&query, 1).unwrap().is_empty());
        let cancel = Cancel::new();
        cancel.cancel();
        let options = MultiVectorOptions::default().with_cancel(cancel);
        let stopped = loaded.embed_with(PASSAGES, options).await;
        assert!(stopped.unwrap_err().is_cancelled());
    });
}

#[test]
fn what_has_no_vectors_of_tokens_says_why() {
    let refused = |source: ModelSource, kind: &str, words: &str| {
        let error = load(source, EmbeddingConfig::default()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    let changed = |late: &Late, name: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut files = late.files();
        let mut value = serde_json::from_slice(&files[name]).unwrap();
        change(&mut value);
        files.insert(name.into(), serde_json::to_vec(&value).unwrap());
        of_files(files)
    };
    let set = |key: &'static str, to: serde_json::Value| {
        move |value: &mut serde_json::Value| value[key] = to.clone()
    };
    let all = late::all();
    let (pylate, windows, stanford, st) = (&all[0].1, &all[2].1, &all[4].1, &all[5].1);
    let settings = "config_sentence_transformers.json";
    let unsupported = "UnsupportedModel";
    refused(data("tiny-bert").into(), unsupported, "`Embedder`");
    refused(
        data("tiny-splade").into(),
        unsupported,
        "no vectors of tokens",
    );
    for (source, words) in [
        (
            changed(pylate, settings, &set("query_prefix", "[X]".into())),
            "\"[X]\"",
        ),
        (
            changed(pylate, settings, &set("query_length", 65.into())),
            "65 tokens",
        ),
        (
            changed(
                pylate,
                "1_Dense/config.json",
                &set("use_residual", true.into()),
            ),
            "use_residual",
        ),
        (
            changed(pylate, "modules.json", &|value| {
                value.as_array_mut().unwrap().pop();
            }),
            "no Dense step",
        ),
        (
            changed(windows, settings, &set("query_length", 7.into())),
            "see 6 tokens",
        ),
        (
            changed(
                stanford,
                "artifact.metadata",
                &set("similarity", "l2".into()),
            ),
            "\"l2\"",
        ),
        (
            changed(stanford, "artifact.metadata", &|value| {
                value.as_object_mut().unwrap().remove("query_token_id");
            }),
            "[unused0]",
        ),
        (
            changed(st, "modules.json", &|value| {
                value.as_array_mut().unwrap().pop();
            }),
            "no Normalize step",
        ),
        (
            changed(
                st,
                "2_MultiVectorMask/config.json",
                &set("keep_only_token_ids", serde_json::json!([1])),
            ),
            "MultiVectorMask",
        ),
        (
            changed(
                st,
                "sentence_bert_config.json",
                &set(
                    "query_expansion",
                    serde_json::json!({"strategy": "more", "length": 4}),
                ),
            ),
            "\"more\"",
        ),
    ] {
        refused(source, unsupported, words);
    }
    // Layers that do not fit one another, or are not there.
    let mut wider = late::all().swap_remove(1).1.files();
    wider.insert(
        "1_Dense/config.json".into(),
        wider["2_Dense/config.json"].clone(),
    );
    wider.insert(
        "1_Dense/model.safetensors".into(),
        wider["2_Dense/model.safetensors"].clone(),
    );
    refused(of_files(wider), "InvalidModel", "follows 32 features");
    let mut none = pylate.files();
    none.remove("1_Dense/model.safetensors");
    refused(of_files(none), "MissingFile", "1_Dense/model.safetensors");
    let mut bare = stanford.clone();
    bare.model.tensors.insert(
        "dense.0.weight".into(),
        bare.model.tensors["dense.0.weight"].clone(),
    );
    bare.model.tensors.get_mut("dense.0.weight").unwrap().shape = vec![32, 16];
    refused(source(&bare), "Weight", "linear.weight");

    for (name, late) in &all {
        let error = smol::block_on(isovec::Embedder::load(source(late))).unwrap_err();
        assert!(
            error.to_string().contains("MultiVectorEmbedder"),
            "{name}: {error}"
        );
        let error = smol::block_on(isovec::SparseEmbedder::load(source(late))).unwrap_err();
        assert_eq!(error.kind(), unsupported, "{name}");
        let task = ModelTask::of(source(late), &EmbeddingConfig::default());
        assert_eq!(
            smol::block_on(task).unwrap(),
            ModelTask::MultiVector,
            "{name}"
        );
    }
    let vectors = EmbeddingConfig::default().with_dimension(3);
    assert_eq!(load(source(pylate), vectors).unwrap_err().kind(), "Config");
}

#[test]
fn what_decides_a_vector_is_in_the_fingerprint() {
    let late = first();
    let fingerprint = |files: BTreeMap<String, Vec<u8>>| {
        let loaded = load(of_files(files), EmbeddingConfig::default()).unwrap();
        loaded.fingerprint().clone()
    };
    let own = fingerprint(late.files());
    assert_eq!(own, fingerprint(late.files()));
    let name = "config_sentence_transformers.json";
    for (key, value) in [
        ("query_length", serde_json::json!(11)),
        ("document_length", serde_json::json!(19)),
        ("document_prefix", serde_json::json!("[Q] ")),
        ("attend_to_expansion_tokens", serde_json::json!(true)),
        ("do_query_expansion", serde_json::json!(false)),
        ("skiplist_words", serde_json::json!([])),
    ] {
        let mut files = late.files();
        let mut settings: serde_json::Value = serde_json::from_slice(&files[name]).unwrap();
        settings[key] = value;
        files.insert(name.into(), serde_json::to_vec(&settings).unwrap());
        assert_ne!(own, fingerprint(files), "{key}");
    }
}

#[test]
fn the_files_are_what_the_generator_writes() {
    let folder = data("tiny-colbert");
    for (name, bytes) in late::tiny_files() {
        assert!(
            std::fs::read(folder.join(&name)).unwrap() == bytes,
            "{name} differs"
        );
    }
    let loaded = load(folder.into(), EmbeddingConfig::default()).unwrap();
    let passages = smol::block_on(loaded.embed_passages(late::PASSAGES)).unwrap();
    all_near(&passages, &late::tiny(), &late::PASSAGES, false);
}
