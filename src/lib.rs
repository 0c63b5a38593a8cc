//! **One embedding SDK, two targets, the same vectors.** This crate is the server's half: it turns
//! texts into vectors with any BERT-like embedding model, and the same model gives the same
//! vectors in the browser through the npm package `isovec`.
//!
//! ```no_run
//! # async fn example() -> isovec::Result<()> {
//! use isovec::{Embedder, models};
//!
//! let embedder = Embedder::load(models::ALL_MINILM_L6_V2).await?;
//! let passages = ["the cat sleeps by the window", "shares fell after the announcement", "rain is expected tomorrow"];
//! let index = embedder.embed_passages(passages).await?;
//! let query = embedder.embed_query("what will the weather be like?").await?;
//! for hit in index.search_one(&query, 1)? {
//!     println!("{:.3} {}", hit.score, passages[hit.index]); // 0.598 rain is expected tomorrow
//! }
//! # Ok(()) }
//! ```
//!
//! - [`Embedder`]: loads a model and embeds, async; [`blocking::Embedder`] is the same for callers
//!   who wait. [`Embedder::builder`] says more about what is loaded: [`Device`], [`Dtype`],
//!   dimension, configuration.
//! - [`Classifier`]: a model that gives texts labels with scores, loaded and run in the same way.
//! - [`DynamicBatcher`]: joins the calls of many tasks into batches.
//! - [`Embedder::embed_stream`]: any number of texts, in flat memory.
//! - [`Embedder::embed_chunks`], [`Embedder::embed_long`]: texts that are longer than the model sees.
//! - [`EmbeddingConfig`]: every knob, and presets to begin with
//!   ([`high_throughput`](EmbeddingConfig::high_throughput),
//!   [`low_latency`](EmbeddingConfig::low_latency), [`gpu`](EmbeddingConfig::gpu),
//!   [`cpu`](EmbeddingConfig::cpu), [`memory_constrained`](EmbeddingConfig::memory_constrained),
//!   [`debug`](EmbeddingConfig::debug)); [`Embedder::effective_config`] says what came of each
//!   knob, and why.
//! - [`Stats`], from [`Embedder::stats`]: what was done since the model was loaded, counted: who
//!   computes and what was passed over, waiting, buffers, copies, padding, the time of every stage.
//! - [`Embedder::profile`]: when what was done, request by request and operator by operator, as a
//!   trace for Perfetto, Chrome and `isovec trace`; the same spans go to [`tracing`].
//! - The crate `isovec-insight`: what would make it faster or smaller, trials that say whether it does, and a model's graph, node
//!   by node.
//! - [`HardwareInfo`], [`Features`]: what there is to compute with, and what of it can be used.
//! - [`Embeddings`]: the vectors, with the fingerprint of what made them; saved, loaded, searched.
//! - [`ModelSource`], [`models`]: where models come from.
//! - [`export()`]: a model as one ONNX file with its pooling head in it.
//!
//! With nothing installed, the portable engine computes. Where ONNX Runtime's shared library is
//! named ([`EmbeddingConfig::with_onnxruntime_library`], or the variable `ORT_DYLIB_PATH`), ONNX
//! Runtime does. On the machine of `benches/RESULTS.md` neither is far from the other: with
//! all-MiniLM-L6-v2 on one thread the portable engine took 2.7 ms for a text of 16 tokens where
//! ONNX Runtime took 3.7, and 14.2 ms for one of 128 where it took 15.2.

// First, because their macros are seen only by what comes after them.
#[macro_use]
mod describe;
#[macro_use]
mod loading;

mod backend;
mod batcher;
mod cache;
#[cfg(feature = "chunking")]
mod chunk;
mod classifier;
mod config;
mod effective;
mod embedder;
mod embeddings;
mod error;
mod export;
mod fallback;
mod features;
mod hardware;
pub mod inspect;
mod metrics;
mod model;
pub mod models;
mod plan;
mod record;
mod sentence_transformers;
pub mod similarity;
mod source;
mod stats;
mod stream;
mod sync;

pub use backend::target_api::*;
pub use batcher::{DynamicBatcher, QueueCounts, Shutdown};
#[cfg(feature = "chunking")]
pub use chunk::{Chunk, ChunkBy, ChunkOptions, ChunkPlace, Combine, EmbeddedChunks};
pub use classifier::{
    Classifications, Classified, Classifier, ClassifierBuilder, ClassifyOptions, Label, Scores,
};
pub use config::{
    BatchingConfig, Device, Dtype, EmbeddingCacheConfig, EmbeddingConfig, HubConfig, ModelConfig,
    TextConfig, Truncation,
};
pub use effective::{EffectiveConfig, Knob};
pub use embedder::Embedder;
pub use embeddings::{Embeddings, PrecisionDifference};
pub use error::{Error, Result};
pub use export::{ExportOptions, Exported, export};
pub use features::{EngineFeature, Features, ProviderFeature};
pub use hardware::{CacheInfo, CpuInfo, GpuInfo, HardwareInfo, MemoryInfo, PageInfo};
pub use loading::EmbedderBuilder;
pub use model::{EmbedOptions, OnProgress, Progress, Prompt};
pub use similarity::{Hit, Similarity};
pub use source::ModelSource;
pub use stats::{CallStats, EmbeddingCacheStats, StageStats, Stats, TokenStats};
pub use stream::{Embedded, OnStreamProgress, StreamOptions, StreamProgress};

pub use isovec_engine::EngineError;
pub use isovec_engine::cancel::Cancel;
pub use isovec_engine::config::{
    CudaOptions, EngineChoice, EngineConfig, ExecutionProvider, IoConfig, MemoryConfig,
    ProvidersConfig, SessionConfig, TensorRtOptions, UnknownProvider, WebGpuOptions,
};
pub use isovec_engine::content::{ByteSource, Content};
pub use isovec_engine::counters::Ended;
pub use isovec_engine::description::ModelDescription;
pub use isovec_engine::engine::{Capabilities, ProviderInfo};
pub use isovec_engine::fingerprint::{Difference, Fingerprint, Precision};
pub use isovec_engine::hardware::{AdapterInfo, AdapterKind};
pub use isovec_engine::maybe_send::BoxFuture;
pub use isovec_engine::profile::{
    AlreadyProfiled, Detail as ProfileDetail, Event as ProfileEvent, Kind as ProfileEventKind,
    Profile, ProfileOptions, ProfileSession, Span as ProfileSpan, Stage as ProfileStage,
    TARGET as PROFILE_TARGET,
};
pub use isovec_engine::stats::{
    BesideStats, EngineStats, Fallback, GpuStats, IoStats, KernelStats, Latency, PoolStats,
    ProviderStats, SessionShare, SessionStats,
};
#[doc(hidden)] // For the npm package, which fetches files itself.
pub use isovec_model::bundle::next_told;
pub use isovec_model::head::Pooling;
pub use isovec_tokenize::TokenizeError;

/// Compiles the examples of the documents that users read.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/configuration.md")]
    struct Configuration;
    #[doc = include_str!("../docs/embedding.md")]
    struct Embedding;
    #[doc = include_str!("../docs/getting-started.md")]
    struct GettingStarted;
    #[doc = include_str!("../docs/models.md")]
    struct Models;
    #[doc = include_str!("../docs/observing.md")]
    struct Observing;
    #[doc = include_str!("../docs/parity.md")]
    struct Parity;
    #[doc = include_str!("../docs/providers.md")]
    struct Providers;
    #[doc = include_str!("../docs/saved-embeddings.md")]
    struct SavedEmbeddings;
}
