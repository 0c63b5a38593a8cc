//! What makes a score of a reranker's number, from its `config.json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::EngineError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::classifier::{Labels, Scores};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    sentence_transformers: Option<Own>,
    sbert_ce_default_activation_function: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Own {
    activation_fn: Option<String>,
}

/// The scores of a model with `labels` labels: `activation_fn` in `config_sentence_transformers.json`, else
/// `sentence_transformers.activation_fn` in `config.json`, else `sbert_ce_default_activation_function` there, else a probability, as
/// the class `CrossEncoder` of sentence-transformers reads it.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] for more than one label and for an activation that is neither the identity nor the logistic
/// function; [`EngineError::InvalidModel`] for a `config.json` that cannot be read.
pub(crate) fn read(
    origin: &str,
    files: &BTreeMap<String, Bytes>,
    labels: usize,
) -> Result<Labels, EngineError> {
    if labels != 1 {
        return Err(EngineError::UnsupportedModel {
            origin: origin.into(),
            reason: format!(
                "it gives a number for each of {labels} labels, and a reranker gives one for a pair"
            ),
            hint: "Load it with `Classifier`, whose `classify_pairs` reads two texts together"
                .into(),
        });
    }
    let own: Own = parsed(origin, files, "config_sentence_transformers.json")?;
    let config: Config = parsed(origin, files, "config.json")?;
    let older = config.sentence_transformers.unwrap_or_default();
    let named = own
        .activation_fn
        .or(older.activation_fn)
        .or(config.sbert_ce_default_activation_function);
    // `torch.nn.modules.activation.Sigmoid` has had other modules before its name.
    let scores = match named
        .as_deref()
        .map(|name| name.rsplit('.').next().unwrap_or(name))
    {
        None | Some("Sigmoid") => Scores::Sigmoid,
        Some("Identity") => Scores::Logits,
        Some(other) => {
            return Err(EngineError::UnsupportedModel {
                origin: origin.into(),
                reason: format!("its files make scores by the function {other:?}"),
                hint: "isovec knows Identity and Sigmoid; take a model with one of them".into(),
            });
        }
    };
    Ok(Labels {
        names: ["relevance".to_owned()].into(),
        scores,
    })
}

/// A file's content; the default where there is no such file.
fn parsed<T: DeserializeOwned + Default>(
    origin: &str,
    files: &BTreeMap<String, Bytes>,
    name: &str,
) -> Result<T, EngineError> {
    let Some(bytes) = files.get(name) else {
        return Ok(T::default());
    };
    serde_json::from_slice(bytes)
        .map_err(|error| EngineError::invalid_model(origin, format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str, labels: usize) -> Result<Scores, EngineError> {
        let files = BTreeMap::from([("config.json".to_owned(), config.to_owned().into())]);
        read("model", &files, labels).map(|labels| labels.scores)
    }

    #[test]
    fn the_config_says_what_scores_are() {
        let new =
            |name: &str| format!(r#"{{"sentence_transformers": {{"activation_fn": "{name}"}}}}"#);
        let old = |name: &str| format!(r#"{{"sbert_ce_default_activation_function": "{name}"}}"#);
        let (identity, sigmoid) = (
            "torch.nn.modules.linear.Identity",
            "torch.nn.modules.activation.Sigmoid",
        );
        assert_eq!(of("{}", 1).unwrap(), Scores::Sigmoid);
        assert_eq!(
            read("model", &BTreeMap::new(), 1).unwrap().scores,
            Scores::Sigmoid
        );
        for write in [&new as &dyn Fn(&str) -> String, &old] {
            assert_eq!(of(&write(identity), 1).unwrap(), Scores::Logits);
            assert_eq!(of(&write(sigmoid), 1).unwrap(), Scores::Sigmoid);
            let error = of(&write("torch.nn.modules.activation.Tanh"), 1).unwrap_err();
            assert!(error.to_string().contains("\"Tanh\""), "{error}");
        }
        let both = format!(
            r#"{{"sentence_transformers": {{"activation_fn": "{identity}"}}, "sbert_ce_default_activation_function": "{sigmoid}"}}"#
        );
        assert_eq!(of(&both, 1).unwrap(), Scores::Logits);
        let version = r#"{"sentence_transformers": {"version": "5.1.0"}}"#;
        assert_eq!(of(version, 1).unwrap(), Scores::Sigmoid);
        let beside = format!(r#"{{"activation_fn": "{identity}"}}"#);
        let files = [
            ("config.json", new(sigmoid)),
            ("config_sentence_transformers.json", beside),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text.into()));
        let labels = read("model", &files.into(), 1).unwrap();
        assert_eq!(labels.scores, Scores::Logits, "the newer file comes first");
    }

    #[test]
    fn what_is_no_reranker_is_refused() {
        for labels in [0, 2, 3] {
            assert_eq!(of("{}", labels).unwrap_err().kind(), "UnsupportedModel");
        }
        assert_eq!(of("[", 1).unwrap_err().kind(), "InvalidModel");
    }
}
