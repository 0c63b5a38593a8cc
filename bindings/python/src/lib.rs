//! The inside of the Python package `isovec`. The public names are those of `python/isovec/__init__.py`, and
//! `python/isovec/_isovec.pyi` has their types.
//!
//! # Design of the Python package
//!
//! **A call either computes here or waits** (`wait.rs`). Python runs the handler of Ctrl-C only when its main thread asks.
//! A few short texts are computed on the calling thread, which costs least. For all else the engine's threads compute, and
//! the calling thread asks every few milliseconds. An interrupted call cancels its work. The lock of the interpreter is
//! never held meanwhile.
//!
//! **asyncio is Python's own** (`tasks.rs`, `python/isovec/_tasks.py`). A coroutine makes a future of its loop and waits for
//! it. Here one thread drives all such calls; it computes nothing. They are joined into batches as those of any other
//! handle are. When the interpreter ends, they are cancelled first, so no thread of isovec meets an interpreter that is gone.
//!
//! **A fork is noticed** (`fork.rs`). Threads do not survive it, and a call in a forked process would wait for ever.
//!
//! **Nothing is copied on the way out** (`vectors.rs`). An array of numpy owns the block of numbers that isovec filled.
//! numpy is imported when the first array is made.
//!
//! **What is read is named by its place** (`texts.rs`): a text that is none is a `TypeError` with its index.
//!
//! **Warnings go to `logging`** (`logs.rs`), to the logger `isovec`, when a call returns.
//!
//! **A model is pickled by its source and its knobs** (`model.rs`), and loaded again where it is unpickled.

mod arrow;
mod chunks;
mod classifier;
mod compact;
mod embedder;
mod embeddings;
mod error;
mod fingerprint;
mod fork;
mod json;
mod loading;
mod logs;
mod model;
mod multi_vector;
mod optimize;
mod options;
mod picture_classifier;
mod pictures;
mod profile;
mod reranker;
mod sparse;
mod tasks;
mod text_reader;
mod texts;
mod vectors;
mod wait;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _isovec(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<model::Model>()?;
    module.add_class::<embedder::Embedder>()?;
    module.add_class::<embedder::EmbeddedTexts>()?;
    module.add_class::<classifier::Classifier>()?;
    module.add_class::<reranker::Reranker>()?;
    module.add_class::<sparse::SparseEmbedder>()?;
    module.add_class::<sparse::SparseEmbeddings>()?;
    module.add_class::<multi_vector::MultiVectorEmbedder>()?;
    module.add_class::<multi_vector::MultiVectorEmbeddings>()?;
    module.add_class::<pictures::ImageEmbedder>()?;
    module.add_class::<picture_classifier::ImageClassifier>()?;
    module.add_class::<text_reader::TextReader>()?;
    module.add_function(wrap_pyfunction!(text_reader::hocr, module)?)?;
    module.add_class::<optimize::OptimizationReport>()?;
    module.add_function(wrap_pyfunction!(optimize::optimize, module)?)?;
    module.add_class::<embeddings::Embeddings>()?;
    module.add_class::<compact::CompactEmbeddings>()?;
    module.add_function(wrap_pyfunction!(compact::fuse, module)?)?;
    module.add_class::<profile::ProfileSession>()?;
    module.add_class::<tasks::Call>()?;
    module.add_function(wrap_pyfunction!(model::restore, module)?)?;
    logs::gather();
    tasks::end_with_the_interpreter(module)
}
