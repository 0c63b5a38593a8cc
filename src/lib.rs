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
//! - [`stats::Stats`], from [`Embedder::stats`]: what was done since the model was loaded, counted: who
//!   computes and what was passed over, waiting, buffers, copies, padding, the time of every stage.
//! - [`Embedder::profile`]: when what was done, request by request and operator by operator, as a
//!   trace for Perfetto, Chrome and `isovec trace`; the same spans go to [`tracing`].
//! - The crate `isovec-insight`: what would make it faster or smaller, trials that say whether it does, and a model's graph, node
//!   by node.
//! - [`hardware::HardwareInfo`], [`hardware::Features`]: what there is to compute with, and what of it can be used.
//! - [`Embeddings`]: the vectors, with the [`fingerprint`] of what made them; saved, loaded, searched.
//! - [`ModelSource`], [`models`]: where models come from.
//! - [`export()`]: a model as one ONNX file with its pooling head in it.
//!
//! The root has what most programs name; [`config`], [`stats`], [`profile`], [`hardware`],
//! [`fingerprint`], [`engine`], [`error`](mod@error), [`source`] and [`stream`] have the rest.
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
pub mod config;
mod effective;
mod embedder;
mod embeddings;
pub mod engine;
pub mod error;
mod export;
mod fallback;
mod features;
pub mod fingerprint;
#[doc(hidden)]
pub mod for_npm;
pub mod hardware;
pub mod inspect;
mod metrics;
mod model;
pub mod models;
mod plan;
pub mod profile;
mod record;
mod sentence_transformers;
pub mod similarity;
pub mod source;
pub mod stats;
pub mod stream;
mod sync;

pub use backend::target_api::*;
pub use batcher::{DynamicBatcher, Shutdown};
#[cfg(feature = "chunking")]
pub use chunk::{Chunk, ChunkBy, ChunkOptions, ChunkPlace, Combine, EmbeddedChunks};
pub use classifier::{
    Classifications, Classified, Classifier, ClassifierBuilder, ClassifyOptions, Label, Scores,
};
pub use config::{Device, Dtype, EmbeddingConfig};
pub use embedder::Embedder;
pub use embeddings::Embeddings;
pub use error::{Error, Result};
pub use export::{ExportOptions, Exported, export};
pub use loading::EmbedderBuilder;
pub use model::{EmbedOptions, OnProgress, Progress, Prompt};
pub use similarity::{Hit, Similarity};
pub use source::ModelSource;
pub use stream::{Embedded, StreamOptions};

pub use isovec_engine::cancel::Cancel;
pub use isovec_engine::maybe_send::BoxFuture;

/// Compiles the examples of the documents that users read.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/classifying.md")]
    struct Classifying;
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
