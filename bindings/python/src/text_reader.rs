//! The class `TextReader`, and `hocr`.

use isovec::{Cancel, PictureText, ReadingOptions, TextLine};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::json;

use crate::fork::Owned;
use crate::loading::{Asked, builder};
use crate::model::restored_by;
use crate::pictures::read;
use crate::tasks::Call;
use crate::{json, wait};

/// The loaded networks that read the text of pictures.
#[pyclass(subclass, frozen, module = "isovec")]
pub(crate) struct TextReader {
    reader: Owned<isovec::TextReader>,
    /// As the caller gave it.
    source: Py<PyAny>,
    /// The other arguments by their names.
    named: Py<PyDict>,
}

#[pymethods]
impl TextReader {
    /// Loads the networks: a folder, an id of the hub, or a dict of files. Without `orientation` every line is taken to be upright.
    #[new]
    #[pyo3(signature = (source, *, detector=None, orientation=Orientation::Usual, recognizer=None, min_score=None, device=None, config=None, progress=None, **words))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        source: &Bound<'_, PyAny>,
        detector: Option<String>,
        orientation: Orientation,
        recognizer: Option<String>,
        min_score: Option<f64>,
        device: Option<&str>,
        config: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
        words: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = source.py();
        let asked = Asked::read(source, device, config, progress, words)?;
        let named = PyDict::new(py);
        named.set_item("config", json::to_py(py, &asked.config.to_knobs())?)?;
        named.set_item("device", device)?;
        named.set_item("detector", &detector)?;
        named.set_item("recognizer", &recognizer)?;
        named.set_item("min_score", min_score)?;
        match &orientation {
            Orientation::Usual => {}
            Orientation::File(file) => named.set_item("orientation", file)?,
            Orientation::None => named.set_item("orientation", py.None())?,
        }
        let (mut builder, cancel) = builder!(isovec::TextReader, asked);
        if let Some(file) = detector {
            builder = builder.detector(file);
        }
        builder = match orientation {
            Orientation::Usual => builder,
            Orientation::File(file) => builder.orientation(file),
            Orientation::None => builder.upright(),
        };
        if let Some(file) = recognizer {
            builder = builder.recognizer(file);
        }
        if let Some(score) = min_score {
            builder = builder.min_score(score);
        }
        let reader = wait::wait(py, &cancel, builder.load())?;
        Ok(Self {
            reader: Owned::new(reader),
            source: source.clone().unbind(),
            named: named.unbind(),
        })
    }

    /// Reads pictures, each the path of a file or its bytes, one after another. A picture without text has no lines.
    fn read<'py>(&self, pictures: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = pictures.py();
        let reader = self.reader.get(py)?;
        let cancel = Cancel::new();
        let options = ReadingOptions::default().with_cancel(cancel.clone());
        let texts = wait::wait(
            py,
            &cancel,
            reader.read_with(self::read(pictures)?, options),
        )?;
        told(py, texts)
    }

    /// As `read`, for asyncio.
    fn aread<'py>(&self, pictures: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = pictures.py();
        let reader = self.reader.get(py)?;
        let cancel = Cancel::new();
        let options = ReadingOptions::default().with_cancel(cancel.clone());
        let texts = reader.read_with(read(pictures)?, options);
        Call::coroutine(py, cancel, texts, |py, texts| {
            Ok(told(py, texts)?.into_any().unbind())
        })
    }

    /// The model's name: the id, folder or name that it was loaded by.
    #[getter]
    fn model_name(&self) -> &str {
        self.reader.model_name()
    }

    /// The provider that really computes the detector, which takes most of the time.
    #[getter]
    fn provider<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_py(py, &json!(self.reader.get(py)?.provider()))
    }

    /// Every knob: the requested value, the value in effect, and the reason. Where networks differ, it is the detector's.
    fn effective_config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_py(py, &json!(self.reader.get(py)?.effective_config()))
    }

    /// A reader is pickled by its source, its files' names and its knobs; the hub's token is left out.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let reader = slf.get();
        let named = reader.named.bind(slf.py()).clone();
        restored_by(slf.get_type(), &reader.source, named)
    }

    fn __repr__(&self) -> String {
        let reader = &*self.reader;
        format!(
            "<TextReader {:?}, {}>",
            reader.model_name(),
            reader.provider()
        )
    }
}

/// The network of directions that is asked for.
enum Orientation {
    Usual,
    File(String),
    None,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Orientation {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(given
            .extract::<Option<String>>()?
            .map_or(Self::None, Self::File))
    }
}

/// Writes the text of pictures as one document in hOCR 1.2: pairs of a file's name and its text, a page for each.
#[pyfunction]
pub(crate) fn hocr(pages: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut all: Vec<(String, PictureText)> = Vec::new();
    for page in pages.try_iter()? {
        let (name, (width, height, lines)): (String, (usize, usize, Vec<Told>)) =
            page?.extract()?;
        let lines = lines
            .into_iter()
            .map(|(text, score, [one, two, three, four])| TextLine {
                text,
                score,
                corners: [one, two, three, four].map(|(x, y)| [x, y]),
            });
        let text = PictureText {
            width,
            height,
            lines: lines.collect(),
        };
        all.push((name, text));
    }
    Ok(isovec::hocr(all.iter().map(|(name, text)| (&**name, text))))
}

/// A line as its tuple has it: text, score, corners.
type Told = (String, f64, [(f32, f32); 4]);

/// The texts as the tuples of `_results.py`.
fn told(py: Python<'_>, texts: Vec<PictureText>) -> PyResult<Bound<'_, PyList>> {
    static TEXT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static LINE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = TEXT.import(py, "isovec._results", "PictureText")?;
    let line = LINE.import(py, "isovec._results", "TextLine")?;
    let told: PyResult<Vec<_>> = texts
        .into_iter()
        .map(|one| {
            let lines: PyResult<Vec<_>> = one
                .lines
                .into_iter()
                .map(|one| {
                    let corners = one.corners.map(|[x, y]| (x, y));
                    line.call1((one.text, one.score, PyList::new(py, corners)?))
                })
                .collect();
            text.call1((one.width, one.height, PyList::new(py, lines?)?))
        })
        .collect();
    PyList::new(py, told?)
}
