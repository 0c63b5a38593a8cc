//! What a model is loaded from and how, as Python's callers say it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use isovec::{Cancel, Device, EmbeddingConfig, ModelSource, Progress};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString};
use serde_json::{Map, Value, json};

use crate::{error, fork, json};

/// Keyword arguments that are short for a knob of the configuration.
const WORDS: [(&str, &str, &str); 6] = [
    ("cache_dir", "hub", "cache_dir"),
    ("dimension", "text", "dimension"),
    ("dtype", "model", "dtype"),
    ("max_length", "text", "max_length"),
    ("offline", "hub", "offline"),
    ("revision", "hub", "revision"),
];

/// A model to be loaded.
pub(crate) struct Asked {
    pub(crate) source: ModelSource,
    pub(crate) config: EmbeddingConfig,
    pub(crate) device: Option<Device>,
    pub(crate) progress: Option<Listener>,
    pub(crate) cancel: Cancel,
}

/// A builder of that handle which was told all that is asked, and what cancels it.
macro_rules! builder {
    ($handle:ty, $asked:expr) => {{
        let asked: $crate::loading::Asked = $asked;
        let mut builder = <$handle>::builder(asked.source)
            .config(asked.config)
            .cancel(asked.cancel.clone());
        if let Some(device) = asked.device {
            builder = builder.device(device);
        }
        if let Some(listener) = asked.progress {
            builder = builder.progress(move |progress| listener.hear(progress));
        }
        (builder, asked.cancel)
    }};
}
pub(crate) use builder;

/// Loads a handle while the caller waits.
macro_rules! load {
    ($py:expr, $handle:ty, $asked:expr) => {{
        let (builder, cancel) = $crate::loading::builder!($handle, $asked);
        $crate::wait::wait($py, &cancel, builder.load())
    }};
}
pub(crate) use load;

impl Asked {
    /// Reads the arguments of a handle's class.
    pub(crate) fn read(
        source: &Bound<'_, PyAny>,
        device: Option<&str>,
        config: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
        words: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = source.py();
        let asked = Self {
            source: read_source(source)?,
            config: read_config(py, config, words)?,
            device: device.map(|word| read_device(py, word)).transpose()?,
            progress: progress.map_or(Ok(None), Listener::read)?,
            cancel: Cancel::new(),
        };
        // Last, because a process that loaded nothing may be forked.
        fork::claim(py)?;
        offer_onnxruntime(py)?;
        Ok(asked)
    }
}

/// Tells isovec once of the ONNX Runtime that is installed beside it.
fn offer_onnxruntime(py: Python<'_>) -> PyResult<()> {
    static OFFERED: PyOnceLock<()> = PyOnceLock::new();
    OFFERED.get_or_try_init(py, || {
        let find = py.import("isovec._onnxruntime")?.getattr("find_library")?;
        let found: Option<PathBuf> = find.call0()?.extract()?;
        found.into_iter().for_each(isovec::offer_onnxruntime);
        Ok::<(), PyErr>(())
    })?;
    Ok(())
}

fn read_source(source: &Bound<'_, PyAny>) -> PyResult<ModelSource> {
    if let Ok(text) = source.cast::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    if let Ok(files) = source.cast::<PyDict>() {
        return read_files(files);
    }
    match source.extract::<PathBuf>() {
        Ok(path) => Ok(path.into()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "`source` is of type {}; it has to be an id or a path as str, a path, or a dict of files",
            source.get_type().name()?
        ))),
    }
}

/// Files by their path inside the model: bytes, or paths of where they lie.
fn read_files(files: &Bound<'_, PyDict>) -> PyResult<ModelSource> {
    let (mut contents, mut paths) = (Vec::new(), BTreeMap::new());
    for (name, file) in files {
        let name: String = name.extract()?;
        match file.cast::<PyBytes>() {
            Ok(bytes) => contents.push((name, bytes.as_bytes().to_vec().into())),
            Err(_) => drop(paths.insert(name, file.extract::<PathBuf>()?)),
        }
    }
    match (contents.is_empty(), paths.is_empty()) {
        (false, false) => Err(PyTypeError::new_err(
            "`source` has bytes and paths; give all files as bytes, or all as paths",
        )),
        (true, _) => Ok(ModelSource::files(paths)),
        _ => Ok(ModelSource::contents("a dict of files", contents)),
    }
}

fn read_config(
    py: Python<'_>,
    config: Option<&Bound<'_, PyAny>>,
    words: Option<&Bound<'_, PyDict>>,
) -> PyResult<EmbeddingConfig> {
    let fault = |why: &str| {
        let why = format!("the configuration is not usable: {why}");
        error::with_kind(py, "Config", &why)
    };
    let value = |given: &Bound<'_, PyAny>| -> PyResult<Value> {
        serde_json::from_str(&json::of(given)?).map_err(|error| fault(&error.to_string()))
    };
    let mut knobs = match config {
        None => Map::new(),
        Some(config) => match value(config)? {
            Value::Object(knobs) => knobs,
            _ => return Err(fault("it has to be a dict of groups of knobs")),
        },
    };
    for (word, given) in words.into_iter().flatten() {
        let word: String = word.extract()?;
        let Some((_, group, knob)) = WORDS.iter().find(|(name, ..)| *name == word) else {
            return Err(PyTypeError::new_err(format!(
                "there is no keyword argument {word:?}; there are device, config, progress, {}",
                WORDS.map(|(name, ..)| name).join(", ")
            )));
        };
        if !given.is_none() {
            let group = knobs.entry(*group).or_insert_with(|| json!({}));
            let Value::Object(group) = group else {
                return Err(fault(&format!(
                    "`{word}` is short for a knob of a group that is no dict"
                )));
            };
            group.insert((*knob).to_owned(), value(&given)?);
        }
    }
    serde_json::from_value(Value::Object(knobs)).map_err(|error| fault(&error.to_string()))
}

fn read_device(py: Python<'_>, word: &str) -> PyResult<Device> {
    match word {
        "auto" => Ok(Device::Auto),
        "cpu" => Ok(Device::Cpu),
        "gpu" => Ok(Device::Gpu),
        _ => Err(error::with_kind(
            py,
            "Config",
            &format!(
                "`device` is {word:?}, and has to be \"auto\", \"cpu\" or \"gpu\"; a provider is named by \
                 config={{\"providers\": {{\"execution_providers\": [{word:?}]}}}}"
            ),
        )),
    }
}

/// What is called with how far loading has come.
pub(crate) struct Listener(Py<PyAny>);

impl Listener {
    /// A callable, `True` for a bar, or `False` for nothing.
    fn read(progress: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if progress.is_callable() {
            return Ok(Some(Self(progress.clone().unbind())));
        }
        if !progress.extract::<bool>()? {
            return Ok(None);
        }
        let bar = progress.py().import("isovec._progress")?.getattr("bar")?;
        Ok(Some(Self(bar.call0()?.unbind())))
    }

    /// Called on a thread of isovec's.
    pub(crate) fn hear(&self, progress: Progress) {
        let said = match progress {
            Progress::Downloading { file, bytes, total } => {
                json!({"stage": "downloading", "file": file, "bytes": bytes, "total": total})
            }
            Progress::Reading => json!({"stage": "reading"}),
            Progress::Preparing => json!({"stage": "preparing"}),
            _ => return,
        };
        // Where the interpreter ends nobody listens.
        Python::try_attach(|py| {
            let heard = json::to_py(py, &said).and_then(|said| self.0.call1(py, (said,)));
            if let Err(error) = heard {
                error.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}
