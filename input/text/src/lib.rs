//! Turns texts into token ids, natively and in the browser alike.
//!
//! - [`Tokenizer`]: reads a model's `tokenizer.json` (or a BERT model's `vocab.txt`) and encodes.
//! - [`Tokens`], [`Encoding`], [`Limits`]: which tokens a model reads, the result, and its maximal length.
//! - [`PairFrame`]: how a decoder is asked about two texts.
//! - [`TokenizeError`]: says what was wrong, where, and what to do.
//!
//! The ids equal those of Hugging Face [`tokenizers`](https://docs.rs/tokenizers) on every text. Tests compare
//! every component with it. This crate does not contain `tokenizers`, for two reasons. Its models hold a
//! multilingual vocabulary of 250,000 pieces in ten times the memory, which decides whether such a model is usable
//! in a browser tab. Its regular expressions and Unicode tables would be half of what a page downloads besides the
//! model. `benches/RESULTS.md` has the figures.
//!
//! If a file uses a feature that is not implemented (a pattern with backreferences, for example), the error names
//! the feature. A file or text that would cost more than its size allows is an error too.
//!
//! # Cargo features
//! - `parallel`: encodes several texts at once on rayon's threads. Without it everything runs on
//!   the caller's thread, as it must in the browser.
//! - `tokenizers`: files that use what is not implemented are read by Hugging Face's crate instead,
//!   with Oniguruma (C code). Native only, off by default: its patterns have no limits on their cost.
//! - `chat`: reads frames from chat templates.
//! - `fuzzing`: gives the repository's fuzzer access to the engine for patterns; not a stable interface.
//!
//! # Design
//!
//! **Tokenising is a crate of its own**, without the crate `tokenizers`. Tests compare its ids with those of
//! `tokenizers`, id by id. With the feature `tokenizers`, that crate reads the files that this one refuses by name. It
//! gives ids alone; this crate does everything around them.
//!
//! **The size of a text bounds the cost of tokenising it** (`budget.rs`). Bytes, pieces, tokens and steps are limited
//! to multiples of the text's length, and are checked before they are spent. If no piece of a vocabulary is longer than
//! 64 bytes, walks through the vocabulary cannot exceed their steps, and nothing is counted.

mod budget;
#[cfg(feature = "chat")]
mod chat;
mod config;
mod decode;
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
mod pair_frame;
mod regex;
mod split;
mod template;
mod token;
mod tokenizer;
mod trie;
mod unicode;

pub use encoding::{Encoding, Limits, TruncationSide};
pub use error::{Result, TokenizeError};
pub use pair_frame::PairFrame;
pub use token::Token;
pub use tokenizer::{TOKENIZER_FILE, Tokenizer, Tokens};
