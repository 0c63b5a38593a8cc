//! What work costs.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What work costs: measured by [`measure`](crate::measure) or written by hand.
///
/// The defaults of the store are what AWS says of S3 ("Best practices design patterns: optimizing Amazon S3 performance"):
/// 100 to 200 ms for a small object, 85 MB a second of one request, 5,500 reads and 3,500 writes a second of a prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Costs {
    /// Texts that a worker embeds in a second.
    pub texts_per_second: f64,
    /// Seconds from the start of a worker until its model is loaded.
    #[serde(default = "load_seconds")]
    pub load_seconds: f64,
    /// How often a worker dies in an hour. The times between are exponential.
    #[serde(default)]
    pub failures_per_hour: f64,
    /// Seconds until a worker that died is started again.
    #[serde(default = "restart_seconds")]
    pub restart_seconds: f64,
    /// Seconds of a request to the store, without the time for its bytes.
    #[serde(default = "request_seconds")]
    pub request_seconds: f64,
    /// Bytes that one request moves in a second.
    #[serde(default = "bytes_per_second")]
    pub bytes_per_second: f64,
    /// Reads, looks and pages of listings that the store answers in a second, of all workers together; `inf` is no limit.
    #[serde(default = "store_reads_per_second")]
    pub store_reads_per_second: f64,
    /// Writes that the store takes in a second, of all workers together; `inf` is no limit.
    #[serde(default = "store_writes_per_second")]
    pub store_writes_per_second: f64,
    /// Bytes that the store moves in a second, for all workers together; `inf` is no limit.
    #[serde(default = "unlimited")]
    pub store_bytes_per_second: f64,
    /// Names on a page of a listing.
    #[serde(default = "page_names")]
    pub page_names: u64,
    /// Rows of a file of the input.
    #[serde(default = "file_rows")]
    pub file_rows: u64,
    /// Rows of a row group, where the input is Parquet.
    #[serde(default = "group_rows")]
    pub group_rows: u64,
    /// Bytes of a row of the input: a line, or the used columns of a Parquet file.
    #[serde(default = "input_row_bytes")]
    pub input_row_bytes: u64,
    /// Bytes of a row of the output.
    #[serde(default = "output_row_bytes")]
    pub output_row_bytes: u64,
    /// Of a million texts, those that the model refuses by name. Each costs computing its chunk once more.
    #[serde(default)]
    pub refused_per_million: f64,
    /// Of a million texts, those at which the model fails without a name, so that they are found by halving.
    #[serde(default)]
    pub crashing_per_million: f64,
}

/// The most texts of a million that may be poisoned: each is a try more of thousands of texts.
const POISONED: f64 = 10_000.0;
/// Bytes of the largest row.
const ROW: u64 = 1 << 24;

impl Costs {
    /// Reads costs from TOML: each text over the ones before it, all over `measured`.
    ///
    /// # Errors
    /// [`Error::Costs`] names what is missing, unknown or out of range.
    pub fn read(measured: Option<&Self>, texts: &[&str]) -> Result<Self> {
        let mut table = match measured {
            None => toml::Table::new(),
            Some(costs) => toml::Table::try_from(costs).map_err(|error| fault(&error))?,
        };
        for text in texts {
            let over: toml::Table = toml::from_str(text).map_err(|error| fault(&error))?;
            table.extend(over);
        }
        if !table.contains_key("texts_per_second") {
            return Err(Error::Costs(
                "texts_per_second is not known; measure it, or say it".into(),
            ));
        }
        let costs: Self = table.try_into().map_err(|error| fault(&error))?;
        costs.check()?;
        Ok(costs)
    }

    /// All costs as TOML, which [`read`](Self::read) takes.
    ///
    /// # Errors
    /// None that is known: every cost has a form in TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| fault(&error))
    }

    /// Refuses what no job can cost.
    pub(crate) fn check(&self) -> Result<()> {
        let positive = [
            ("texts_per_second", self.texts_per_second),
            ("bytes_per_second", self.bytes_per_second),
            ("store_reads_per_second", self.store_reads_per_second),
            ("store_writes_per_second", self.store_writes_per_second),
            ("store_bytes_per_second", self.store_bytes_per_second),
            ("page_names", self.page_names as f64),
            ("file_rows", self.file_rows as f64),
            ("group_rows", self.group_rows as f64),
            ("input_row_bytes", self.input_row_bytes as f64),
        ];
        let wrong = |value: f64| value.is_nan() || value <= 0.0;
        if let Some((name, value)) = positive.iter().find(|(_, value)| wrong(*value)) {
            return Err(Error::Costs(format!(
                "{name} is {value}, and more than 0 is wanted"
            )));
        }
        let finite = [
            ("texts_per_second", self.texts_per_second),
            ("load_seconds", self.load_seconds),
            ("failures_per_hour", self.failures_per_hour),
            ("restart_seconds", self.restart_seconds),
            ("request_seconds", self.request_seconds),
        ];
        let wrong = |value: f64| !value.is_finite() || value < 0.0;
        if let Some((name, value)) = finite.iter().find(|(_, value)| wrong(*value)) {
            return Err(Error::Costs(format!(
                "{name} is {value}, and a number from 0 on is wanted"
            )));
        }
        let bytes = [
            ("input_row_bytes", self.input_row_bytes),
            ("output_row_bytes", self.output_row_bytes),
        ];
        if let Some((name, value)) = bytes.iter().find(|(_, value)| *value > ROW) {
            return Err(Error::Costs(format!(
                "{name} is {value}, and {ROW} or less is wanted"
            )));
        }
        let poisoned = [
            ("refused_per_million", self.refused_per_million),
            ("crashing_per_million", self.crashing_per_million),
        ];
        let wrong = |value: f64| !(0.0..=POISONED).contains(&value);
        if let Some((name, value)) = poisoned.iter().find(|(_, value)| wrong(*value)) {
            return Err(Error::Costs(format!(
                "{name} is {value}, and 0 to {POISONED} is wanted"
            )));
        }
        Ok(())
    }
}

fn fault(error: &dyn std::fmt::Display) -> Error {
    Error::Costs(error.to_string().trim().to_owned())
}

const fn load_seconds() -> f64 {
    5.0
}

const fn restart_seconds() -> f64 {
    60.0
}

const fn request_seconds() -> f64 {
    0.1
}

const fn bytes_per_second() -> f64 {
    85e6
}

const fn store_reads_per_second() -> f64 {
    5500.0
}

const fn store_writes_per_second() -> f64 {
    3500.0
}

const fn unlimited() -> f64 {
    f64::INFINITY
}

const fn page_names() -> u64 {
    1000
}

const fn file_rows() -> u64 {
    1_000_000
}

const fn group_rows() -> u64 {
    50_000
}

const fn input_row_bytes() -> u64 {
    500
}

const fn output_row_bytes() -> u64 {
    1600
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_texts_win_and_what_is_measured_is_under_them() {
        let measured = Costs::read(None, &["texts_per_second = 100\nload_seconds = 2"]).unwrap();
        let costs = Costs::read(
            Some(&measured),
            &["load_seconds = 3\npage_names = 7", "page_names = 8"],
        )
        .unwrap();
        assert_eq!(
            (costs.texts_per_second, costs.load_seconds, costs.page_names),
            (100.0, 3.0, 8)
        );
    }

    #[test]
    fn faults_are_named() {
        for (text, said) in [
            ("", "texts_per_second is not known"),
            ("texts_per_second = 0", "texts_per_second is 0"),
            ("texts_per_second = nan", "texts_per_second is NaN"),
            ("texts_per_second = inf", "texts_per_second is inf"),
            ("texts_per_second = 'many'", "many"),
            ("texts_per_second = 1\nspeed = 2", "speed"),
            ("texts_per_second = 1\npage_names = 0", "page_names is 0"),
            ("texts_per_second = 1\nfile_rows = -1", "file_rows"),
            (
                "texts_per_second = 1\noutput_row_bytes = 99999999",
                "output_row_bytes is 99999999",
            ),
            (
                "texts_per_second = 1\nload_seconds = -1",
                "load_seconds is -1",
            ),
            (
                "texts_per_second = 1\nrequest_seconds = inf",
                "request_seconds is inf",
            ),
            (
                "texts_per_second = 1\nrefused_per_million = 1e6",
                "refused_per_million is 1000000",
            ),
            (
                "texts_per_second = 1\ncrashing_per_million = nan",
                "crashing_per_million is NaN",
            ),
            ("texts_per_second", "texts_per_second"),
        ] {
            let error = Costs::read(None, &[text]).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        Costs::read(
            None,
            &["texts_per_second = 1\nstore_reads_per_second = inf"],
        )
        .unwrap();
    }
}
