//! A job in a folder of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow_array::{Array as _, FixedSizeListArray, Float32Array, StringArray};
use bytes::Bytes;
use isovec_jobs::Spec;

/// A folder with inputs and an output.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

/// A row of an output: its id, its vector if it has one, its error if it has one.
pub(crate) type OutputRow = (String, Option<Vec<f32>>, Option<String>);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path("in").join(name), content).unwrap();
    }

    /// The job over `in/*.jsonl` with these lines more; `out` is the output.
    pub(crate) fn spec(&self, out: &str, more: &str) -> Spec {
        Spec::parse(&self.toml(out, "*.jsonl", more)).unwrap()
    }

    pub(crate) fn toml(&self, out: &str, files: &str, more: &str) -> String {
        let (input, output) = (self.path("in"), self.path(out));
        format!(
            "input = '{}/{files}'\noutput = '{}'\nkeep = ['id']\nretry_wait = '1ms'\n{more}\n",
            input.display(),
            output.display()
        )
    }

    /// What an output holds, but for its bookkeeping.
    pub(crate) fn output(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for folder in ["rows", "skipped"] {
            let path = self.path(out).join(folder);
            for entry in fs::read_dir(path).into_iter().flatten() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                files.insert(format!("{folder}/{name}"), fs::read(entry.path()).unwrap());
            }
        }
        files
    }

    /// The files of a folder of an output.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// All rows of an output, by their ids.
    pub(crate) fn rows(&self, out: &str) -> Vec<OutputRow> {
        let files = self.output(out);
        let parquet = files
            .into_iter()
            .filter(|(name, _)| name.starts_with("rows/"));
        let mut rows: Vec<OutputRow> = parquet.flat_map(|(_, bytes)| rows(bytes.into())).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows
    }
}

/// The rows of a Parquet file with the columns `id`, `embedding` and, where it has one, `error`.
pub(crate) fn rows(bytes: Bytes) -> Vec<OutputRow> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let text = |name: &str| {
            let column = batch.column_by_name(name)?;
            Some(
                column
                    .as_any()
                    .downcast_ref::<StringArray>()
                    .unwrap()
                    .clone(),
            )
        };
        let (ids, errors) = (text("id").unwrap(), text("error"));
        let vectors = batch.column_by_name("embedding").unwrap();
        let vectors = vectors
            .as_any()
            .downcast_ref::<FixedSizeListArray>()
            .unwrap();
        for row in 0..batch.num_rows() {
            let vector = vectors.is_valid(row).then(|| {
                let vector = vectors.value(row);
                let vector = vector.as_any().downcast_ref::<Float32Array>().unwrap();
                vector.values().to_vec()
            });
            let error = errors.as_ref().filter(|errors| errors.is_valid(row));
            let error = error.map(|errors| errors.value(row).to_owned());
            let id = match ids.is_valid(row) {
                true => ids.value(row).to_owned(),
                false => String::new(),
            };
            rows.push((id, vector, error));
        }
    }
    rows
}

/// Lines of JSON with the ids from `first` on.
pub(crate) fn lines(first: usize, count: usize) -> String {
    let line = |id: usize| format!("{{\"id\": \"{id:06}\", \"text\": \"text number {id}\"}}\n");
    (first..first + count).map(line).collect()
}

/// What the rows of [`lines`] become.
pub(crate) fn expected(first: usize, count: usize) -> Vec<OutputRow> {
    let row = |id: usize| {
        let vector = crate::engine::vector(&format!("text number {id}"));
        (format!("{id:06}"), Some(vector.to_vec()), None)
    };
    (first..first + count).map(row).collect()
}

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}
