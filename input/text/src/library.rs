//! Reads files that this crate does not support with Hugging Face's crate `tokenizers`: the Cargo feature of that
//! name, native only.
//!
//! That crate only turns a text into ids. Special tokens, truncation, padding and the identity are handled here, so
//! nothing else depends on which crate reads a file. The crate `tokenizers` has no limits on cost: a file's patterns
//! may take as long as Oniguruma takes, which is one reason why the feature is off by default. A file that is refused
//! for its cost never gets here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A tokenizer of the crate `tokenizers`.
#[derive(Debug)]
pub(crate) struct Library(Box<tokenizers::Tokenizer>);

impl Library {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// The crate's words.
    pub(crate) fn read(json: &[u8]) -> Result<Self, String> {
        // It panics on some files that contradict themselves.
        guarded(|| {
            let mut tokenizer =
                tokenizers::Tokenizer::from_bytes(json).map_err(|error| error.to_string())?;
            tokenizer.with_padding(None);
            tokenizer
                .with_truncation(None)
                .map_err(|error| error.to_string())?;
            tokenizer.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
            Ok(Self(Box::new(tokenizer)))
        })
    }

    /// Appends a text's ids, without special tokens.
    ///
    /// # Errors
    /// The crate's words.
    pub(crate) fn tokenize(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), String> {
        guarded(|| {
            let encoding = self
                .0
                .encode_fast(text, false)
                .map_err(|error| error.to_string())?;
            ids.extend_from_slice(encoding.get_ids());
            Ok(())
        })
    }

    /// The id of a token, added ones included.
    pub(crate) fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    /// The token of an id.
    pub(crate) fn id_to_token(&self, id: u32) -> Option<String> {
        self.0.id_to_token(id)
    }

    /// Number of different tokens, added ones included.
    pub(crate) fn size(&self) -> usize {
        self.0.get_vocab_size(true)
    }

    /// The largest id.
    pub(crate) fn max_id(&self) -> Option<u32> {
        self.0.get_vocab(true).into_values().max()
    }
}

/// Makes an error of a panic.
fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err("the crate tokenizers stopped with an internal error".to_owned()))
}
