//! The classes `MultiVectorEmbedder` and `MultiVectorEmbeddings`.

use std::path::PathBuf;
use std::sync::OnceLock;

use isovec::{Cancel, DynamicBatcher, MultiVectorOptions};
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::embeddings::{all_hits, at, pickled};
use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::options::Form;
use crate::tasks::Call;
use crate::{compact, fingerprint, texts, vectors, wait};

/// A loaded model that gives every token a vector, for late interaction.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct MultiVectorEmbedder {
    embedder: Owned<isovec::MultiVectorEmbedder>,
    /// What joins the calls that asyncio waits for, from the first on.
    batcher: OnceLock<Owned<DynamicBatcher<isovec::MultiVectorEmbedder>>>,
}

impl MultiVectorEmbedder {
    fn set(&self, texts: &Bound<'_, PyAny>, role: &str) -> PyResult<MultiVectorEmbeddings> {
        let py = texts.py();
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = options(py, role)?;
        let embedded = embedder.embed_with(texts::read(texts)?, options);
        Ok(wait::wait(py, &cancel, embedded)?.into())
    }
}

fn options(py: Python<'_>, role: &str) -> PyResult<(MultiVectorOptions, Cancel)> {
    let (form, cancel) = Form::under(role, None, None).options(py)?;
    let options = MultiVectorOptions::default()
        .with_prompt(form.prompt)
        .with_cancel(cancel.clone());
    Ok((options, cancel))
}

#[pymethods]
impl MultiVectorEmbedder {
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
        let embedder = load!(py, isovec::MultiVectorEmbedder, asked)?;
        let model = Model::new(Handle::Tokens(embedder.clone()), source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            embedder: Owned::new(embedder),
            batcher: OnceLock::new(),
        }))
    }

    /// Components of a token's vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.embedder.dimension()
    }

    /// Embeds texts to search with, in their order.
    fn embed_queries(&self, texts: &Bound<'_, PyAny>) -> PyResult<MultiVectorEmbeddings> {
        self.set(texts, "query")
    }

    /// Embeds texts to search in, in their order.
    fn embed_passages(&self, texts: &Bound<'_, PyAny>) -> PyResult<MultiVectorEmbeddings> {
        self.set(texts, "passage")
    }

    /// Embeds texts for asyncio: as queries with the prompt `query`, else as passages.
    #[pyo3(signature = (texts, *, prompt="passage"))]
    fn aembed<'py>(&self, texts: &Bound<'py, PyAny>, prompt: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = options(py, prompt)?;
        let batcher = self.batcher.get_or_init(|| Owned::new(embedder.batcher()));
        let result = batcher.get(py)?.embed_with(texts::read(texts)?, options);
        Call::coroutine(py, cancel, result, |py, set| {
            Ok(Py::new(py, MultiVectorEmbeddings::from(set))?.into_any())
        })
    }
}

/// The vectors of texts' tokens, with the fingerprint of the model that made them.
#[pyclass(frozen, module = "isovec")]
pub(crate) struct MultiVectorEmbeddings {
    set: isovec::MultiVectorEmbeddings,
}

impl From<isovec::MultiVectorEmbeddings> for MultiVectorEmbeddings {
    fn from(set: isovec::MultiVectorEmbeddings) -> Self {
        Self { set }
    }
}

#[pymethods]
impl MultiVectorEmbeddings {
    /// Reads a file that `save` wrote, or the program `isovec`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::MultiVectorEmbeddings::load(path))?.into())
    }

    /// The same from the file's bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(wait::here(py, || isovec::MultiVectorEmbeddings::from_bytes(data))?.into())
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

    /// The vectors of one text: float32 `[vectors, dimension]`.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: isize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let vectors = at(index, self.set.len(), |place| self.set.get(place))?;
        let shape = [vectors.len() / self.set.dim(), self.set.dim()];
        vectors::rows(py, shape, vectors.into_owned())
    }

    /// How the vectors are held: `int8` or `binary`; None for float32.
    #[getter]
    fn form(&self) -> Option<String> {
        self.set.form().map(|form| form.to_string())
    }

    /// Components of a vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.set.dim()
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

    /// The same set in a quarter (`int8`) or a thirty-second (`binary`) of its bytes.
    fn compact(&self, py: Python<'_>, form: &str) -> PyResult<Self> {
        let form = compact::form(form)?;
        Ok(py.detach(|| self.set.compact(form)).into())
    }

    /// The `k` texts with the highest scores for each query, best first: a list of places and scores for each query. Every token of
    /// every text is looked at.
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
        let Self { set } = self;
        let (n, dim) = (set.len(), set.dim());
        format!(
            "<MultiVectorEmbeddings {n} texts, vectors of {dim}, of {:?}>",
            set.model()
        )
    }
}
