//! Texts to token ids, the same natively and in the browser.
//!
//! - [`Tokenizer`]: reads a model's `tokenizer.json` (or a BERT model's `vocab.txt`) and encodes.
//! - [`Encoding`], [`Limits`]: what comes out, and how long it may be.
//! - [`TokenizeError`]: what was wrong, where, and what to do.
//!
//! The ids are those of Hugging Face [`tokenizers`](https://docs.rs/tokenizers), whose
//! normalisers, pre-tokenisers and added-token matching do the work here too. Its models are
//! replaced by exact twins that keep their vocabulary in a flat trie: a multilingual vocabulary
//! of 250,000 pieces loads several times faster and in a small part of the memory, which decides
//! whether such a model is usable in a browser tab. `benches/RESULTS.md` has the figures.
//!
//! # Cargo features
//! - `parallel`: encodes several texts at once on rayon's threads. Without it everything runs on
//!   the caller's thread, as it must in the browser.

mod config;
mod definition;
mod encoding;
mod error;
mod identity;
mod legacy;
mod model;
mod split;
mod template;
mod tokenizer;
mod trie;

pub use encoding::{Encoding, Limits, TruncationSide};
pub use error::{Result, TokenizeError};
pub use tokenizer::{TOKENIZER_FILE, Tokenizer};
