//! How far a job is.

use std::sync::Arc;

use serde::Serialize;

use crate::context::Context;
use crate::error::Result;
use crate::input::Input;
use crate::manifest::{Manifest, Settings};
use crate::plan;
use crate::run::Failure;
use crate::spec::Spec;

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// Units of the input.
    pub units: u64,
    /// Units that are finished.
    pub done: u64,
    /// Units that are not, those that failed among them.
    pub left: u64,
    /// Rows of the input in the finished units.
    pub rows: u64,
    /// Rows among them without a vector.
    pub poisoned: u64,
    /// Units that failed when they were last tried.
    pub failed: Vec<Failure>,
    /// Outputs whose input has changed or is not named any more.
    pub stale: Vec<Stale>,
    /// The files of the finished units' output, in the order of the input.
    pub outputs: Vec<String>,
}

/// The output of a unit that is none any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stale {
    /// The file of the input as it was called.
    pub file: String,
    /// What its content was known by.
    pub etag: String,
    /// The files of output.
    pub outputs: Vec<String>,
}

/// Compares a job's input with its output. Writes nothing, and needs no model: the output says under which it was begun.
///
/// # Errors
/// [`Error::OtherJob`](crate::Error::OtherJob) when the output was made with other settings. As [`run`](crate::run) when a store
/// cannot be read.
pub fn status(spec: &Spec) -> Result<Status> {
    let context = Context::new(spec, Arc::new(()))?;
    let input = Input::list(&spec.input, &context)?;
    let settings = Settings::new(spec, serde_json::Value::Null);
    let manifest = Manifest::look(&spec.output, settings, &context)?;
    let mut status = Status::default();
    let units = plan::units(&input, spec, manifest.as_ref(), false)?;
    status.units = units.len() as u64;
    let Some(manifest) = manifest else {
        status.left = status.units;
        return Ok(status);
    };
    let mut finished = manifest.finished()?;
    let mut failed = manifest.failed()?;
    for unit in units {
        let id = manifest.id(&unit);
        if finished.remove(&id)
            && let Some(entry) = manifest.entry(id)?
        {
            status.done += 1;
            status.rows += entry.rows;
            status.poisoned += entry.poisoned;
            status.outputs.extend(entry.outputs(id));
            continue;
        }
        status.left += 1;
        if failed.remove(&id)
            && let Some(failed) = manifest.failure(id)?
        {
            let (of, reason) = (failed.of, failed.reason);
            let unit = id;
            status.failed.push(Failure { unit, of, reason });
        }
    }
    let mut finished: Vec<_> = finished.into_iter().collect();
    finished.sort();
    for id in finished {
        if let Some(entry) = manifest.entry(id)? {
            status.stale.push(Stale {
                outputs: entry.outputs(id).collect(),
                file: entry.file,
                etag: entry.etag,
            });
        }
    }
    Ok(status)
}
