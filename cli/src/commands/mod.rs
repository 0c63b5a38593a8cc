//! One file a command.

pub(crate) mod advise;
pub(crate) mod bench;
pub(crate) mod classify;
#[cfg(feature = "image")]
pub(crate) mod classify_images;
pub(crate) mod embed;
#[cfg(feature = "image")]
pub(crate) mod embed_images;
pub(crate) mod embed_multi_vector;
pub(crate) mod embed_sparse;
pub(crate) mod export;
pub(crate) mod features;
pub(crate) mod graph;
pub(crate) mod info;
#[cfg(feature = "jobs")]
pub(crate) mod job;
#[cfg(feature = "jobs")]
mod job_plan;
#[cfg(feature = "ocr")]
pub(crate) mod ocr;
pub(crate) mod optimize;
pub(crate) mod rerank;
#[cfg(feature = "route")]
pub(crate) mod route;
pub(crate) mod search;
#[cfg(feature = "image")]
pub(crate) mod search_images;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod similarity;
pub(crate) mod trace;
pub(crate) mod tune;

use std::io::Write;

use isovec::stats::Stats;
use serde::Serialize;
use serde_json::json;

use crate::error::{CliError, Result};

/// Prints a value as JSON on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let write = |out: &mut dyn Write| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    };
    write(&mut out).map_err(CliError::io("standard output"))
}

/// Prints what was counted on standard error, in one line, so that scripts find it among others.
pub(crate) fn print_stats(stats: &Stats) -> Result<()> {
    print_line(&json!({ "stats": stats }))
}

/// Prints a value as a line of JSON on standard error.
pub(crate) fn print_line(value: &impl Serialize) -> Result<()> {
    let mut err = std::io::stderr().lock();
    let write = |err: &mut dyn Write| {
        serde_json::to_writer(&mut *err, value)?;
        err.write_all(b"\n")
    };
    write(&mut err).map_err(CliError::io("standard error"))
}

/// Prints text on standard output; unlike `println!`, a closed pipe is no panic.
pub(crate) fn print(text: &str) -> Result<()> {
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .map_err(CliError::io("standard output"))
}
