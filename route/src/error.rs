//! What ends a router, or keeps it from starting.

use std::io;
use std::net::SocketAddr;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a router does not start, or did not end as it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Limits that cannot work, all of them.
    #[error("the router's options are not usable: {}", .0.join("; "))]
    Options(Vec<String>),

    /// An address of a replica that cannot be used.
    #[error("{given:?} is no replica: {detail}")]
    Target {
        /// What was given.
        given: String,
        /// The fault.
        detail: &'static str,
    },

    /// The port cannot be opened.
    #[error("{address} cannot be listened on: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },

    /// A certificate or its key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] isovec_http::TlsError),

    /// A replica of TLS, and a system that trusts nobody.
    #[cfg(feature = "tls")]
    #[error(
        "the system's certificates cannot be used: {0}; name a file of those that sign replicas' with --trust"
    )]
    Trust(String),

    /// A signal cannot be waited for.
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),

    /// The drain took too long, and what was left of it was cut off.
    #[error("{requests} requests were cut off when the drain timeout had passed")]
    Cut {
        /// Requests that were taken and not answered.
        requests: usize,
    },
}
