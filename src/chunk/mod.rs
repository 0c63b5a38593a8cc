//! Cuts long texts into chunks that the model sees completely, and combines their vectors.

mod boundaries;
mod combine;
mod cutter;
mod embed;
mod markdown;
mod options;
mod sentences;

use std::ops::Range;
use std::sync::Arc;

use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;

pub use combine::Combine;
pub use embed::{ChunkPlace, EmbeddedChunks};
pub use options::{ChunkBy, ChunkOptions};

use crate::embedder::{Embedder, owned};
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::model::{EmbedOptions, Lead, Model};
use cutter::{Counter, Cutter};
use options::Limits;

/// A part of a text that the model sees whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Chunk {
    /// Its bytes in the text: whole characters, without white space at either end.
    pub range: Range<usize>,
    /// Tokens that the model sees of it, special ones and the prompt's included.
    pub tokens: usize,
}

/// Cuts texts for one model and one prompt.
#[derive(Debug)]
struct Chunker {
    model: Arc<Model>,
    prefix: Lead,
    limits: Limits,
}

impl Chunker {
    fn new(model: &Arc<Model>, options: &ChunkOptions, embed: &EmbedOptions) -> Result<Self> {
        let (prefix, _) = model.prompts.resolve(&embed.prompt)?;
        let fixed = model.count_with(&prefix, "")?;
        let limits = options.limits(model.max_length, fixed)?;
        Ok(Self {
            model: Arc::clone(model),
            prefix,
            limits,
        })
    }

    fn chunks(&self, text: &str, cancel: &Cancel) -> Result<Vec<Chunk>> {
        let mut cutter = Cutter::new(text, self.limits, self);
        let mut chunks = Vec::new();
        loop {
            cancel.check()?;
            match cutter.next_chunk()? {
                Some(chunk) => chunks.push(chunk),
                None => return Ok(chunks),
            }
        }
    }
}

impl Counter for &Chunker {
    fn part(&self, text: &str) -> Result<usize> {
        let tokens = self.model.count_with("", text)?;
        Ok(tokens.saturating_sub(self.model.special_tokens()))
    }

    fn chunk(&self, text: &str) -> Result<usize> {
        self.model.count_with(&self.prefix, text)
    }
}

/// Cuts one text on the calling thread.
pub(crate) fn chunk(
    model: &Arc<Model>,
    text: &str,
    options: &ChunkOptions,
    embed: &EmbedOptions,
) -> Result<Vec<Chunk>> {
    let cancel = embed.cancel.clone().unwrap_or_default();
    Chunker::new(model, options, embed)?.chunks(text, &cancel)
}

impl Embedder {
    /// Cuts texts into chunks that the model sees completely and embeds them: one vector for each chunk, with its
    /// place in the text. A text of white space has no chunk.
    ///
    /// The vectors are in the space of the model's others and carry its fingerprint. Texts are cut and chunks are
    /// embedded in windows, in the order of the list, so only the result grows with the list.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk) and [`embed`](Self::embed).
    pub fn embed_chunks<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
    ) -> BoxFuture<'static, Result<EmbeddedChunks>> {
        self.embed_chunks_with(texts, options, EmbedOptions::default())
    }

    /// The same with options of the call, which every chunk's embedding gets.
    ///
    /// # Errors
    /// As [`embed_chunks`](Self::embed_chunks).
    pub fn embed_chunks_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
        embed: EmbedOptions,
    ) -> BoxFuture<'static, Result<EmbeddedChunks>> {
        let model = Arc::clone(&self.model);
        Box::pin(embed::embed_chunks(model, owned(texts), options, embed))
    }

    /// Embeds texts of any length: one vector a text, from those of its chunks, of unit length
    /// where the model's are. A text that is no more than a chunk has the vector that
    /// [`embed`](Self::embed) gives it, and no text is truncated.
    ///
    /// The fingerprint is the model's: these vectors are in the same space and may be searched
    /// together with those of whole texts. Their `token_counts` are the sums of the chunks'.
    ///
    /// # Errors
    /// As [`embed_chunks`](Self::embed_chunks); [`NoDirection`](crate::Error::NoDirection) for a
    /// text whose chunks cancel each other out.
    pub fn embed_long<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
        combine: Combine,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_long_with(texts, options, combine, EmbedOptions::default())
    }

    /// The same with options of the call, which every chunk's embedding gets.
    ///
    /// # Errors
    /// As [`embed_long`](Self::embed_long).
    pub fn embed_long_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
        combine: Combine,
        embed: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let model = Arc::clone(&self.model);
        let texts = owned(texts);
        Box::pin(embed::embed_long(model, texts, options, combine, embed))
    }
}

#[cfg(test)]
mod tests;
