//! What every handle says about its model.

use isovec::profile::ProfileOptions;
use isovec::{
    Classifier, Embedder, EmbeddingConfig, ImageClassifier, ImageEmbedder, MultiVectorEmbedder,
    Reranker, SparseEmbedder,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use serde_json::json;

use crate::fork::Owned;
use crate::profile::ProfileSession;
use crate::{error, json};

/// A loaded model of one of the kinds.
pub(crate) enum Handle {
    Texts(Embedder),
    Labels(Classifier),
    Relevance(Reranker),
    Words(SparseEmbedder),
    Tokens(MultiVectorEmbedder),
    Pictures(ImageEmbedder),
    PictureLabels(ImageClassifier),
}

/// The same expression for a handle of each kind.
macro_rules! any {
    ($handle:expr, $model:ident => $said:expr) => {
        match $handle {
            Handle::Texts($model) => $said,
            Handle::Labels($model) => $said,
            Handle::Relevance($model) => $said,
            Handle::Words($model) => $said,
            Handle::Tokens($model) => $said,
            Handle::Pictures($model) => $said,
            Handle::PictureLabels($model) => $said,
        }
    };
}

/// The base of `Embedder`, `Classifier`, `Reranker`, `SparseEmbedder`, `MultiVectorEmbedder`, `ImageEmbedder` and
/// `ImageClassifier`.
#[pyclass(subclass, frozen, module = "isovec")]
pub(crate) struct Model {
    handle: Owned<Handle>,
    /// As the caller gave it.
    source: Py<PyAny>,
    config: EmbeddingConfig,
    device: Option<String>,
}

impl Model {
    pub(crate) fn new(
        handle: Handle,
        source: &Bound<'_, PyAny>,
        config: EmbeddingConfig,
        device: Option<&str>,
    ) -> Self {
        Self {
            handle: Owned::new(handle),
            source: source.clone().unbind(),
            config,
            device: device.map(str::to_owned),
        }
    }
}

#[pymethods]
impl Model {
    /// Tokens of a text that the model sees, special ones included; of a picture, the squares.
    #[getter]
    fn max_length(&self) -> usize {
        any!(&*self.handle, model => model.max_length())
    }

    /// The model's name: the id, folder or name that it was loaded by.
    #[getter]
    fn model_name(&self) -> &str {
        any!(&*self.handle, model => model.model_name())
    }

    /// The provider that really computes: its engine, its name and its version.
    #[getter]
    fn provider<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.get(py)?;
        json::to_py(py, &any!(handle, model => json!(model.provider())))
    }

    /// Says which vectors can be compared with this model's.
    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_py(
            py,
            &any!(&*self.handle, model => json!(model.fingerprint())),
        )
    }

    /// Tokens that a text makes, special ones and the default prompt's included, before truncation.
    fn count_tokens(&self, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = text.py();
        let text = crate::texts::one(text)?;
        let handle = self.handle.get(py)?;
        any!(handle, model => model.count_tokens(text)).map_err(|error| error::of(py, &error))
    }

    /// Every knob: the requested value, the value in effect, and the reason.
    fn effective_config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.get(py)?;
        json::to_py(py, &any!(handle, model => json!(model.effective_config())))
    }

    /// The statistics since the model was loaded: sessions, buffers, provider, tokens and padding, times.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.get(py)?;
        let stats = py.detach(|| any!(handle, model => json!(model.stats())));
        json::to_py(py, &stats)
    }

    /// The capabilities of the engine with this model.
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.get(py)?;
        json::to_py(py, &any!(handle, model => json!(model.capabilities())))
    }

    /// The model as its engine sees it: inputs, outputs, operators, size.
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle.get(py)?;
        json::to_py(py, &any!(handle, model => json!(model.description())))
    }

    /// Records all work from now on, up to a number of events, until the session is finished: requests, batches, runs, and their
    /// operators where those are wanted.
    #[pyo3(signature = (*, capacity=None, operators=false))]
    fn profile(
        &self,
        py: Python<'_>,
        capacity: Option<usize>,
        operators: bool,
    ) -> PyResult<ProfileSession> {
        let handle = self.handle.get(py)?;
        let mut options = ProfileOptions::default().with_operators(operators);
        if let Some(capacity) = capacity {
            options = options.with_capacity(capacity);
        }
        let session = any!(handle, model => model.profile(options));
        session
            .map(ProfileSession::from)
            .map_err(|error| error::of(py, &error))
    }

    /// Lets go of the vectors that `embedding_cache` keeps in memory. Those on disk stay.
    fn forget_vectors(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle.get(py)?;
        any!(handle, model => model.forget_vectors());
        Ok(())
    }

    /// A model is pickled by its source and its knobs; the hub's token is left out.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let model = slf.get();
        let named = PyDict::new(py);
        named.set_item("config", json::to_py(py, &model.config.to_knobs())?)?;
        named.set_item("device", &model.device)?;
        restored_by(slf.get_type(), &model.source, named)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let model = slf.get();
        let kind = slf.get_type().name()?;
        Ok(any!(&*model.handle, handle => format!(
            "<{kind} {:?}, {}, at most {} tokens>",
            handle.model_name(),
            handle.provider(),
            handle.max_length()
        )))
    }
}

/// What pickle calls to load again what a class made of a source and named arguments.
pub(crate) fn restored_by<'py>(
    class: Bound<'py, PyType>,
    source: &Py<PyAny>,
    named: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = class.py();
    let restore = py.import("isovec._isovec")?.getattr("restore")?;
    (restore, (class, source, named)).into_pyobject(py)
}

/// Loads what was pickled.
#[pyfunction]
pub(crate) fn restore<'py>(
    class: &Bound<'py, PyType>,
    source: &Bound<'py, PyAny>,
    named: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    class.call((source,), Some(named))
}
