//! The choice of a model's files, and the client that fetches them from a hub.
//!
//! [`choice`] is the only list of rules that says which files of a repository or a folder are a model. The hub's
//! client, folders and pages all use it. Whether a checkpoint can be converted is decided by `isovec-model`, which
//! passes that decision in as a function. `isovec-model` therefore depends on this crate, and not the other way round.
//!
//! The rest of the crate fetches models by id from a hub in Hugging Face's style.
//!
//! The part that runs anywhere, browsers included, has the feature `client`. It checks names (`id`), reads the
//! repository's list of files (`listing`), chooses the files that a model needs (`select`), and fetches each with
//! resume, retries and a checksum (`client`, `download`). It uses whatever `transport` the target has, and stores files
//! in any `Sink`.
//!
//! The native part has the feature `fetch`. `Hub` stores files in the cache that Python's `huggingface_hub` also uses
//! (`cache` describes its layout). It uses HTTP with the platform's proxies and root certificates, and the usual
//! environment variables configure it (`HubConfig::from_env`). A page has neither sockets nor a disk, so this crate is
//! one of the few that differ by target.
//!
//! Errors are those of the contract, [`EngineError`](isovec_engine::EngineError). A failure of the hub is
//! [`Hub`](isovec_engine::EngineError::Hub). A model that lacks a file is
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
