//! How far a fetch has come.

use std::sync::Arc;

use isovec_engine::maybe_send::MaybeSync;

/// One report. Both counts of bytes only ever grow within a fetch, even when a download has to
/// begin again; files that were in the cache count from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The file that is under way, by its path in the repository.
    pub file: Arc<str>,
    /// Bytes of that file that are here.
    pub file_bytes: u64,
    /// The file's size.
    pub file_total: u64,
    /// Bytes of all files that are here.
    pub bytes: u64,
    /// The size of all files together; the same in every report.
    pub total_bytes: u64,
    /// Files that are here in full.
    pub files_done: usize,
    /// How many files there are; the same in every report.
    pub files: usize,
}

/// Receives progress: any `Fn(&Progress)`. Natively it may be called from another thread.
pub trait ProgressReport: MaybeSync {
    /// Takes one report; called often, so it should return soon.
    fn report(&self, progress: &Progress);
}

impl<F: Fn(&Progress) + MaybeSync> ProgressReport for F {
    fn report(&self, progress: &Progress) {
        self(progress);
    }
}

/// Turns the bytes of one file after another into reports that never go back.
pub struct Tracker<'a> {
    report: &'a dyn ProgressReport,
    state: Progress,
    /// Bytes of the files before the present one.
    before: u64,
}

impl<'a> Tracker<'a> {
    /// Begins with nothing here.
    pub fn new(report: &'a dyn ProgressReport, files: usize, total_bytes: u64) -> Self {
        Self {
            report,
            state: Progress {
                file: "".into(),
                file_bytes: 0,
                file_total: 0,
                bytes: 0,
                total_bytes,
                files_done: 0,
                files,
            },
            before: 0,
        }
    }

    /// A file begins.
    pub fn begin(&mut self, path: &str, size: u64) {
        self.state.file = path.into();
        self.state.file_bytes = 0;
        self.state.file_total = size;
        self.report.report(&self.state);
    }

    /// So many bytes of the present file are here. Fewer than before is not reported: the file
    /// was begun again and will catch up.
    pub fn at(&mut self, file_bytes: u64) {
        let file_bytes = file_bytes.min(self.state.file_total);
        if file_bytes > self.state.file_bytes {
            self.state.file_bytes = file_bytes;
            self.state.bytes = self.before + file_bytes;
            self.report.report(&self.state);
        }
    }

    /// The present file is here in full.
    pub fn end(&mut self) {
        self.before += self.state.file_total;
        self.state.file_bytes = self.state.file_total;
        self.state.bytes = self.before;
        self.state.files_done += 1;
        self.report.report(&self.state);
    }
}

impl std::fmt::Debug for Tracker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
