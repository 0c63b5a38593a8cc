//! The class `SparseEmbedder`.

use std::sync::OnceLock;

use isovec::{Cancel, DynamicBatcher, SparseEmbeddings, SparseOptions, SparseVector};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::options::Form;
use crate::tasks::Call;
use crate::{error, texts, vectors, wait};

/// A loaded model that gives texts weights of words.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct SparseEmbedder {
    embedder: Owned<isovec::SparseEmbedder>,
    /// What joins the calls that asyncio waits for, from the first on.
    batcher: OnceLock<Owned<DynamicBatcher<isovec::SparseEmbedder>>>,
}

impl SparseEmbedder {
    fn rows<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        form: Form,
        top_k: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = texts.py();
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = options(py, form, top_k)?;
        let embedded = embedder.embed_with(texts::read(texts)?, options);
        rows_of(py, &wait::wait(py, &cancel, embedded)?)
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
fn rows_of<'py>(py: Python<'py>, set: &SparseEmbeddings) -> PyResult<Bound<'py, PyList>> {
    static VECTOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let vector = VECTOR.import(py, "isovec._results", "SparseVector")?;
    let all: PyResult<Vec<_>> = set
        .iter()
        .map(|row| {
            let SparseVector {
                indices, values, ..
            } = row.to_vector();
            vector.call1((vectors::ids(py, indices)?, vectors::row(py, values)?))
        })
        .collect();
    PyList::new(py, all?)
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
