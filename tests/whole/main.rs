//! The whole SDK, on every engine of this machine and on real models: one program, because linking one for each file
//! took longer than running them. What counts allocations (`tests/allocations.rs`), and what needs a cache of its own
//! (`tests/auto_selection.rs`), is alone.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod adapters;
mod bm25;
mod call_options;
mod classifier;
mod configuration_reference;
mod contents;
mod decoder_rerankers;
mod decoders;
mod determinism;
mod documents;
mod dtype;
mod embedding_cache;
mod embeddings_file;
mod encoders;
mod executors;
mod f16;
mod giving_up;
mod image_classifier;
mod long_texts;
mod m3;
mod multi_vector;
mod mutants;
mod optimize;
mod optimize_int4;
mod optimize_int8;
mod optimize_int8_pictures;
mod optimize_passes;
mod optimize_pruning;
mod parity;
mod pictures;
mod presets;
mod profile;
mod providers;
mod reading;
mod reranker;
mod sparse;
mod sparse_queries;
mod static_embeddings;
mod statistics;
