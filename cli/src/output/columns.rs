//! Parquet and Arrow: the columns `text` and `embedding`, the fingerprint in the schema's metadata.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use isovec::Embeddings;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{Sink, Target};
use crate::error::{CliError, Result};
use crate::input::Row;

/// A writer of record batches and what its messages call it.
pub(super) struct Columns<B> {
    backend: B,
    schema: SchemaRef,
    name: String,
}

/// The part in which the formats differ.
pub(super) trait Backend {
    const FORMAT: &'static str;
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String>;
    fn finish(self) -> Result<(), String>;
}

type Out = Box<dyn Write + Send>;

pub(super) fn parquet(target: &Target<'_>) -> Result<Columns<ArrowWriter<Out>>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
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
    let dim = i32::try_from(target.dim)
        .map_err(|_| detail(format!("{} components are too many", target.dim)))?;
    let fingerprint =
        serde_json::to_string(target.fingerprint).map_err(|error| detail(error.to_string()))?;
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
    })
}

/// The list's element.
fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Float32, false))
}

impl<B: Backend> Columns<B> {
    fn batch(&self, rows: Vec<Row>, embeddings: Embeddings) -> Result<RecordBatch, ArrowError> {
        let dim = i32::try_from(embeddings.dim())
            .map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))?;
        let texts: StringArray = rows.into_iter().map(|row| Some(row.text)).collect();
        let values: ArrayRef = Arc::new(Float32Array::from(embeddings.into_vec()));
        let vectors = FixedSizeListArray::try_new(item(), dim, values, None)?;
        RecordBatch::try_new(
            Arc::clone(&self.schema),
            vec![Arc::new(texts), Arc::new(vectors)],
        )
    }
}

impl<B: Backend> Sink for Columns<B> {
    fn write(&mut self, rows: Vec<Row>, embeddings: Embeddings) -> Result<()> {
        let batch = self
            .batch(rows, embeddings)
            .map_err(|error| error.to_string());
        batch
            .and_then(|batch| self.backend.write(&batch))
            .map_err(|detail| CliError::Format {
                name: self.name.clone(),
                format: B::FORMAT,
                detail,
            })
    }

    fn finish(self: Box<Self>) -> Result<()> {
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
    fn write(&mut self, batch: &RecordBatch) -> Result<(), String> {
        Self::write(self, batch).map_err(|error| error.to_string())
    }
    fn finish(mut self) -> Result<(), String> {
        Self::finish(&mut self)
            .and_then(|()| self.get_mut().flush().map_err(ArrowError::from))
            .map_err(|error| error.to_string())
    }
}
