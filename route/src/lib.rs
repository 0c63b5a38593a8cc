//! One address before many isovec servers.
//!
//! ```no_run
//! use isovec_route::{RouteOptions, Router, stop_signal};
//!
//! # async fn example() -> isovec_route::Result<()> {
//! let replicas = vec!["http://10.0.0.1:8080".parse()?, "http://10.0.0.2:8080=2".parse()?];
//! let router = Router::bind(([127, 0, 0, 1], 8000).into(), replicas, RouteOptions::default()).await?;
//! router.run(stop_signal()?).await
//! # }
//! ```
//!
//! The program's command `isovec route` is this. The book's chapter "Routing" has the rest.
//!
//! # Design
//!
//! **A request is held, and so is its answer** (`attempt.rs`). Every request to an isovec server is pure: the same bytes give the
//! same answer, whoever computes it. So the router keeps the request's bytes until it has the whole answer, and may ask another
//! replica as long as the client has seen nothing.
//!
//! **tower chooses and repeats** (`choose.rs`, `retry.rs`). `Balance` takes the less loaded of two random replicas, `ReadyCache`
//! holds those that take turns, `Retry` asks again within its `Budget`. A replica that is out of rotation is a service that is
//! not ready.
//!
//! **A replica is out at its first failure, and in when a probe says so** (`replica.rs`, `probe.rs`). A failure asks for a probe
//! at once, so a replica that was only restarted is back soon.
//!
//! **One list of models** (`replica.rs`). Each answer of a server names its models by a hash over names, tasks and fingerprints.
//! The router takes that of the first replica that is ready, and gives out no answer with another: vectors of two models never mix.
//!
//! **Nothing is parsed that need not be.** Bodies pass as bytes. Only joined requests (`join/`) are read, and their vectors are
//! handed on as they were written.

mod app;
mod attempt;
mod balance;
mod choose;
mod error;
mod front;
mod head;
mod join;
mod log;
mod metrics;
mod options;
mod own;
mod probe;
mod replica;
mod retry;
mod router;
mod send;
mod target;
mod turns;
mod way;

pub use error::{Error, Result};
pub use isovec_http::coding::Coding;
#[cfg(feature = "otlp")]
pub use isovec_http::trace::{Traces, TracesError};
#[cfg(feature = "tls")]
pub use isovec_http::{Tls, TlsError, Trust};
pub use options::{Compression, RouteOptions, Strategy};
pub use router::Router;
pub use target::Target;

/// Completes when the process is told to stop: by Ctrl-C (SIGINT), and on Unix by SIGTERM. From the call on, the signals no longer
/// end the process by themselves.
///
/// # Errors
/// [`Error::Signals`] where the system lets nobody wait for them.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    isovec_http::stop_signal().map_err(Error::Signals)
}

/// An item whenever the process is told to read its files again: on Unix by SIGHUP, which no longer ends the process from the
/// call on; elsewhere never.
///
/// # Errors
/// As [`stop_signal`].
#[cfg(feature = "tls")]
pub fn reload_signal() -> Result<impl futures_util::Stream<Item = ()> + Send + 'static> {
    isovec_http::reload_signal().map_err(Error::Signals)
}

/// Compiles the examples of the book.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/routing.md")]
    struct Routing;
}
