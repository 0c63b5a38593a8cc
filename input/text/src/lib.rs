//! Texts to token ids, the same natively and in the browser.
//!
//! - [`Tokenizer`]: reads a model's `tokenizer.json` (or a BERT model's `vocab.txt`) and encodes.
//! - [`Encoding`], [`Limits`]: what comes out, and how long it may be.
//! - [`TokenizeError`]: what was wrong, where, and what to do.
//!
//! The ids are those of Hugging Face [`tokenizers`](https://docs.rs/tokenizers) on every text;
//! the tests hold every component to it. It is not inside: its models keep a multilingual
//! vocabulary of 250,000 pieces in ten times the memory, which decides whether such a model is
//! usable in a browser tab, and its regular expressions and Unicode tables would be half of what
//! a page downloads besides the model. `benches/RESULTS.md` has the figures.
//!
//! What a file may ask for and is not implemented (a pattern with backreferences, say) is an error
//! that names it. What would cost more than the sizes of file and text allow is one, too.
//!
//! # Cargo features
//! - `parallel`: encodes several texts at once on rayon's threads. Without it everything runs on
//!   the caller's thread, as it must in the browser.
//! - `tokenizers`: files that use what is not implemented are read by Hugging Face's crate instead,
//!   with Oniguruma (C code). Native only, off by default: its patterns know no bounds.
//! - `fuzzing`: opens the engine for patterns to the repository's fuzzer; promises nothing.

mod budget;
mod config;
mod definition;
mod encoding;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod json;
mod legacy;
#[cfg(all(feature = "tokenizers", not(target_arch = "wasm32")))]
mod library;
mod model;
mod regex;
mod split;
mod template;
mod tokenizer;
mod trie;
mod unicode;

pub use encoding::{Encoding, Limits, TruncationSide};
pub use error::{Result, TokenizeError};
pub use tokenizer::{TOKENIZER_FILE, Tokenizer};
