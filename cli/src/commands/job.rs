//! `isovec job`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use indicatif::ProgressBar;
use isovec::blocking::Embedder;
use isovec::{Cancel, Device, Dtype, EmbedOptions, EmbeddingConfig};
use isovec_jobs::{Compute, Event, Observer, Refusal, Report, Spec, Status, UnitId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Job, JobArgs, RoleArg};
use crate::error::{CliError, Result};
use crate::model::{Handle as _, source};
use crate::{commands, config, interrupt, progress};

/// Lines of a list, at most. JSON has them all.
const LINES: usize = 10;

pub(crate) fn run(args: &Job) -> Result<()> {
    match args {
        Job::Run(args) => run_job(args),
        Job::Status(args) => status(args),
        Job::Plan(args) => super::job_plan::run(args),
    }
}

/// The table `[model]` of a job.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// A folder, written as a path, or a model id.
    source: Option<String>,
    #[serde(default)]
    role: RoleArg,
    dtype: Option<Dtype>,
    device: Option<Device>,
    /// Knobs.
    config: Option<Value>,
}

impl Model {
    fn embedding_config(&self) -> Result<EmbeddingConfig, String> {
        let mut config = EmbeddingConfig::default();
        if let Some(knobs) = &self.config {
            config = config::over(config, knobs.clone()).map_err(|error| error.to_string())?;
        }
        if let Some(dtype) = self.dtype {
            config = config.with_dtype(dtype);
        }
        if let Some(device) = self.device {
            config = config.with_device(device);
        }
        config.build().map_err(|error| error.to_string())
    }
}

/// A job's text as a spec, a model and its configuration, or what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<(Spec, Model, EmbeddingConfig), String> {
    let spec = Spec::parse(text).map_err(|error| error.to_string())?;
    let model = match &spec.model {
        Value::Null => Model::default(),
        model => serde_json::from_value(model.clone())
            .map_err(|error| format!("the table model cannot be used: {error}"))?,
    };
    let config = model.embedding_config();
    let config =
        config.map_err(|error| format!("the table model.config cannot be used: {error}"))?;
    Ok((spec, model, config))
}

pub(super) fn read(path: &Path) -> Result<(Spec, Model, EmbeddingConfig)> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(CliError::io(name.to_string()))?;
    parse(&text).map_err(|fault| CliError::Usage(format!("{name}: {fault}")))
}

fn run_job(args: &JobArgs) -> Result<()> {
    let (spec, model, config) = read(&args.spec)?;
    let cancel = interrupt::on_ctrl_c()?;
    let engine = Engine::open(&model, config, cancel.clone())?;
    let watch = Arc::new(Watch {
        cancel,
        bar: progress::units(),
        rows: AtomicU64::new(0),
    });
    let done = isovec_jobs::run(&spec, &engine, Arc::<Watch>::clone(&watch));
    watch.bar.finish_and_clear();
    let report = done.map_err(|error| match error {
        isovec_jobs::Error::Stopped => CliError::Interrupted(
            "what is finished stays finished, and the same command goes on".into(),
        ),
        error => error.into(),
    })?;
    match args.json {
        true => commands::print_json(&report)?,
        false => commands::print(&summary(&report))?,
    }
    match report.failures {
        0 => Ok(()),
        failed => Err(CliError::Units {
            failed,
            units: report.units,
        }),
    }
}

fn summary(report: &Report) -> String {
    let mut text = format!(
        "{} rows in {} units; {} of {} units were done before",
        report.rows, report.finished, report.before, report.units
    );
    let mut also = |count: u64, what: &str| {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    };
    also(report.poisoned, "rows have no vector");
    also(report.elsewhere, "units were done by another run");
    also(
        report.lost,
        "units were done twice, and this run's work on them was thrown away",
    );
    text.push('\n');
    text
}

fn status(args: &JobArgs) -> Result<()> {
    let (spec, ..) = read(&args.spec)?;
    let status = isovec_jobs::status(&spec)?;
    match args.json {
        true => commands::print_json(&status),
        false => commands::print(&page(&status)),
    }
}

fn page(status: &Status) -> String {
    let mut page = format!(
        "units   {}: {} done, {} left, {} of them failed\nrows    {} in what is done, {} of them without a vector\n",
        status.units,
        status.done,
        status.left,
        status.failed.len(),
        status.rows,
        status.poisoned
    );
    let mut list = |name: &str, lines: Vec<String>| {
        let more = lines.len().saturating_sub(LINES);
        for (at, line) in lines.into_iter().take(LINES).enumerate() {
            let name = if at == 0 { name } else { "" };
            writeln!(page, "{name:7} {line}").ok();
        }
        if more > 0 {
            writeln!(page, "{:7} and {more} more; --json names them all", "").ok();
        }
    };
    let failed = status.failed.iter();
    list(
        "failed",
        failed
            .map(|failed| format!("{}: {}", failed.of, failed.reason))
            .collect(),
    );
    let stale = status.stale.iter();
    list(
        "stale",
        stale
            .map(|stale| {
                format!(
                    "{} of {}, which has changed or is not named any more",
                    stale.outputs.join(", "),
                    stale.file
                )
            })
            .collect(),
    );
    page
}

/// The model, as a job sees it.
pub(super) struct Engine {
    embedder: Embedder,
    options: EmbedOptions,
    dim: usize,
    fingerprint: Value,
    /// The fingerprint as every output of isovec has it.
    metadata: String,
}

impl Engine {
    /// Loads the model.
    pub(super) fn open(model: &Model, config: EmbeddingConfig, cancel: Cancel) -> Result<Self> {
        let named = model.source.clone();
        let named = named.or_else(|| std::env::var("ISOVEC_MODEL").ok());
        let embedder = Embedder::open(source(named.as_deref()), config, cancel.clone());
        let embedder = embedder.map_err(|error| match error.is_cancelled() {
            true => CliError::Interrupted("no model was loaded".into()),
            false => CliError::Model(error),
        })?;
        Self::new(embedder, model.role, cancel)
    }

    fn new(embedder: Embedder, role: RoleArg, cancel: Cancel) -> Result<Self> {
        let options = EmbedOptions::default()
            .with_prompt(role.prompt())
            .with_cancel(cancel);
        let empty = embedder.empty_set(&options)?;
        let fingerprint = json!({ "vectors": empty.fingerprint(), "role": role });
        Ok(Self {
            dim: empty.dim(),
            metadata: fingerprint["vectors"].to_string(),
            fingerprint,
            embedder,
            options,
        })
    }
}

impl Compute for Engine {
    fn fingerprint(&self) -> Value {
        self.fingerprint.clone()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        let embedded = self.embedder.embed_with(texts, self.options.clone());
        let vectors = embedded.map(isovec::Embeddings::into_vec);
        vectors.map_err(|error| refusal(&error))
    }

    fn metadata(&self) -> Vec<(String, String)> {
        vec![("isovec.fingerprint".into(), self.metadata.clone())]
    }
}

/// Which text is at fault, if one is. The job says which row that is: the list's numbers are nobody's.
fn refusal(error: &isovec::Error) -> Refusal {
    use isovec::Error::{NoDirection, NoTokens, NotFinite, NotNormalized};
    let (index, reason) = match *error {
        NoTokens { text } => (text, "the text has no tokens"),
        NotFinite { text } => (text, "its vector has values that are not finite"),
        NotNormalized { text, .. } => (text, "its vector does not have unit length"),
        NoDirection { text } => (text, "its vector has no direction"),
        _ if error.is_cancelled() => return Refusal::Cancelled,
        _ => return Refusal::Failed(error.to_string()),
    };
    let reason = reason.to_owned();
    Refusal::Text { index, reason }
}

/// Shows progress, tells what went wrong, and hears Ctrl-C.
struct Watch {
    cancel: Cancel,
    bar: ProgressBar,
    rows: AtomicU64,
}

impl Watch {
    fn tell(&self, message: &str) {
        self.bar.suspend(|| eprintln!("isovec: {message}"));
    }

    fn finished(&self, rows: u64) {
        let rows = self.rows.fetch_add(rows, Relaxed) + rows;
        self.bar.set_message(format!("{rows} rows"));
        self.bar.inc(1);
    }

    fn lost(&self, unit: UnitId, of: &str) {
        self.tell(&format!(
            "another run finished unit {unit} ({of}) first; this run's work on it was thrown away"
        ));
    }
}

impl Observer for Watch {
    fn stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn event(&self, event: Event<'_>) {
        match event {
            Event::Planned { units, done, stale } => {
                self.bar.set_length(units);
                self.bar.set_position(done);
                self.bar.reset_eta();
                if stale > 0 {
                    self.tell(&format!(
                        "{stale} units are stale: their input has changed or is not named any more, and their outputs are still there; isovec job status names them"
                    ));
                }
            }
            Event::Finished { rows, .. } => self.finished(rows),
            Event::Elsewhere { .. } => self.finished(0),
            Event::Lost { unit, of } => {
                self.finished(0);
                self.lost(unit, of);
            }
            Event::Retrying { what, reason, wait } => {
                let wait = humantime::format_duration(wait);
                self.tell(&format!("{what}: {reason}; it is tried again after {wait}"));
            }
            Event::Failed { of, reason, .. } => {
                self.finished(0);
                self.tell(&format!("{of}: {reason}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_the_sdk_blames_is_blamed_and_nothing_else_is() {
        let blamed = refusal(&isovec::Error::NotFinite { text: 3 });
        assert!(
            matches!(blamed, Refusal::Text { index: 3, .. }),
            "{blamed:?}"
        );
        let none = refusal(&isovec::Error::ShutDown);
        assert!(matches!(none, Refusal::Failed(_)), "{none:?}");
    }

    const PLACES: &str = "input = 'a'\noutput = 'b'\n";

    #[test]
    fn a_job_says_its_model_and_knobs() {
        let (_, model, config) = parse(&format!(
            "{PLACES}[model]\nsource = './m'\nrole = 'passage'\ndtype = 'int8'\n[model.config.session]\ndeterministic_compute = true"
        ))
        .expect("readable");
        assert_eq!(model.source.as_deref(), Some("./m"));
        assert_eq!(model.role, RoleArg::Passage);
        let expected = EmbeddingConfig::default()
            .with_deterministic_compute(true)
            .with_dtype(Dtype::Int8);
        assert_eq!(config, expected);
        assert!(parse(PLACES).is_ok());
    }

    #[test]
    fn faults_are_named() {
        for (more, said) in [
            ("speed = 7", "speed"),
            ("[model]\nspeed = 7", "speed"),
            ("[model]\nrole = 'king'", "king"),
            ("[model.config.session]\nspeed = 7", "speed"),
            (
                "[model.config.batching]\nmax_batch_size = 0",
                "max_batch_size",
            ),
        ] {
            let error = parse(&format!("{PLACES}{more}")).expect_err(more);
            assert!(error.contains(said), "{more}: {error}");
        }
    }
}
