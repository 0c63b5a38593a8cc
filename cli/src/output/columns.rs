//! Parquet and Arrow: the columns `text` and `embedding`, the fingerprint in the schema's metadata.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use isovec::Embedded;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{Sink, Target};
use crate::error::{CliError, Result};
use crate::input::Row;

/// Rows of a record batch.
const BATCH: usize = 1024;
/// Bytes of text that are enough for one, too: its offsets have 32 bits.
const BATCH_BYTES: usize = 32 << 20;
/// Bytes of a group of rows in a Parquet file.
const GROUP_BYTES: usize = 64 << 20;

/// Gathers rows into record batches.
pub(super) struct Columns<B> {
    backend: B,
    schema: SchemaRef,
    /// What messages call the output.
    name: String,
    dim: i32,
    texts: Vec<String>,
    text_bytes: usize,
    /// The vectors, one after another.
    values: Vec<f32>,
}

/// The part in which the formats differ.
pub(super) trait Backend {
    const FORMAT: &'static str;
    /// Whether it can be read before it is complete.
    const LIVE: bool = false;
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String>;
    /// Hands over what is buffered, where that can be read.
    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn finish(self) -> Result<(), String>;
}

type Out = Box<dyn Write + Send>;

pub(super) fn parquet(target: &Target<'_>) -> Result<Columns<ArrowWriter<Out>>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // The writer holds a whole group; the default is a million rows.
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .build();
    open(target, |out, schema| {
        ArrowWriter::try_new(out, schema, Some(properties)).map_err(|error| error.to_string())
    })
}

pub(super) fn arrow_file(target: &Target<'_>) -> Result<Columns<FileWriter<Out>>> {
    open(target, |out, schema| {
        FileWriter::try_new(out, &schema).map_err(|error| error.to_string())
    })
}

pub(super) fn arrow_stream(target: &Target<'_>) -> Result<Columns<StreamWriter<Out>>> {
    open(target, |out, schema| {
        StreamWriter::try_new(out, &schema).map_err(|error| error.to_string())
    })
}

fn open<B: Backend>(
    target: &Target<'_>,
    make: impl FnOnce(Out, SchemaRef) -> Result<B, String>,
) -> Result<Columns<B>> {
    let name = target.name();
    let detail = |detail: String| CliError::Format {
        name: name.clone(),
        format: B::FORMAT,
        detail,
    };
    let dim = i32::try_from(target.empty.dim())
        .map_err(|_| detail(format!("{} components are too many", target.empty.dim())))?;
    let fingerprint = serde_json::to_string(target.empty.fingerprint())
        .map_err(|error| detail(error.to_string()))?;
    let schema = Arc::new(Schema::new_with_metadata(
        vec![
            Field::new("text", DataType::Utf8, false),
            Field::new("embedding", DataType::FixedSizeList(item(), dim), false),
        ],
        HashMap::from([("isovec.fingerprint".to_owned(), fingerprint)]),
    ));
    let backend = make(target.writer()?, Arc::clone(&schema)).map_err(detail)?;
    Ok(Columns {
        backend,
        schema,
        name,
        dim,
        texts: Vec::new(),
        text_bytes: 0,
        values: Vec::new(),
    })
}

/// The list's element.
fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Float32, false))
}

impl<B: Backend> Columns<B> {
    /// Writes what was gathered.
    fn write_batch(&mut self) -> Result<()> {
        if self.texts.is_empty() {
            return Ok(());
        }
        let batch = self.batch().map_err(|error| error.to_string());
        let written = batch.and_then(|batch| self.backend.write(&batch));
        written.map_err(|detail| self.error(detail))
    }

    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        self.text_bytes = 0;
        let texts: StringArray = self.texts.drain(..).map(Some).collect();
        let values: ArrayRef = Arc::new(Float32Array::from(std::mem::take(&mut self.values)));
        let vectors = FixedSizeListArray::try_new(item(), self.dim, values, None)?;
        RecordBatch::try_new(
            Arc::clone(&self.schema),
            vec![Arc::new(texts), Arc::new(vectors)],
        )
    }

    fn error(&self, detail: String) -> CliError {
        CliError::Format {
            name: self.name.clone(),
            format: B::FORMAT,
            detail,
        }
    }
}

impl<B: Backend> Sink<Embedded> for Columns<B> {
    fn write(&mut self, row: Row, embedded: Embedded) -> Result<()> {
        self.text_bytes += row.text.len();
        self.texts.push(row.text);
        self.values.extend(embedded.vector);
        if self.texts.len() < BATCH && self.text_bytes < BATCH_BYTES {
            return Ok(());
        }
        self.write_batch()
    }

    fn flush(&mut self) -> Result<()> {
        if !B::LIVE {
            return Ok(());
        }
        self.write_batch()?;
        let flushed = self.backend.flush();
        flushed.map_err(|detail| self.error(detail))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_batch()?;
        let Self { backend, name, .. } = *self;
        backend.finish().map_err(|detail| CliError::Format {
            name,
            format: B::FORMAT,
            detail,
        })
    }
}

impl Backend for ArrowWriter<Out> {
    const FORMAT: &'static str = "parquet";
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String> {
        Self::write(self, batch).map_err(|error: ParquetError| error.to_string())
    }
    fn finish(self) -> Result<(), String> {
        self.close().map(drop).map_err(|error| error.to_string())
    }
}

impl Backend for FileWriter<Out> {
    const FORMAT: &'static str = "arrow";
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String> {
        Self::write(self, batch).map_err(|error| error.to_string())
    }
    fn finish(mut self) -> Result<(), String> {
        Self::finish(&mut self)
            .and_then(|()| self.get_mut().flush().map_err(ArrowError::from))
            .map_err(|error| error.to_string())
    }
}

impl Backend for StreamWriter<Out> {
    const FORMAT: &'static str = "arrow";
    const LIVE: bool = true;
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String> {
        Self::write(self, batch).map_err(|error| error.to_string())
    }
    fn flush(&mut self) -> Result<(), String> {
        Self::flush(self).map_err(|error| error.to_string())
    }
    fn finish(mut self) -> Result<(), String> {
        Self::finish(&mut self)
            .and_then(|()| self.get_mut().flush().map_err(ArrowError::from))
            .map_err(|error| error.to_string())
    }
}
