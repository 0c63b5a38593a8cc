//! What both orders of use share: all-MiniLM-L6-v2, through isovec and through fastembed, held
//! to the same reference.
#![cfg(feature = "fastembed")]

use std::path::{Path, PathBuf};

use fastembed::{
    InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use isovec::config::EngineChoice;
use isovec::{EmbeddingConfig, ExportOptions, blocking};
use isovec_parity::{BOUNDS, Deviation, Reference};

/// The longest input: what the model's `sentence_bert_config.json` says, which fastembed does not
/// read.
const MAX_TOKENS: usize = 256;

/// fastembed pads a batch to its longest text, in the order given: a small one wastes less.
const FASTEMBED_BATCH: usize = 8;

/// The model, where there is one and a library to run it. `None`, aloud, where not;
/// `ISOVEC_REQUIRE_ONNXRUNTIME=1` and `ISOVEC_REQUIRE_MODELS=1` make that a failure.
#[must_use]
pub fn model() -> Option<PathBuf> {
    // fastembed looks for the library in none of the other places that isovec does.
    let library = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
    let library = found(
        library.filter(|path| path.is_file()),
        "ORT_DYLIB_PATH names no file",
        "ISOVEC_REQUIRE_ONNXRUNTIME",
    );
    let model = std::env::var_os("ISOVEC_TEST_MODEL").map_or_else(
        || isovec::cache_dir().map(|cache| cache.join("models/all-MiniLM-L6-v2")),
        |folder| Some(PathBuf::from(folder)),
    );
    let model = found(
        model.filter(|folder| folder.join("model.safetensors").is_file()),
        "all-MiniLM-L6-v2 is not there; `cargo xtask setup` fetches it",
        "ISOVEC_REQUIRE_MODELS",
    );
    library.and(model)
}

fn found(path: Option<PathBuf>, missing: &str, required: &str) -> Option<PathBuf> {
    if path.is_none() {
        assert!(
            std::env::var_os(required).is_none_or(|value| value != "1"),
            "{required}=1, but {missing}"
        );
        eprintln!("not run: {missing}");
    }
    path
}

/// isovec on ONNX Runtime.
///
/// # Panics
/// When it does not load.
#[must_use]
pub fn isovec(model: &Path) -> blocking::Embedder {
    let config = EmbeddingConfig::default().with_engine(EngineChoice::OnnxRuntime);
    let embedder = blocking::Embedder::builder(model)
        .config(config)
        .load()
        .expect("isovec loads the model");
    assert_eq!(embedder.provider().engine, "onnxruntime");
    embedder
}

/// fastembed with the folder that isovec exports. Without its head: fastembed pools and
/// normalises by itself, and would do it on the head's output as well.
///
/// # Panics
/// When it is not exported or not loaded.
#[must_use]
pub fn fastembed(model: &Path) -> TextEmbedding {
    let folder = tempfile::tempdir().expect("a folder");
    blocking::export(
        model,
        folder.path(),
        EmbeddingConfig::default(),
        ExportOptions::default().with_head(false),
    )
    .expect("isovec exports the model");
    let file = |name: &str| {
        let path = folder.path().join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let tokenizer = TokenizerFiles {
        tokenizer_file: file("tokenizer.json"),
        config_file: file("config.json"),
        special_tokens_map_file: file("special_tokens_map.json"),
        tokenizer_config_file: file("tokenizer_config.json"),
    };
    let model =
        UserDefinedEmbeddingModel::new(file("model.onnx"), tokenizer).with_pooling(Pooling::Mean);
    let options = InitOptionsUserDefined::new().with_max_length(MAX_TOKENS);
    TextEmbedding::try_new_from_user_defined(model, options).expect("fastembed loads the model")
}

/// Both embed the same texts, in turns, and each stays within isovec's bounds of the reference.
///
/// # Panics
/// When one does not.
pub fn agree(isovec: &blocking::Embedder, fastembed: &mut TextEmbedding) {
    let reference = Reference::minilm();
    for _ in 0..2 {
        let ours = isovec.embed(&reference.texts).expect("isovec embeds");
        hold("isovec", &reference, &ours.into_vecs());
        let theirs = fastembed.embed(&reference.texts, Some(FASTEMBED_BATCH));
        hold("fastembed", &reference, &theirs.expect("fastembed embeds"));
    }
}

fn hold(name: &str, reference: &Reference, vectors: &[Vec<f32>]) {
    let rows = (0..reference.texts.len()).map(|row| reference.vector(row));
    let deviation = Deviation::between(vectors.iter().map(Vec::as_slice), rows);
    println!("{name}: {deviation}");
    assert!(deviation.within(&BOUNDS), "{name}: {deviation}");
}

/// One of them works on when the other is gone.
///
/// # Panics
/// When its vectors leave the bounds.
pub fn alone(mut embed: impl FnMut(&str) -> Vec<f32>) {
    let reference = Reference::minilm();
    // The first text is empty, which is a text as well.
    for row in 0..3 {
        let vector = embed(&reference.texts[row]);
        let deviation = Deviation::between([vector.as_slice()], [reference.vector(row)]);
        assert!(deviation.within(&BOUNDS), "text {row}: {deviation}");
    }
}
