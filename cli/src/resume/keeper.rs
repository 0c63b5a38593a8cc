//! Keeps an output and its record in step.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::record::{InputHash, Made, Record};
use crate::error::{CliError, Result};
use crate::input::Row;
use crate::input::feed::Feed;

/// The record is written again after this many rows or this long, whichever comes first: what a
/// crash can cost.
const ROWS: u64 = 4096;
const TIME: Duration = Duration::from_secs(5);

/// A growing output and the record of what is safe in it.
///
/// The record stands at the end of a window of the stream: where the window was full, going on
/// there makes the same batches as a run that was never interrupted, and so the same bits.
pub(crate) struct Keeper {
    output: File,
    name: String,
    record_path: PathBuf,
    /// The end of the last window.
    record: Record,
    input: InputHash,
    /// Rows so far, those of earlier runs included.
    rows: u64,
    written: u64,
    written_at: Instant,
    /// Bytes did not reach the disk. Linux says so once: a second try would succeed without them.
    broken: bool,
}

impl Keeper {
    /// Goes on with what an earlier run left, or begins an output in place of what there was.
    ///
    /// # Errors
    /// [`CliError::Usage`] when this run would not go on as the earlier one began.
    pub(crate) fn open(
        out: &Path,
        record_path: PathBuf,
        made: Made,
        before: Option<Record>,
        rows: &mut Feed,
    ) -> Result<Self> {
        let Some(record) = before else {
            return Self::begin(out, record_path, made);
        };
        record.check(&made, out)?;
        if record.rows == 0 {
            return Self::begin(out, record_path, made);
        }
        Self::resume(out, record_path, record, rows)
    }

    fn begin(out: &Path, record_path: PathBuf, made: Made) -> Result<Self> {
        let record = Record::new(made);
        let io = || CliError::io(out.display().to_string());
        Record::check_place(&record_path)?;
        // Not emptied before it is locked: it may be another run's, whose rows it holds.
        let mut options = OpenOptions::new();
        let output = options.write(true).create(true).truncate(false).open(out);
        let output = output.map_err(io())?;
        alone(&output, out)?;
        // The record comes before what it is of, so that an output with rows and without one is never a begun one.
        record.write(&record_path)?;
        output.set_len(0).map_err(io())?;
        Ok(Self::new(
            out,
            output,
            record_path,
            record,
            InputHash::default(),
        ))
    }

    /// Takes the rows that are done off the input, and cuts off what follows them in the output.
    /// Nothing is changed before everything was found to be right.
    fn resume(out: &Path, record_path: PathBuf, record: Record, rows: &mut Feed) -> Result<Self> {
        let name = out.display().to_string();
        let mut input = InputHash::default();
        for done in 0..record.rows {
            let Some(row) = pollster::block_on(rows.next()).transpose()? else {
                return Err(CliError::Usage(format!(
                    "the input has {done} rows, but {} were already written to {name}; give the \
                     same input, or run without --resume to begin again",
                    record.rows
                )));
            };
            input.add(&row);
        }
        if input.hex() != record.input {
            return Err(CliError::Usage(format!(
                "the first {} rows of the input are not those that were written to {name}; give \
                 the same input, or run without --resume to begin again",
                record.rows
            )));
        }
        let output = OpenOptions::new().write(true).open(out);
        let mut output = output.map_err(CliError::io(&name))?;
        alone(&output, out)?;
        // Another run may have gone on, or begun again, since the record was read.
        if Record::read(&record_path)?.as_ref() != Some(&record) {
            return Err(CliError::Usage(format!(
                "another run has written to {name} meanwhile; run the same command again"
            )));
        }
        let bytes = output.metadata().map_err(CliError::io(&name))?.len();
        if bytes < record.bytes {
            return Err(CliError::Usage(format!(
                "{name} has {bytes} bytes, but {} were written; put it back, or run without \
                 --resume to begin again",
                record.bytes
            )));
        }
        output
            .set_len(record.bytes)
            .and_then(|()| output.seek(SeekFrom::End(0)))
            .map_err(CliError::io(&name))?;
        Ok(Self::new(out, output, record_path, record, input))
    }

    fn new(
        out: &Path,
        output: File,
        record_path: PathBuf,
        record: Record,
        input: InputHash,
    ) -> Self {
        Self {
            output,
            name: out.display().to_string(),
            record_path,
            rows: record.rows,
            written: record.rows,
            record,
            input,
            written_at: Instant::now(),
            broken: false,
        }
    }

    /// The output, for the one who writes it.
    pub(crate) fn output(&self) -> Result<File> {
        self.output.try_clone().map_err(CliError::io(&self.name))
    }

    /// Rows up to the end of the last window, those of earlier runs included.
    pub(crate) fn rows(&self) -> u64 {
        self.record.rows
    }

    /// Notes a row before it is written.
    pub(crate) fn row(&mut self, row: &Row) {
        self.input.add(row);
        self.rows += 1;
    }

    /// Notes that the output was given every row so far, the last of a window.
    pub(crate) fn window(&mut self) -> Result<()> {
        let metadata = self.output.metadata();
        self.record.bytes = metadata.map_err(CliError::io(&self.name))?.len();
        self.record.rows = self.rows;
        self.record.input = self.input.hex();
        if self.rows - self.written >= ROWS || self.written_at.elapsed() >= TIME {
            self.keep()?;
        }
        Ok(())
    }

    /// Brings the last window onto the disk, and then its record.
    fn keep(&mut self) -> Result<()> {
        let synced = self.output.sync_all();
        self.broken |= synced.is_err();
        synced.map_err(CliError::io(&self.name))?;
        self.record.write(&self.record_path)?;
        self.written = self.record.rows;
        self.written_at = Instant::now();
        Ok(())
    }

    /// The run ends early: the number of rows after which another can go on.
    pub(crate) fn stop(mut self) -> u64 {
        // Where this fails, on a full disk, the record before still stands.
        if !self.broken {
            self.keep().ok();
        }
        self.written
    }

    /// The output is complete: nothing is left to go on with.
    pub(crate) fn complete(self) -> Result<()> {
        self.output.sync_all().map_err(CliError::io(&self.name))?;
        let name = self.record_path.display().to_string();
        fs::remove_file(&self.record_path).map_err(CliError::io(name))
    }
}

/// Sees to it that no other run writes the output, for as long as the file is open.
fn alone(output: &File, out: &Path) -> Result<()> {
    match output.try_lock() {
        Err(TryLockError::WouldBlock) => Err(CliError::Usage(format!(
            "{} is being written by another run; wait for it, or name another file",
            out.display()
        ))),
        // Where there are no locks there is no harm in going on as without them.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
