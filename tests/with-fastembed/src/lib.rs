//! What both orders of use share: one model, through isovec and through fastembed.

use std::path::{Path, PathBuf};

use fastembed::{
    InitOptionsUserDefined, Pooling, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use isovec::{EmbeddingConfig, EngineChoice, ExportOptions, blocking};

/// Texts of several lengths.
pub const TEXTS: [&str; 3] = ["a cat", "the dog runs in the park", "one two three four five"];

/// The tiny model that ships with isovec's tests.
pub fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tiny-bert")
}

/// Whether there is an ONNX Runtime to test with; without one the tests pass with a note, or
/// fail when `ISOVEC_REQUIRE_ONNXRUNTIME=1` says that there must be one. Both parties find it in
/// `ORT_DYLIB_PATH`: fastembed looks nowhere else that isovec does.
pub fn available() -> bool {
    let named = std::env::var_os("ORT_DYLIB_PATH").is_some_and(|path| Path::new(&path).is_file());
    let required = std::env::var_os("ISOVEC_REQUIRE_ONNXRUNTIME").is_some_and(|value| value == "1");
    assert!(named || !required, "ISOVEC_REQUIRE_ONNXRUNTIME=1, but ORT_DYLIB_PATH names no file");
    if !named {
        eprintln!("skipped: ORT_DYLIB_PATH names no file");
    }
    named
}

/// isovec on ONNX Runtime.
pub fn isovec() -> blocking::Embedder {
    let config = EmbeddingConfig::default().with_engine(EngineChoice::OnnxRuntime);
    let embedder = blocking::Embedder::load(model(), config).expect("isovec loads the model");
    assert_eq!(embedder.provider().engine, "onnxruntime");
    embedder
}

/// fastembed with the same model, exported by isovec without its head: fastembed pools itself.
pub fn fastembed() -> TextEmbedding {
    let folder = tempfile::tempdir().expect("a folder");
    let onnx = folder.path().join("model.onnx");
    // The portable engine's code path: exporting must not touch ONNX Runtime.
    let config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
    blocking::export(model(), &onnx, config, ExportOptions::default().with_head(false))
        .expect("isovec exports the model");
    let file = |name: &str| std::fs::read(model().join(name)).expect("a file of the model");
    let tokenizer = TokenizerFiles {
        tokenizer_file: file("tokenizer.json"),
        config_file: file("config.json"),
        special_tokens_map_file: b"{}".to_vec(),
        tokenizer_config_file: br#"{"model_max_length": 32, "pad_token": "[PAD]"}"#.to_vec(),
    };
    let onnx = std::fs::read(&onnx).expect("the exported model");
    let model = UserDefinedEmbeddingModel::new(onnx, tokenizer).with_pooling(Pooling::Mean);
    let options = InitOptionsUserDefined::new().with_intra_threads(1);
    TextEmbedding::try_new_from_user_defined(model, options).expect("fastembed loads the model")
}

/// Both embed, in turns, and agree.
pub fn agree(isovec: &blocking::Embedder, fastembed: &mut TextEmbedding) {
    for _ in 0..2 {
        let ours = isovec.embed(TEXTS).expect("isovec embeds").into_vecs();
        let theirs = fastembed.embed(TEXTS.to_vec(), None).expect("fastembed embeds");
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.len(), theirs.len());
            let worst = ours
                .iter()
                .zip(theirs)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0f32, f32::max);
            assert!(worst < 1e-5, "isovec and fastembed differ by {worst}");
        }
    }
}
