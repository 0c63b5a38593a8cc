//! The class `CompactEmbeddings`: vectors in int8 or in signs, and the hits of searches.

use std::path::PathBuf;

use isovec::{CompactForm, Hit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::embeddings::{Embeddings, all_hits, hits, pickled, word};
use crate::{fingerprint, vectors, wait};

/// Vectors in a compact form, with the fingerprint of the model that made them. Queries stay in f32.
#[pyclass(frozen, module = "isovec")]
pub(crate) struct CompactEmbeddings {
    set: isovec::CompactEmbeddings,
}

impl From<isovec::CompactEmbeddings> for CompactEmbeddings {
    fn from(set: isovec::CompactEmbeddings) -> Self {
        Self { set }
    }
}

/// The form of a name.
pub(crate) fn form(name: &str) -> PyResult<CompactForm> {
    match name {
        "int8" => Ok(CompactForm::Int8),
        "binary" => Ok(CompactForm::Binary),
        other => Err(PyValueError::new_err(format!(
            "a compact form is \"int8\" or \"binary\", not {other:?}"
        ))),
    }
}

/// The hits that Python has.
pub(crate) fn rust_hits(hits: Vec<(usize, f32)>) -> Vec<Hit> {
    let hits = hits.into_iter();
    hits.map(|(index, score)| Hit { index, score }).collect()
}

#[pymethods]
impl CompactEmbeddings {
    /// Reads a file that `save` wrote, or the npm package, or the program `isovec`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::CompactEmbeddings::load(path))?.into())
    }

    /// The same from the file's bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::CompactEmbeddings::from_bytes(data))?.into())
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

    /// How the vectors are held: `int8` or `binary`.
    #[getter]
    fn form(&self) -> String {
        self.set.form().to_string()
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

    /// The labels of the vectors, where they have some.
    #[getter]
    fn labels(&self) -> Option<Vec<String>> {
        self.set.labels().map(<[String]>::to_vec)
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

    /// An array of numpy over the codes, which cannot be written to. Nothing is copied. Of `int8` it is int8 `[n, dimension]`. Of
    /// `binary` it is uint8 `[n, ⌈dimension / 8⌉]`: a bit for each component, 1 where it is above 0, as numpy's `packbits` has them.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// What numpy reads an array from.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (kind, width) = match self.set.form() {
            CompactForm::Int8 => ("|i1", self.set.dim()),
            _ => ("|u1", self.set.dim().div_ceil(8)),
        };
        let codes = self.set.codes();
        vectors::interface(py, kind, (self.set.len(), width), codes.as_ptr().addr())
    }

    /// Of `int8`, what each row of `numpy()` is multiplied with to get its vector back: float32 `[n]`. Of `binary` it is empty.
    #[getter]
    fn scales<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(vectors::row(py, self.set.scales().to_vec())?.into_any())
    }

    /// The `k` vectors most alike each query, best first: a list of places and scores for each query. Every vector is looked at.
    #[pyo3(signature = (queries, k=10))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: &Embeddings,
        k: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = wait::here(py, || self.set.search(queries.set(), k))?;
        all_hits(py, &found)
    }

    /// The `k` best of these hits by the scores of this set, best first; of one query.
    #[pyo3(signature = (query, found, k=10))]
    fn rescored<'py>(
        &self,
        py: Python<'py>,
        query: &Embeddings,
        found: Vec<(usize, f32)>,
        k: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = rust_hits(found);
        hits(
            py,
            &wait::here(py, || self.set.rescored(query.set(), &found, k))?,
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        pickled(slf, slf.get().to_bytes(slf.py())?)
    }

    fn __repr__(&self) -> String {
        let Self { set } = self;
        let (n, dim, form) = (set.len(), set.dim(), set.form());
        format!(
            "<CompactEmbeddings {n} x {dim} in {form} of {:?}>",
            set.model()
        )
    }
}

/// The `k` best rows of several rankings of the same rows, best first, by reciprocal rank fusion.
#[pyfunction]
#[pyo3(signature = (rankings, k=10))]
pub(crate) fn fuse(
    py: Python<'_>,
    rankings: Vec<Vec<(usize, f32)>>,
    k: usize,
) -> PyResult<Bound<'_, PyList>> {
    let rankings: Vec<Vec<Hit>> = rankings.into_iter().map(rust_hits).collect();
    hits(py, &isovec::fuse(&rankings, k))
}
