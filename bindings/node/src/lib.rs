//! The add-on by which the npm package `isovec` computes natively in node. It has the interface of the module that
//! wasm-bindgen makes of `isovec-js`, so the TypeScript in `bindings/js/ts` calls the one as the other, and there is one set
//! of types. `bindings/js/ts/addon.ts` finds the add-on and has the rest of that interface.
//!
//! # Design
//!
//! **The event loop never waits** (`tasks.rs`). A call returns a promise. One thread of isovec's drives all calls; it computes
//! nothing, because isovec's futures do not. What a call brought is made JavaScript's on the event loop.
//!
//! **Nothing is copied on the way out** (`rows.rs`), where a runtime lets arrays lie in memory that is not its own. Electron
//! does not, and gets a copy.
//!
//! **A model's files are copied on the way in** (`model.rs`). Threads read them, and JavaScript may write to its arrays at
//! any time.
//!
//! **Pictures are read beside each other** (`pictures.rs`), each on a thread of a pool, and their values go to JavaScript and back as
//! those of the module of wasm do.
//!
//! **Workers of node may share a process.** All state of the add-on but its thread belongs to objects, and those to the worker
//! that made them. A worker that ends takes its promises along, and what was computed for them is dropped.

mod error;
mod model;
mod pictures;
mod rows;
mod tasks;
mod text_reader;

use isovec::for_npm::next_told;
use napi::{Env, Result};
use napi_derive::napi;

/// The version, which has to be that of the npm package.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The next question about a model's files, or the choice: takes and returns JSON, as [`isovec::for_npm::next_told`].
///
/// # Errors
/// An `Error` with the `kind` of the Rust error.
#[napi]
pub fn choose_files(env: Env, known: String) -> Result<String> {
    next_told(&known).map_err(|error| error::of(&env, &error.into()))
}
