//! isovec's own index: what `Embeddings::load` and the npm package open.

use std::io::{self, Write};

use isovec::Embeddings;

use super::Sink;
use crate::error::{CliError, Result};
use crate::input::Row;

/// Gathers everything: the format's header, with the texts, stands before the vectors.
pub(super) struct Index<W> {
    writer: W,
    name: String,
    texts: Vec<String>,
    gathered: Option<Embeddings>,
}

impl<W: Write> Index<W> {
    pub(super) fn new(writer: W, name: String) -> Self {
        Self {
            writer,
            name,
            texts: Vec::new(),
            gathered: None,
        }
    }
}

impl<W: Write> Sink for Index<W> {
    fn write(&mut self, rows: Vec<Row>, embeddings: Embeddings) -> Result<()> {
        self.texts.extend(rows.into_iter().map(|row| row.text));
        match &mut self.gathered {
            Some(gathered) => gathered.extend(embeddings)?,
            None => self.gathered = Some(embeddings),
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self {
            mut writer,
            name,
            texts,
            gathered,
        } = *self;
        if let Some(gathered) = gathered {
            let written = gathered.with_labels(texts)?.write_to(&mut writer);
            written.map_err(|error| named(error, &name))?;
        }
        writer.flush().map_err(CliError::io(name))
    }
}

/// The SDK knows only that it writes somewhere; a closed pipe has to stay recognisable.
fn named(error: isovec::Error, name: &str) -> CliError {
    match error {
        isovec::Error::Io { source, .. } => {
            CliError::io(name)(io::Error::new(source.kind(), source.to_string()))
        }
        other => other.into(),
    }
}
