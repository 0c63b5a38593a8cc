//! The basis of tools that explain a model, such as the crate `isovec-insight`: a model's graph in its file and as
//! the engine runs it, and the memory of the process. Programs that only embed do not need this module. Types of the
//! engine contract come from the crate `isovec-engine`.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::ModelDescription;
use isovec_engine::engine::ProviderInfo;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::onnx::proto::ModelProto;
use isovec_engine::weights::WeightInfo;
use isovec_model::convert::Half;
use serde::{Deserialize, Serialize};

use crate::EmbedderBuilder;
use crate::ModelTask;
use crate::backend;
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::fallback::{self, Engines};
use crate::loading::Asked;
use crate::model::{Output, Purpose, Watch, open, prepare, resolve};
use crate::plan::Tokens;
use crate::source::ModelSource;

/// A model with its pooling head on, as engines are given it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Inspected {
    /// The graph, and the weights apart from it.
    pub bundle: ModelBundle,
    /// The engine that runs it; `None` if no engine was requested.
    pub running: Option<Running>,
}

/// A model on the chosen engine.
#[derive(Debug)]
#[non_exhaustive]
pub struct Running {
    /// The provider that computes.
    pub provider: ProviderInfo,
    /// The model as the engine sees it.
    pub description: ModelDescription,
    /// The number of nodes of each provider, if the runtime reports it.
    pub nodes_of: Vec<(String, usize)>,
    /// The graph that it runs.
    pub graph: RunningGraph,
}

/// The graph that an engine runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunningGraph {
    /// The program that isovec lowers the bundle's graph to.
    Program,
    /// The graph that ONNX Runtime optimised, and the large tensors that are not initializers.
    Optimized(Box<ModelProto>, Vec<WeightInfo>),
    /// ONNX Runtime's own graph, which it cannot write down: a provider that compiles parts of it for its device.
    Unwritten(EngineError),
    /// The bundle's graph, which the engine optimises for itself.
    File,
}

/// Reads a model, and loads it into the resulting engine long enough to get the graph that the engine runs. With
/// `file` no engine is loaded.
///
/// # Errors
/// As [`EmbedderBuilder::load`].
pub fn inspect(model: EmbedderBuilder, file: bool) -> BoxFuture<'static, Result<Inspected>> {
    let Asked {
        source,
        config,
        watch,
    } = model.loading.asked();
    Box::pin(async move {
        let config = config.build()?;
        if !file {
            fallback::check(&config.runtime)?;
        }
        let cancel = watch.cancel.clone();
        let (source, _) = resolve(source, &config, &watch).await?.split();
        let (asked, stop) = (config.clone(), cancel.clone());
        let prepared = backend::offload("reading the model", async move {
            stop.check()?;
            prepare(source, &asked, Purpose::run(&asked, Output::Vectors), &stop).await
        });
        let bundle = prepared.await?.bundle;
        cancel.check()?;
        let running = match file {
            true => None,
            false => Some(run_by(&bundle, &config, &watch).await?),
        };
        Ok(Inspected { bundle, running })
    })
}

async fn run_by(bundle: &ModelBundle, config: &EmbeddingConfig, watch: &Watch) -> Result<Running> {
    let engines = Engines::load(bundle, &config.runtime, &watch.cancel).await?;
    let engine = engines.current();
    let provider = engine.provider().clone();
    let description = engine.description().clone();
    let nodes_of = engine.stats().provider.nodes;
    let (ragged, own) = (engine.capabilities().ragged, engines.provider());
    drop(engines);
    let graph = if provider.engine == "onnxruntime" {
        match backend::optimized(bundle, &config.runtime, own, &watch.cancel).await {
            Ok((graph, large)) => RunningGraph::Optimized(Box::new(graph), large),
            Err(error @ EngineError::Cancelled) => return Err(error.into()),
            Err(error) => RunningGraph::Unwritten(error),
        }
    } else if ragged {
        RunningGraph::Program
    } else {
        RunningGraph::File
    };
    Ok(Running {
        provider,
        description,
        nodes_of,
        graph,
    })
}

/// Bytes of the weights in the files that a load under this configuration would read: the graph is read for it, and the weights
/// are not. A load that makes weights smaller (`model.dtype`) holds less. A model id that is not in the cache is downloaded first.
///
/// # Errors
/// [`Error::Config`](crate::Error::Config) for a configuration that cannot work, those of a download, and those of files that
/// cannot be read.
pub fn weights_bytes(
    source: impl Into<ModelSource>,
    task: ModelTask,
    config: &EmbeddingConfig,
) -> BoxFuture<'static, Result<u64>> {
    let (source, config) = (source.into(), config.clone());
    Box::pin(async move {
        let mut config = config.build()?;
        let watch = Watch::default();
        let (source, _) = resolve(source, &config, &watch).await?.split();
        // To be counted, files need not be in memory.
        config.runtime.memory.mmap = None;
        let (output, half) = match task {
            ModelTask::Sparse => (Output::Sparse, Half::Texts),
            ModelTask::EmbedImages => (Output::Vectors, Half::Pictures),
            _ => (Output::Vectors, Half::Texts),
        };
        backend::offload("counting the model's weights", async move {
            let purpose = Purpose {
                half,
                ..Purpose::run(&config, output)
            };
            let bundle = open(source, &config, &purpose, &watch.cancel)?;
            let weights = bundle.weights.weights().iter();
            Ok(weights.map(|weight| weight.byte_len() as u64).sum())
        })
        .await
    })
}

/// Memory of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMemory {
    /// Bytes that are in memory now.
    pub current_bytes: u64,
    /// The most that were at one time, loading included.
    pub peak_bytes: u64,
}

impl ProcessMemory {
    /// The memory of this process, if the system reports the peak as well: on Linux. `None` elsewhere, and in a page.
    pub fn now() -> Option<Self> {
        backend::machine::process::memory()
    }
}

/// The most tokens of a batch, from the value of `batching.max_batch_tokens` in
/// [`EffectiveConfig`](crate::config::EffectiveConfig): one number, or one for each length of texts. `None` for any
/// other value.
pub fn most_batch_tokens(used: &str) -> Option<usize> {
    Tokens::most_of(used)
}
