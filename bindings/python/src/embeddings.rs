//! The class `Embeddings`: vectors with the fingerprint of their model.

use std::path::PathBuf;
use std::sync::Arc;

use isovec::{Hit, Similarity};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple};

use crate::compact::{self, CompactEmbeddings};
use crate::{arrow, fingerprint, vectors, wait};

/// Vectors `[n, dimension]` with the fingerprint of the model that made them.
#[pyclass(frozen, module = "isovec")]
pub(crate) struct Embeddings {
    /// Shared with the arrays that look at it.
    set: Arc<isovec::Embeddings>,
}

impl From<isovec::Embeddings> for Embeddings {
    fn from(set: isovec::Embeddings) -> Self {
        Self { set: set.into() }
    }
}

impl Embeddings {
    pub(crate) fn set(&self) -> &isovec::Embeddings {
        &self.set
    }
}

/// The name of a similarity.
pub(crate) fn word(metric: Similarity) -> &'static str {
    match metric {
        Similarity::Dot => "dot",
        Similarity::Euclidean => "euclidean",
        Similarity::Manhattan => "manhattan",
        _ => "cosine",
    }
}

/// The results of a search, best first.
pub(crate) fn hits<'py>(py: Python<'py>, found: &[Hit]) -> PyResult<Bound<'py, PyList>> {
    static HIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let hit = HIT.import(py, "isovec._results", "Hit")?;
    let found: PyResult<Vec<_>> = found
        .iter()
        .map(|found| hit.call1((found.index, found.score)))
        .collect();
    PyList::new(py, found?)
}

/// The results of many searches.
pub(crate) fn all_hits<'py>(py: Python<'py>, found: &[Vec<Hit>]) -> PyResult<Bound<'py, PyList>> {
    let found: PyResult<Vec<_>> = found.iter().map(|found| hits(py, found)).collect();
    PyList::new(py, found?)
}

/// What a set of so many texts has at an index of Python, which counts from the end where it is negative.
pub(crate) fn at<T>(index: isize, len: usize, get: impl FnOnce(usize) -> Option<T>) -> PyResult<T> {
    let place = match usize::try_from(index) {
        Ok(place) => Some(place),
        Err(_) => len.checked_sub(index.unsigned_abs()),
    };
    let found = place.and_then(get);
    found.ok_or_else(|| PyIndexError::new_err(format!("text {index} of {len}")))
}

/// What `pickle` makes a set of again: its class's `from_bytes`, and the bytes.
pub(crate) fn pickled<'py>(
    set: &Bound<'py, PyAny>,
    bytes: Bound<'py, PyBytes>,
) -> PyResult<Bound<'py, PyTuple>> {
    let read = set.get_type().getattr("from_bytes")?;
    (read, (bytes,)).into_pyobject(set.py())
}

#[pymethods]
impl Embeddings {
    /// Reads a file that `save` wrote, or the npm package, or the program `isovec`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::Embeddings::load(path))?.into())
    }

    /// The same from the file's bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::Embeddings::from_bytes(data))?.into())
    }

    /// Writes the vectors, their fingerprint and their labels into a file.
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

    /// Components of a vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.set.dim()
    }

    /// How the model means its vectors to be compared.
    #[getter]
    fn metric(&self) -> &'static str {
        word(self.set.metric())
    }

    /// The name of the prompt that was put before the texts, if one was.
    #[getter]
    fn prompt(&self) -> Option<&str> {
        self.set.prompt()
    }

    /// The model's name; empty when unknown.
    #[getter]
    fn model_name(&self) -> &str {
        self.set.model()
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

    /// For each text, how many tokens the model saw, special ones included.
    #[getter]
    fn token_counts(&self) -> Vec<u32> {
        self.set.token_counts().to_vec()
    }

    /// For each text, whether the model saw only a part of it.
    #[getter]
    fn truncated(&self) -> Vec<bool> {
        self.set.truncated().to_vec()
    }

    /// The labels of the vectors, where they have some.
    #[getter]
    fn labels(&self) -> Option<Vec<String>> {
        self.set.labels().map(<[String]>::to_vec)
    }

    /// A set of the same vectors with a label for each: an id, a place, or the text itself. Labels are saved with the vectors.
    fn with_labels(&self, py: Python<'_>, labels: Vec<String>) -> PyResult<Self> {
        let set = isovec::Embeddings::clone(&self.set);
        Ok(wait::here(py, || set.with_labels(labels))?.into())
    }

    /// An array of numpy over the vectors, which cannot be written to. Nothing is copied.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// What numpy reads an array from.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kind = if cfg!(target_endian = "big") {
            ">f4"
        } else {
            "<f4"
        };
        let shape = (self.set.len(), self.set.dim());
        vectors::interface(py, kind, shape, self.set.as_slice().as_ptr().addr())
    }

    /// What libraries of Arrow read an array of lists of a fixed size from. Nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The protocol lets a producer give its own type, whatever is asked for.
        let _ = requested_schema;
        arrow::export(py, &self.set)
    }

    /// The `k` vectors most alike each query, best first: a list of places and scores for each query. Exact.
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

    /// The `k` best of these hits by the scores of this set, best first: hits of one query in a compact set of the same rows.
    #[pyo3(signature = (query, found, k=10))]
    fn rescored<'py>(
        &self,
        py: Python<'py>,
        query: &Self,
        found: Vec<(usize, f32)>,
        k: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = compact::rust_hits(found);
        hits(
            py,
            &wait::here(py, || self.set.rescored(&query.set, &found, k))?,
        )
    }

    /// The same set in a quarter (`int8`) or a thirty-second (`binary`) of its bytes.
    fn compact(&self, py: Python<'_>, form: &str) -> PyResult<CompactEmbeddings> {
        let form = compact::form(form)?;
        Ok(wait::here(py, || self.set.compact(form))?.into())
    }

    /// The score of every pair: float32 `[n, m]`; larger is more alike.
    fn similarity<'py>(&self, py: Python<'py>, other: &Self) -> PyResult<Bound<'py, PyAny>> {
        let scores = wait::here(py, || self.set.similarity(&other.set))?;
        let (values, _) = scores.into_raw_vec_and_offset();
        let shape = [self.set.len(), other.set.len()];
        Ok(vectors::rows(py, shape, values)?.into_any())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        pickled(slf, slf.get().to_bytes(slf.py())?)
    }

    fn __repr__(&self) -> String {
        let Self { set } = self;
        let (n, dim) = (set.len(), set.dim());
        format!("<Embeddings {n} x {dim} of {:?}>", set.model())
    }
}
