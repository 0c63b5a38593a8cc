//! Jobs: many texts in files become vectors in files, exactly once, by runs that may be killed at any point.
//!
//! ```no_run
//! use std::sync::Arc;
//! use isovec_jobs::{Compute, Refusal, Spec, run};
//!
//! struct Lengths;
//!
//! impl Compute for Lengths {
//!     fn fingerprint(&self) -> serde_json::Value {
//!         "lengths".into()
//!     }
//!     fn dim(&self) -> usize {
//!         1
//!     }
//!     fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
//!         Ok(texts.iter().map(|text| text.len() as f32).collect())
//!     }
//! }
//!
//! let spec = Spec::parse("input = 'texts/*.jsonl'\noutput = 'vectors'")?;
//! let report = run(&spec, &Lengths, Arc::new(()))?;
//! println!("{} units", report.finished);
//! # Ok::<(), isovec_jobs::Error>(())
//! ```
//!
//! # Design
//!
//! **A unit of work is a piece of a file** (`unit.rs`): the file with its etag, and a range of its bytes or row groups. Its id is
//! the hash of these and of everything that decides the output's bytes. The id is the name of its output, so two runs that do
//! the same unit write to the same name, and a changed file is another unit.
//!
//! **The store decides who was first** (`store.rs`). Every object is created whole and only if it is absent: by a hard link on
//! a disk, by `If-None-Match: *` in S3. A unit is finished when its entry in the manifest exists (`manifest.rs`). The entry is
//! created last. What a killed run left without an entry is whole, and the next run takes it over.
//!
//! **There is no scheduler.** Every worker takes the units that are left in an order of its own, looks whether another has
//! finished one before it begins it, and throws its work away if another was faster. When enough of its looks were for nothing, it
//! lists what is finished (`left.rs`).
//!
//! **Memory follows units, not rows.** A run knows the ids of the units. Rows are held a chunk at a time, and an output until it
//! is stored.
//!
//! **What many workers take is simulated** (`forecast/`), with the rules of units, chunks, files and poisoned rows that runs use.
//!
//! **A row never takes its unit with it** (`vectors.rs`). A text that cannot be embedded is found, by name or by halving, and
//! becomes a null or a line in a side file, if the spec does not ask for an error.

mod compute;
mod context;
mod disk;
mod error;
mod forecast;
#[cfg(feature = "s3")]
mod http;
mod input;
mod jsonl;
mod left;
mod manifest;
mod observer;
mod output;
mod parquet;
mod plan;
mod retry;
mod rows;
mod run;
mod spec;
mod status;
mod store;
mod unit;
mod url;
mod vectors;

pub use compute::{Compute, Refusal};
pub use error::{Error, Result};
pub use forecast::{Costs, Forecast, Limits, Requests, Shares, forecast, measure};
pub use observer::{Event, Observer};
pub use run::{Failure, Report, run};
pub use spec::{Poisoned, Spec};
pub use status::{Stale, Status, status};
pub use unit::UnitId;
