//! What isovec's server and its router share of HTTP. It knows no models and no engines.
//!
//! # Design
//!
//! **A failure has no form** ([`Failure`]). The [`Dialect`] that a path belongs to says it as its protocol does, so a client reads
//! the router's errors as it reads the server's.
//!
//! **Nothing is read without a bound.** Connections ([`Connections`]), heads, bodies ([`body`]) and what compressed bodies become
//! ([`coding`]) have one, in bytes and in time. So has the handshake of TLS, which is a cargo feature.
//!
//! **Spans are always opened** ([`trace`]), and cost nothing where no subscriber of `tracing` wants them. What makes a trace of them,
//! and sends it to a collector, is a cargo feature.

pub mod access;
mod apart;
#[cfg(feature = "tls")]
mod begun;
pub mod body;
pub mod coding;
mod connections;
pub mod deadline;
mod dialect;
mod failure;
mod header;
mod json;
pub mod metrics;
pub mod openai;
pub mod service_manager;
mod signals;
#[cfg(feature = "tls")]
mod tls;
pub mod trace;
#[cfg(feature = "tls")]
mod trust;
mod unread;

pub use apart::{apart, apart_if_large};
pub use connections::{Connections, LAST_WORDS, Terms};
pub use dialect::{Dialect, GRPC_HEALTH, GRPC_SERVICE, grpc};
pub use failure::{Failure, Kind};
pub use header::{
    COMPUTED_BY, FINGERPRINT, MODELS, PRIORITY, RETRY_AFTER_MS, TEXT_TOKENS, TRUNCATED,
    TRUNCATED_TEXTS, header, ranges,
};
pub use json::small;
pub use signals::{reload_signal, stop_signal};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
#[cfg(feature = "tls")]
pub use trust::Trust;
