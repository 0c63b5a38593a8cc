//! A run of a job.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::Serialize;

use crate::compute::Compute;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::left::Left;
use crate::manifest::{Entry, Failed, Manifest, Settings};
use crate::observer::{Event, Observer};
use crate::output::{Form, Output, has_room, skipped};
use crate::plan;
use crate::rows::{Chunk, ROWS};
use crate::spec::{Poisoned, Spec};
use crate::store::Created;
use crate::unit::{Unit, UnitId};
use crate::vectors::{self, Vectors};

/// Failures that a report names. Status names them all.
const NAMED: usize = 20;

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Units of the input.
    pub units: u64,
    /// Units that were finished before.
    pub before: u64,
    /// Units that this run finished.
    pub finished: u64,
    /// Units that another run finished meanwhile, before this one began them.
    pub elsewhere: u64,
    /// Units that another run finished while they were in work here. This run's work on them was thrown away.
    pub lost: u64,
    /// Rows of the input in the units that this run finished.
    pub rows: u64,
    /// Rows among them without a vector.
    pub poisoned: u64,
    /// Finished units whose input has changed or is not named any more. Their outputs are still there.
    pub stale: u64,
    /// Units that failed.
    pub failures: u64,
    /// The first of them, and why.
    pub failed: Vec<Failure>,
    /// Bytes of input that were read.
    pub bytes_read: u64,
}

/// A unit that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The unit.
    pub unit: UnitId,
    /// Its file, and the part of it.
    pub of: String,
    /// Why.
    pub reason: String,
}

/// Does what is left of a job.
///
/// Blocks until every unit is finished or has failed. Other runs of the same job, in this process or in others, may work at the
/// same time. A unit whose own input is at fault is in the report, and the run goes on.
///
/// # Errors
/// [`Error::Unit`] names the unit at which a store or the engine failed for good. [`Error::OtherJob`] when the output was made by
/// another model or with other settings. [`Error::Place`] and [`Error::Input`] when the input cannot be listed.
/// [`Error::Stopped`] when the observer asked for an end. What is finished by then stays finished.
pub fn run(spec: &Spec, compute: &dyn Compute, observer: Arc<dyn Observer>) -> Result<Report> {
    let context = Context::new(spec, observer)?;
    let settings = Settings::new(spec, compute.fingerprint());
    let input = Input::list(&spec.input, &context)?;
    let manifest = Manifest::open(&spec.output, settings, &context)?;
    let units = plan::units(&input, spec, Some(&manifest), true)?;
    let finished = manifest.finished()?;
    let total = units.len();
    let mut left: Vec<(UnitId, Unit)> = units
        .into_iter()
        .map(|unit| (manifest.id(&unit), unit))
        .filter(|(id, _)| !finished.contains(id))
        .collect();
    let before = total - left.len();
    let report = Report {
        units: total as u64,
        before: before as u64,
        stale: (finished.len() - before) as u64,
        ..Report::default()
    };
    let listed = finished.len() as u64;
    drop(finished);
    context.retry.observer.event(Event::Planned {
        units: report.units,
        done: report.before,
        stale: report.stale,
    });
    // Runs in step would do every unit twice.
    let random = RandomState::new();
    left.sort_by_cached_key(|(id, _)| random.hash_one(id));
    let run = Run {
        spec,
        compute,
        observer: &*context.retry.observer,
        failed: manifest.failed()?,
        name: format!("{}-{:016x}", std::process::id(), random.hash_one("name")),
        context: &context,
        input: &input,
        manifest: &manifest,
        left: Left::new(left, listed),
        ended: AtomicBool::new(false),
        report: Mutex::new(Ok(report)),
    };
    std::thread::scope(|scope| {
        for _ in 0..spec.workers.get() {
            scope.spawn(|| run.work());
        }
    });
    let report = run.report.into_inner();
    let mut report = report.unwrap_or_else(PoisonError::into_inner)?;
    report.bytes_read = input.store.bytes_read();
    Ok(report)
}

/// What the workers of a run share.
struct Run<'a> {
    spec: &'a Spec,
    compute: &'a dyn Compute,
    observer: &'a dyn Observer,
    context: &'a Context,
    input: &'a Input,
    manifest: &'a Manifest,
    /// The run's own name.
    name: String,
    left: Left,
    /// Units with a note of a failure.
    failed: std::collections::HashSet<UnitId>,
    /// Something failed that every unit needs.
    ended: AtomicBool,
    report: Mutex<Result<Report>>,
}

/// What became of a unit.
enum Outcome {
    Finished { rows: u64, poisoned: u64 },
    Elsewhere,
    Lost,
}

impl Run<'_> {
    /// What a worker does: unit after unit, until none is left.
    fn work(&self) {
        while !self.ended.load(Relaxed) {
            if self.observer.stopped() {
                return self.end(Error::Stopped);
            }
            let Some((id, unit, finished)) = self.left.take() else {
                return;
            };
            if finished {
                self.count(id, unit, &Outcome::Elsewhere);
                continue;
            }
            match self.unit(id, unit) {
                Ok(outcome) => self.count(id, unit, &outcome),
                Err(Error::Stopped) => return self.end(Error::Stopped),
                // A wait that the stop has ended ends with the error that it waited for.
                Err(_) if self.observer.stopped() => return self.end(Error::Stopped),
                Err(error) if error.is_of_input() => {
                    if let Err(error) = self.failure(id, unit, &error) {
                        return self.end(error);
                    }
                }
                Err(error) => return self.end(of_unit(id, unit, error)),
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(report) = &mut *report {
            change(report);
        }
    }

    /// Ends the run for all workers. The first error is the run's.
    fn end(&self, error: Error) {
        self.ended.store(true, Relaxed);
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if report.is_ok() {
            *report = Err(error);
        }
    }

    fn count(&self, unit: UnitId, of: &Unit, outcome: &Outcome) {
        match *outcome {
            Outcome::Finished { rows, poisoned } => {
                self.change(|report| {
                    report.finished += 1;
                    report.rows += rows;
                    report.poisoned += poisoned;
                });
                self.observer.event(Event::Finished {
                    unit,
                    rows,
                    poisoned,
                });
            }
            Outcome::Elsewhere => {
                self.change(|report| report.elsewhere += 1);
                self.observer.event(Event::Elsewhere { unit });
            }
            Outcome::Lost => {
                self.change(|report| report.lost += 1);
                let of = of.to_string();
                self.observer.event(Event::Lost { unit, of: &of });
            }
        }
    }

    /// Notes a unit that failed by its own input.
    fn failure(&self, unit: UnitId, of: &Unit, error: &Error) -> Result<()> {
        let of = of.to_string();
        let reason = error.to_string();
        self.observer.event(Event::Failed {
            unit,
            of: &of,
            reason: &reason,
        });
        let failed = Failed { of, reason };
        self.manifest.fail(unit, &failed)?;
        let Failed { of, reason } = failed;
        self.change(|report| {
            report.failures += 1;
            if report.failed.len() < NAMED {
                report.failed.push(Failure { unit, of, reason });
            }
        });
        Ok(())
    }

    /// Turns a unit's rows into its output, and says in the manifest that it is finished.
    fn unit(&self, id: UnitId, unit: &Unit) -> Result<Outcome> {
        if self.manifest.is_finished(id)? {
            self.left.found(|| self.manifest.finished())?;
            return Ok(Outcome::Elsewhere);
        }
        let mut reader = self.input.reader(unit, self.spec, ROWS)?;
        let fault = |detail: String| Error::Input {
            file: unit.file.name.clone(),
            detail,
        };
        let form = Form::new(reader.fields(), self.compute, self.spec.poisoned).map_err(fault)?;
        let mut output: Option<Output> = None;
        let mut side = String::new();
        let mut entry = Entry {
            file: unit.file.name.clone(),
            etag: unit.file.etag.clone(),
            part: unit.part.clone(),
            rows: 0,
            poisoned: 0,
            files: 0,
            by: self.name.clone(),
        };
        while let Some(chunk) = reader.next()? {
            let rows = chunk.rows.len();
            let full = output.take_if(|output| !has_room(output.rows(), rows, self.spec));
            if let Some(full) = full
                && !self.store(id, &mut entry, full.finish().map_err(fault)?)?
            {
                return Ok(Outcome::Lost);
            }
            let vectors = self.vectors(unit, &chunk, reader.counts(), &mut side)?;
            let poisoned = vectors.reasons.iter().filter(|reason| reason.is_some());
            entry.poisoned += poisoned.count() as u64;
            entry.rows += rows as u64;
            let output = match &mut output {
                Some(output) => output,
                none => none.insert(Output::new(&form).map_err(fault)?),
            };
            output.push(&chunk, vectors).map_err(fault)?;
        }
        if let Some(last) = output
            && !self.store(id, &mut entry, last.finish().map_err(fault)?)?
        {
            return Ok(Outcome::Lost);
        }
        if !side.is_empty() {
            self.manifest
                .store
                .create(&self.manifest.skipped_at(id), side.into())?;
        }
        if !self.manifest.finish(id, &entry)? {
            return Ok(Outcome::Lost);
        }
        if self.failed.contains(&id) {
            self.manifest.mend(id)?;
        }
        Ok(Outcome::Finished {
            rows: entry.rows,
            poisoned: entry.poisoned,
        })
    }

    /// Stores the next file of a unit's output; `false` if another run has finished the unit.
    ///
    /// A file that is there already is whole. It is another run's that was killed before the unit was finished, or that is at work
    /// on it: the file is theirs and stays.
    fn store(&self, id: UnitId, entry: &mut Entry, bytes: Bytes) -> Result<bool> {
        let at = self.manifest.rows_at(id, entry.files);
        entry.files += 1;
        let created = self.manifest.store.create(&at, bytes)?;
        Ok(created == Created::New || !self.manifest.is_finished(id)?)
    }

    /// The vectors of a chunk. Rows that are left out go to `side`.
    fn vectors(
        &self,
        unit: &Unit,
        chunk: &Chunk,
        counts: &'static str,
        side: &mut String,
    ) -> Result<Vectors> {
        if self.observer.stopped() || self.ended.load(Relaxed) {
            return Err(Error::Stopped);
        }
        let vectors = vectors::of_chunk(self.compute, chunk, &self.context.retry)?;
        for (row, reason) in chunk.rows.iter().zip(&vectors.reasons) {
            let Some(reason) = reason else { continue };
            match self.spec.poisoned {
                Poisoned::Null => {}
                Poisoned::Skip => side.push_str(&skipped(&unit.file.name, counts, row, reason)),
                Poisoned::Fail => {
                    return Err(Error::Poisoned {
                        place: format!("{}, {counts} {}", unit.file.name, row.at),
                        reason: reason.clone(),
                    });
                }
            }
        }
        Ok(vectors)
    }
}

fn of_unit(unit: UnitId, of: &Unit, error: Error) -> Error {
    Error::Unit {
        unit,
        of: of.to_string(),
        source: Box::new(error),
    }
}
