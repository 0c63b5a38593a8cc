//! The class `Classifier`.

use std::sync::OnceLock;

use isovec::{Cancel, Classifications, ClassifyOptions, DynamicBatcher, blocking};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::tasks::Call;
use crate::texts::{self, Text};
use crate::{error, vectors, wait};

/// A loaded model that gives texts labels with scores.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct Classifier {
    classifier: Owned<isovec::Classifier>,
    /// What joins the calls that asyncio waits for, from the first on.
    batcher: OnceLock<Owned<DynamicBatcher<isovec::Classifier>>>,
}

impl Classifier {
    fn classify_texts(
        &self,
        py: Python<'_>,
        texts: &[Text],
        scores: Option<&str>,
    ) -> PyResult<Classifications> {
        let classifier = self.classifier.get(py)?;
        let cancel = Cancel::new();
        let options = options(py, scores, &cancel)?;
        if wait::is_short(texts) {
            let classifier = blocking::Classifier::from(classifier.clone());
            return wait::here(py, || classifier.classify_with(texts, &options));
        }
        wait::wait(py, &cancel, classifier.classify_with(texts, options))
    }

    fn classify_all_pairs(
        &self,
        pairs: &Bound<'_, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Classifications> {
        let py = pairs.py();
        let classifier = self.classifier.get(py)?;
        let cancel = Cancel::new();
        let options = options(py, scores, &cancel)?;
        let said = classifier.classify_pairs_with(texts::pairs(pairs)?, options);
        wait::wait(py, &cancel, said)
    }

    fn batcher(&self, py: Python<'_>) -> PyResult<&DynamicBatcher<isovec::Classifier>> {
        let classifier = self.classifier.get(py)?;
        let batcher = self
            .batcher
            .get_or_init(|| Owned::new(classifier.batcher()));
        batcher.get(py)
    }
}

pub(crate) fn options(
    py: Python<'_>,
    scores: Option<&str>,
    cancel: &Cancel,
) -> PyResult<ClassifyOptions> {
    let mut options = ClassifyOptions::default().with_cancel(cancel.clone());
    options.scores = match scores {
        None => None,
        Some("softmax") => Some(isovec::Scores::Softmax),
        Some("sigmoid") => Some(isovec::Scores::Sigmoid),
        Some("logits") => Some(isovec::Scores::Logits),
        Some(other) => {
            let why = format!(
                "there are no scores {other:?}; there are \"softmax\", \"sigmoid\" and \"logits\""
            );
            return Err(error::with_kind(py, "Config", &why));
        }
    };
    Ok(options)
}

/// The labels of every text, the highest score first.
pub(crate) fn ranked<'py>(py: Python<'py>, said: &Classifications) -> PyResult<Bound<'py, PyList>> {
    static LABEL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let label = LABEL.import(py, "isovec._results", "Label")?;
    let all: PyResult<Vec<_>> = (0..said.len())
        .filter_map(|text| said.ranked(text))
        .map(|labels| {
            let labels: PyResult<Vec<_>> = labels
                .into_iter()
                .map(|one| label.call1((one.label, one.score, one.index)))
                .collect();
            PyList::new(py, labels?)
        })
        .collect();
    PyList::new(py, all?)
}

/// The scores as they are: float32 `[n, labels]`.
pub(crate) fn scores_of(py: Python<'_>, said: Classifications) -> PyResult<Bound<'_, PyAny>> {
    let shape = [said.len(), said.labels().len()];
    Ok(vectors::rows(py, shape, said.into_vec())?.into_any())
}

#[pymethods]
impl Classifier {
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
        let classifier = load!(py, isovec::Classifier, asked)?;
        let model = Model::new(Handle::Labels(classifier.clone()), source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            classifier: Owned::new(classifier),
            batcher: OnceLock::new(),
        }))
    }

    /// The names of the labels, in the order of `scores`.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.classifier.labels().to_vec()
    }

    /// Classifies texts: for each all labels, the highest score first.
    #[pyo3(signature = (texts, *, scores=None))]
    fn classify<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = texts.py();
        ranked(py, &self.classify_texts(py, &texts::read(texts)?, scores)?)
    }

    /// As `classify`, for asyncio.
    #[pyo3(signature = (texts, *, scores=None))]
    fn aclassify<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let cancel = Cancel::new();
        let options = options(py, scores, &cancel)?;
        let result = self
            .batcher(py)?
            .classify_with(texts::read(texts)?, options);
        Call::coroutine(py, cancel, result, |py, said| {
            Ok(ranked(py, &said)?.into_any().unbind())
        })
    }

    /// The scores of texts as they are: float32 `[n, labels]`, in the order of `labels`.
    #[pyo3(signature = (texts, *, scores=None))]
    fn scores<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = texts.py();
        let said = self.classify_texts(py, &texts::read(texts)?, scores)?;
        scores_of(py, said)
    }

    /// Classifies pairs of texts that the model reads together, as models of natural language inference do: for each pair all
    /// labels, the highest score first.
    #[pyo3(signature = (pairs, *, scores=None))]
    fn classify_pairs<'py>(
        &self,
        pairs: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        ranked(pairs.py(), &self.classify_all_pairs(pairs, scores)?)
    }

    /// As `classify_pairs`, for asyncio.
    #[pyo3(signature = (pairs, *, scores=None))]
    fn aclassify_pairs<'py>(
        &self,
        pairs: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = pairs.py();
        let cancel = Cancel::new();
        let options = options(py, scores, &cancel)?;
        let result = self.batcher(py)?;
        let result = result.classify_pairs_with(texts::pairs(pairs)?, options);
        Call::coroutine(py, cancel, result, |py, said| {
            Ok(ranked(py, &said)?.into_any().unbind())
        })
    }

    /// The scores of pairs as they are: float32 `[n, labels]`, in the order of `labels`.
    #[pyo3(signature = (pairs, *, scores=None))]
    fn pair_scores<'py>(
        &self,
        pairs: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        scores_of(pairs.py(), self.classify_all_pairs(pairs, scores)?)
    }
}
