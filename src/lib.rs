//! **One embedding SDK, two targets, the same vectors.** This crate is the server's half: it turns
//! texts into vectors with any BERT-like embedding model. The npm package `isovec` gives the same
//! vectors in the browser.
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
//! - [`Embedder`]: loads a model and embeds, async; [`blocking::Embedder`] is the same for
//!   blocking callers. [`Embedder::builder`] has more options for loading: [`Device`], [`Dtype`],
//!   dimension, configuration.
//! - [`Classifier`]: a model that gives texts labels with scores, loaded and run in the same way.
//! - [`Reranker`]: a model that says how relevant documents are to a query.
//! - [`SparseEmbedder`]: a model that gives texts weights of words; [`Bm25`] counts them instead.
//! - [`MultiVectorEmbedder`]: a model that gives every token a vector, for late interaction.
//! - [`DynamicBatcher`]: joins the calls of many tasks into batches.
//! - [`Embedder::embed_stream`]: any number of texts, in flat memory.
//! - [`Embedder::embed_chunks`], [`Embedder::embed_long`]: texts that are longer than the model sees.
//! - [`EmbeddingConfig`]: every knob, and presets
//!   ([`high_throughput`](EmbeddingConfig::high_throughput),
//!   [`low_latency`](EmbeddingConfig::low_latency), [`gpu`](EmbeddingConfig::gpu),
//!   [`cpu`](EmbeddingConfig::cpu), [`memory_constrained`](EmbeddingConfig::memory_constrained),
//!   [`debug`](EmbeddingConfig::debug)); [`Embedder::effective_config`] has the value in
//!   effect of each knob, and the reason.
//! - [`stats::Stats`], from [`Embedder::stats`]: counts since the model was loaded: the provider and those
//!   that were passed over, waiting, buffers, copies, padding, the time of every stage.
//! - [`Embedder::profile`]: the time of every request and operator, as a trace for Perfetto, Chrome and
//!   `isovec trace`; the same spans go to [`tracing`].
//! - The crate `isovec-insight`: suggestions that make a model faster or smaller, trials that test them, and a
//!   model's graph, node by node.
//! - [`hardware::HardwareInfo`], [`hardware::Features`]: the hardware, and which of it can be used.
//! - [`Embeddings`]: vectors with the [`fingerprint`] of their model; they can be saved, loaded and searched.
//! - [`ModelSource`], [`models`]: where models come from.
//! - `ImageEmbedder` and `ImageClassifier`, with the feature `image`: pictures become vectors or labels; `image` has what makes them ready, with Pillow's
//!   exact bytes.
//! - `TextReader`, with the feature `ocr`: the text of pictures, with boxes, by PP-OCR's networks.
//! - [`export()`]: writes a model as one ONNX file, pooling head included.
//! - [`optimize()`]: writes a smaller model, and a report of what that changed; [`mod@optimize`] has its parts.
//!
//! The root has what most programs use. [`config`], [`stats`], [`profile`], [`hardware`],
//! [`fingerprint`], [`engine`], [`error`](mod@error), [`source`] and [`stream`] have the rest.
//!
//! With nothing installed, the portable engine computes. ONNX Runtime computes if its shared library is
//! named ([`EmbeddingConfig::with_onnxruntime_library`], or the variable `ORT_DYLIB_PATH`). On the machine of
//! `benches/RESULTS.md` the two are about equally fast: with all-MiniLM-L6-v2 on one thread, a text of 16 tokens
//! took the portable engine 2.7 ms and ONNX Runtime 3.7 ms; one of 128 tokens took 14.2 ms and 15.2 ms.
//!
//! # Design
//!
//! This section is for contributors. `ARCHITECTURE.md` shows the crates.
//!
//! **A task turns items into rows** (`model/item.rs`, `model/task.rs`). An item is a text, or a pair of texts that the
//! model reads together. It says what the tokenizer makes of it, how many bytes it takes while it waits, and what the cache
//! knows it by. Planning, batches, the batcher's queue, streams, the cache, statistics and profiles know an item only by
//! that, and a row only by its width. `Vectors` makes an [`Embeddings`] of the rows. `Labelling` (`classifier/`) makes
//! scores of labels, `Relevance` (`reranker/`) one score of a pair, `Words` (`sparse/`)
//! weights of words, of which rows keep what is above 0 as soon as a batch is computed, and `TokenVectors` (`multi_vector/`) a vector
//! for each token, of which rows keep those that are compared. Each task defines what a call may choose, what its rows become, and what one
//! row of a stream is. When a model is loaded, the head that the task needs is added to the graph (`Output` in
//! `model/load.rs`). A call that asks for fewer components, or for unit length where the model was loaded without it,
//! converts the rows afterwards (`model/form.rs`). Batches and the cache hold the model's own vectors.
//!
//! **The best batch size is measured** (`plan.rs`, `model/calibration.rs`). Processors want small batches, GPUs want
//! large ones, and short and long texts want different ones. The planner starts from a default for the kind of device.
//! After half a minute of work, a few sizes are measured once on the engine itself, and the result is cached
//! (`record.rs`). Measuring can change only the speed: sizes that a user set are never changed.
//!
//! **Memory is predicted** (`model/allowance.rs`). The planner cuts batches to the allowed memory before anything is
//! allocated. A single text that would not fit is refused.
//!
//! **Calls are joined above the engine** (`batcher/`). `queue.rs` decides which call is next, and knows no clock,
//! engine or future. `steering.rs` decides how large a batch may be, from measured times alone. `state.rs` holds the
//! state under one lock, `core.rs` has the operations of callers and of the driver on it, and `guards.rs` returns
//! places. `driver.rs` runs batches: natively on a thread of its own, in the browser between other events. A call that
//! finds the engine idle bypasses all of them. A cancelled call leaves the queue and the running batch. A batch is
//! cancelled when all its calls are. There is no separate adaptive batcher: `batching.dynamic_batching` turns the
//! steering on and off in the same queue.
//!
//! **A stream is a sequence of windows** (`stream/`). Texts are gathered into windows that are limited in number and
//! bytes. Two windows are under way at a time, so one is tokenised while the other runs. The stream reads no further
//! than its consumer takes. There is no pipeline of stages: tokenising uses isovec's pool of threads, batches use the
//! engine's, and the rest (copying a row to its place) is too little for a stage.
//!
//! **Chunks are measured, not estimated** (`chunk/`). `boundaries.rs` says where a text may be cut and how good each
//! cut is, `cutter.rs` says how much fits, and `embed.rs` and `combine.rs` make vectors. The tokens of the parts are
//! added up, and then the chunk is counted as a whole. Every byte is thus tokenised a few times, however long the text
//! is. (The crate `text-splitter` counts the whole rest of a text without spaces again for every chunk.)
//!
//! **The SDK holds the chain of providers** (`fallback/`). An engine is loaded for exactly one provider or fails with a
//! cause. `fallback/` goes along the chain, records every step, and ranks providers by measurement if the configuration
//! asks for it (`auto.rs`). If a device is lost, the processor runs that batch again, and the device is opened anew
//! when it comes back (`loss.rs`). With `provider_auto_selection`, batches below a measured size stay on the processor
//! (`beside.rs`).
//!
//! **Vectors are cached behind one seam** (`cache/`, `Model::cached`). Every path to vectors gives it the texts and a
//! function that computes the missing ones: async and blocking calls, the batcher before its queue, and through them
//! streams and chunks. The key is a hash of everything that decides a vector, so nothing has to be invalidated. On disk
//! each text is a safetensors file (`backend/entries_on_disk.rs`): no store embedded in Rust can be shared by processes
//! and works without C, and a file that is renamed into place needs no lock. In a page it is an entry of the Cache API
//! (`backend/entries_by_browser.rs`), where a site's other isovec data is: IndexedDB takes a tenth of the 0.7 ms per
//! text, but computing a text takes 11 ms.
//!
//! **Measurements are cached by one pair of functions** (`backend/cache_on_disk.rs`, `backend/cache_in_browser.rs`).
//! Natively they use files in the cache folder. In a page they use entries of the Cache API beside the model's files,
//! and not IndexedDB, so there is one place to list and to empty. `record.rs` stores measurements there. The GPU engine
//! reaches it through its `Host`.
//!
//! **A model is optimised between its files and its head** (`optimize/`). Files are opened as for loading (`open` in
//! `model/load.rs`), changed by `isovec-optimize`, completed with small weights and the head (`complete`), and written by the
//! export into a folder beside the one that is wanted. The two models are then loaded as any user would load them, compared
//! and timed in turns. A static model is made of a loaded one, because its tokens go through an engine.
//!
//! **Small weights are cached** (`model/small.rs`). The key is identity, graph, precision and the version of the rules.
//!
//! **Hardware is detected in one place per target** (`backend/machine/` natively, `backend/page.rs`). [`hardware`] has
//! the shape. The GPU engine lists adapters, the kernels list instruction sets. In JavaScript, `hardware()` is written
//! in TypeScript, because a page asks it before it downloads the module.
//!
//! **Effective configuration and statistics** (`effective.rs`, `stats.rs`) combine the engine's part with the SDK's. A
//! test compares `docs/configuration.md` with the knobs that exist.
//!
//! **Few files depend on the target.** `backend.rs` says which engines exist. In other crates they are: `maybe_send`
//! (what `Send` means), `cores` and `buffers/gauge.rs` (how much memory there is; the pool that asks has the same code
//! on both targets, and no engine could answer for it) of `isovec-engine`; `lib.rs` of `isovec-hub` (a page has neither
//! sockets nor a disk); `isovec-insight` (a page cannot block, and makes no models); `isovec-tokenize` (the crate
//! `tokenizers` is native); `bundle/mapped.rs` of `isovec-model` (which systems take pages back); and `gemm/lent.rs` of
//! `isovec-kernels` (a page maps no files). Cargo's target tables choose everything else. `isovec-native`, `isovec-web`
//! and `backend/machine/` distinguish processors, systems and devices
//! within their own target.

// First, because their macros are seen only by what comes after them.
#[macro_use]
mod describe;
#[macro_use]
mod loading;
#[cfg(feature = "image")]
#[macro_use]
mod pictures;

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
mod fusion;
pub mod hardware;
pub mod inspect;
mod json;
mod metrics;
mod model;
mod model_task;
pub mod models;
mod multi_vector;
pub mod optimize;
mod plan;
pub mod profile;
#[cfg(feature = "ocr")]
mod reading;
mod record;
mod reranker;
mod sentence_transformers;
pub mod similarity;
pub mod source;
mod sparse;
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
pub use embeddings::{CompactEmbeddings, CompactForm, Embeddings};
pub use error::{Error, Result};
pub use export::{ExportOptions, Exported, export};
pub use fusion::fuse;
#[cfg(feature = "image")]
pub use isovec_image as image;
#[cfg(feature = "ocr")]
pub use isovec_ocr as ocr;
pub use isovec_tokenize::Token;
pub use loading::EmbedderBuilder;
pub use model::{EmbedOptions, OnProgress, Progress, Prompt};
pub use model_task::ModelTask;
pub use multi_vector::{
    MultiVectorEmbedded, MultiVectorEmbedder, MultiVectorEmbedderBuilder, MultiVectorEmbeddings,
    MultiVectorOptions,
};
pub use optimize::optimize;
#[cfg(feature = "image")]
pub use pictures::{
    ImageClassifier, ImageClassifierBuilder, ImageEmbedder, ImageEmbedderBuilder, Picture,
};
#[cfg(feature = "ocr")]
pub use reading::{PictureText, ReadingOptions, TextLine, TextReader, TextReaderBuilder, hocr};
pub use reranker::{
    PairScores, RankOptions, Ranked, Reranker, RerankerBuilder, ScoreOptions, Scored,
};
pub use similarity::{Hit, Similarity};
pub use source::ModelSource;
pub use sparse::{
    Bm25, SparseEmbedded, SparseEmbedder, SparseEmbedderBuilder, SparseEmbeddings, SparseOptions,
    SparseRow, SparseVector, WordWeight,
};
pub use stream::{Embedded, StreamOptions};

/// Names an ONNX Runtime to use where neither the configuration nor `ORT_DYLIB_PATH` names one: for a package that brings one.
/// Without effect once one is in use.
#[cfg(all(feature = "onnxruntime", not(target_arch = "wasm32")))]
pub use isovec_native::offer as offer_onnxruntime;

pub use isovec_engine::cancel::Cancel;
pub use isovec_engine::maybe_send::BoxFuture;

/// Compiles the examples of the book and the README.
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
    #[doc = include_str!("../docs/late-interaction.md")]
    struct LateInteraction;
    #[doc = include_str!("../docs/reranking.md")]
    struct Reranking;
    #[doc = include_str!("../docs/models.md")]
    struct Models;
    #[doc = include_str!("../docs/observing.md")]
    struct Observing;
    #[doc = include_str!("../docs/optimising.md")]
    struct Optimising;
    #[doc = include_str!("../docs/parity.md")]
    struct Parity;
    #[doc = include_str!("../docs/providers.md")]
    struct Providers;
    #[cfg(feature = "image")]
    #[doc = include_str!("../docs/pictures.md")]
    struct Pictures;
    #[cfg(feature = "ocr")]
    #[doc = include_str!("../docs/reading-text.md")]
    struct ReadingText;
    #[doc = include_str!("../docs/saved-embeddings.md")]
    struct SavedEmbeddings;
    #[doc = include_str!("../docs/sparse.md")]
    struct Sparse;
    #[doc = include_str!("../docs/vector-stores.md")]
    struct VectorStores;
}
