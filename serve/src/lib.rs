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
//! models is one exchange of a pointer (`reload.rs`), and what left is freed by the last request that holds it.
//!
//! **A dialect is one file** (`dialect/`). It reads its own requests and says vectors and failures in its own form. A
//! `Failure` has no form: what fails before a dialect is known (a key, a panic, a path without a route)
//! is said by the one that the path belongs to.
//!
//! **Ready is what was seen to work** (`served.rs`). Results that were just given out prove that the server computes;
//! without them, a probe goes the way of every text, through the queue and the engine, with a time limit.
//!
//! **The port opens first** (`server.rs`). Connections are accepted by hyper and not by `axum::serve`, which knows no time
//! limits for heads, no bound of connections and no time for the last answers.

mod access;
mod admission;
mod app;
mod body;
mod call;
mod deadline;
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
mod route;
mod schema;
mod seen;
mod served;
mod server;
mod service_manager;
mod signals;
mod spec;
mod status;
mod texts;
mod tokens;

pub use error::{Error, Result};
pub use keys::ApiKeys;
pub use model::Model;
pub use options::{MOST_TEXTS, ServeOptions};
pub use server::Server;
pub use signals::{reload_signal, stop_signal};
pub use spec::ModelSpec;

/// Compiles the examples of the book.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/serving.md")]
    struct Serving;
}
