//! What can go wrong on the command line, and the exit code that says so.

use std::io;

/// Shorthand used throughout the program.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// Everything that ends the program early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// The SDK refused.
    #[error(transparent)]
    Sdk(#[from] isovec::Error),

    /// The model could not be loaded.
    #[error("{0}")]
    Model(isovec::Error),

    /// A file, or standard input or output.
    #[error("{name}: {source}")]
    Io { name: String, source: io::Error },

    /// A row of the input that cannot be read.
    #[error("{name}, row {row}: {detail}")]
    Row {
        name: String,
        row: usize,
        detail: String,
    },

    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),

    /// A file could not be written in its format.
    #[error("{name}: cannot be written as {format}: {detail}")]
    Format {
        name: String,
        format: &'static str,
        detail: String,
    },

    /// Ctrl-C.
    #[error("interrupted; {0}")]
    Interrupted(String),
}

impl CliError {
    pub(crate) fn io(name: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let name = name.into();
        move |source| Self::Io { name, source }
    }

    /// 1: failed, 2: wrong usage (as clap's own), 3: no model, 130: interrupted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Model(_) => 3,
            Self::Interrupted(_) => 130,
            Self::Sdk(error) if error.is_cancelled() => 130,
            _ if self.is_silent() => 0,
            _ => 1,
        }
    }

    /// A reader that closed its end (`isovec … | head`) has what it wanted.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
