//! Long texts: their chunks, and the vectors of these.

use isovec::{ChunkBy, ChunkOptions, Combine, EmbeddedChunks};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::embeddings::Embeddings;
use crate::error;
use crate::texts::Text;

/// Reads how texts are cut.
pub(crate) fn options(
    py: Python<'_>,
    by: &str,
    max_tokens: Option<usize>,
    overlap: usize,
) -> PyResult<ChunkOptions> {
    let by = match by {
        "tokens" => ChunkBy::Tokens,
        "sentences" => ChunkBy::Sentences,
        "markdown" => ChunkBy::Markdown,
        other => {
            let why = format!(
                "there is no cutting by {other:?}; there are \"tokens\", \"sentences\" and \"markdown\""
            );
            return Err(error::with_kind(py, "Config", &why));
        }
    };
    let mut options = ChunkOptions::by(by).with_overlap(overlap);
    options.max_tokens = max_tokens;
    Ok(options)
}

/// Reads how the vectors of chunks become one.
pub(crate) fn combine(py: Python<'_>, word: &str) -> PyResult<Combine> {
    match word {
        "mean" => Ok(Combine::Mean),
        "max" => Ok(Combine::Max),
        other => {
            let why =
                format!("vectors are not combined by {other:?}; there are \"mean\" and \"max\"");
            Err(error::with_kind(py, "Config", &why))
        }
    }
}

/// Turns places in bytes, in their order or nearly so, into places in characters, as Python counts.
struct Characters<'a> {
    text: &'a str,
    bytes: usize,
    characters: usize,
}

impl<'a> Characters<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: 0,
            characters: 0,
        }
    }

    fn at(&mut self, byte: usize) -> usize {
        let count = |range: std::ops::Range<usize>| {
            let part = self.text.get(range);
            part.map_or(0, |part| part.chars().count())
        };
        self.characters = match byte >= self.bytes {
            true => self.characters + count(self.bytes..byte),
            // Chunks that overlap go back.
            false => self.characters - count(byte..self.bytes),
        };
        self.bytes = byte;
        self.characters
    }
}

/// The chunks of a text: where they begin and end, and their tokens.
pub(crate) fn of_text<'py>(
    py: Python<'py>,
    text: &Text,
    chunks: &[isovec::Chunk],
) -> PyResult<Bound<'py, PyList>> {
    static CHUNK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let chunk = CHUNK.import(py, "isovec._results", "Chunk")?;
    let mut characters = Characters::new(text.as_ref());
    let made: PyResult<Vec<_>> = chunks
        .iter()
        .map(|one| {
            let (start, end) = (one.range.start, one.range.end);
            chunk.call1((characters.at(start), characters.at(end), one.tokens))
        })
        .collect();
    PyList::new(py, made?)
}

/// The vectors of chunks with their places.
pub(crate) fn embedded<'py>(
    py: Python<'py>,
    texts: &[Text],
    chunks: EmbeddedChunks,
) -> PyResult<Bound<'py, PyAny>> {
    static PLACE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static CHUNKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let place = PLACE.import(py, "isovec._results", "ChunkPlace")?;
    let mut current: Option<(usize, Characters<'_>)> = None;
    let mut places = Vec::with_capacity(chunks.places.len());
    for one in &chunks.places {
        let (_, characters) = match &mut current {
            Some(open) if open.0 == one.text => open,
            other => {
                let text = texts.get(one.text).map_or("", |text| text.as_ref());
                other.insert((one.text, Characters::new(text)))
            }
        };
        let (start, end) = (one.range.start, one.range.end);
        places.push(place.call1((one.text, characters.at(start), characters.at(end)))?);
    }
    let set = Embeddings::from(chunks.embeddings);
    let made = CHUNKS.import(py, "isovec._results", "EmbeddedChunks")?;
    made.call1((set, PyList::new(py, places)?))
}
