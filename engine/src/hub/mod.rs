//! Models by id, from a Hugging Face style hub.
//!
//! The part that runs anywhere, browsers included (feature `hub-client`): names are checked
//! ([`id`]), the repository's file list is read ([`listing`]), the files that a model needs are
//! chosen ([`select`]), and each is fetched with resume, retries and a checksum ([`client`],
//! [`download`]) over whatever [`transport`] the target has, into whatever [`Sink`] it stores to.
//!
//! The native part (feature `hub`): [`Hub`] puts the files into the cache that Python's
//! `huggingface_hub` also uses ([`cache`] describes its layout), over HTTP with the platform's
//! proxies and roots of trust, configured by the usual variables ([`HubConfig::from_env`]).
//!
//! ```no_run
//! # #[cfg(feature = "hub")] fn main() -> isovec_engine::Result<()> {
//! use isovec_engine::cancel::Cancel;
//! use isovec_engine::hub::{FileSelection, Hub};
//!
//! let snapshot = Hub::from_env()?.fetch_blocking(
//!     "sentence-transformers/all-MiniLM-L6-v2",
//!     "main",
//!     &FileSelection::embedding(),
//!     |progress| eprintln!("{}: {} of {} bytes", progress.file, progress.bytes, progress.total_bytes),
//!     &Cancel::new(),
//! )?;
//! println!("{} is in {}", snapshot.commit, snapshot.folder.display());
//! # Ok(()) }
//! # #[cfg(not(feature = "hub"))] fn main() {}
//! ```

pub mod checksum;
pub mod client;
pub mod download;
pub mod id;
pub mod listing;
mod pace;
pub mod progress;
pub mod range;
pub mod select;
pub mod transport;
pub mod url;

pub use client::{HubClient, RetryPolicy};
pub use download::{MemorySink, RemoteFile, Sink};
pub use id::{ModelId, Revision};
pub use listing::{Listing, RepoFile};
pub use progress::Progress;
pub use select::{FileSelection, WeightFiles};
pub use transport::{Body, Method, Request, Response, Transport, TransportFailure};

cfg_if::cfg_if! {
    if #[cfg(all(feature = "hub", not(target_arch = "wasm32")))] {
        pub mod cache;
        pub mod config;
        mod fetch;
        mod http;
        mod proxy;

        pub use config::HubConfig;
        pub use fetch::{Hub, Snapshot};
        pub use http::HttpTransport;
        pub use proxy::ProxyConfig;
    }
}

use crate::error::EngineError;

/// A hub's failure: what was asked for, what came back, what to do.
fn hub_error(
    url: impl Into<String>,
    detail: impl Into<String>,
    hint: impl Into<String>,
) -> EngineError {
    EngineError::Hub {
        url: url.into(),
        detail: detail.into(),
        hint: hint.into(),
    }
}
