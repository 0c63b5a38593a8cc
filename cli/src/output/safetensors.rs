//! isovec's own index: what `Embeddings::load`, `CompactEmbeddings::load` and the npm package open.

use std::io::{self, Write};

use isovec::{CompactForm, Embedded, Embeddings};

use super::Sink;
use crate::error::{CliError, Result};
use crate::input::Row;

/// Gathers everything: the format's header, with the texts, stands before the vectors.
pub(super) struct Index<W> {
    writer: W,
    name: String,
    texts: Vec<String>,
    gathered: Embeddings,
    compact: Option<CompactForm>,
}

impl<W: Write> Index<W> {
    /// Adds rows to a set that has none yet.
    pub(super) fn new(
        writer: W,
        name: String,
        empty: Embeddings,
        compact: Option<CompactForm>,
    ) -> Self {
        Self {
            writer,
            name,
            texts: Vec::new(),
            gathered: empty,
            compact,
        }
    }
}

impl<W: Write> Sink<Embedded> for Index<W> {
    fn write(&mut self, row: Row, embedded: Embedded) -> Result<()> {
        self.texts.push(row.text);
        Ok(self.gathered.push(embedded)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self {
            mut writer,
            name,
            texts,
            gathered,
            compact,
        } = *self;
        let set = gathered.with_labels(texts)?;
        let written = match compact {
            None => set.write_to(&mut writer),
            Some(form) => set.compact(form).and_then(|set| set.write_to(&mut writer)),
        };
        written.map_err(|error| named(error, &name))?;
        writer.flush().map_err(CliError::io(name))
    }
}

/// The SDK knows only that it writes somewhere; a closed pipe has to stay recognisable.
pub(super) fn named(error: isovec::Error, name: &str) -> CliError {
    match error {
        isovec::Error::Io { source, .. } => {
            CliError::io(name)(io::Error::new(source.kind(), source.to_string()))
        }
        other => other.into(),
    }
}
