//! Runs work on several threads of any pool.

/// Threads that run the parts of a piece of work.
pub trait Pool: Sync {
    /// How many parts can be under way at once, the caller's included; at least 1. It may change from call to call, where
    /// several callers share the threads: ask once for one piece of work. No result may depend on it.
    fn threads(&self) -> usize;

    /// Calls `job` with every number below `jobs`, each once, in any order and on any threads, and
    /// returns when all have returned.
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync));
}

/// The caller's thread alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneThread;

impl Pool for OneThread {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        for number in 0..jobs {
            job(number);
        }
    }
}
