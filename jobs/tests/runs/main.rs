//! Whole runs of jobs, with an engine that counts.
#![allow(clippy::unwrap_used)]

mod disk;
mod engine;
mod folder;
#[cfg(unix)]
mod killed;
mod parquet;
mod planned;
mod poisoned;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "s3")]
mod server;
mod together;
