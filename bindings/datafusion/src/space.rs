//! What a column of vectors says of their model.

use std::collections::HashMap;

use datafusion::arrow::datatypes::Field;
use datafusion::error::DataFusionError;
use isovec::Similarity;
use isovec::fingerprint::Fingerprint;

use crate::error::{Error, Result};

/// The entry of a field's metadata that holds the fingerprint of its vectors as JSON: which vectors they may be compared with.
pub const FINGERPRINT: &str = "isovec.fingerprint";

/// The entry with the metric that the model's vectors are compared by: `cosine`, `dot`, `euclidean` or `manhattan`.
pub const METRIC: &str = "isovec.similarity";

/// The entry with the name of the model in the session that made the vectors.
pub const MODEL: &str = "isovec.model";

/// What vectors are, and how they are compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Space {
    pub(crate) model: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) metric: Similarity,
}

impl Space {
    pub(crate) fn metadata(&self) -> Result<HashMap<String, String>, DataFusionError> {
        let fingerprint = serde_json::to_string(&self.fingerprint).map_err(unwritable)?;
        Ok(HashMap::from([
            (FINGERPRINT.to_owned(), fingerprint),
            (METRIC.to_owned(), name_of(self.metric)?),
            (MODEL.to_owned(), self.model.clone()),
        ]))
    }

    /// What a field says of its vectors; `None` where it says nothing.
    pub(crate) fn of(function: &'static str, field: &Field) -> Result<Option<Self>> {
        let metadata = field.metadata();
        let Some(fingerprint) = metadata.get(FINGERPRINT) else {
            return Ok(None);
        };
        let broken = |key, error: serde_json::Error| Error::Metadata {
            function,
            key,
            detail: error.to_string(),
        };
        let fingerprint =
            serde_json::from_str(fingerprint).map_err(|error| broken(FINGERPRINT, error))?;
        let metric = match metadata.get(METRIC) {
            None => Similarity::default(),
            Some(metric) => named(metric).map_err(|error| broken(METRIC, error))?,
        };
        Ok(Some(Self {
            model: metadata.get(MODEL).cloned().unwrap_or_default(),
            fingerprint,
            metric,
        }))
    }

    /// Refuses vectors of another space; says in the log what is taken on trust.
    pub(crate) fn check(&self, other: &Self) -> Result<()> {
        let differences = self.fingerprint.differences(&other.fingerprint);
        if !differences.is_empty() {
            return Err(Error::Incompatible {
                here: self.model.clone(),
                there: other.model.clone(),
                differences,
            });
        }
        let (here, there) = (self.fingerprint.precision, other.fingerprint.precision);
        if here != there {
            tracing::warn!(
                ?here,
                ?there,
                "comparing vectors that were computed in another numeric class"
            );
        }
        if self.fingerprint != other.fingerprint {
            for doubt in self.fingerprint.doubts(&other.fingerprint) {
                tracing::warn!(%doubt, "comparing vectors on trust");
            }
        }
        Ok(())
    }
}

/// The name that sentence-transformers has for a metric.
pub(crate) fn name_of(metric: Similarity) -> Result<String, DataFusionError> {
    let name = serde_json::to_value(metric).map_err(unwritable)?;
    Ok(name.as_str().unwrap_or_default().to_owned())
}

fn unwritable(error: serde_json::Error) -> DataFusionError {
    DataFusionError::Internal(format!("what vectors are is no JSON: {error}"))
}

/// A metric by the name that sentence-transformers has for it.
pub(crate) fn named(metric: &str) -> Result<Similarity, serde_json::Error> {
    serde_json::from_value(serde_json::Value::from(metric))
}
