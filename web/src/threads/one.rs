//! Only the caller's thread.

use isovec_engine::Result;
use isovec_kernels::parallel::{OneThread, Pool};

/// The caller's thread.
#[derive(Debug)]
pub(crate) struct Threads;

impl Threads {
    /// There is one, whatever was asked for.
    pub(crate) fn new(_threads: usize, _cores: usize) -> Result<Self> {
        Ok(Self)
    }

    /// A run begins: it takes turns with others on the same threads.
    pub(crate) fn begin(&self) {}

    /// A run is over.
    pub(crate) fn end(&self) {}
}

impl Pool for Threads {
    fn threads(&self) -> usize {
        OneThread.threads()
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        OneThread.run(jobs, job);
    }
}
