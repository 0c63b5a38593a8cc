//! Models of static embeddings on every engine: their vectors, which tokens they have, and how they are told apart.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec::blocking::Embedder;
use isovec::config::Dtype;
use isovec::{EmbeddingConfig, Error, ExportOptions, ModelSource};
use isovec_test_models::static_embedding::{
    Layout, StaticModel, Stored, UNKNOWN, plain, quantised,
};
use isovec_test_models::tiny::{tokens, vocabulary};
use isovec_test_support::{Which, engines};

/// The largest difference of a component of a unit vector.
const BOUND: f64 = 1e-6;

const WIDTH: usize = 48;

/// Unknown words are among them, and special tokens that a text spells out.
const TEXTS: [&str; 6] = [
    "the dog is an animal",
    "a",
    "\u{6771}\u{4eac} is a city",
    "xylophone quizzes jinx zephyr",
    "[CLS] and [SEP] are only words here? no: they are special",
    "user@example.com https://example.com/path?query=1#part",
];

fn model() -> StaticModel {
    plain(vocabulary().len(), WIDTH)
}

fn shared() -> StaticModel {
    quantised(vocabulary().len(), 50, WIDTH)
}

fn source(files: BTreeMap<String, Vec<u8>>) -> ModelSource {
    let files = files
        .into_iter()
        .map(|(name, bytes)| (name, Bytes::from(bytes)));
    ModelSource::bytes("static", files)
}

fn load(model: &StaticModel, layout: Layout, config: EmbeddingConfig) -> Embedder {
    let source = source(model.files(layout, Stored::F32));
    Embedder::builder(source).config(config).load().unwrap()
}

fn portable() -> EmbeddingConfig {
    Which::Portable.configure(EmbeddingConfig::default())
}

/// The ids that a layout's own library looks up.
fn looked_up(layout: Layout, text: &str) -> Vec<i64> {
    let mut ids = tokens(&vocabulary(), text);
    if layout.is_model2vec() {
        ids.retain(|&id| id != UNKNOWN);
        ids.truncate(512);
    }
    ids
}

fn agrees(what: &str, model: &StaticModel, layout: Layout, embedder: &Embedder, texts: &[&str]) {
    let found = embedder.embed(texts).unwrap();
    for (at, text) in texts.iter().enumerate() {
        let ids = looked_up(layout, text);
        assert_eq!(
            found.token_counts()[at] as usize,
            ids.len(),
            "{what}: {text}"
        );
        for (found, wanted) in found.get(at).unwrap().iter().zip(model.vector(&ids)) {
            let difference = (f64::from(*found) - wanted).abs();
            assert!(difference <= BOUND, "{what}: {text}: {difference:e}");
        }
    }
}

#[test]
fn every_engine_agrees_with_the_reference() {
    for which in engines() {
        for layout in Layout::ALL {
            for model in [model(), shared()] {
                let config = which.configure(EmbeddingConfig::default());
                let embedder = load(&model, layout, config);
                assert_eq!(embedder.provider().engine, which.name());
                let what = format!("{}, {layout:?}", which.name());
                agrees(&what, &model, layout, &embedder, &TEXTS);
            }
        }
    }
}

#[test]
fn lengths_are_kept_where_the_model_keeps_them() {
    let model = StaticModel {
        normalize: false,
        ..shared()
    };
    for layout in Layout::ALL {
        let embedder = load(&model, layout, portable());
        agrees(&format!("{layout:?}"), &model, layout, &embedder, &TEXTS);
    }
}

#[test]
fn tables_of_small_numbers_are_read() {
    for stored in [Stored::F16, Stored::I8] {
        for layout in [Layout::Model2Vec, Layout::SentenceTransformers] {
            let source = source(model().files(layout, stored));
            let embedder = Embedder::builder(source).config(portable()).load().unwrap();
            let what = format!("{stored:?}, {layout:?}");
            agrees(&what, &model().rounded(stored), layout, &embedder, &TEXTS);
        }
    }
}

#[test]
fn small_forms_have_the_same_identity() {
    let full = load(&model(), Layout::Model2Vec, portable());
    let vectors = full.embed(TEXTS).unwrap();
    for (dtype, least) in [(Dtype::F16, 0.999_99), (Dtype::Int8, 0.999)] {
        let small = load(&model(), Layout::Model2Vec, portable().with_dtype(dtype));
        assert_eq!(small.fingerprint().identity, full.fingerprint().identity);
        let small = small.embed(TEXTS).unwrap();
        for (a, b) in vectors.iter().zip(small.iter()) {
            let cosine: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            assert!(cosine >= least, "{dtype:?}: {cosine}");
        }
    }
}

/// Model2Vec reads 512 tokens unless its caller says otherwise; sentence-transformers reads all.
#[test]
fn long_texts_end_where_the_library_ends_them() {
    let text = "the dog and the cat of the king ".repeat(100);
    for which in engines() {
        for layout in [Layout::Model2Vec, Layout::SentenceTransformers] {
            let config = which.configure(EmbeddingConfig::default());
            let embedder = load(&model(), layout, config.clone());
            let what = format!("{}, {layout:?}", which.name());
            agrees(&what, &model(), layout, &embedder, &[&text, "a dog"]);
            let cut = embedder.embed([&text]).unwrap();
            assert_eq!(cut.truncated(), [layout.is_model2vec()], "{what}");
            let longer = load(&model(), layout, config.with_max_length(700));
            let longer = longer.embed([&text]).unwrap();
            assert_eq!(longer.token_counts(), [700], "{what}");
        }
    }
}

/// Unknown tokens do not count towards the 512.
#[test]
fn the_end_is_counted_without_unknown_tokens() {
    let text = format!("{} {}", "\u{6771} ".repeat(300), "dog cat ".repeat(250));
    let embedder = load(&model(), Layout::Model2Vec, portable());
    let found = embedder.embed([&text]).unwrap();
    assert_eq!(
        (found.token_counts(), found.truncated()),
        (&[500][..], &[false][..])
    );
    agrees("unknown", &model(), Layout::Model2Vec, &embedder, &[&text]);
}

#[test]
fn the_tokenizers_own_length_holds_for_sentence_transformers() {
    let layout = Layout::SentenceTransformers;
    let mut files = model().files(layout, Stored::F32);
    let tokenizer = files.get_mut("0_StaticEmbedding/tokenizer.json").unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(tokenizer).unwrap();
    json["truncation"] = serde_json::json!({"max_length": 3, "direction": "Right"});
    *tokenizer = json.to_string().into_bytes();
    let embedder = Embedder::builder(source(files))
        .config(portable())
        .load()
        .unwrap();
    let found = embedder.embed(["the dog is an animal"]).unwrap();
    assert_eq!(
        (found.token_counts(), found.truncated()),
        (&[3][..], &[true][..])
    );
}

/// A text of nothing that has a vector has none: zeros have no direction.
#[test]
fn a_text_without_tokens_is_an_error() {
    for which in engines() {
        let config = which.configure(EmbeddingConfig::default());
        for (layout, texts) in [
            (Layout::Model2Vec, &["", " ", "\u{6771}\u{4eac}"][..]),
            (Layout::SentenceTransformers, &["", " "]),
        ] {
            let embedder = load(&model(), layout, config.clone());
            for text in texts {
                let error = embedder.embed(["a dog", text]).unwrap_err();
                assert!(matches!(error, Error::NoTokens { text: 1 }), "{error}");
            }
        }
        // There the unknown token has a vector of its own.
        let embedder = load(&model(), Layout::SentenceTransformers, config);
        let layout = Layout::SentenceTransformers;
        agrees(
            "unknown",
            &model(),
            layout,
            &embedder,
            &["\u{6771}\u{4eac}"],
        );
    }
}

#[test]
fn what_decides_vectors_is_in_the_fingerprint() {
    let fingerprints = Layout::ALL.map(|layout| {
        let embedder = load(&model(), layout, portable());
        embedder.fingerprint().identity.clone()
    });
    let [model2vec, alone, sentence_transformers, root] = fingerprints;
    assert_eq!(model2vec, alone);
    assert_eq!(sentence_transformers, root);
    for key in ["architecture", "tokenizer", "truncation"] {
        assert_ne!(model2vec[key], sentence_transformers[key], "{key}");
    }
    assert_eq!(model2vec["normalize"], "true");
    let other = load(&shared(), Layout::Model2Vec, portable());
    assert_ne!(
        other.fingerprint().identity["weights"],
        model2vec["weights"]
    );
}

/// A mapping of the same table, and other factors, are other weights.
#[test]
fn mapping_and_factors_are_part_of_the_weights() {
    let identity = |model: &StaticModel| {
        let embedder = load(model, Layout::Model2Vec, portable());
        embedder.fingerprint().identity["weights"].clone()
    };
    let (mut mapping, mut weights) = (shared(), shared());
    mapping.mapping.as_mut().unwrap()[9] ^= 1;
    weights.weights.as_mut().unwrap()[9] += 1.0;
    let all = [shared(), mapping, weights].map(|model| identity(&model));
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
}

#[test]
fn a_table_of_fewer_rows_than_the_tokenizer_has_ids_is_refused() {
    for layout in Layout::ALL {
        let mut files = model().files(layout, Stored::F32);
        let table = match layout.is_model2vec() {
            true => "embeddings",
            false => "embedding.weight",
        };
        let few = plain(vocabulary().len() - 1, WIDTH).tensors(table, Stored::F32);
        files.insert(layout.table_file().into(), few);
        let error = Embedder::builder(source(files))
            .config(portable())
            .load()
            .unwrap_err();
        assert_eq!(error.kind(), "InvalidModel", "{error}");
        assert!(error.to_string().contains("tokenizer"), "{error}");
    }
}

#[test]
fn an_exported_model_is_the_same_model() {
    for layout in [Layout::Model2Vec, Layout::SentenceTransformers] {
        let folder = tempfile::tempdir().unwrap();
        let from = source(shared().files(layout, Stored::F32));
        let options = ExportOptions::default();
        isovec::blocking::export(from, folder.path(), EmbeddingConfig::default(), options).unwrap();
        assert!(!folder.path().join(layout.table_file()).exists());
        let original = load(&shared(), layout, portable());
        for which in engines() {
            let exported = Embedder::builder(ModelSource::from(folder.path()))
                .config(which.configure(EmbeddingConfig::default()))
                .load()
                .unwrap();
            assert_eq!(
                exported.fingerprint().identity,
                original.fingerprint().identity
            );
            let what = format!("exported, {}", which.name());
            agrees(&what, &shared(), layout, &exported, &TEXTS);
        }
    }
}

/// In a folder of the disk the table is mapped, and not taken along as a small file.
#[test]
fn a_folder_is_read_as_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::SentenceTransformers;
    for (name, content) in model().files(layout, Stored::F32) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let source = ModelSource::from(folder.path());
    let embedder = Embedder::builder(source).config(portable()).load().unwrap();
    agrees("a folder", &model(), layout, &embedder, &TEXTS);
}
