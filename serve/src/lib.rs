//! A server of vectors, rankings and labels over [`isovec`].
//!
//! ```no_run
//! use isovec::{Embedder, models};
//! use isovec_serve::{ServeOptions, Server, stop_signal};
//!
//! # async fn example() -> isovec_serve::Result<()> {
//! let address = ([127, 0, 0, 1], 8080).into();
//! let server = Server::bind(address, ServeOptions::default()).await?;
//! server.run(Embedder::load(models::ALL_MINILM_L6_V2), stop_signal()?).await
//! # }
//! ```
//!
//! The program's command `isovec serve` is this. The book's chapter "Serving" has the routes.
//!
//! # Design
//!
//! **Two bounds, one queue a model.** The [`DynamicBatcher`](isovec::DynamicBatcher) joins the texts of all requests, takes them in
//! a fair order and bounds what waits in it. Before it stands a gate (`admission.rs`) that bounds what is in work, in
//! requests, texts and bytes, and lets a request in as a whole: a request is never refused when half of its texts are
//! computed. The gate also counts how requests end, knows how fast texts are computed, and is what a drain waits for.
//!
//! **A request is one future** (`call.rs`). Nothing of it runs in a task of its own, so when its client goes away, the
//! connection drops the future, its texts leave the queue, and its place comes back. Only reading and writing of large
//! JSON is done on other threads.
//!
//! **A request keeps its model** (`models.rs`). It takes a share of the model when it has read the name, so another list of
//! models is one exchange of a pointer (`reload.rs`, `repository.rs`), and what left is freed by the last request that holds it.
//!
//! **A dialect is one file** (`dialect/`). It reads its own requests and says vectors in its own form. A `Failure` has no
//! form: `isovec-http` says it in that of the dialect that the path belongs to, so what fails before there is a route (a key, a
//! panic, a path without one) is said as the rest is.
//!
//! **Ready is what was seen to work** (`served.rs`). Results that were just given out prove that the server computes;
//! without them, a probe goes the way of every text, through the queue and the engine, with a time limit.
//!
//! **The port opens first** (`server.rs`). What a router of servers does as well (connections, deadlines, signals, how a
//! protocol says a failure, compressed bodies) is in the crate `isovec-http`.

mod access;
mod admission;
mod app;
mod body;
mod call;
mod dialect;
mod documents;
mod error;
mod failure;
mod health;
mod inputs;
mod keys;
mod list;
mod metrics;
mod model;
mod models;
mod object;
mod openapi;
mod options;
mod priority;
mod reload;
mod repository;
mod route;
mod schema;
mod seen;
mod served;
mod server;
mod spec;
mod status;
mod texts;
mod tokens;

use futures_util::Stream;

pub use error::{Error, Result};
#[cfg(feature = "otlp")]
pub use isovec_http::trace::{Traces, TracesError};
#[cfg(feature = "tls")]
pub use isovec_http::{Tls, TlsError};
pub use keys::ApiKeys;
pub use model::Model;
pub use options::{MOST_TEXTS, ServeOptions};
pub use server::Server;
pub use spec::ModelSpec;

/// Completes when the process is told to stop: by Ctrl-C (SIGINT), and on Unix by SIGTERM, as service managers and
/// Kubernetes send it. From the call on, the signals no longer end the process by themselves.
///
/// # Errors
/// [`Error::Signals`] where the system lets nobody wait for them.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    isovec_http::stop_signal().map_err(Error::Signals)
}

/// An item whenever the process is told to read its files again: on Unix by SIGHUP, which no longer ends the process from the
/// call on; elsewhere never. Signals that come while an item is worked on are one.
///
/// # Errors
/// As [`stop_signal`].
pub fn reload_signal() -> Result<impl Stream<Item = ()> + Send + 'static> {
    isovec_http::reload_signal().map_err(Error::Signals)
}

/// Compiles the examples of the book.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/serving.md")]
    struct Serving;
}
