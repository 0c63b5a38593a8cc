//! What to fetch for a model, and fetching it.
//!
//! [`choice`] is the one list of rules that says which of a repository's or a folder's files are a model: the hub's client goes by
//! it, folders do, and pages do.
//!
//! The rest is models by id, from a Hugging Face style hub.
//!
//! The part that runs anywhere, browsers included (feature `client`): names are checked
//! (`id`), the repository's file list is read (`listing`), the files that a model needs are
//! chosen (`select`), and each is fetched with resume, retries and a checksum (`client`,
//! `download`) over whatever `transport` the target has, into whatever `Sink` it stores to.
//!
//! The native part (feature `fetch`): `Hub` puts the files into the cache that Python's
//! `huggingface_hub` also uses (`cache` describes its layout), over HTTP with the platform's
//! proxies and roots of trust, configured by the usual variables (`HubConfig::from_env`).
//!
//! Errors are the contract's, [`EngineError`](isovec_engine::EngineError): what a hub cannot deliver is
//! [`Hub`](isovec_engine::EngineError::Hub), and a model without a file that it needs is
//! [`MissingFile`](isovec_engine::EngineError::MissingFile), wherever its files come from.
//!
//! ```no_run
//! # #[cfg(feature = "fetch")] fn main() -> isovec_engine::Result<()> {
//! use isovec_engine::cancel::Cancel;
//! use isovec_hub::{FileSelection, Hub};
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
//! # #[cfg(not(feature = "fetch"))] fn main() {}
//! ```

pub mod choice;
mod paths;

cfg_if::cfg_if! {
    if #[cfg(feature = "client")] {
        pub mod checksum;
        pub mod client;
        pub mod download;
        mod error;
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

        use error::hub_error;
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(feature = "fetch", not(target_arch = "wasm32")))] {
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
