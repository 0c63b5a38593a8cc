//! What makes a score of a reranker's number, from its `config.json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::EngineError;
use serde::Deserialize;

use crate::classifier::{Labels, Scores};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    sentence_transformers: Option<Own>,
    sbert_ce_default_activation_function: Option<String>,
}

#[derive(Deserialize)]
struct Own {
    activation_fn: Option<String>,
}

/// The scores of a model with `labels` labels: `sentence_transformers.activation_fn` in `config.json`, else
/// `sbert_ce_default_activation_function`, else a probability, as the class `CrossEncoder` of sentence-transformers reads it.
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
    let config = match files.get("config.json") {
        Some(bytes) => serde_json::from_slice(bytes)
            .map_err(|error| EngineError::invalid_model(origin, format!("config.json: {error}")))?,
        None => Config::default(),
    };
    let own = config
        .sentence_transformers
        .and_then(|own| own.activation_fn);
    let named = own.or(config.sbert_ce_default_activation_function);
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
                reason: format!("config.json makes scores by the function {other:?}"),
                hint: "isovec knows Identity and Sigmoid; take a model with one of them".into(),
            });
        }
    };
    Ok(Labels {
        names: ["relevance".to_owned()].into(),
        scores,
    })
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
    }

    #[test]
    fn what_is_no_reranker_is_refused() {
        for labels in [0, 2, 3] {
            assert_eq!(of("{}", labels).unwrap_err().kind(), "UnsupportedModel");
        }
        assert_eq!(of("[", 1).unwrap_err().kind(), "InvalidModel");
    }
}
