//! The output of a unit: Parquet files of so many rows, and a side file of rows that were left out.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, RecordBatch, StringArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::compute::Compute;
use crate::rows::{Chunk, Row};
use crate::spec::{ERROR, Poisoned, Spec, VECTOR};
use crate::vectors::Vectors;

/// Writes a file of a unit's output in memory: a store takes it whole.
pub(crate) struct Output {
    form: Form,
    writer: ArrowWriter<Vec<u8>>,
    /// Rows of the input in it, also those that were left out.
    rows: usize,
}

/// What outputs of a unit share.
#[derive(Clone)]
pub(crate) struct Form {
    schema: SchemaRef,
    dim: i32,
    poisoned: Poisoned,
}

impl Form {
    /// The columns that are kept, the vectors, and the reasons where a vector may be null.
    pub(crate) fn new(
        mut fields: Vec<FieldRef>,
        compute: &dyn Compute,
        poisoned: Poisoned,
    ) -> Result<Self, String> {
        let dim = i32::try_from(compute.dim())
            .map_err(|_| format!("{} components are too many", compute.dim()))?;
        let nullable = poisoned == Poisoned::Null;
        let vectors = DataType::FixedSizeList(item(), dim);
        fields.push(Arc::new(Field::new(VECTOR, vectors, nullable)));
        if nullable {
            fields.push(Arc::new(Field::new(ERROR, DataType::Utf8, true)));
        }
        let metadata: HashMap<_, _> = compute.metadata().into_iter().collect();
        Ok(Self {
            schema: Arc::new(Schema::new_with_metadata(fields, metadata)),
            dim,
            poisoned,
        })
    }
}

/// Whether a file that holds so many rows takes so many more.
pub(crate) fn has_room(held: usize, more: usize, spec: &Spec) -> bool {
    held + more <= spec.unit_rows.get()
}

/// The list's element.
fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::Float32, false))
}

impl Output {
    pub(crate) fn new(form: &Form) -> Result<Self, String> {
        let vectors = || ColumnPath::new(vec![VECTOR.into(), "list".into(), "item".into()]);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // No two numbers are alike, and nobody looks for the smallest.
            .set_column_dictionary_enabled(vectors(), false)
            .set_column_statistics_enabled(
                vectors(),
                parquet::file::properties::EnabledStatistics::None,
            )
            .build();
        let schema = Arc::clone(&form.schema);
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties));
        Ok(Self {
            form: form.clone(),
            writer: writer.map_err(|error| error.to_string())?,
            rows: 0,
        })
    }

    /// Rows of the input in it so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes a chunk's rows with their vectors.
    pub(crate) fn push(&mut self, chunk: &Chunk, vectors: Vectors) -> Result<(), String> {
        self.rows += chunk.rows.len();
        let batch = self
            .batch(chunk, vectors)
            .map_err(|error| error.to_string())?;
        let written = self.writer.write(&batch);
        written.map_err(|error: ParquetError| error.to_string())
    }

    fn batch(&self, chunk: &Chunk, vectors: Vectors) -> Result<RecordBatch, ArrowError> {
        let Vectors { values, reasons } = vectors;
        let good: Vec<bool> = reasons.iter().map(Option::is_none).collect();
        let mut columns = chunk.kept.clone();
        if self.form.poisoned == Poisoned::Null {
            // A null has the room of a vector.
            let dim = self.form.dim as usize;
            let mut all = Vec::with_capacity(good.len() * dim);
            let mut values = values.chunks_exact(dim.max(1));
            for &good in &good {
                match values.by_ref().take(usize::from(good)).next() {
                    Some(vector) => all.extend_from_slice(vector),
                    None => all.resize(all.len() + dim, 0.0),
                }
            }
            let nulls = good
                .iter()
                .any(|&good| !good)
                .then(|| NullBuffer::from(good));
            columns.push(self.vectors(all, nulls)?);
            columns.push(Arc::new(StringArray::from(reasons)));
        } else {
            if good.iter().any(|&good| !good) {
                let good = BooleanArray::from(good);
                columns = columns
                    .iter()
                    .map(|column| filtered(column, &good))
                    .collect::<Result<_, _>>()?;
            }
            columns.push(self.vectors(values, None)?);
        }
        RecordBatch::try_new(Arc::clone(&self.form.schema), columns)
    }

    fn vectors(&self, values: Vec<f32>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let values = Arc::new(Float32Array::from(values));
        let list = FixedSizeListArray::try_new(item(), self.form.dim, values, nulls)?;
        Ok(Arc::new(list))
    }

    /// The whole file.
    pub(crate) fn finish(self) -> Result<Bytes, String> {
        let bytes = self.writer.into_inner();
        bytes.map(Bytes::from).map_err(|error| error.to_string())
    }
}

/// The values of the rows that are good.
fn filtered(column: &ArrayRef, good: &BooleanArray) -> Result<ArrayRef, ArrowError> {
    arrow_select::filter::filter(column, good)
}

/// A line of the side file.
pub(crate) fn skipped(file: &str, counts: &str, row: &Row, reason: &str) -> String {
    let line = serde_json::json!({ "file": file, counts: row.at, "reason": reason });
    format!("{line}\n")
}
