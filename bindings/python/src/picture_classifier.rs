//! The class `ImageClassifier`.

use isovec::{Cancel, Classifications};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::classifier::{options, ranked, scores_of};
use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::pictures::read;
use crate::tasks::Call;
use crate::wait;

/// A loaded model that gives pictures labels with scores.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct ImageClassifier {
    classifier: Owned<isovec::ImageClassifier>,
}

impl ImageClassifier {
    fn classify_pictures(
        &self,
        pictures: &Bound<'_, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Classifications> {
        let py = pictures.py();
        let classifier = self.classifier.get(py)?;
        let cancel = Cancel::new();
        let options = options(py, scores, &cancel)?;
        wait::wait(
            py,
            &cancel,
            classifier.classify_with(read(pictures)?, options),
        )
    }
}

#[pymethods]
impl ImageClassifier {
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
        let classifier = load!(py, isovec::ImageClassifier, asked)?;
        let handle = Handle::PictureLabels(classifier.clone());
        let model = Model::new(handle, source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            classifier: Owned::new(classifier),
        }))
    }

    /// The names of the labels, in the order of `scores`.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.classifier.labels().to_vec()
    }

    /// Classifies pictures, each the path of a file or its bytes: for each all labels, the highest score first.
    #[pyo3(signature = (pictures, *, scores=None))]
    fn classify<'py>(
        &self,
        pictures: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let said = self.classify_pictures(pictures, scores)?;
        ranked(pictures.py(), &said)
    }

    /// As `classify`, for asyncio.
    #[pyo3(signature = (pictures, *, scores=None))]
    fn aclassify<'py>(
        &self,
        pictures: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = pictures.py();
        let classifier = self.classifier.get(py)?;
        let cancel = Cancel::new();
        let options = options(py, scores, &cancel)?;
        let result = classifier.classify_with(read(pictures)?, options);
        Call::coroutine(py, cancel, result, |py, said| {
            Ok(ranked(py, &said)?.into_any().unbind())
        })
    }

    /// The scores of pictures as they are: float32 `[n, labels]`, in the order of `labels`.
    #[pyo3(signature = (pictures, *, scores=None))]
    fn scores<'py>(
        &self,
        pictures: &Bound<'py, PyAny>,
        scores: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let said = self.classify_pictures(pictures, scores)?;
        scores_of(pictures.py(), said)
    }
}
