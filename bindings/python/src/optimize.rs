//! The function `optimize`, and the class of what it reports.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use isovec::optimize::budget::{self, Budget};
use isovec::optimize::{Activations, OptimizeError, OptimizeOptions, Report};
use isovec::{Cancel, EmbeddingConfig, ModelSource, Picture};
use isovec_insight::budget::{BudgetOptions, BudgetReport};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::loading::Asked;
use crate::{error, json, pictures, texts, wait};

/// What was done to a model, and what that changed.
#[pyclass(frozen, module = "isovec")]
pub(crate) struct OptimizationReport {
    value: Value,
    markdown: String,
    html: String,
    /// Whether a model was written.
    #[pyo3(get)]
    written: bool,
}

#[pymethods]
impl OptimizationReport {
    /// All of it as dicts and lists, with the names that `isovec optimize --json` has.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_py(py, &self.value)
    }

    /// It as Markdown.
    fn to_markdown(&self) -> &str {
        &self.markdown
    }

    /// It as a page that needs nothing but itself.
    fn to_html(&self) -> &str {
        &self.html
    }

    fn _repr_html_(&self) -> &str {
        &self.html
    }

    fn __repr__(&self) -> &str {
        &self.markdown
    }
}

impl OptimizationReport {
    fn of(report: &Report) -> serde_json::Result<Self> {
        Ok(Self {
            value: serde_json::to_value(report)?,
            markdown: report.to_markdown(),
            html: report.to_html(),
            written: true,
        })
    }

    fn within(report: &BudgetReport) -> serde_json::Result<Self> {
        Ok(Self {
            value: serde_json::to_value(report)?,
            markdown: report.to_markdown(),
            html: report.to_html(),
            written: report.chosen.is_some(),
        })
    }
}

/// Writes a smaller or faster model into a new folder, and reports what that changed on the texts or pictures.
#[pyfunction]
#[pyo3(signature = (source, out, *, level=None, passes=Vec::new(), texts=None, calibrate=None, images=None, calibrate_images=None, keep_tokens_of=None, keep_languages=Vec::new(), static_dimension=None, prune=None, int8=None, smooth=None, int4=false, bits=None, in_f32=Vec::new(), seven_bits=false, each_node=false, budget=Vec::new(), rounds=None, seconds=None, config=None, progress=None, **words))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn optimize(
    source: &Bound<'_, PyAny>,
    out: PathBuf,
    level: Option<&str>,
    passes: Vec<String>,
    texts: Option<&Bound<'_, PyAny>>,
    calibrate: Option<&Bound<'_, PyAny>>,
    images: Option<&Bound<'_, PyAny>>,
    calibrate_images: Option<&Bound<'_, PyAny>>,
    keep_tokens_of: Option<&Bound<'_, PyAny>>,
    keep_languages: Vec<String>,
    static_dimension: Option<usize>,
    prune: Option<f64>,
    int8: Option<&str>,
    smooth: Option<f64>,
    int4: bool,
    bits: Option<f64>,
    in_f32: Vec<String>,
    seven_bits: bool,
    each_node: bool,
    budget: Vec<String>,
    rounds: Option<usize>,
    seconds: Option<f64>,
    config: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
    words: Option<&Bound<'_, PyDict>>,
) -> PyResult<OptimizationReport> {
    let py = source.py();
    let mut options = OptimizeOptions::default()
        .with_texts(all(texts)?)
        .with_calibrate_with(all(calibrate)?)
        .with_pictures(opened("images", images)?)
        .with_calibrate_pictures(opened("calibrate_images", calibrate_images)?)
        .with_keep_languages(keep_languages)
        .with_in_f32(in_f32);
    if keep_tokens_of.is_some() {
        options = options.with_keep_tokens_of(all(keep_tokens_of)?);
    }
    let wrong = |error: OptimizeError| config_error(py, &error.to_string());
    if let Some(level) = level {
        options = options.with_level(level.parse().map_err(wrong)?);
    }
    for pass in passes {
        options = options.with_pass(pass.parse().map_err(wrong)?);
    }
    options.seven_bits = seven_bits;
    options.each_node = each_node;
    options.static_dimension = static_dimension;
    options.prune = prune;
    options.int8 = match int8 {
        None => None,
        Some("static") => Some(Activations::Static),
        Some("dynamic") => Some(Activations::Dynamic),
        Some(other) => {
            return Err(config_error(
                py,
                &format!("`int8` is {other:?}, and has to be \"static\" or \"dynamic\""),
            ));
        }
    };
    options.smooth = smooth;
    options.int4 = int4;
    options.bits = bits;
    let budget = match budget.is_empty() {
        true if rounds.is_some() || seconds.is_some() => {
            return Err(config_error(
                py,
                "`rounds` and `seconds` are of the trials of `budget`, which is not there",
            ));
        }
        true => None,
        false => Some(bounds(&budget).map_err(|why| config_error(py, &why))?),
    };
    let asked = Asked::read(source, None, config, progress, words)?;
    let cancel = asked.cancel.clone();
    options = options.with_cancel(cancel.clone());
    if let Some(listener) = asked.progress {
        options = options.with_progress(move |progress| listener.hear(progress));
    }
    let work = Work {
        source: asked.source,
        out,
        config: asked.config,
        cancel: cancel.clone(),
    };
    match budget {
        None => {
            let made = work.done(py, move |work| {
                isovec::blocking::optimize(work.source, work.out, work.config, options)
            })?;
            OptimizationReport::of(&made)
        }
        Some(budget) => {
            let mut options = BudgetOptions::new(options);
            options.trial.cancel = Some(cancel);
            if let Some(rounds) = rounds {
                options.trial.rounds = rounds;
            }
            if let Some(seconds) = seconds {
                let turn = Duration::try_from_secs_f64(seconds);
                options.trial.turn = turn
                    .map_err(|why| config_error(py, &format!("`seconds` is {seconds}: {why}")))?;
            }
            let made = work.done(py, move |work| {
                isovec_insight::blocking::optimize_within(
                    work.source,
                    work.out,
                    work.config,
                    &budget,
                    options,
                )
            })?;
            OptimizationReport::within(&made)
        }
    }
    .map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// What is worked on.
struct Work {
    source: ModelSource,
    out: PathBuf,
    config: EmbeddingConfig,
    cancel: Cancel,
}

impl Work {
    /// Works on a thread of its own, while the caller waits and hears Ctrl-C.
    fn done<T: Send + 'static>(
        self,
        py: Python<'_>,
        work: impl FnOnce(Self) -> isovec::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (says, hears) = oneshot::channel();
        let cancel = self.cancel.clone();
        thread::Builder::new()
            .name("isovec-optimize".into())
            .spawn(move || says.send(work(self)).ok())?;
        match wait::until(py, &cancel, hears)? {
            Ok(made) => made.map_err(|error| error::of(py, &error)),
            // The thread ended without an answer: it panicked, which standard error has.
            Err(_) => Err(error::with_kind(
                py,
                "Internal",
                "the thread that optimises the model ended",
            )),
        }
    }
}

fn bounds(given: &[String]) -> Result<Budget, String> {
    let bounds: Result<Vec<budget::Bound>, _> = given.iter().map(|bound| bound.parse()).collect();
    let budget = bounds.and_then(Budget::new);
    budget.map_err(|error| error.to_string())
}

fn all(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let texts = given.map_or(Ok(Vec::new()), texts::read)?;
    Ok(texts.iter().map(|text| text.as_ref().to_owned()).collect())
}

/// The pictures of an argument.
fn opened(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Picture>> {
    given.map_or(Ok(Vec::new()), |given| pictures::read_as(name, given))
}

fn config_error(py: Python<'_>, why: &str) -> PyErr {
    error::with_kind(py, "Config", why)
}
