//! What was measured at an earlier start, on disk; nowhere in browsers.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use isovec_engine::weights::WeightsIdentity;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::backend;

/// A file with what was measured for a model.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
    /// Whatever the values depend on: with anything else they have to be measured again.
    measured_on: String,
}

#[derive(Deserialize, Serialize)]
struct Measured<T> {
    measured_on: String,
    values: T,
}

impl Record {
    /// The file for the model of these weights in the folder of this kind of values; `None` where
    /// nothing can be kept.
    pub(crate) fn of(kind: &str, weights: &WeightsIdentity, measured_on: String) -> Option<Self> {
        let name: String = weights.0.chars().take(32).collect();
        let folder = backend::cache_dir()?.join(kind);
        // A file for each set-up: programs with different ones do not overwrite each other's.
        let mut hasher = DefaultHasher::new();
        measured_on.hash(&mut hasher);
        Some(Self {
            path: folder.join(format!("{name}-{:016x}.json", hasher.finish())),
            measured_on,
        })
    }

    /// What was measured here, if it was.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let text = fs::read(&self.path).ok()?;
        let found: Measured<T> = serde_json::from_slice(&text).ok()?;
        (found.measured_on == self.measured_on).then_some(found.values)
    }

    /// Keeps it, whole or not at all; a failure costs the next start its time, nothing else.
    pub(crate) fn write<T: Serialize>(&self, values: T) {
        let partial = self
            .path
            .with_extension(format!("{}.partial", std::process::id()));
        let measured = Measured {
            measured_on: self.measured_on.clone(),
            values,
        };
        let written = self
            .path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&partial, serde_json::to_vec_pretty(&measured)?))
            .and_then(|()| fs::rename(&partial, &self.path));
        if let Err(error) = written {
            tracing::debug!(target: "isovec", "{}: {error}", self.path.display());
            let _ = fs::remove_file(&partial);
        }
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
        std::thread::available_parallelism().map_or(1, usize::from),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_elsewhere_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let record = |machine: &str| Record {
            path: folder.path().join("kind").join("abc.json"),
            measured_on: machine.into(),
        };
        assert_eq!(record("here").read::<Vec<f64>>(), None);
        record("here").write(vec![0.25]);
        assert_eq!(record("here").read(), Some(vec![0.25]));
        assert_eq!(record("there").read::<Vec<f64>>(), None);
        fs::write(record("here").path, "{").unwrap();
        assert_eq!(record("here").read::<Vec<f64>>(), None);
    }
}
