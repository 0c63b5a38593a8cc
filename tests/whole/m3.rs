//! BGE-M3's heads for sparse vectors and for late interaction: on every engine, from safetensors and from an ONNX file, the numbers of
//! an independent implementation at f64.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use isovec::{
    Embedder, EmbeddingConfig, ModelSource, ModelTask, MultiVectorEmbedder, SparseEmbedder,
    SparseOptions, SparseRow,
};
use isovec_model::bundle::{self, BundleOptions};
use isovec_test_models::checkpoint::{Array, Stored};
use isovec_test_models::m3::{self, DIM, Mistake};
use isovec_test_models::tiny;
use isovec_test_models::torch_file::state_dict;
use isovec_test_support::engines;

/// The largest difference of two weights, relative to the weight, or to a quarter for smaller ones.
const NEAR_WEIGHT: f64 = 1e-5;

/// The largest difference of a vector's component.
const NEAR: f64 = 1e-6;

/// Texts of several lengths, so that a batch of them is padded; words occur twice, and special tokens are named.
const TEXTS: [&str; 6] = [
    "the dog is an animal, and the cat is an animal",
    "a",
    "[UNK] money in the [MASK] bank [SEP]",
    "Search vectors in the browser, the same as on the server: the mountain and the river and the sea",
    "",
    "the king and the queen",
];

type Files = BTreeMap<String, Vec<u8>>;

fn source(files: Files) -> ModelSource {
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into()));
    ModelSource::bytes("a model like BGE-M3", files)
}

fn published() -> Files {
    m3::files(&m3::model())
}

/// The same with the graph in a file, as BGE-M3 is published.
fn as_onnx() -> Files {
    let mut files = published();
    let own = files
        .clone()
        .into_iter()
        .map(|(name, bytes)| (name, bytes.into()));
    let bundle = bundle::from_bytes("a model", own.collect(), &BundleOptions::default()).unwrap();
    let graph = smol::block_on(isovec_model::onnx::write_model(&bundle)).unwrap();
    files.remove("model.safetensors");
    files.insert("onnx/model.onnx".into(), graph);
    files
}

fn sparse(files: Files, config: EmbeddingConfig) -> isovec::Result<SparseEmbedder> {
    smol::block_on(SparseEmbedder::builder(source(files)).config(config).load())
}

fn late(files: Files, config: EmbeddingConfig) -> isovec::Result<MultiVectorEmbedder> {
    smol::block_on(
        MultiVectorEmbedder::builder(source(files))
            .config(config)
            .load(),
    )
}

/// The largest difference of a vector's weights, in units of what is allowed.
fn weights_far(row: SparseRow<'_>, wanted: &[f64]) -> f64 {
    assert!(row.indices.is_sorted_by(|a, b| a < b));
    let mut weights = vec![0.0; wanted.len()];
    for (index, value) in row.iter() {
        assert!(value > 0.0);
        weights[index as usize] = f64::from(value);
    }
    let differences = weights.iter().zip(wanted);
    differences
        .map(|(weight, wanted)| (weight - wanted).abs() / (NEAR_WEIGHT * wanted.max(0.25)))
        .fold(0.0, f64::max)
}

/// The largest difference of a component; infinite for another number of vectors.
fn vectors_far(own: &[f32], wanted: &[Vec<f64>]) -> f64 {
    if own.len() != wanted.len() * DIM {
        return f64::INFINITY;
    }
    let pairs = own.iter().zip(wanted.iter().flatten());
    pairs
        .map(|(own, wanted)| (f64::from(*own) - wanted).abs())
        .fold(0.0, f64::max)
}

#[test]
fn both_heads_give_their_numbers_on_every_engine() {
    let model = m3::model();
    for (form, files) in [("safetensors", published()), ("onnx", as_onnx())] {
        for engine in engines() {
            let config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
            let loaded = sparse(files.clone(), config.clone()).unwrap();
            assert_eq!(loaded.provider().engine, engine.name(), "{form}");
            assert_eq!(loaded.vocabulary_size(), tiny::vocabulary().len());
            let set = smol::block_on(loaded.embed(TEXTS)).unwrap();
            let mut weighed = 0;
            for (row, text) in set.iter().zip(TEXTS) {
                let far = weights_far(row, &m3::weights(&model, text, None));
                assert!(
                    far <= 1.0,
                    "{far} times as far as it may be in {text:?}, {form}"
                );
                weighed += row.len();
            }
            assert!(weighed > 10, "some words have a weight");
            assert!(set.get(4).unwrap().is_empty());

            let loaded = late(files.clone(), config).unwrap();
            assert_eq!(loaded.provider().engine, engine.name(), "{form}");
            assert_eq!(loaded.dimension(), DIM);
            let passages = smol::block_on(loaded.embed_passages(TEXTS)).unwrap();
            let queries = smol::block_on(loaded.embed_queries(TEXTS)).unwrap();
            for (at, text) in TEXTS.iter().enumerate() {
                let wanted = m3::vectors(&model, text, None);
                for set in [&passages, &queries] {
                    let far = vectors_far(&set.get(at).unwrap(), &wanted);
                    assert!(far <= NEAR, "{far:e} in {text:?}, {form}");
                }
            }
        }
    }
}

#[test]
fn classic_mistakes_are_farther_than_is_allowed() {
    let model = m3::model();
    let weighed = sparse(published(), EmbeddingConfig::default()).unwrap();
    let weighed = smol::block_on(weighed.embed(TEXTS)).unwrap();
    let compared = late(published(), EmbeddingConfig::default()).unwrap();
    let compared = smol::block_on(compared.embed_passages(TEXTS)).unwrap();
    for mistake in [Mistake::Sum, Mistake::SpecialWeighed, Mistake::NoBias] {
        let each = weighed.iter().zip(TEXTS);
        let far =
            each.map(|(row, text)| weights_far(row, &m3::weights(&model, text, Some(mistake))));
        let far = far.fold(0.0, f64::max);
        assert!(far > 100.0, "{mistake:?} is only {far}");
    }
    for mistake in [
        Mistake::FirstCompared,
        Mistake::LastLeftOut,
        Mistake::NotNormalised,
    ] {
        let wrong = m3::vectors(&model, TEXTS[0], Some(mistake));
        let far = vectors_far(&compared.get(0).unwrap(), &wrong);
        assert!(far > 1e3 * NEAR, "{mistake:?} is only {far:e}");
    }
}

#[test]
fn every_way_in_weighs_the_same() {
    let model = m3::model();
    let wanted = TEXTS.map(|text| m3::weights(&model, text, None));
    for engine in engines() {
        let mut config = engine.configure(EmbeddingConfig::default().with_max_batch_size(4));
        for memory in [None, Some(1 << 20)] {
            config.embedding_cache.memory = memory;
            let loaded = sparse(published(), config.clone()).unwrap();
            let batcher = loaded.batcher();
            let calls = TEXTS.map(|text| batcher.embed([text, TEXTS[0]]));
            for (at, call) in smol::block_on(join_all(calls)).into_iter().enumerate() {
                let call = call.unwrap();
                assert!(weights_far(call.get(0).unwrap(), &wanted[at]) <= 1.0);
                assert!(weights_far(call.get(1).unwrap(), &wanted[0]) <= 1.0);
            }
            let waiting = isovec::blocking::SparseEmbedder::from(loaded.clone());
            for (at, one) in waiting
                .embed_iter(TEXTS, SparseOptions::default())
                .enumerate()
            {
                assert!(weights_far(one.unwrap().vector.as_row(), &wanted[at]) <= 1.0);
            }
            let hits = loaded.stats().embedding_cache.map(|cache| cache.hits);
            assert_eq!(hits.is_some_and(|hits| hits >= 6), memory.is_some());
            let set = waiting.embed([TEXTS[0]]).unwrap();
            let words = waiting.words(set.get(0).unwrap(), 3).unwrap();
            let names = tiny::vocabulary();
            assert!(
                words
                    .iter()
                    .all(|word| names[word.index as usize] == word.token)
            );
        }
    }
}

#[test]
fn the_dense_head_is_what_it_was_and_says_the_task() {
    let embedder = smol::block_on(Embedder::load(source(published()))).unwrap();
    assert_eq!(embedder.dimension(), 32);
    let mut without = published();
    without.retain(|name, _| !name.ends_with(".pt"));
    let plain = smol::block_on(Embedder::load(source(without.clone()))).unwrap();
    assert_eq!(embedder.fingerprint(), plain.fingerprint());
    let task = ModelTask::of(source(published()), &EmbeddingConfig::default());
    assert_eq!(smol::block_on(task).unwrap(), ModelTask::Embed);
    for (error, file) in [
        (
            sparse(without.clone(), EmbeddingConfig::default()).unwrap_err(),
            "sparse_linear.pt",
        ),
        (
            late(without, EmbeddingConfig::default()).unwrap_err(),
            "colbert_linear.pt",
        ),
    ] {
        assert_eq!(error.kind(), "UnsupportedModel");
        assert!(error.to_string().contains(file), "{error}");
    }
}

#[test]
fn what_decides_a_number_is_in_the_fingerprint() {
    let of = |files: Files| {
        let own = sparse(files.clone(), EmbeddingConfig::default()).unwrap();
        let tokens = late(files, EmbeddingConfig::default()).unwrap();
        (own.fingerprint().clone(), tokens.fingerprint().clone())
    };
    let first = of(published());
    assert_eq!(first, of(published()));
    let mut other = m3::model();
    for head in ["sparse_linear.bias", "colbert_linear.bias"] {
        other.tensors.get_mut(head).unwrap().values[0] = 0.75;
    }
    let other = of(m3::files(&other));
    assert!(first.0 != other.0 && first.1 != other.1);
    let mut fewer = published();
    fewer.insert(
        "special_tokens_map.json".into(),
        br#"{"cls_token": "[CLS]", "eos_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "bank"}"#.to_vec(),
    );
    let fewer = of(fewer);
    assert!(first.0 != fewer.0 && first.1 == fewer.1);
}

#[test]
fn a_file_that_is_no_such_layer_is_refused_by_its_name() {
    let array = |shape: &[usize]| Array {
        shape: shape.to_vec(),
        values: vec![0.0; shape.iter().product()],
    };
    let refused = |tensors: &[(&str, &Array)], word: &str| {
        for (name, sparse_is_it) in [("sparse_linear.pt", true), ("colbert_linear.pt", false)] {
            let mut files = published();
            files.insert(name.into(), state_dict("a", tensors, Stored::F32));
            let error = match sparse_is_it {
                true => sparse(files, EmbeddingConfig::default()).unwrap_err(),
                false => late(files, EmbeddingConfig::default()).unwrap_err(),
            };
            assert_eq!(error.kind(), "InvalidModel", "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    };
    let (weight, bias) = (array(&[1, 32]), array(&[1]));
    refused(&[("bias", &bias)], "no weight");
    refused(&[("weight", &bias)], "[1]");
    refused(&[("weight", &weight), ("bias", &array(&[2]))], "[2]");
    refused(&[("weight", &weight), ("more", &bias)], "more");
    refused(&[("weight", &array(&[1, 16]))], "16");
    let mut two = published();
    let weight = array(&[2, 32]);
    two.insert(
        "sparse_linear.pt".into(),
        state_dict("a", &[("weight", &weight)], Stored::F32),
    );
    let error = sparse(two, EmbeddingConfig::default()).unwrap_err();
    assert!(error.to_string().contains("2 outputs"), "{error}");
    let mut cut = published();
    cut.get_mut("sparse_linear.pt").unwrap().pop();
    let error = sparse(cut, EmbeddingConfig::default()).unwrap_err();
    assert!(error.to_string().contains("sparse_linear.pt"), "{error}");
    for config in [
        EmbeddingConfig::default().with_dimension(3),
        EmbeddingConfig::default().with_normalize(false),
    ] {
        assert_eq!(
            sparse(published(), config.clone()).unwrap_err().kind(),
            "Config"
        );
        assert_eq!(late(published(), config).unwrap_err().kind(), "Config");
    }
}
