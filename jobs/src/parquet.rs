//! Parquet: the rows of some row groups.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;
use bytes::Bytes;
use bytes::buf::{Buf as _, Reader as BytesReader};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{ChunkReader, Length, RowGroupReader as _};
use parquet::file::serialized_reader::SerializedRowGroupReader;

use crate::error::{Error, Result};
use crate::rows::{COLUMN, Chunk, Columns, Reader, Row, bytes, strings, texts, too_long};
use crate::store::Store;
use crate::unit::File;

/// Bytes at the end of a file that are read first: the footer, unless it is large.
pub(crate) const TAIL: u64 = 64 << 10;
/// Bytes after the footer: its length, and the letters `PAR1`.
const LAST: u64 = 8;

/// Pieces of a file that were read.
#[derive(Clone)]
struct Pieces {
    size: u64,
    pieces: Arc<Vec<(u64, Bytes)>>,
}

impl Length for Pieces {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Pieces {
    type T = BytesReader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let mut pieces = self.pieces.iter();
        let found = pieces.find_map(|(from, bytes)| {
            let skip = usize::try_from(start.checked_sub(*from)?).ok()?;
            (skip < bytes.len()).then(|| bytes.slice(skip..))
        });
        match found {
            Some(bytes) => Ok(bytes.reader()),
            None => Err(ParquetError::EOF(format!(
                "there is nothing at byte {start}"
            ))),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.get_read(start)?.into_inner();
        match bytes.len() < length {
            true => Err(ParquetError::EOF(format!(
                "there are {} and not {length} bytes at byte {start}",
                bytes.len()
            ))),
            false => Ok(bytes.slice(..length)),
        }
    }
}

fn fault(file: &File, error: impl ToString) -> Error {
    Error::Input {
        file: file.name.clone(),
        detail: error.to_string(),
    }
}

/// Reads a file's footer.
fn footer(store: &Store, file: &File) -> Result<ParquetMetaData> {
    if file.size < LAST {
        return Err(fault(file, "is too short for a Parquet file"));
    }
    let mut from = file.size.saturating_sub(TAIL);
    let mut tail = store.range(file, from..file.size)?;
    let mut length = [0; 4];
    let at = tail.len() - LAST as usize;
    length.copy_from_slice(&tail[at..at + 4]);
    let whole = u64::from(u32::from_le_bytes(length)) + LAST;
    if whole > file.size - from {
        from = file.size.checked_sub(whole).ok_or_else(|| {
            fault(
                file,
                "is no Parquet file, or was cut: its footer is longer than the file",
            )
        })?;
        tail = store.range(file, from..file.size)?;
    }
    let pieces = Pieces {
        size: file.size,
        pieces: Arc::new(vec![(from, tail)]),
    };
    let read = ParquetMetaDataReader::new().parse_and_finish(&pieces);
    read.map_err(|error| fault(file, error))
}

/// Rows of each row group, from the footer.
pub(crate) fn row_groups(store: &Store, file: &File) -> Result<Vec<u64>> {
    let footer = footer(store, file)?;
    let groups = footer.row_groups().iter();
    let rows = groups.map(|group| {
        let rows = u64::try_from(group.num_rows());
        rows.map_err(|_| fault(file, "a row group has fewer rows than none"))
    });
    rows.collect()
}

/// Reads the row groups of a unit, one at a time, and of each only the columns that are used.
///
/// The text is read as bytes and not as strings: Arrow's reader refuses every row of a batch of which one is not UTF-8.
pub(crate) struct Groups<'a> {
    store: &'a Store,
    file: &'a File,
    columns: Columns<'a>,
    footer: ArrowReaderMetadata,
    /// The text's place among the file's leaves.
    text: usize,
    /// The columns that Arrow's reader reads, in the order of the spec; `None` is the text.
    kept: Vec<Option<FieldRef>>,
    mask: ProjectionMask,
    groups: std::ops::Range<u32>,
    group: Option<Group>,
    /// The number of the next row in the file.
    row: u64,
}

/// A row group in work.
struct Group {
    text: ColumnReaderImpl<ByteArrayType>,
    kept: Option<ParquetRecordBatchReader>,
    left: u64,
}

impl<'a> Groups<'a> {
    /// Reads the footer, and finds the columns.
    pub(crate) fn open(
        store: &'a Store,
        file: &'a File,
        groups: std::ops::Range<u32>,
        row: u64,
        columns: Columns<'a>,
    ) -> Result<Self> {
        let footer = Arc::new(footer(store, file)?);
        let footer = ArrowReaderMetadata::try_new(footer, ArrowReaderOptions::new());
        let footer = footer.map_err(|error| fault(file, error))?;
        let schema = footer.parquet_schema();
        let leaves = schema.columns();
        let names = || {
            let names = footer.schema().fields().iter().map(|field| field.name());
            format!("{:?}", names.collect::<Vec<_>>())
        };
        let leaf = leaves
            .iter()
            .position(|leaf| leaf.path().parts() == [columns.text] && leaf.max_rep_level() == 0);
        let Some(text) = leaf else {
            return Err(fault(
                file,
                format!(
                    "has no column {:?} but {}; name one as text",
                    columns.text,
                    names()
                ),
            ));
        };
        if leaves[text].physical_type() != Physical::BYTE_ARRAY {
            return Err(fault(
                file,
                format!(
                    "the column {:?} has no texts; name another as text",
                    columns.text
                ),
            ));
        }
        let mut roots = Vec::new();
        let mut kept = Vec::new();
        for name in columns.keep {
            if name == columns.text {
                kept.push(None);
                continue;
            }
            let Some((root, field)) = footer.schema().fields().find(name) else {
                return Err(fault(
                    file,
                    format!("has no column {name:?} but {}; keep another", names()),
                ));
            };
            roots.push(root);
            kept.push(Some(Arc::clone(field)));
        }
        let mask = ProjectionMask::roots(schema, roots);
        Ok(Self {
            store,
            file,
            columns,
            text,
            kept,
            mask,
            groups,
            group: None,
            row,
            footer,
        })
    }

    /// Reads the columns of a row group, each in one request.
    fn group(&self, number: usize) -> Result<Group> {
        let metadata = self.footer.metadata();
        let row_group = metadata.row_groups().get(number).ok_or_else(|| {
            let has = metadata.num_row_groups();
            fault(
                self.file,
                format!("has {has} row groups, and not {}", number + 1),
            )
        })?;
        let mut pieces = Vec::new();
        for (leaf, column) in row_group.columns().iter().enumerate() {
            if leaf == self.text || self.mask.leaf_included(leaf) {
                let (start, length) = column.byte_range();
                let end = start.saturating_add(length);
                pieces.push((start, self.store.range(self.file, start..end)?));
            }
        }
        let pieces = Pieces {
            size: self.file.size,
            pieces: Arc::new(pieces),
        };
        let fault = |error: ParquetError| fault(self.file, error);
        let properties = Arc::new(ReaderProperties::builder().build());
        let pages = metadata.page_index_for_row_group(number);
        let reader =
            SerializedRowGroupReader::new(Arc::new(pieces.clone()), row_group, pages, properties);
        let text = reader.and_then(|reader| reader.get_column_reader(self.text));
        let ColumnReader::ByteArrayColumnReader(text) = text.map_err(fault)? else {
            return Err(fault(ParquetError::General("the text is no bytes".into())));
        };
        let kept = match self.kept.iter().any(Option::is_some) {
            false => None,
            true => {
                let footer = self.footer.clone();
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pieces, footer);
                let builder = builder
                    .with_row_groups(vec![number])
                    .with_projection(self.mask.clone())
                    .with_batch_size(self.columns.rows);
                Some(builder.build().map_err(fault)?)
            }
        };
        let left = u64::try_from(row_group.num_rows()).unwrap_or(0);
        Ok(Group { text, kept, left })
    }

    /// The next texts of the row group.
    fn texts(&self, group: &mut Group, rows: usize) -> Result<Vec<Row>> {
        let metadata = self.footer.metadata();
        let most = metadata
            .file_metadata()
            .schema_descr()
            .column(self.text)
            .max_def_level();
        let mut levels: Vec<i16> = Vec::new();
        let mut values: Vec<ByteArray> = Vec::new();
        let mut read = 0;
        while read < rows {
            let levels = (most > 0).then_some(&mut levels);
            let records = group
                .text
                .read_records(rows - read, levels, None, &mut values);
            let (records, ..) = records.map_err(|error| fault(self.file, error))?;
            if records == 0 {
                let detail = format!(
                    "the column {:?} ends before its row group",
                    self.columns.text
                );
                return Err(fault(self.file, detail));
            }
            read += records;
        }
        let mut values = values.iter();
        let rows = (0..rows).map(|row| {
            let there = most == 0 || levels.get(row) == Some(&most);
            let text = match values.by_ref().take(usize::from(there)).next() {
                None => Err("the text is null".to_owned()),
                Some(bytes) => self.text_of(bytes.data()),
            };
            let at = self.row + row as u64;
            Row { text, at }
        });
        Ok(rows.collect())
    }

    fn text_of(&self, bytes: &[u8]) -> Result<String, String> {
        if let Some(reason) = too_long(bytes.len(), self.columns.max_text_bytes) {
            return Err(reason);
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            format!("the text is not UTF-8 from its byte {at} on")
        })?;
        Ok(text.to_owned())
    }

    /// The same rows' columns that are kept.
    fn kept(&self, group: &mut Group, rows: &[Row]) -> Result<Vec<ArrayRef>> {
        let batch = match &mut group.kept {
            None => None,
            Some(reader) => {
                let batch = reader.next().transpose();
                let batch = batch.map_err(|error| fault(self.file, error))?;
                let whole = batch.filter(|batch| batch.num_rows() == rows.len());
                let whole = whole
                    .ok_or_else(|| fault(self.file, "its columns have other numbers of rows"))?;
                Some(whole)
            }
        };
        let kept = self.kept.iter().map(|field| match (field, &batch) {
            (Some(field), Some(batch)) => {
                let column = batch.column_by_name(field.name()).cloned();
                column
                    .ok_or_else(|| fault(self.file, format!("lost the column {:?}", field.name())))
            }
            // JSON lines stop long before that; a chunk of row groups has no bound but its rows.
            _ => match bytes(rows) {
                0..=COLUMN => Ok(texts(rows)),
                bytes => Err(fault(
                    self.file,
                    format!(
                        "has {bytes} bytes of texts in {} rows, and a kept column holds {COLUMN}; set unit_rows lower",
                        rows.len()
                    ),
                )),
            },
        });
        kept.collect()
    }
}

impl Reader for Groups<'_> {
    fn fields(&self) -> Vec<FieldRef> {
        let text = strings(self.columns.text);
        let fields = self.kept.iter();
        let fields = fields.map(|field| field.clone().unwrap_or_else(|| Arc::clone(&text)));
        fields.collect()
    }

    fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let mut group = match self.group.take() {
                Some(group) if group.left > 0 => group,
                _ => match self.groups.next() {
                    Some(number) => self.group(number as usize)?,
                    None => return Ok(None),
                },
            };
            let count = group.left.min(self.columns.rows as u64);
            if count == 0 {
                continue;
            }
            let rows = self.texts(&mut group, count as usize)?;
            let kept = self.kept(&mut group, &rows)?;
            self.row += count;
            group.left -= count;
            self.group = Some(group);
            return Ok(Some(Chunk { rows, kept }));
        }
    }

    fn counts(&self) -> &'static str {
        "row"
    }
}
