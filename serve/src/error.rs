//! What ends a server, or keeps it from starting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server does not start, or did not end as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Limits that cannot work, all of them.
    #[error("the server's options are not usable: {}", .0.join("; "))]
    Options(Vec<String>),

    /// The port cannot be opened.
    #[error("{address} cannot be listened on: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },

    /// A model cannot be loaded.
    #[error("{source}")]
    Model {
        /// The name that requests would use for it.
        name: Option<String>,
        /// The cause, which says where the model was looked for.
        source: Box<isovec::Error>,
    },

    /// A model does not fit [`ServeOptions::memory_budget`](crate::ServeOptions::memory_budget).
    #[error(
        "the model {name:?} has {needed} bytes of weights, and loaded models hold {held} of {budget} bytes; unload one, or raise the \
         memory budget"
    )]
    Memory {
        /// The name that requests would use for it.
        name: String,
        /// Bytes of its weights.
        needed: u64,
        /// Bytes that loaded models hold.
        held: u64,
        /// The budget.
        budget: u64,
    },

    /// The file of API keys cannot be used.
    #[error("{}: {detail}", .path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// The fault.
        detail: String,
    },

    /// A certificate or its key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] isovec_http::TlsError),

    /// A signal cannot be waited for.
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),

    /// The drain took too long, and what was left of it was cut off.
    #[error("{requests} admitted requests were cut off when the drain timeout had passed")]
    Cut {
        /// Requests that were admitted and not answered with vectors.
        requests: usize,
    },
}
