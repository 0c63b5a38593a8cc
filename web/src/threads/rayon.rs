//! A pool of threads for each engine, which the runs that are under way share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use isovec_engine::{EngineError, Result};
use isovec_kernels::parallel::Pool;

/// So long the cores of a run that is over are left to the one that comes after it: where many are waiting, the next one is
/// there at once, and a thread more of another run would be in its way.
const PATIENCE: Duration = Duration::from_millis(2);

/// A pool of threads, or none at all for one.
#[derive(Debug)]
pub(crate) struct Threads {
    pool: Option<rayon::ThreadPool>,
    /// Of one operator, at most.
    threads: usize,
    /// Of all runs together.
    cores: usize,
    under_way: AtomicUsize,
    /// How many were under way when the latest that is over was.
    before: AtomicUsize,
    /// When it was over, in nanoseconds since `started`.
    over: AtomicU64,
    started: Instant,
}

impl Threads {
    /// A pool from which a run has up to `threads` to an operator, its caller's included, and all runs at the same time
    /// have `cores`.
    pub(crate) fn new(threads: usize, cores: usize) -> Result<Self> {
        let cores = cores.max(threads);
        let start = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(cores - 1)
                .thread_name(|number| format!("isovec-portable-{number}"))
                .build()
        };
        let pool = (threads > 1).then(start).transpose();
        let pool = pool.map_err(|error| EngineError::Runtime {
            engine: crate::ENGINE,
            doing: "starting its threads",
            detail: error.to_string(),
        })?;
        Ok(Self {
            pool,
            threads,
            cores,
            under_way: AtomicUsize::new(0),
            before: AtomicUsize::new(0),
            over: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// A run begins.
    pub(crate) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// A run that began is over.
    pub(crate) fn end(&self) {
        let before = self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.before.store(before, Ordering::Relaxed);
        self.over.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// How many runs share the cores, those included that are about to begin.
    fn runs(&self, now: u64) -> usize {
        let runs = self.under_way.load(Ordering::Relaxed).max(1);
        let since = now.saturating_sub(self.over.load(Ordering::Relaxed));
        match u128::from(since) < PATIENCE.as_nanos() {
            true => runs.max(self.before.load(Ordering::Relaxed)),
            false => runs,
        }
    }
}

impl Pool for Threads {
    /// A run that is alone has as many as an operator can use. Runs beside each other have a part of the cores each: threads
    /// that wait for one another at the end of every operator compute less than threads that do not.
    fn threads(&self) -> usize {
        (self.cores / self.runs(self.now())).clamp(1, self.threads)
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let Some(pool) = self.pool.as_ref().filter(|_| jobs > 1) else {
            return (0..jobs).for_each(job);
        };
        // The caller takes its share instead of waiting.
        let next = AtomicUsize::new(0);
        let take = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn runs_beside_each_other_share_the_cores() {
        let pool = Threads::new(4, 8).unwrap();
        let mut threads = Vec::new();
        for _ in 0..10 {
            threads.push(pool.threads());
            pool.begin();
        }
        assert_eq!(threads, [4, 4, 4, 2, 2, 1, 1, 1, 1, 1]);
        (0..10).for_each(|_| pool.end());
        std::thread::sleep(2 * PATIENCE);
        assert_eq!(pool.threads(), 4);
        assert_eq!(Threads::new(4, 1).unwrap().threads(), 4);
    }

    #[test]
    fn the_cores_of_a_run_that_is_over_are_left_to_the_next_one_for_a_while() {
        let pool = Threads::new(4, 8).unwrap();
        (0..3).for_each(|_| pool.begin());
        pool.end();
        let over = pool.over.load(Ordering::Relaxed);
        let patience = u64::try_from(PATIENCE.as_nanos()).unwrap();
        let runs = [0, patience - 1, patience].map(|since| pool.runs(over + since));
        assert_eq!(runs, [3, 3, 2]);
        // One that came after one has all that there are.
        pool.end();
        pool.end();
        let over = pool.over.load(Ordering::Relaxed);
        pool.begin();
        assert_eq!(pool.runs(over), 1);
    }

    #[test]
    fn every_job_is_done_once_however_many_runs_there_are() {
        let pool = Threads::new(3, 3).unwrap();
        for _ in 0..4 {
            let done: [AtomicUsize; 20] = Default::default();
            pool.run(done.len(), &|number| {
                done[number].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1));
            pool.begin();
        }
    }
}
