//! The classes `SparseEmbedder` and `SparseEmbeddings`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use isovec::{Cancel, DynamicBatcher, SparseOptions, SparseRow, SparseVector};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple};

use crate::embeddings::{all_hits, at, pickled};
use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::options::Form;
use crate::tasks::Call;
use crate::{arrow, error, fingerprint, texts, vectors, wait};

/// A loaded model that gives texts weights of words.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct SparseEmbedder {
    embedder: Owned<isovec::SparseEmbedder>,
    /// What joins the calls that asyncio waits for, from the first on.
    batcher: OnceLock<Owned<DynamicBatcher<isovec::SparseEmbedder>>>,
}

impl SparseEmbedder {
    fn set(
        &self,
        texts: &Bound<'_, PyAny>,
        form: Form,
        top_k: Option<usize>,
    ) -> PyResult<isovec::SparseEmbeddings> {
        let py = texts.py();
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = options(py, form, top_k)?;
        let embedded = embedder.embed_with(texts::read(texts)?, options);
        wait::wait(py, &cancel, embedded)
    }

    fn rows<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        form: Form,
        top_k: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        rows_of(texts.py(), &self.set(texts, form, top_k)?)
    }
}

fn options(py: Python<'_>, form: Form, top_k: Option<usize>) -> PyResult<(SparseOptions, Cancel)> {
    let (form, cancel) = form.options(py)?;
    let mut options = SparseOptions::default()
        .with_prompt(form.prompt)
        .with_cancel(cancel.clone());
    options.top_k = top_k;
    Ok((options, cancel))
}

/// A vector for each text, with arrays of its own.
fn rows_of<'py>(py: Python<'py>, set: &isovec::SparseEmbeddings) -> PyResult<Bound<'py, PyList>> {
    let all: PyResult<Vec<_>> = set.iter().map(|row| row_of(py, row)).collect();
    PyList::new(py, all?)
}

fn row_of<'py>(py: Python<'py>, row: SparseRow<'_>) -> PyResult<Bound<'py, PyAny>> {
    static VECTOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let vector = VECTOR.import(py, "isovec._results", "SparseVector")?;
    let SparseVector {
        indices, values, ..
    } = row.to_vector();
    vector.call1((vectors::ids(py, indices)?, vectors::row(py, values)?))
}

#[pymethods]
impl SparseEmbedder {
    /// Loads a model: an id of the hub, a folder, or a dict of files.
    #[new]
    #[pyo3(signature = (source, *, device=None, config=None, progress=None, **words))]
    fn new(
        source: &Bound<'_, PyAny>,
        device: Option<&str>,
        config: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
        words: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let py = source.py();
        let asked = Asked::read(source, device, config, progress, words)?;
        let config = asked.config.clone();
        let embedder = load!(py, isovec::SparseEmbedder, asked)?;
        let model = Model::new(Handle::Words(embedder.clone()), source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            embedder: Owned::new(embedder),
            batcher: OnceLock::new(),
        }))
    }

    /// Words that can have a weight.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.embedder.vocabulary_size()
    }

    /// Gives texts weights of words, in their order; `top_k` keeps the largest of each text.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, top_k=None))]
    fn embed<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        top_k: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let form = Form {
            prompt,
            prefix,
            ..Form::default()
        };
        self.rows(texts, form, top_k)
    }

    /// The same for texts to search with, under the model's query prompt.
    #[pyo3(signature = (texts, *, top_k=None))]
    fn embed_queries<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        top_k: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.rows(texts, Form::under("query", None, None), top_k)
    }

    /// The same for texts to search in, under the model's passage prompt.
    #[pyo3(signature = (texts, *, top_k=None))]
    fn embed_passages<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        top_k: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.rows(texts, Form::under("passage", None, None), top_k)
    }

    /// The same as a set with the fingerprint of the model, to search in and to save.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, top_k=None))]
    fn embeddings(
        &self,
        texts: &Bound<'_, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        top_k: Option<usize>,
    ) -> PyResult<SparseEmbeddings> {
        let form = Form {
            prompt,
            prefix,
            ..Form::default()
        };
        Ok(self.set(texts, form, top_k)?.into())
    }

    /// As `embed`, for asyncio.
    #[pyo3(signature = (texts, *, prompt=None, prefix=None, top_k=None))]
    fn aembed<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        prompt: Option<String>,
        prefix: Option<String>,
        top_k: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let form = Form {
            prompt,
            prefix,
            ..Form::default()
        };
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = options(py, form, top_k)?;
        let batcher = self.batcher.get_or_init(|| Owned::new(embedder.batcher()));
        let result = batcher.get(py)?.embed_with(texts::read(texts)?, options);
        Call::coroutine(py, cancel, result, |py, set| {
            Ok(rows_of(py, &set)?.into_any().unbind())
        })
    }

    /// The heaviest words of a vector of this model, the largest weight first.
    #[pyo3(signature = (vector, most=None))]
    fn words<'py>(
        &self,
        vector: &Bound<'py, PyAny>,
        most: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        static WORD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = vector.py();
        let word = WORD.import(py, "isovec._results", "Word")?;
        let (indices, values): (Vec<u32>, Vec<f32>) = vector.extract()?;
        let mut own = SparseVector::default();
        (own.indices, own.values) = (indices, values);
        let words = self
            .embedder
            .get(py)?
            .words(own.as_row(), most.unwrap_or(usize::MAX));
        let words = words.map_err(|error| error::of(py, &error))?;
        let all: PyResult<Vec<_>> = words
            .into_iter()
            .map(|one| word.call1((one.token, one.weight, one.index)))
            .collect();
        PyList::new(py, all?)
    }
}

/// Weights of words of texts, with the fingerprint of the model that made them.
#[pyclass(frozen, module = "isovec")]
pub(crate) struct SparseEmbeddings {
    /// Shared with the arrays that look at it.
    set: Arc<isovec::SparseEmbeddings>,
}

impl From<isovec::SparseEmbeddings> for SparseEmbeddings {
    fn from(set: isovec::SparseEmbeddings) -> Self {
        Self { set: set.into() }
    }
}

#[pymethods]
impl SparseEmbeddings {
    /// Reads a file that `save` wrote.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::SparseEmbeddings::load(path))?.into())
    }

    /// The same from the file's bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::SparseEmbeddings::from_bytes(data))?.into())
    }

    /// Writes the vectors and their fingerprint into a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        wait::here(py, || self.set.save(path))
    }

    /// The same as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = wait::here(py, || self.set.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __len__(&self) -> usize {
        self.set.len()
    }

    /// The vector of one text.
    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let row = at(index, self.set.len(), |place| self.set.get(place))?;
        row_of(py, row)
    }

    /// Words that can have a weight.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.set.vocabulary_size()
    }

    /// Says which vectors can be compared with these.
    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fingerprint::to_py(py, self.set.fingerprint())
    }

    /// Refuses a fingerprint of another model with an `IncompatibleIndexError`, as a search does. The fingerprint is a dict, or the
    /// same as JSON. Where the vectors may be compared and were computed in different precisions, it gives both.
    fn check_compatible(
        &self,
        fingerprint: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(String, String)>> {
        fingerprint::check(fingerprint, |other| self.set.check_compatible(other))
    }

    /// A set in which every vector has its `most` largest weights alone.
    fn top_k(&self, py: Python<'_>, most: usize) -> Self {
        py.detach(|| self.set.top_k(most)).into()
    }

    /// What libraries of Arrow read an array of structs from: `indices`, a list of uint32, and `values`, a list of float32. The
    /// numbers are not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol lets a producer give its own type, whatever is asked for.
        let _ = requested_schema;
        arrow::export_sparse(py, &self.set)
    }

    /// The `k` texts with the largest inner product with each query, best first: a list of places and scores for each query. A text
    /// that shares no word with a query is no hit.
    #[pyo3(signature = (queries, k=10))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: &Self,
        k: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = wait::here(py, || self.set.search(&queries.set, k))?;
        all_hits(py, &found)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        pickled(slf, slf.get().to_bytes(slf.py())?)
    }

    fn __repr__(&self) -> String {
        let (n, words) = (self.set.len(), self.set.vocabulary_size());
        format!(
            "<SparseEmbeddings {n} texts, {words} words, of {:?}>",
            self.set.model()
        )
    }
}
