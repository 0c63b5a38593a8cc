//! Reading `config.json`: typed values, and messages that name the key.

use isovec_engine::error::{EngineError, Result};
use serde_json::{Map, Value};

/// What to do with a checkpoint that cannot be converted.
pub(super) const USE_ONNX: &str =
    "Use the model's ONNX file, or export one and load that (an ONNX file brings its own graph)";

/// A parsed `config.json`.
#[derive(Debug, Clone)]
pub(super) struct Config {
    origin: String,
    values: Map<String, Value>,
}

impl Config {
    /// Reads the file's bytes; `origin` names the model in messages.
    pub(super) fn parse(origin: &str, json: &[u8]) -> Result<Self> {
        match serde_json::from_slice(json) {
            Ok(Value::Object(values)) => Ok(Self {
                origin: origin.to_owned(),
                values,
            }),
            Ok(_) => Err(EngineError::invalid_model(
                origin,
                "config.json is not an object",
            )),
            Err(error) => Err(EngineError::invalid_model(
                origin,
                format!("config.json is not JSON: {error}"),
            )),
        }
    }

    /// An object of the file as a config of its own; empty where the file has none.
    pub(super) fn part(&self, key: &str) -> Result<Self> {
        let values = match self.value(key) {
            None => Map::new(),
            Some(Value::Object(values)) => values.clone(),
            Some(_) => return Err(self.wrong(key, "is not an object")),
        };
        Ok(Self {
            origin: self.origin.clone(),
            values,
        })
    }

    /// The value under `key`; `null` counts as absent, as it does for the checkpoints' own library.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// Whether the key is there with the value `null`.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(Value::is_null)
    }

    /// A count that must be there and be at least 1.
    pub(super) fn size(&self, key: &str) -> Result<usize> {
        match self.value(key) {
            Some(_) => self.size_or(key, 1),
            None => Err(self.wrong(key, "is missing")),
        }
    }

    /// A count of at least 1, with the family's default.
    pub(super) fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        match self.count_or(key, default)? {
            0 => Err(self.wrong(key, "is 0")),
            count => Ok(count),
        }
    }

    /// A count that may be 0, with the family's default.
    pub(super) fn count_or(&self, key: &str, default: usize) -> Result<usize> {
        let Some(value) = self.value(key) else {
            return Ok(default);
        };
        value
            .as_u64()
            // Counts end up in shapes, which ONNX writes as i64, and are multiplied with each
            // other; no real one comes near this.
            .filter(|&count| count <= u64::from(u32::MAX / 4))
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| self.wrong(key, &format!("is {value}, not a usable count")))
    }

    /// A finite number above 0, with the family's default.
    pub(super) fn positive_or(&self, key: &str, default: f64) -> Result<f64> {
        let Some(value) = self.value(key) else {
            return Ok(default);
        };
        value
            .as_f64()
            .filter(|number| number.is_finite() && *number > 0.0)
            .ok_or_else(|| self.wrong(key, &format!("is {value}, not a positive number")))
    }

    /// A finite number above 0 that must be there.
    pub(super) fn positive(&self, key: &str) -> Result<f64> {
        match self.value(key) {
            Some(_) => self.positive_or(key, 1.0),
            None => Err(self.wrong(key, "is missing")),
        }
    }

    /// A flag, with the family's default.
    pub(super) fn flag_or(&self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.value(key) else {
            return Ok(default);
        };
        value
            .as_bool()
            .ok_or_else(|| self.wrong(key, &format!("is {value}, not true or false")))
    }

    /// A text, with the family's default.
    pub(super) fn text_or<'a>(&'a self, key: &str, default: &'a str) -> Result<&'a str> {
        let Some(value) = self.value(key) else {
            return Ok(default);
        };
        value
            .as_str()
            .ok_or_else(|| self.wrong(key, &format!("is {value}, not a text")))
    }

    /// A value that makes the file unusable.
    pub(super) fn wrong(&self, key: &str, what: &str) -> EngineError {
        EngineError::invalid_model(&self.origin, format!("{key} in config.json {what}"))
    }

    /// A value that asks for something the conversion does not do.
    pub(super) fn unsupported(&self, reason: impl Into<String>) -> EngineError {
        EngineError::UnsupportedModel {
            origin: self.origin.clone(),
            reason: reason.into(),
            hint: USE_ONNX.into(),
        }
    }

    /// Refuses the model unless the flag is false or absent.
    pub(super) fn refuse_flag(&self, key: &str, meaning: &str) -> Result<()> {
        if self.flag_or(key, false)? {
            return Err(self.unsupported(format!("config.json sets {key}: {meaning}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Result<Config> {
        Config::parse("model", json.as_bytes())
    }

    #[test]
    fn values_are_checked_and_named() {
        let config = config(
            r#"{"a": 3, "b": 0, "c": -1, "d": 1.5, "e": "x", "f": null, "g": 1e300, "h": true,
                "i": 18446744073709551615, "j": 4000000000}"#,
        )
        .expect("valid");
        assert_eq!(config.size("a").expect("a"), 3);
        assert_eq!(config.count_or("b", 7).expect("b"), 0);
        assert_eq!(config.count_or("f", 7).expect("null is absent"), 7);
        assert_eq!(config.text_or("e", "").expect("e"), "x");
        assert!(config.flag_or("h", false).expect("h"));
        for key in ["b", "c", "d", "e", "f", "g", "i", "j", "absent"] {
            let message = config.size(key).expect_err(key).to_string();
            assert!(
                message.contains(&format!("{key} in config.json")),
                "{message}"
            );
        }
        assert!(config.positive_or("c", 1.0).is_err());
        assert!(config.positive_or("e", 1.0).is_err());
        assert!(config.flag_or("a", false).is_err());
        assert!(config.text_or("a", "").is_err());
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for json in ["", "[]", "{", "null", "\u{0}"] {
            let error = config(json).expect_err(json);
            assert_eq!(error.kind(), "InvalidModel");
        }
    }
}
