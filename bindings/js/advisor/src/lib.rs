//! The bindings under `isovec/advisor`. They take JSON and return JSON. They do not use engines.

use isovec::EmbeddingConfig;
use isovec::fingerprint::Fingerprint;
use isovec_insight::advisor::{
    Advisor, AnalysisContext, FailedRule, OptimizationReport, Patch, ProfileSummary, Suggestion,
    Trial, Workload,
};
use isovec_js_error::{to_js, with_kind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

type Answer<T = String> = Result<T, JsValue>;

/// Runs the rules on a context, and adds the suggestions and failures of the page's own rules.
///
/// # Errors
/// An `Error` of the kind `Config` for an invalid context.
#[wasm_bindgen]
pub fn analyze(context: &str, suggestions: &str, failed: &str) -> Answer {
    let context: AnalysisContext = read("the context", context)?;
    let own: Vec<Suggestion> = read("a rule's suggestion", suggestions)?;
    let failed: Vec<FailedRule> = read("the rules that failed", failed)?;
    let mut report = Advisor::new().analyze(&context);
    report.add(own);
    report.failed.extend(failed);
    write(&report)
}

/// A report for people, as markdown.
///
/// # Errors
/// As [`analyze`].
#[wasm_bindgen]
pub fn markdown(report: &str) -> Answer {
    let report: OptimizationReport = read("the report", report)?;
    Ok(report.to_markdown())
}

/// A configuration with a suggestion's patch in it.
///
/// # Errors
/// An `Error` of the kind `Config` where the two contradict each other.
#[wasm_bindgen]
pub fn apply(config: &str, patch: &str) -> Answer {
    let config: EmbeddingConfig = read("the configuration", config)?;
    let patch: Patch = read("the patch", patch)?;
    let changed = patch.apply(&config).map_err(|error| to_js(&error))?;
    write(&changed.to_knobs())
}

/// The report on two embedders' turns: seconds of each, their vectors of the same texts, and the fingerprints.
///
/// # Errors
/// An `Error` of the kind `Config` for turns without enough data.
#[wasm_bindgen]
pub fn judge(turns: Turns, baseline: &[f32], candidate: &[f32]) -> Answer {
    let Turns {
        options,
        texts,
        seconds,
        fingerprints,
    } = turns;
    let options: Options = read("the trial's options", &options)?;
    let trial = options.trial();
    let fingerprints: [Fingerprint; 2] = read("the fingerprints", &fingerprints)?;
    let compatible = fingerprints[0].differences(&fingerprints[1]).is_empty();
    let (before, after) = seconds.split_at(seconds.len() / 2);
    let report = trial
        .report(
            (before.to_vec(), after.to_vec()),
            texts,
            (baseline, candidate),
            compatible,
        )
        .map_err(|error| to_js(&error))?;
    write(&report)
}

/// The measurements of a trial.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Turns {
    options: String,
    texts: usize,
    seconds: Vec<f64>,
    fingerprints: String,
}

#[wasm_bindgen]
impl Turns {
    /// Options as JSON, texts of a turn, the seconds of the baseline's turns and behind them those of the candidate's,
    /// and the two fingerprints as a JSON list.
    #[wasm_bindgen(constructor)]
    pub fn new(options: String, texts: usize, seconds: Vec<f64>, fingerprints: String) -> Self {
        Self {
            options,
            texts,
            seconds,
            fingerprints,
        }
    }
}

/// A trial's options as pages write them.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    goal: isovec_insight::advisor::Goal,
    confidence: Option<f64>,
    worth: Option<f64>,
    tolerance: Option<f64>,
}

impl Options {
    fn trial(&self) -> Trial {
        let mut trial = Trial::of(self.goal);
        trial.confidence = self.confidence.unwrap_or(trial.confidence);
        trial.worth = self.worth.unwrap_or(trial.worth);
        trial.tolerance = self.tolerance.unwrap_or(trial.tolerance);
        trial
    }
}

/// A Chrome trace that isovec wrote, in the few numbers that the rules read.
///
/// # Errors
/// An `Error` of the kind `Config` if it is not such a trace.
#[wasm_bindgen]
pub fn profile(trace: &str) -> Answer {
    let summary =
        ProfileSummary::from_chrome_trace(trace.as_bytes()).map_err(|error| to_js(&error))?;
    write(&summary)
}

/// Describes texts by their tokens.
///
/// # Errors
/// None; the type is that of the others.
#[wasm_bindgen]
pub fn workload(texts: Vec<String>, tokens: &[u32]) -> Answer {
    let lengths = tokens.iter().map(|&tokens| tokens as usize);
    write(&Workload::new(texts.into_iter().zip(lengths)))
}

/// Reads JSON by way of a tree: the types are then read from one kind of source, which is half of the code.
fn read<T: DeserializeOwned>(what: &str, json: &str) -> Answer<T> {
    serde_json::from_str::<Value>(json)
        .and_then(serde_json::from_value)
        .map_err(|error| with_kind("Config", &format!("{what} cannot be read: {error}")))
}

fn write(value: &impl Serialize) -> Answer {
    serde_json::to_string(value).map_err(|error| with_kind("Config", &error.to_string()))
}
