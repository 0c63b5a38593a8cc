//! Reads Chrome's JSON traces of any program and summarises them. All code in this crate reads traces through this
//! module.
//!
//! `walk.rs` goes through a file event by event; `json.rs` takes a file apart value by value, `event.rs` reads an
//! event of any program's, `reader.rs` makes spans of events and keeps them small, with `open.rs` for those that have
//! not ended, `load.rs` keeps the requested spans, `faults.rs` has the faults, and `stages.rs` the stages.
//! `summary.rs` counts, `requests.rs` and `path.rs` find slow requests and their causes, `compare.rs` compares two
//! summaries, and `show.rs` prints.

mod compare;
mod event;
mod faults;
mod json;
mod load;
mod open;
mod path;
mod reader;
mod requests;
mod show;
mod stages;
mod summary;
#[cfg(test)]
mod tests;
mod walk;

pub use compare::Comparison;
pub use load::{Filter, Loaded, load, load_all};
pub use summary::Summary;

pub(crate) use event::{Any, RawEvent};
pub(crate) use walk::walk;

/// A file that is no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] std::io::Error),

    /// There is nothing in it.
    #[error("is empty; was the program that writes it still running?")]
    Empty,

    /// It is packed.
    #[error("is packed with gzip; unpack it first (gunzip)")]
    Packed,

    /// It is something else.
    #[error(
        "is no trace in JSON: {0}; Chrome's JSON traces are read, and what `--profile` and ONNX Runtime write"
    )]
    NoTrace(String),

    /// An event that no program writes.
    #[error("holds a value of more than {0} MB at byte {1}, which is no event")]
    TooLong(usize, u64),

    /// The filters leave nothing.
    #[error(
        "has no span that --stage, --start, --end and --request leave; it is {seconds:.3} s long and has the stages {stages}"
    )]
    NothingLeft {
        /// The stages that it has.
        stages: String,
        /// How long it is.
        seconds: f64,
    },

    /// It ends too early.
    #[error("ends at byte {at}: {why}")]
    Cut {
        /// Where.
        at: u64,
        /// The missing part.
        why: String,
    },
}
