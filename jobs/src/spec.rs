//! What a job is to do.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// A job, as its TOML file says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Spec {
    /// Files of texts: a path or an `s3://bucket/key`, in which `*`, `**`, `?`, `[…]` and `{…,…}` stand for names.
    pub input: String,
    /// The folder of the output: a path or an `s3://bucket/prefix`.
    pub output: String,
    /// The column or field of the text.
    #[serde(default = "text")]
    pub text: String,
    /// Columns or fields that the output keeps.
    #[serde(default)]
    pub keep: Vec<String>,
    /// What becomes of a row that has no vector.
    #[serde(default)]
    pub poisoned: Poisoned,
    /// Bytes of the longest text. A longer one is a poisoned row.
    #[serde(default = "max_text_bytes")]
    pub max_text_bytes: NonZeroU64,
    /// Rows of an output file, at most. Row groups of Parquet files are put together up to this number.
    #[serde(default = "unit_rows")]
    pub unit_rows: NonZeroUsize,
    /// Bytes of JSON lines in a unit.
    #[serde(default = "unit_bytes")]
    pub unit_bytes: NonZeroU64,
    /// How often a store or an engine that fails is tried again.
    #[serde(default = "retries")]
    pub retries: u32,
    /// The time before the first retry. Each further one waits twice as long as the one before, and half a minute at most.
    #[serde(default = "retry_wait", with = "humantime_serde")]
    pub retry_wait: Duration,
    /// Units that are worked on at the same time by one process.
    #[serde(default = "workers")]
    pub workers: NonZeroU32,
    /// The model, for the one who loads it. A job does not read it.
    #[serde(default)]
    pub model: Value,
}

/// What becomes of a row that has no vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Poisoned {
    /// Its unit fails.
    #[default]
    Fail,
    /// The row has a null for its vector, and the reason in the column `error`.
    Null,
    /// The row is left out. A side file has its place and the reason.
    Skip,
}

impl Spec {
    /// Reads a spec from TOML.
    ///
    /// # Errors
    /// [`Error::Spec`] names the line, or what is wrong.
    pub fn parse(toml: &str) -> Result<Self> {
        let spec: Self = toml::from_str(toml)
            .map_err(|error| Error::Spec(error.to_string().trim_end().to_owned()))?;
        for name in [VECTOR, ERROR] {
            if spec.keep.iter().any(|kept| kept == name) {
                return Err(Error::Spec(format!(
                    "keep names {name:?}, which is a column that the output has anyway; rename it in the input"
                )));
            }
        }
        let mut names: Vec<&String> = spec.keep.iter().collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Spec(format!("keep names {:?} twice", twice[0])));
        }
        Ok(spec)
    }
}

/// The output's column of vectors.
pub(crate) const VECTOR: &str = "embedding";
/// The output's column of reasons.
pub(crate) const ERROR: &str = "error";

fn text() -> String {
    "text".into()
}

const fn max_text_bytes() -> NonZeroU64 {
    NonZeroU64::new(1 << 20).expect("more than none")
}

const fn unit_rows() -> NonZeroUsize {
    NonZeroUsize::new(10_000).expect("more than none")
}

const fn unit_bytes() -> NonZeroU64 {
    NonZeroU64::new(4 << 20).expect("more than none")
}

const fn retries() -> u32 {
    5
}

const fn retry_wait() -> Duration {
    Duration::from_millis(200)
}

const fn workers() -> NonZeroU32 {
    NonZeroU32::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_needs_an_input_and_an_output() {
        let spec = Spec::parse("input = 'a'\noutput = 'b'").unwrap();
        assert_eq!(
            (&*spec.input, &*spec.output, &*spec.text),
            ("a", "b", "text")
        );
        assert_eq!(spec.poisoned, Poisoned::Fail);
        for missing in ["input = 'a'", "output = 'b'"] {
            assert!(Spec::parse(missing).is_err(), "{missing}");
        }
    }

    #[test]
    fn faults_are_named() {
        for (line, said) in [
            ("speed = 7", "speed"),
            ("workers = 0", "workers"),
            ("poisoned = 'ignore'", "ignore"),
            ("retry_wait = 'soon'", "retry_wait"),
            ("keep = ['id', 'embedding']", "embedding"),
            ("keep = ['error']", "error"),
            ("keep = ['id', 'a', 'id']", "\"id\" twice"),
        ] {
            let error = Spec::parse(&format!("input = 'a'\noutput = 'b'\n{line}"));
            let error = error.expect_err(line).to_string();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
