//! Vectors of tokens: as a JSON object a line, or as the set that `MultiVectorEmbeddings::load` opens.

use std::io::Write;

use isovec::{CompactForm, MultiVectorEmbedded, MultiVectorEmbeddings};
use serde_json::Value;

use super::objects::{Frame, Objects, decimal};
use super::safetensors::named;
use super::{Sink, writer};
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::input::Row;

/// What a row's object is, and `vectors`: a list for each token.
pub(crate) struct TokensJsonl {
    objects: Objects<Box<dyn Write + Send>>,
    dim: usize,
}

impl TokensJsonl {
    /// Writes into a file, or to standard output.
    pub(crate) fn open(out: Option<&Draft>, dim: usize) -> Result<Self> {
        let (writer, name) = writer(out)?;
        Ok(Self {
            objects: Objects::new(writer, name, Frame::Lines),
            dim,
        })
    }
}

impl Sink<MultiVectorEmbedded> for TokensJsonl {
    fn write(&mut self, row: Row, embedded: MultiVectorEmbedded) -> Result<()> {
        let vectors = embedded.vectors.chunks_exact(self.dim);
        let vectors: Value = vectors
            .map(|vector| vector.iter().copied().map(decimal).collect::<Value>())
            .collect();
        self.objects
            .put(row, embedded.truncated, "vectors", vectors)
    }

    fn flush(&mut self) -> Result<()> {
        self.objects.flush()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.objects.finish()
    }
}

/// Gathers everything: the format's header stands before the vectors.
pub(crate) struct TokensIndex {
    writer: Box<dyn Write + Send>,
    name: String,
    gathered: MultiVectorEmbeddings,
    compact: Option<CompactForm>,
}

impl TokensIndex {
    /// Adds rows to a set that has none yet.
    pub(crate) fn open(
        out: Option<&Draft>,
        empty: MultiVectorEmbeddings,
        compact: Option<CompactForm>,
    ) -> Result<Self> {
        let (writer, name) = writer(out)?;
        Ok(Self {
            writer,
            name,
            gathered: empty,
            compact,
        })
    }
}

impl Sink<MultiVectorEmbedded> for TokensIndex {
    fn write(&mut self, _: Row, embedded: MultiVectorEmbedded) -> Result<()> {
        Ok(self.gathered.push(embedded)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self {
            mut writer,
            name,
            gathered,
            compact,
        } = *self;
        let set = match compact {
            None => gathered,
            Some(form) => gathered.compact(form),
        };
        set.write_to(&mut writer)
            .map_err(|error| named(error, &name))?;
        writer.flush().map_err(CliError::io(name))
    }
}
