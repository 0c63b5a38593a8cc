//! Measurements of earlier starts.

use std::hash::{DefaultHasher, Hash, Hasher};

use isovec_engine::weights::WeightsIdentity;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::backend::cache;
use crate::config::RuntimeConfig;

/// What was measured for a model.
#[derive(Debug)]
pub(crate) struct Record {
    /// The kind of values.
    kind: &'static str,
    name: String,
    /// Whatever the values depend on: with anything else they have to be measured again.
    measured_on: String,
    /// Whether anything is cached at all.
    on: bool,
}

#[derive(Deserialize, Serialize)]
struct Measured<T> {
    measured_on: String,
    values: T,
}

impl Record {
    /// The record of this kind of values for the model of these weights.
    pub(crate) fn of(
        kind: &'static str,
        weights: &WeightsIdentity,
        config: &RuntimeConfig,
        measured_on: String,
    ) -> Self {
        let model: String = weights.0.chars().take(32).collect();
        // One for each set-up: programs with different ones do not overwrite each other's.
        let mut hasher = DefaultHasher::new();
        measured_on.hash(&mut hasher);
        Self {
            kind,
            name: format!("{model}-{:016x}.json", hasher.finish()),
            measured_on,
            on: config.remembers(),
        }
    }

    /// What was measured here, if it was.
    pub(crate) async fn read<T: DeserializeOwned>(&self) -> Option<T> {
        if !self.on {
            return None;
        }
        self.parse(&cache::recall(self.kind, &self.name).await?)
    }

    /// Caches it for the next start, if there is a cache.
    pub(crate) async fn write<T: Serialize>(&self, values: T) {
        if !self.on {
            return;
        }
        let measured = Measured {
            measured_on: self.measured_on.clone(),
            values,
        };
        match serde_json::to_vec(&measured) {
            Ok(text) => cache::keep(self.kind, &self.name, &text).await,
            Err(error) => tracing::debug!(target: "isovec", "{}: {error}", self.name),
        }
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8]) -> Option<T> {
        let found: Measured<T> = serde_json::from_slice(text).ok()?;
        (found.measured_on == self.measured_on).then_some(found.values)
    }
}

/// The machine and the program, as far as speed depends on them.
pub(crate) fn machine() -> String {
    format!(
        "isovec {}{} on {} {}, {} cores",
        env!("CARGO_PKG_VERSION"),
        if cfg!(debug_assertions) {
            " (debug)"
        } else {
            ""
        },
        std::env::consts::OS,
        std::env::consts::ARCH,
        isovec_engine::cores::usable(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_elsewhere_is_measured_again() {
        let record = |machine: &str| {
            let (model, config) = (WeightsIdentity("abc".into()), RuntimeConfig::default());
            Record::of("kind", &model, &config, machine.into())
        };
        let text = br#"{"measured_on": "here", "values": [0.25]}"#;
        assert_eq!(record("here").parse(text), Some(vec![0.25]));
        assert_eq!(record("there").parse::<Vec<f64>>(text), None);
        assert_eq!(record("here").parse::<Vec<f64>>(b"{"), None);
        assert_ne!(record("here").name, record("there").name);
    }
}
