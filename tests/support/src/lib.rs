//! Shared parts of whole-system tests: the engines of this machine and the models to run on them.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::fs;
use std::path::{Path, PathBuf};

use isovec::config::{EngineChoice, ExecutionProvider};
use isovec::{EmbeddingConfig, ModelSource};

/// An engine that a test names, so that none is chosen for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// ONNX Runtime on the processor.
    OnnxRuntime,
    /// The portable engine on the processor.
    Portable,
    /// isovec's own kernels on a GPU, which a processor may play.
    WebGpu,
}

impl Which {
    /// As `provider().engine` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnnxRuntime => "onnxruntime",
            Self::Portable => "portable",
            Self::WebGpu => "gpu",
        }
    }

    /// A configuration under which this engine computes, or loading fails.
    pub fn configure(self, config: EmbeddingConfig) -> EmbeddingConfig {
        match self {
            Self::OnnxRuntime => config.with_engine(EngineChoice::OnnxRuntime),
            Self::Portable => config.with_engine(EngineChoice::Portable),
            Self::WebGpu => {
                let mut config = config;
                config.runtime.providers.execution_providers = vec![ExecutionProvider::WebGpu];
                // Test machines have a processor that plays a GPU, if anything.
                config.runtime.providers.webgpu.software_adapter = Some(true);
                config
            }
        }
    }
}

/// The engines that can run here. ONNX Runtime is left out, aloud, where its library is not, and the
/// GPU's where there is no adapter; `ISOVEC_REQUIRE_ONNXRUNTIME=1` and `ISOVEC_REQUIRE_GPU=1`, which
/// `cargo xtask test` sets, make that a failure.
pub fn engines() -> Vec<Which> {
    let mut engines = vec![Which::Portable];
    for (which, missing, must) in [
        (
            Which::OnnxRuntime,
            "EngineUnavailable",
            "ISOVEC_REQUIRE_ONNXRUNTIME",
        ),
        (Which::WebGpu, "ProviderUnavailable", "ISOVEC_REQUIRE_GPU"),
    ] {
        let config = which.configure(EmbeddingConfig::default());
        match isovec::blocking::Embedder::builder(tiny_model())
            .config(config)
            .load()
        {
            Ok(_) => engines.push(which),
            Err(error) if error.kind() == missing && !required(must) => {
                eprintln!("not run on {}: {error}", which.name());
            }
            Err(error) => panic!("{}: {error}", which.name()),
        }
    }
    engines
}

/// The seeded model that the repository carries.
pub fn tiny_model() -> ModelSource {
    ModelSource::from(data("tiny-bert"))
}

/// Writes a model with the tokenizer and the pooling of the [tiny one](tiny_model) into an empty folder: its `config.json`, and its
/// weights as safetensors.
pub fn written_with_tiny_files(folder: &Path, config: &[u8], weights: &[u8]) -> ModelSource {
    let tiny = data("tiny-bert");
    fs::write(folder.join("config.json"), config).unwrap();
    fs::write(folder.join("model.safetensors"), weights).unwrap();
    fs::create_dir(folder.join("1_Pooling")).unwrap();
    for name in ["modules.json", "1_Pooling/config.json", "tokenizer.json"] {
        fs::copy(tiny.join(name), folder.join(name)).unwrap();
    }
    ModelSource::from(folder)
}

/// A folder of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data")
        .join(name)
}

/// all-MiniLM-L6-v2 where `cargo xtask setup` put it, or where `ISOVEC_TEST_MODEL` says.
/// `None`, aloud, where it is not; `ISOVEC_REQUIRE_MODELS=1` makes that a failure.
pub fn minilm() -> Option<ModelSource> {
    minilm_folder().map(ModelSource::from)
}

/// The folder that it is in.
pub fn minilm_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ISOVEC_TEST_MODEL").map_or_else(
        || isovec::cache_dir().map(|cache| cache.join("models/all-MiniLM-L6-v2")),
        |folder| Some(PathBuf::from(folder)),
    );
    match folder.filter(|folder| folder.join("model.safetensors").is_file()) {
        Some(folder) => Some(folder),
        None => {
            assert!(
                !required("ISOVEC_REQUIRE_MODELS"),
                "all-MiniLM-L6-v2 is not there: run `cargo xtask setup`"
            );
            eprintln!("not run: all-MiniLM-L6-v2 is not there; `cargo xtask setup` fetches it");
            None
        }
    }
}

/// PP-OCR's three networks where `cargo xtask setup` put them, or where `ISOVEC_TEST_OCR` says. `None`, aloud, where they are not;
/// `ISOVEC_REQUIRE_OCR=1` makes that a failure.
pub fn pp_ocr() -> Option<PathBuf> {
    let folder = std::env::var_os("ISOVEC_TEST_OCR").map_or_else(
        || isovec::cache_dir().map(|cache| cache.join("models/pp-ocrv4")),
        |folder| Some(PathBuf::from(folder)),
    );
    let folder = folder.filter(|folder| folder.join("ch_PP-OCRv4_det_infer.onnx").is_file());
    if folder.is_none() {
        assert!(
            !required("ISOVEC_REQUIRE_OCR"),
            "PP-OCR's networks are not there: run `cargo xtask setup ocr`"
        );
        eprintln!("not run: PP-OCR's networks are not there; `cargo xtask setup ocr` fetches them");
    }
    folder
}

/// Texts of mixed lengths, the same every time: most of them up to 12 words, every sixteenth up
/// to 100, in no order.
pub fn mixed_texts(count: usize) -> Vec<String> {
    const WORDS: [&str; 16] = [
        "the", "cat", "sat", "on", "a", "mat", "and", "stocks", "fell", "while", "rain", "came",
        "over", "old", "hills", "again",
    ];
    let mut state = 7u64;
    let mut below = |limit: usize| {
        // Knuth's linear congruential generator, whose high bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    (0..count)
        .map(|_| {
            let longest = if below(16) == 0 { 100 } else { 12 };
            let words = 1 + below(longest);
            let words: Vec<&str> = (0..words).map(|_| WORDS[below(WORDS.len())]).collect();
            words.join(" ")
        })
        .collect()
}

fn required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
