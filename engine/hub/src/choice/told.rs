//! The rules for callers that are not Rust and have no list of files. They take the known facts as JSON and answer in
//! JSON.

use std::borrow::Cow;

use isovec_engine::error::{EngineError, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Answer, FileSelection, Known, Need, Presence, WeightFiles};

/// What is wanted, and what is known.
#[derive(Deserialize)]
struct Told {
    /// The name of the source in messages.
    origin: String,
    /// The ONNX file that was named.
    #[serde(default)]
    onnx_file: Option<String>,
    /// Whether the smallest form is wanted.
    #[serde(default)]
    smallest: bool,
    /// Whether the list of files is complete.
    listed: bool,
    /// The files: `null` for one that is not there, else its `bytes` and its content as `text`, as far as they are known.
    files: Map<String, Value>,
}

#[derive(Serialize)]
struct Said {
    /// The open questions: files, and the needed fact about each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ask: Vec<(String, &'static str)>,
    /// The choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<String>,
}

impl Known for Told {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn names(&self) -> Option<Vec<&str>> {
        let there = self.files.iter().filter(|(_, fact)| !fact.is_null());
        self.listed
            .then(|| there.map(|(name, _)| name.as_str()).collect())
    }

    fn presence(&self, path: &str) -> Presence {
        match self.files.get(path) {
            Some(Value::Null) => Presence::Absent,
            Some(fact) => Presence::There {
                bytes: fact.get("bytes").and_then(Value::as_u64),
            },
            None if self.listed => Presence::Absent,
            None => Presence::Unknown,
        }
    }

    fn content(&self, path: &str) -> Result<Option<Cow<'_, [u8]>>> {
        let text = self.files.get(path).and_then(|fact| fact.get("text"));
        let text = text.and_then(Value::as_str);
        Ok(text.map(|text| Cow::Borrowed(text.as_bytes())))
    }
}

/// The rules for an embedding model, step by step. `check` says, of the source's name and its `config.json`, whether the
/// checkpoint can be loaded, as [`FileSelection::accept_safetensors_if`] has it. `known` is
/// `{"origin", "onnx_file", "smallest", "listed", "files": {PATH: null | {"bytes", "text"}}}`; the
/// answer is `{"ask": [[PATH, "taken" | "likely" | "size" | "content"], ...]}`, or
/// `{"files": [PATH, ...], "weights": PATH}`.
///
/// # Errors
/// As [`FileSelection::next`], and [`EngineError::Config`] where `known` is something else.
pub fn next_told(
    known: &str,
    check: impl Fn(&str, &[u8]) -> Result<()> + Send + Sync + 'static,
) -> Result<String> {
    // Not `from_str`: one reader of JSON keeps the page's module small.
    let told: Told = serde_json::from_slice(known.as_bytes()).map_err(|error| {
        EngineError::Config(vec![format!(
            "the facts about the files cannot be read: {error}"
        )])
    })?;
    let weights = match &told.onnx_file {
        Some(file) => WeightFiles::Onnx(file.clone()),
        None if told.smallest => WeightFiles::Smallest,
        None => WeightFiles::Auto,
    };
    let origin = told.origin.clone();
    let rules = FileSelection::embedding()
        .weights(weights)
        .accept_safetensors_if(move |config| check(&origin, config));
    let said = match rules.next(&told)? {
        Answer::Ask(questions) => Said {
            ask: questions
                .into_iter()
                .map(|question| (question.path, name(question.need)))
                .collect(),
            files: None,
            weights: None,
        },
        Answer::Chosen(choice) => Said {
            ask: Vec::new(),
            weights: choice.weights.file().map(str::to_owned),
            files: Some(choice.files),
        },
    };
    // Strings and lists of strings always have a JSON form.
    Ok(serde_json::to_string(&said).unwrap_or_default())
}

fn name(need: Need) -> &'static str {
    match need {
        Need::Taken => "taken",
        Need::Likely => "likely",
        Need::Size => "size",
        Need::Content => "content",
    }
}
