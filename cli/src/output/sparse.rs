//! Weights of words as a JSON object a line.

use std::io::Write;

use isovec::SparseEmbedded;
use isovec::blocking::SparseEmbedder;
use serde_json::{Value, json};

use super::objects::{Frame, Objects, decimal};
use super::{Sink, writer};
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::input::Row;

/// What a row's object is, and `sparse`: `indices` and `values`, and `words` where they are wanted.
pub(crate) struct SparseJsonl {
    objects: Objects<Box<dyn Write + Send>>,
    /// Who knows the words, and how many are written.
    words: Option<(SparseEmbedder, usize)>,
}

impl SparseJsonl {
    /// Writes into a file, or to standard output.
    pub(crate) fn open(
        out: Option<&Draft>,
        words: Option<(SparseEmbedder, usize)>,
    ) -> Result<Self> {
        let (writer, name) = writer(out)?;
        Ok(Self {
            objects: Objects::new(writer, name, Frame::Lines),
            words,
        })
    }
}

impl Sink<SparseEmbedded> for SparseJsonl {
    fn write(&mut self, row: Row, embedded: SparseEmbedded) -> Result<()> {
        let vector = &embedded.vector;
        let values: Vec<Value> = vector.values.iter().copied().map(decimal).collect();
        let mut sparse = json!({ "indices": vector.indices, "values": values });
        if let Some((embedder, most)) = &self.words {
            let words = embedder.words(vector.as_row(), *most);
            let words = words.map_err(CliError::Sdk)?.into_iter();
            sparse["words"] = words
                .map(|word| json!({ "token": word.token, "weight": decimal(word.weight) }))
                .collect();
        }
        self.objects.put(row, embedded.truncated, "sparse", sparse)
    }

    fn flush(&mut self) -> Result<()> {
        self.objects.flush()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.objects.finish()
    }
}
