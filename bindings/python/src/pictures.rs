//! The class `ImageEmbedder`.

use std::path::PathBuf;

use isovec::Picture;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::embeddings::{Embeddings, word};
use crate::fork::Owned;
use crate::loading::{Asked, load};
use crate::model::{Handle, Model};
use crate::options::Form;
use crate::tasks::Call;
use crate::{error, vectors, wait};

/// A loaded model that turns pictures into vectors.
#[pyclass(extends = Model, subclass, frozen, module = "isovec")]
pub(crate) struct ImageEmbedder {
    embedder: Owned<isovec::ImageEmbedder>,
}

impl ImageEmbedder {
    fn embed_pictures(
        &self,
        pictures: &Bound<'_, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<isovec::Embeddings> {
        let py = pictures.py();
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = Form::of(dimension, normalize).options(py)?;
        wait::wait(py, &cancel, embedder.embed_with(read(pictures)?, options))
    }
}

/// Pictures: the paths of files, or their bytes.
pub(crate) fn read(pictures: &Bound<'_, PyAny>) -> PyResult<Vec<Picture>> {
    read_as("pictures", pictures)
}

/// The same of an argument of this name.
pub(crate) fn read_as(name: &str, pictures: &Bound<'_, PyAny>) -> PyResult<Vec<Picture>> {
    let py = pictures.py();
    if pictures.is_instance_of::<PyString>() || pictures.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "`{name}` is one picture, and a list of them is wanted: put it in brackets"
        )));
    }
    let read_one = |at, picture: &Bound<'_, PyAny>| match picture.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec().into()),
        Err(_) => match picture.extract::<PathBuf>() {
            Ok(path) => py
                .detach(|| Picture::open(path))
                .map_err(|error| error::of(py, &error)),
            Err(_) => Err(PyTypeError::new_err(format!(
                "{name}[{at}] is of type {}; it has to be a path, or a file's bytes",
                picture.get_type().name()?
            ))),
        },
    };
    let pictures = pictures.try_iter()?.enumerate();
    pictures
        .map(|(at, picture)| read_one(at, &picture?))
        .collect()
}

#[pymethods]
impl ImageEmbedder {
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
        let embedder = load!(py, isovec::ImageEmbedder, asked)?;
        let model = Model::new(Handle::Pictures(embedder.clone()), source, config, device);
        Ok(PyClassInitializer::from(model).add_subclass(Self {
            embedder: Owned::new(embedder),
        }))
    }

    /// Components of a vector.
    #[getter]
    fn dimension(&self) -> usize {
        self.embedder.dimension()
    }

    /// How the model means its vectors to be compared.
    #[getter]
    fn metric(&self) -> &'static str {
        word(self.embedder.metric())
    }

    /// Embeds pictures, each the path of a file or its bytes: float32 `[n, dimension]`, in their order.
    #[pyo3(signature = (pictures, *, dimension=None, normalize=None))]
    fn embed<'py>(
        &self,
        pictures: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let set = self.embed_pictures(pictures, dimension, normalize)?;
        vectors::of_set(pictures.py(), set)
    }

    /// As `embed`, for asyncio.
    #[pyo3(signature = (pictures, *, dimension=None, normalize=None))]
    fn aembed<'py>(
        &self,
        pictures: &Bound<'py, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = pictures.py();
        let embedder = self.embedder.get(py)?;
        let (options, cancel) = Form::of(dimension, normalize).options(py)?;
        let result = embedder.embed_with(read(pictures)?, options);
        Call::coroutine(py, cancel, result, |py, set| {
            Ok(vectors::of_set(py, set)?.unbind())
        })
    }

    /// As `embed`, with the fingerprint of the model: a set that can be saved and searched.
    #[pyo3(signature = (pictures, *, dimension=None, normalize=None))]
    fn embeddings(
        &self,
        pictures: &Bound<'_, PyAny>,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> PyResult<Embeddings> {
        Ok(self.embed_pictures(pictures, dimension, normalize)?.into())
    }
}
