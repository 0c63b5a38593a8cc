//! The meaning of a classifier's outputs, from its `config.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::EngineError;
use serde::{Deserialize, Serialize};

/// How a text's logits become scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scores {
    /// Probabilities that add up to 1: one label is right.
    Softmax,
    /// A probability for each label by itself: several may be right.
    Sigmoid,
    /// The model's own numbers, as they are.
    Logits,
}

impl Scores {
    /// Brings the logits of one text into this form. Computed in 64 bits.
    pub(crate) fn apply(self, logits: &mut [f32]) {
        match self {
            Self::Logits => {}
            Self::Sigmoid => {
                for value in logits {
                    *value = (1.0 / (1.0 + (-f64::from(*value)).exp())) as f32;
                }
            }
            Self::Softmax => {
                let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let powers: Vec<f64> = logits
                    .iter()
                    .map(|&value| (f64::from(value) - f64::from(most)).exp())
                    .collect();
                let sum: f64 = powers.iter().sum();
                for (value, power) in logits.iter_mut().zip(powers) {
                    *value = (power / sum) as f32;
                }
            }
        }
    }
}

/// The labels of a model, and how it means its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Labels {
    pub(crate) names: Arc<[String]>,
    pub(crate) scores: Scores,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    id2label: Option<BTreeMap<String, String>>,
    problem_type: Option<String>,
}

impl Labels {
    /// Reads `id2label` and `problem_type` of `config.json`, for as many labels as the graph gives. Labels without a name are
    /// `LABEL_0`, `LABEL_1`, ..., as transformers names them, whose `TextClassificationPipeline` also says which scores belong
    /// to which problem.
    ///
    /// # Errors
    /// [`EngineError::InvalidModel`] for a `config.json` that cannot be read, names other labels than the graph has, or a kind
    /// of problem that nobody knows.
    pub(crate) fn read(
        origin: &str,
        files: &BTreeMap<String, Bytes>,
        count: usize,
    ) -> Result<Self, EngineError> {
        let invalid = |detail: String| EngineError::invalid_model(origin, detail);
        let config = match files.get("config.json") {
            Some(bytes) => serde_json::from_slice(bytes)
                .map_err(|error| invalid(format!("config.json: {error}")))?,
            None => Config::default(),
        };
        let names = match config.id2label {
            None => (0..count).map(|at| format!("LABEL_{at}")).collect(),
            Some(named) => {
                let all = (0..count).map(|at| named.get(&at.to_string()).cloned());
                let all: Option<Vec<String>> = all.collect();
                all.filter(|all| all.len() == named.len()).ok_or_else(|| {
                    let ids: Vec<&str> = named.keys().map(String::as_str).collect();
                    invalid(format!(
                        "id2label in config.json names the labels {}, and the graph gives {count}, which count from 0",
                        ids.join(", ")
                    ))
                })?
            }
        };
        let scores = match config.problem_type.as_deref() {
            Some("regression") => Scores::Logits,
            Some("multi_label_classification") => Scores::Sigmoid,
            Some("single_label_classification") | None if count == 1 => Scores::Sigmoid,
            Some("single_label_classification") | None => Scores::Softmax,
            Some(other) => {
                return Err(invalid(format!(
                    "problem_type in config.json is {other:?}, but has to be regression, single_label_classification or multi_label_classification"
                )));
            }
        };
        Ok(Self {
            names: names.into(),
            scores,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &str, count: usize) -> Result<Labels, EngineError> {
        let files = BTreeMap::from([("config.json".to_owned(), config.to_owned().into())]);
        Labels::read("model", &files, count)
    }

    #[test]
    fn labels_have_the_names_of_the_config() {
        let labels = read(r#"{"id2label": {"1": "good", "0": "bad"}}"#, 2).unwrap();
        assert_eq!(*labels.names, ["bad", "good"]);
        let eleven: Vec<String> = (0..11).map(|at| format!("\"{at}\": \"l{at}\"")).collect();
        let labels = read(&format!("{{\"id2label\": {{{}}}}}", eleven.join(",")), 11).unwrap();
        assert_eq!((&*labels.names[2], &*labels.names[10]), ("l2", "l10"));
        assert_eq!(*read("{}", 2).unwrap().names, ["LABEL_0", "LABEL_1"]);
        let none = Labels::read("model", &BTreeMap::new(), 1).unwrap();
        assert_eq!(*none.names, ["LABEL_0"]);
        for (config, count) in [
            (r#"{"id2label": {"0": "bad"}}"#, 2),
            (r#"{"id2label": {"0": "bad", "1": "good", "2": "none"}}"#, 2),
            (r#"{"id2label": {"1": "bad", "2": "good"}}"#, 2),
            (r#"{"id2label": ["bad", "good"]}"#, 2),
            (r#"{"problem_type": "guessing"}"#, 2),
            ("[", 2),
        ] {
            assert_eq!(
                read(config, count).unwrap_err().kind(),
                "InvalidModel",
                "{config}"
            );
        }
    }

    #[test]
    fn the_problem_says_what_the_numbers_are() {
        let scores = |config: &str, count| read(config, count).unwrap().scores;
        assert_eq!(scores("{}", 2), Scores::Softmax);
        assert_eq!(scores("{}", 1), Scores::Sigmoid);
        let problem = |name| format!("{{\"problem_type\": \"{name}\"}}");
        assert_eq!(
            scores(&problem("single_label_classification"), 3),
            Scores::Softmax
        );
        assert_eq!(
            scores(&problem("multi_label_classification"), 3),
            Scores::Sigmoid
        );
        assert_eq!(scores(&problem("regression"), 1), Scores::Logits);
    }

    #[test]
    fn scores_are_computed_without_overflow() {
        let of = |scores: Scores, logits: &[f32]| {
            let mut values = logits.to_vec();
            scores.apply(&mut values);
            values
        };
        assert_eq!(of(Scores::Softmax, &[0.0, 0.0]), [0.5, 0.5]);
        assert_eq!(of(Scores::Softmax, &[1000.0, -1000.0]), [1.0, 0.0]);
        let three = of(Scores::Softmax, &[1.0, 2.0, 3.0]);
        assert!((three.iter().sum::<f32>() - 1.0).abs() < 1e-6 && three[2] > three[1]);
        assert!((three[0] - 0.090_030_57).abs() < 1e-7, "{three:?}");
        assert_eq!(
            of(Scores::Sigmoid, &[0.0, 1000.0, -1000.0]),
            [0.5, 1.0, 0.0]
        );
        assert_eq!(of(Scores::Logits, &[-2.5]), [-2.5]);
    }
}
