//! Dimension and unit length of a call: what one loaded model gives is what another one gives that
//! was loaded with them, on every way in.

use futures_util::future::{join, join_all};
use futures_util::{StreamExt, stream};
use isovec::blocking::Embedder;
use isovec::{DynamicBatcher, EmbedOptions, EmbeddingConfig, Embeddings, Prompt, StreamOptions};
use isovec_test_support::{engines, minilm, tiny_model};

const TEXTS: [&str; 4] = ["a cat", "the end of a cat", "rain is expected tomorrow", ""];

/// The largest difference of two components.
const NEAR: f32 = 1e-6;

fn load(source: isovec::ModelSource, config: EmbeddingConfig) -> Embedder {
    Embedder::builder(source).config(config).load().unwrap()
}

fn cut(dimension: usize) -> EmbedOptions {
    EmbedOptions::default().with_dimension(dimension)
}

/// The same vectors, made the same way as far as the fingerprint says.
fn same(a: &Embeddings, b: &Embeddings) {
    assert_eq!((a.len(), a.dim()), (b.len(), b.dim()));
    assert_eq!(a.fingerprint().identity, b.fingerprint().identity);
    assert_eq!(
        (a.token_counts(), a.truncated(), a.prompt()),
        (b.token_counts(), b.truncated(), b.prompt())
    );
    for (at, (x, y)) in a.as_slice().iter().zip(b.as_slice()).enumerate() {
        assert!((x - y).abs() <= NEAR, "component {at}: {x} and {y}");
    }
}

fn lengths(set: &Embeddings) -> Vec<f64> {
    let square = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    set.iter().map(|row| square(row).sqrt()).collect()
}

#[test]
fn a_cut_is_what_a_model_gives_that_was_loaded_with_it() {
    for engine in engines() {
        for normalize in [true, false] {
            let config = engine.configure(EmbeddingConfig::default().with_normalize(normalize));
            let whole = load(tiny_model(), config.clone());
            for dimension in [1, 7, whole.dimension() - 1, whole.dimension()] {
                let loaded = load(tiny_model(), config.clone().with_dimension(dimension));
                let set = whole.embed_with(TEXTS, cut(dimension)).unwrap();
                same(&set, &loaded.embed(TEXTS).unwrap());
            }
        }
    }
}

#[test]
fn minilm_is_cut_as_one_that_was_loaded_with_the_dimension() {
    let Some(model) = minilm() else { return };
    let whole = load(model.clone(), EmbeddingConfig::default());
    let loaded = load(model, EmbeddingConfig::default().with_dimension(64));
    let passages = whole
        .embed_with(TEXTS, cut(64).with_prompt(Prompt::Passage))
        .unwrap();
    same(&passages, &loaded.embed_passages(TEXTS).unwrap());
    assert!(lengths(&passages).iter().all(|x| (x - 1.0).abs() < 1e-6));
    // An index and a query of one dimension compare, whichever way they were made.
    let query = loaded.embed_query("will it be wet?").unwrap();
    assert_eq!(passages.search_one(&query, 1).unwrap()[0].index, 2);
    let uncut = whole.embed_query("will it be wet?").unwrap();
    let error = passages.search(&uncut, 1).unwrap_err();
    assert_eq!(error.kind(), "IncompatibleIndex");
    assert!(error.to_string().contains("dimension: 64 here, 384 there"));
}

#[test]
fn unit_length_is_what_a_model_gives_that_was_loaded_with_it() {
    for engine in engines() {
        let load = |normalize| {
            let config = EmbeddingConfig::default().with_normalize(normalize);
            load(tiny_model(), engine.configure(config))
        };
        let (plain, unit) = (load(false), load(true));
        let scaled = EmbedOptions::default().with_normalize(true);
        same(
            &plain.embed_with(TEXTS, scaled.clone()).unwrap(),
            &unit.embed(TEXTS).unwrap(),
        );
        same(
            &plain.embed_with(TEXTS, scaled.with_dimension(5)).unwrap(),
            &unit.embed_with(TEXTS, cut(5)).unwrap(),
        );
        let raw = plain.embed(TEXTS).unwrap();
        assert!(lengths(&raw).iter().all(|x| (x - 1.0).abs() > 1e-3));
        assert_eq!(
            raw.search(&unit.embed_query("a").unwrap(), 1)
                .unwrap_err()
                .kind(),
            "IncompatibleIndex"
        );
    }
}

#[test]
fn options_that_ask_for_what_there_is_change_no_bit() {
    let embedder = load(tiny_model(), EmbeddingConfig::default());
    let own = cut(embedder.dimension()).with_normalize(true);
    let plain = embedder.embed(TEXTS).unwrap();
    assert_eq!(embedder.embed_with(TEXTS, own).unwrap(), plain);
}

#[test]
fn what_the_model_cannot_give_is_refused_before_it_runs() {
    let embedder = load(tiny_model(), EmbeddingConfig::default());
    let dim = embedder.dimension();
    let unscaled = EmbedOptions::default().with_normalize(false);
    for (options, says) in [
        (cut(0), vec!["dimension is 0".to_owned()]),
        (
            cut(dim + 1),
            vec![format!("dimension is {}", dim + 1), format!("have {dim}")],
        ),
        (unscaled.clone(), vec!["text.normalize = false".to_owned()]),
        (
            unscaled.with_dimension(0),
            vec![
                "dimension is 0".to_owned(),
                "text.normalize = false".to_owned(),
            ],
        ),
    ] {
        let asynchronous = isovec::Embedder::from(embedder.clone());
        let batcher = DynamicBatcher::new(&asynchronous);
        let embed = StreamOptions::default().with_embed(options.clone());
        let texts = TEXTS.map(Ok::<_, isovec::Error>);
        for error in [
            embedder.embed_with(TEXTS, options.clone()).unwrap_err(),
            embedder.empty_set(&options).unwrap_err(),
            pollster::block_on(asynchronous.embed_with(TEXTS, options.clone())).unwrap_err(),
            pollster::block_on(batcher.embed_with(TEXTS, options.clone())).unwrap_err(),
            embedder
                .try_embed_iter(texts, embed)
                .next()
                .unwrap()
                .unwrap_err(),
        ] {
            assert_eq!(error.kind(), "Config");
            for part in &says {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    }
    assert_eq!(embedder.stats().calls.batches, 0);
}

#[test]
fn every_way_in_gives_the_same_cut() {
    let embedder = load(tiny_model(), EmbeddingConfig::default());
    let loaded = load(tiny_model(), EmbeddingConfig::default().with_dimension(9));
    let expected = loaded.embed(TEXTS).unwrap();
    let asynchronous = isovec::Embedder::from(embedder.clone());
    same(
        &pollster::block_on(asynchronous.embed_with(TEXTS, cut(9))).unwrap(),
        &expected,
    );
    let mut streamed = embedder.empty_set(&cut(9)).unwrap();
    let options = StreamOptions::default().with_embed(cut(9));
    for item in embedder.try_embed_iter(TEXTS.map(Ok::<_, isovec::Error>), options) {
        streamed.push(item.unwrap()).unwrap();
    }
    same(&streamed, &expected);
    let texts = stream::iter(TEXTS.map(Ok::<_, isovec::Error>));
    let options = StreamOptions::default().with_embed(cut(9));
    let items = asynchronous.try_embed_stream(texts, options);
    let dims = pollster::block_on(
        items
            .map(|item| item.unwrap().vector.len())
            .collect::<Vec<_>>(),
    );
    assert_eq!(dims, [9; 4]);
}

#[test]
fn chunks_and_long_texts_are_cut_before_they_are_put_together() {
    let embedder = load(tiny_model(), EmbeddingConfig::default());
    let loaded = load(tiny_model(), EmbeddingConfig::default().with_dimension(9));
    let long = "the cat sat on a mat. ".repeat(60);
    let texts = [long.as_str(), "a cat"];
    let chunks = isovec::ChunkOptions::default;
    let expected = loaded.embed_chunks(texts, chunks()).unwrap();
    assert!(expected.places.len() > 2);
    let cutting = embedder.embed_chunks_with(texts, chunks(), cut(9)).unwrap();
    assert_eq!(cutting.places, expected.places);
    same(&cutting.embeddings, &expected.embeddings);
    for combine in [isovec::Combine::Mean, isovec::Combine::Max] {
        let expected = loaded.embed_long(texts, chunks(), combine).unwrap();
        let cutting = embedder.embed_long_with(texts, chunks(), combine, cut(9));
        same(&cutting.unwrap(), &expected);
    }
    // Of vectors that were not scaled, the one of all chunks is.
    let plain = load(
        tiny_model(),
        EmbeddingConfig::default().with_normalize(false),
    );
    let scaled = EmbedOptions::default().with_normalize(true);
    let set = plain.embed_long_with(texts, chunks(), isovec::Combine::Mean, scaled);
    let set = set.unwrap();
    assert!(lengths(&set).iter().all(|x| (x - 1.0).abs() < 1e-6));
    assert_eq!(set.fingerprint().identity["normalize"], "true");
}

#[test]
fn callers_of_one_batch_have_each_their_own_form() {
    // They wait for companions, so that they run together.
    let config = EmbeddingConfig::default()
        .with_preferred_batch_size(8)
        .with_max_wait(std::time::Duration::from_millis(50))
        .with_normalize(false);
    let embedder = load(tiny_model(), config);
    let dim = embedder.dimension();
    let batcher = DynamicBatcher::new(&isovec::Embedder::from(embedder.clone()));
    let options = [
        EmbedOptions::default(),
        cut(3),
        EmbedOptions::default().with_normalize(true),
        cut(dim - 2).with_normalize(true),
    ];
    let calls = options
        .clone()
        .map(|options| batcher.embed_with(TEXTS, options));
    let refused = batcher.embed_with(TEXTS, cut(0));
    let (answers, refused) = pollster::block_on(join(join_all(calls), refused));
    assert_eq!(refused.unwrap_err().kind(), "Config");
    for (answer, options) in answers.into_iter().zip(options) {
        same(
            &answer.unwrap(),
            &embedder.embed_with(TEXTS, options).unwrap(),
        );
    }
}

#[test]
fn one_kept_vector_answers_calls_of_every_form() {
    let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let embedder = load(tiny_model(), config);
    let plain = load(tiny_model(), EmbeddingConfig::default());
    let batcher = DynamicBatcher::new(&isovec::Embedder::from(embedder.clone()));
    // The first call is cut, so that a cut vector that was kept would be found by the others.
    for options in [cut(4), EmbedOptions::default(), cut(9), cut(4)] {
        let expected = plain.embed_with(TEXTS, options.clone()).unwrap();
        same(
            &embedder.embed_with(TEXTS, options.clone()).unwrap(),
            &expected,
        );
        let joined = pollster::block_on(batcher.embed_with(TEXTS, options)).unwrap();
        same(&joined, &expected);
    }
    let kept = embedder.stats().embedding_cache.unwrap();
    assert_eq!(
        (kept.misses, kept.hits),
        (TEXTS.len() as u64, 7 * TEXTS.len() as u64)
    );
}
