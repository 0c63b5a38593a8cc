//! A pool of threads for each engine.

use isovec_engine::{EngineError, Result};
use isovec_kernels::parallel::Pool;

/// A pool of threads, or none at all for one.
#[derive(Debug)]
pub(crate) struct Threads {
    pool: Option<rayon::ThreadPool>,
    /// Of one operator.
    threads: usize,
}

impl Threads {
    /// A pool from which each of `runs` at the same time can have `threads` to an operator, the caller's
    /// included.
    pub(crate) fn new(threads: usize, runs: usize) -> Result<Self> {
        let start = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads((threads - 1) * runs.max(1))
                .thread_name(|number| format!("isovec-portable-{number}"))
                .build()
        };
        let pool = (threads > 1).then(start).transpose();
        let pool = pool.map_err(|error| EngineError::Runtime {
            engine: crate::ENGINE,
            doing: "starting its threads",
            detail: error.to_string(),
        })?;
        Ok(Self { pool, threads })
    }
}

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let Some(pool) = self.pool.as_ref().filter(|_| jobs > 1) else {
            return (0..jobs).for_each(job);
        };
        // The caller takes its share instead of waiting.
        let next = std::sync::atomic::AtomicUsize::new(0);
        let take = || {
            loop {
                let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if number >= jobs {
                    break;
                }
                job(number);
            }
        };
        pool.in_place_scope(|scope| {
            for _ in 1..jobs.min(self.threads()) {
                scope.spawn(|_| take());
            }
            take();
        });
    }
}
