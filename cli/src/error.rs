//! The errors of the command line, with their exit codes.

use std::io;

use crate::input::Row;

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

    /// A row that was read, but of which nothing came.
    #[error("{name}, row {row}: {error}")]
    Text {
        name: String,
        row: usize,
        error: Box<isovec::Error>,
    },

    /// Pictures that were left out. All others were written.
    #[cfg(feature = "image")]
    #[error("{pictures} of {of} pictures could not be read; the others were written")]
    Unreadable { pictures: u64, of: u64 },

    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),

    /// The server did not start, or did not end as it should.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] isovec_serve::Error),

    /// The router did not start, or did not end as it should.
    #[cfg(feature = "route")]
    #[error(transparent)]
    Route(#[from] isovec_route::Error),

    /// A job ended early.
    #[cfg(feature = "jobs")]
    #[error(transparent)]
    Job(#[from] isovec_jobs::Error),

    /// A job in which units failed. All others are done.
    #[cfg(feature = "jobs")]
    #[error(
        "{failed} of {units} units failed, and the others are done; isovec job status names them all"
    )]
    Units { failed: u64, units: u64 },

    /// A file could not be written in its format.
    #[cfg(feature = "columns")]
    #[error("{name}: cannot be written as {format}: {detail}")]
    Format {
        name: String,
        format: &'static str,
        detail: String,
    },

    /// A trace that cannot be read.
    #[error("{name}: {error}")]
    Trace {
        name: String,
        error: isovec_insight::trace::TraceError,
    },

    /// A trace that says nothing of a graph's nodes.
    #[error("{name}: {error}")]
    Times {
        name: String,
        error: isovec_insight::graph::TimesError,
    },

    /// A benchmark that was kept and cannot be used.
    #[error("{name}: {error}")]
    Kept {
        name: String,
        error: crate::commands::bench::KeptError,
    },

    /// A benchmark in which something has become slower.
    #[error("slower than {baseline} by more than {percent} %: {}", .figures.join("; "))]
    Slower {
        baseline: String,
        percent: f64,
        figures: Vec<String>,
    },

    /// A budget that no model keeps.
    #[error("{0}")]
    Budget(String),

    /// Ctrl-C.
    #[error("interrupted; {0}")]
    Interrupted(String),

    /// The same, or another error, in a run that can be gone on with.
    #[error("{error}; the same command with --resume goes on after {rows} rows")]
    Resumable { error: Box<CliError>, rows: u64 },
}

impl CliError {
    pub(crate) fn io(name: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let name = name.into();
        move |source| Self::Io { name, source }
    }

    /// The SDK's error about the text of a row.
    pub(crate) fn text(row: &Row, error: isovec::Error) -> Self {
        use isovec::Error::{NoTokens, NotFinite, NotNormalized};
        // The SDK counts the texts that it was given; users count the rows of their file.
        let text = row.number;
        Self::Text {
            name: row.origin.to_string(),
            row: row.number,
            error: Box::new(match error {
                NoTokens { .. } => NoTokens { text },
                NotFinite { .. } => NotFinite { text },
                NotNormalized { norm, .. } => NotNormalized { text, norm },
                other => other,
            }),
        }
    }

    /// Whether Ctrl-C is the cause.
    pub(crate) fn is_interrupt(&self) -> bool {
        match self {
            Self::Interrupted(_) => true,
            Self::Sdk(error) => error.is_cancelled(),
            _ => false,
        }
    }

    /// 1: failed, 2: wrong usage (as clap's own), 3: no model, 4: slower than before or over a budget, 130: interrupted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Model(_) => 3,
            #[cfg(feature = "serve")]
            Self::Serve(isovec_serve::Error::Options(_) | isovec_serve::Error::Keys { .. }) => 2,
            #[cfg(all(feature = "serve", feature = "tls"))]
            Self::Serve(isovec_serve::Error::Tls(_)) => 2,
            #[cfg(feature = "route")]
            Self::Route(isovec_route::Error::Options(_) | isovec_route::Error::Target { .. }) => 2,
            #[cfg(all(feature = "route", feature = "tls"))]
            Self::Route(isovec_route::Error::Tls(_) | isovec_route::Error::Trust(_)) => 2,
            Self::Slower { .. } | Self::Budget(_) => 4,
            Self::Kept { error, .. } if error.is_usage() => 2,
            #[cfg(feature = "jobs")]
            Self::Job(error) if error.is_usage() => 2,
            Self::Resumable { error, .. } => error.exit_code(),
            _ if self.is_interrupt() => 130,
            _ if self.is_silent() => 0,
            _ => 1,
        }
    }

    /// A reader that closed its end (`isovec … | head`) has what it wanted.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
