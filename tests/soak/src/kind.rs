//! The models, engines and configurations, with the vectors that each has to give.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isovec::config::{EngineChoice, ExecutionProvider};
use isovec::{EmbeddingConfig, ModelSource};
use isovec_parity::{BOUNDS, Deviation};

/// One way to embed.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    source: PathBuf,
    config: EmbeddingConfig,
    /// Whether every vector has the bits that it had alone.
    exact: bool,
    /// Whether its device is taken away.
    pub(crate) is_gpu: bool,
    /// The most texts of a call, as a power of two: larger models take less.
    pub(crate) size: usize,
    /// Vectors by the texts' numbers.
    expected: Vec<Vec<f32>>,
}

impl Kind {
    pub(crate) fn source(&self) -> ModelSource {
        self.source.clone().into()
    }

    pub(crate) fn config(&self) -> EmbeddingConfig {
        self.config.clone()
    }

    /// What is wrong with a text's vector, if anything.
    pub(crate) fn check(&self, text: usize, vector: &[f32]) -> Result<(), String> {
        let expected = &self.expected[text];
        if self.exact {
            let bits = |vector: &[f32]| vector.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            return match bits(vector) == bits(expected) {
                true => Ok(()),
                false => Err(format!("{}: text {text} has other bits", self.name)),
            };
        }
        // Both lie within the bounds of the truth, on either side of it.
        let bounds = Deviation {
            component: 2.0 * BOUNDS.component,
            l2: 2.0 * BOUNDS.l2,
            text: 0,
        };
        let expected: Vec<f64> = expected.iter().copied().map(f64::from).collect();
        let apart = Deviation::between([vector], [&expected[..]]);
        match apart.within(&bounds) {
            true => Ok(()),
            false => Err(format!("{}: text {text}: {apart}", self.name)),
        }
    }
}

/// A kind before its vectors are known.
struct Planned {
    name: &'static str,
    source: PathBuf,
    config: EmbeddingConfig,
    exact: bool,
    is_gpu: bool,
    size: usize,
    /// The kind of error that says that this machine lacks what it takes.
    missing: Option<&'static str>,
}

/// Everything that this machine can run, or what of it has `named` in its name. What it cannot is said and left out.
/// `folder` is for vectors that are kept.
pub(crate) fn kinds(texts: &[String], folder: &Path, named: Option<&str>) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    let wanted = |planned: &Planned| named.is_none_or(|named| planned.name.contains(named));
    for planned in planned(folder).into_iter().filter(wanted) {
        match plain(&planned, texts) {
            Ok(expected) => kinds.push(Kind {
                name: planned.name,
                source: planned.source,
                config: planned.config,
                exact: planned.exact,
                is_gpu: planned.is_gpu,
                size: planned.size,
                expected,
            }),
            Err(error) if planned.missing.is_some_and(|kind| kind == error.kind()) => {
                println!("left out, {}: {error}", planned.name);
            }
            Err(error) => bail!("{}: {error}", planned.name),
        }
    }
    if kinds.is_empty() {
        bail!("nothing here is named {:?}", named.unwrap_or_default());
    }
    Ok(kinds)
}

/// What plain calls give, of an embedder that keeps nothing.
fn plain(planned: &Planned, texts: &[String]) -> isovec::Result<Vec<Vec<f32>>> {
    let mut config = planned.config.clone();
    config.embedding_cache = isovec::config::EmbeddingCacheConfig::default();
    let embedder = isovec::blocking::Embedder::builder(planned.source.clone())
        .config(config)
        .load()?;
    Ok(embedder.embed(texts)?.into_vecs())
}

fn planned(folder: &Path) -> Vec<Planned> {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tiny-bert");
    // Nothing is remembered, so that every load does everything.
    let config = || {
        EmbeddingConfig::default()
            .with_remember(false)
            .with_intra_op_threads(1)
            .with_pool_size(2)
    };
    let portable = || config().with_engine(EngineChoice::Portable);
    let native = || config().with_engine(EngineChoice::OnnxRuntime);
    let mut gpu = EmbeddingConfig::default();
    let providers = &mut gpu.runtime.providers;
    providers.execution_providers = vec![ExecutionProvider::WebGpu];
    providers.webgpu.software_adapter = Some(true);
    let mut behind = gpu.clone();
    behind
        .runtime
        .providers
        .execution_providers
        .push(ExecutionProvider::Cpu);
    behind.runtime.engine = EngineChoice::Portable;
    let of = |name, config, exact| Planned {
        name,
        source: tiny.clone(),
        config,
        exact,
        is_gpu: false,
        size: 6,
        missing: None,
    };
    let mut all = vec![
        of("portable", portable(), false),
        of(
            "portable, a short queue",
            portable()
                .with_deterministic_compute(true)
                .with_max_queue(24),
            true,
        ),
        of(
            "portable, kept in memory",
            portable()
                .with_deterministic_compute(true)
                .with_embedding_cache_memory(16 << 10),
            true,
        ),
        of(
            "portable, kept on the disk",
            portable()
                .with_deterministic_compute(true)
                .with_embedding_cache_memory(8 << 10)
                .with_embedding_cache_disk(48 << 10)
                .with_embedding_cache_folder(folder),
            true,
        ),
        Planned {
            missing: Some("EngineUnavailable"),
            ..of("ONNX Runtime", native(), false)
        },
        Planned {
            missing: Some("EngineUnavailable"),
            ..of(
                "ONNX Runtime, kept on the disk",
                native()
                    .with_deterministic_compute(true)
                    .with_embedding_cache_disk(48 << 10)
                    .with_embedding_cache_folder(folder),
                true,
            )
        },
        Planned {
            is_gpu: true,
            missing: Some("ProviderUnavailable"),
            ..of("GPU", gpu, false)
        },
        Planned {
            is_gpu: true,
            ..of("GPU before the processor", behind, false)
        },
    ];
    match minilm() {
        Some(minilm) => {
            let of = |name, config, missing| Planned {
                name,
                source: minilm.clone(),
                config,
                exact: false,
                is_gpu: false,
                size: 2,
                missing,
            };
            all.extend([
                of("MiniLM, portable", portable(), None),
                of("MiniLM, ONNX Runtime", native(), Some("EngineUnavailable")),
            ]);
        }
        None => println!("left out, MiniLM: it is not there; `cargo xtask setup model` fetches it"),
    }
    all
}

/// Where set-up put all-MiniLM-L6-v2, or where `ISOVEC_TEST_MODEL` says.
fn minilm() -> Option<PathBuf> {
    let folder = std::env::var_os("ISOVEC_TEST_MODEL").map_or_else(
        || isovec::cache_dir().map(|cache| cache.join("models/all-MiniLM-L6-v2")),
        |folder| Some(PathBuf::from(folder)),
    );
    folder.filter(|folder| folder.join("model.safetensors").is_file())
}

/// A folder that is taken away when it is dropped.
pub(crate) fn folder() -> Result<tempfile::TempDir> {
    tempfile::tempdir().context("cannot make a folder for kept vectors")
}
