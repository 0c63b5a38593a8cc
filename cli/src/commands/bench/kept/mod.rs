//! Saved benchmarks: the measurements, turn by turn, and the machine and model.

mod check;
mod error;
mod list;
mod machine;
mod place;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use isovec::blocking::Embedder;
use isovec::config::EffectiveConfig;
use isovec::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

pub(crate) use error::KeptError;
pub(super) use list::list;
pub(super) use machine::Machine;
pub(super) use place::Place;

use super::figure::{Figure, Of, Part};
use super::plan::{Cell, Options};
use crate::error::{CliError, Result};
use crate::in_place;

/// What the file says that it is.
const FORMAT: &str = "isovec-benchmark";
/// Of the format: another one where an older program would read it wrongly.
const VERSION: u32 = 1;
/// Bytes that are read; a thousand turns of all figures have a tenth.
const LARGEST: u64 = 64 << 20;

/// A benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Benchmark {
    format: String,
    version: u32,
    pub(super) isovec: String,
    /// As RFC 3339.
    pub(super) date: String,
    pub(super) model: String,
    pub(super) fingerprint: Fingerprint,
    pub(super) provider: String,
    pub(super) machine: Machine,
    pub(super) options: Options,
    pub(super) texts: Texts,
    pub(super) effective_config: EffectiveConfig,
    pub(super) figures: Vec<Figure>,
}

/// The texts that it was measured with; they are not kept themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Texts {
    pub(super) count: usize,
    /// Of those that a turn takes.
    pub(super) tokens: usize,
    pub(super) a_turn: usize,
    /// BLAKE3 over all of them in order, each preceded by its length in bytes as a little-endian u64.
    pub(super) hash: String,
}

/// What has to be known before anything else is.
#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u32>,
}

impl Benchmark {
    pub(super) fn new(
        embedder: &Embedder,
        machine: Machine,
        options: Options,
        texts: Texts,
        figures: Vec<Figure>,
    ) -> Self {
        let debug = if cfg!(debug_assertions) {
            " (debug)"
        } else {
            ""
        };
        Self {
            format: FORMAT.into(),
            version: VERSION,
            isovec: format!("{}{debug}", env!("CARGO_PKG_VERSION")),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            model: embedder.model_name().to_owned(),
            fingerprint: embedder.fingerprint().clone(),
            provider: embedder.provider().to_string(),
            machine,
            options,
            texts,
            effective_config: embedder.effective_config().clone(),
            figures,
        }
    }

    /// # Errors
    /// [`CliError::Kept`] for a file that is none, is cut off or damaged, or is of a newer isovec.
    pub(super) fn read(place: &Place) -> Result<Self> {
        let path = place.path();
        let kept = |error| CliError::Kept {
            name: place.to_string(),
            error,
        };
        let text = read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => kept(KeptError::NotThere),
            _ => CliError::io(path.display().to_string())(error),
        })?;
        Self::parse(&text).map_err(kept)
    }

    fn parse(text: &[u8]) -> Result<Self, KeptError> {
        let fault = |error: serde_json::Error| {
            if error.is_eof() {
                KeptError::Truncated
            } else {
                KeptError::Damaged(error.to_string())
            }
        };
        let value: serde_json::Value = serde_json::from_slice(text).map_err(fault)?;
        // A missing field or another type of it: JSON, but not ours.
        let head = Head::deserialize(&value).map_err(|_| KeptError::Foreign)?;
        match (head.format.as_deref(), head.version) {
            (Some(FORMAT), Some(VERSION)) => {}
            (Some(FORMAT), Some(found)) => {
                return Err(KeptError::Version {
                    found,
                    known: VERSION,
                });
            }
            _ => return Err(KeptError::Foreign),
        }
        let found: Self =
            serde_json::from_value(value).map_err(|error| KeptError::Damaged(error.to_string()))?;
        check::check(&found)?;
        Ok(found)
    }

    /// Writes it whole, or not at all.
    pub(super) fn write(&self, place: &Place) -> Result<()> {
        in_place::write(place.path(), |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            file.write_all(b"\n")
        })
    }

    /// The points of its curves.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let of_curves =
            |figure: &&Figure| figure.key.part == Part::Curves && figure.key.of == Of::Time;
        let figures = self.figures.iter().filter(of_curves);
        figures.filter_map(Figure::cell).collect()
    }
}

impl Texts {
    /// Those that the user gave.
    pub(super) fn new(texts: &[String], a_turn: usize, tokens: usize) -> Self {
        Self {
            count: texts.len(),
            tokens,
            a_turn,
            hash: Self::hash(texts),
        }
    }

    pub(super) fn hash(texts: &[String]) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut text)?;
    Ok(text)
}
