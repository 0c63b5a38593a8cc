//! The wasm-bindgen bindings under the npm package. The TypeScript in `bindings/js/ts` is the public interface. The
//! names here are not meant for users, and errors are plain `Error` objects with a `kind`.
//!
//! # Design of the npm package
//!
//! Files named here are in `bindings/js/ts`.
//!
//! **A page's model lives in a worker.** `Host` (`host.ts`) is a loaded model: `local.ts` in this thread, `remote.ts`
//! in a worker (`worker.ts`). A worker serves one embedder and ends with it, because ending a worker is the only way to
//! free WebAssembly memory. The page compiles the module while the worker starts, and hands it over. The worker fetches
//! the files: `source.ts` decides which, `download.ts` how, and `store.ts` stores them in pieces, so that an
//! interrupted download can continue. An embedder remembers how it was opened, and opens again when its worker has
//! stopped.
//!
//! **Names are translated in one place** (`names.ts`). Rust and every file use `max_batch_size`, JavaScript uses
//! `maxBatchSize`. One pair of functions renames everything that crosses between wasm and TypeScript, in both
//! directions, including the paths of knobs within messages. `cargo xtask types` generates the list of those paths from
//! the Rust types (`knobs.ts`).
//!
//! **tract is a second module** (`tract.ts`). The build `tract` is the same crate with one more feature, and not tract
//! alone. Tokenizer, head, batches, statistics and cancelling are the same code as in the other builds, so no interface
//! between two modules has to carry tensors. `local.ts` asks for this build when a graph was refused and the model has
//! an ONNX file. It hands over the files' arrays, which lie outside both memories. The first module stays loaded with
//! little in it, because a graph is refused before its weights are read. The script of the second module is imported by
//! its address and not by name. Bundlers then copy it as it is. A panic in tract ends a module, and another instance at
//! another address replaces it.
//!
//! **What drives a GPU is downloaded where one may compute** (`builds.ts`). Most pages compute on the processor, so the build
//! `relaxed` is without the feature `webgpu`. The page asks for an adapter (`adapter.ts`) before it chooses a build, and tells its
//! worker which one it chose.
//!
//! **In node an add-on may take the module's place** (`addon.ts`, the crate `isovec-node`). It has the interface that wasm-bindgen
//! gives a module, so everything above it is the same code, and the tests of programs run on both.
//!
//! **Pictures are decoded in a module of their own** (`pixels.ts`, the crate `isovec-js-image`). Pages of texts do not download
//! decoders. The engine's module gets a picture's values and a text that says how they were made, which is a part of the
//! fingerprint. A decoder that stops at an internal error is replaced by another instance, and the model goes on.
//!
//! **The text of pictures is read by the build `tract`** (`text-reader.ts`), because PP-OCR's recogniser runs on tract here. The module of
//! pictures decodes, and hands pixels over.
//!
//! **Sets of vectors are handled in JavaScript** (`embeddings.ts`, `similarity.ts`, `file.ts`). Searching, reading and
//! writing them does not go through Rust. WebAssembly memory never shrinks, so an index of 100 MB that is opened there
//! would stay in memory twice. In JavaScript the file is viewed where it lies, and searched without a worker in
//! between. The sums equal Rust's to the last bit, and the tests of both sides read each other's files
//! (`tests/data/embeddings`).
//!
//! **Hardware is described in TypeScript** (`hardware.ts`), with Rust's names in camel case. A page asks `hardware()`
//! what to download, so it cannot wait for the module.

mod choice;
mod files;
mod model;
mod panic;
mod rows;
#[cfg(feature = "tract")]
mod text_reader;

pub use choice::choose_files;
pub use model::{RawCancel, RawModel};
pub use panic::last_panic;
pub use rows::RawRows;
#[cfg(feature = "tract")]
pub use text_reader::RawTextReader;
