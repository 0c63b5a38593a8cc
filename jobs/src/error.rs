//! What can go wrong.

use crate::unit::UnitId;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a job did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A spec that cannot be read, or asks for what cannot be.
    #[error("the spec cannot be used: {0}")]
    Spec(String),

    /// Costs that no plan can be made of.
    #[error("the costs cannot be used: {0}")]
    Costs(String),

    /// A place that is none.
    #[error("{url}: {detail}")]
    Place {
        /// As the spec has it.
        url: String,
        /// What is wrong with it, and what to do.
        detail: String,
    },

    /// A store refused, also after all retries.
    #[error("{name} could not be {doing} ({}): {source}", times(.tries))]
    Store {
        /// The object.
        name: String,
        /// "read", "written" and the like.
        doing: &'static str,
        /// How often it was tried.
        tries: u32,
        /// The store's own error.
        source: Box<object_store::Error>,
    },

    /// A file of the input that is not what its ending says, or lacks a column.
    #[error("{file}: {detail}")]
    Input {
        /// The file.
        file: String,
        /// What is wrong with it.
        detail: String,
    },

    /// A file of the job that this version cannot read.
    #[error("{name} is no file of a job: {detail}; name another output")]
    Foreign {
        /// The object.
        name: String,
        /// What was found.
        detail: String,
    },

    /// The output was begun under another model or other settings.
    #[error(
        "{output} was made otherwise: {}; use the same model and settings, or name another output",
        .differences.join("; ")
    )]
    OtherJob {
        /// The output.
        output: String,
        /// Every setting that differs, with both values.
        differences: Vec<String>,
    },

    /// A row without a vector, in a job that fails on it.
    #[error(
        "{place}: {reason}; correct the row, or set poisoned to \"null\" or \"skip\" in another output"
    )]
    Poisoned {
        /// The file, and the row or byte in it.
        place: String,
        /// What is wrong with the text.
        reason: String,
    },

    /// The engine fails on every text.
    #[error("the engine failed ({}): {reason}", times(.tries))]
    Engine {
        /// The engine's own words.
        reason: String,
        /// How often it was tried.
        tries: u32,
    },

    /// A unit could not be finished. Nothing of it is in the manifest.
    #[error("unit {unit} ({of}): {source}")]
    Unit {
        /// The unit's id.
        unit: UnitId,
        /// The file, and the part of it.
        of: String,
        /// Why.
        source: Box<Error>,
    },

    /// What carries the work could not be started.
    #[error("the job's threads could not be started: {0}")]
    Threads(std::io::Error),

    /// The observer asked for an end.
    #[error("the job was stopped")]
    Stopped,
}

impl Error {
    /// Whether the job was asked for wrongly, so that the spec or the command has to change.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Spec(_)
                | Self::Costs(_)
                | Self::Place { .. }
                | Self::OtherJob { .. }
                | Self::Foreign { .. }
        )
    }

    /// Whether the fault is in a unit's own input, so that other units may well succeed.
    pub(crate) fn is_of_input(&self) -> bool {
        match self {
            Self::Input { .. } | Self::Poisoned { .. } => true,
            Self::Store { source, .. } => matches!(
                **source,
                object_store::Error::Precondition { .. } | object_store::Error::NotFound { .. }
            ),
            _ => false,
        }
    }
}

fn times(tries: &u32) -> String {
    match tries {
        1 => "tried once".into(),
        tries => format!("tried {tries} times"),
    }
}
