//! Jobs on threads of the engine's, so that polling never computes.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use isovec_engine::cores;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::{EngineError, Result};

use super::{Executor, Job, MOST_BY_DEFAULT, Worker};
use crate::ENGINE;

/// More runs than that at the same time only where each has all threads that an operator can use: a run has memory of its own.
const MOST_RUNS: usize = 8;

/// A thread for each run at the same time, and a pool of threads per engine for its operators.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl Executor for Threads {
    fn worker(&self, runs: usize) -> Result<Arc<dyn Worker>> {
        Ok(Arc::new(Crew::start(runs)?))
    }

    fn intra_op_threads(&self, asked: Option<usize>) -> usize {
        asked.unwrap_or_else(|| cores::physical().min(MOST_BY_DEFAULT))
    }

    fn concurrent_runs(&self, asked: Option<usize>, threads: usize) -> usize {
        asked.unwrap_or_else(|| runs(cores::physical(), threads))
    }

    fn cores(&self, threads: usize) -> usize {
        cores::physical().max(threads)
    }
}

/// How many runs suit so many cores, if a run can use so many threads: one for each core, or for every few cores.
fn runs(cores: usize, threads: usize) -> usize {
    let each = cores.div_ceil(MOST_RUNS).min(threads);
    (cores / each.max(1)).max(1)
}

/// Threads that take jobs from one queue. They end when this handle and all jobs are gone.
#[derive(Debug)]
struct Crew {
    jobs: mpsc::Sender<Job>,
    started: Instant,
}

impl Crew {
    fn start(threads: usize) -> Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads.max(1) {
            Self::join(Arc::clone(&queue))?;
        }
        Ok(Self {
            jobs,
            started: Instant::now(),
        })
    }

    /// Starts a thread that takes jobs until there can be no more.
    fn join(queue: Arc<Mutex<mpsc::Receiver<Job>>>) -> Result<()> {
        // One thread waits for a job, and the others wait for their turn to.
        let next = move || {
            let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.recv().ok()
        };
        std::thread::Builder::new()
            .name(format!("isovec-{ENGINE}"))
            .spawn(move || {
                while let Some(job) = next() {
                    // Jobs catch the panics of what they run, and answer for them; one that
                    // escapes must still not end the thread under the jobs behind it.
                    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        pollster::block_on(job);
                    }));
                    if caught.is_err() {
                        tracing::error!("a job of the {ENGINE} engine panicked");
                    }
                }
            })
            .map_err(|error| EngineError::Runtime {
                engine: ENGINE,
                doing: "starting its threads",
                detail: error.to_string(),
            })?;
        Ok(())
    }
}

impl Worker for Crew {
    fn run(&self, job: Job) -> Job {
        let (done, wait) = oneshot::channel::<()>();
        // Sending fails only if the threads are gone, and then `done` is dropped with the job.
        let _ = self.jobs.send(Box::pin(async move {
            job.await;
            let _ = done.send(());
        }));
        Box::pin(async move {
            let _ = wait.await;
        })
    }

    fn time_slice(&self) -> Option<Duration> {
        None
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_runs_leave_no_core_idle_and_none_is_without_one() {
        let found: Vec<_> = [(1, 1), (2, 2), (4, 4), (8, 4), (12, 4), (16, 4), (64, 4)]
            .map(|(cores, threads)| runs(cores, threads))
            .into();
        assert_eq!(found, [1, 2, 4, 8, 6, 8, 16]);
        // What an operator was given is less or more than there is.
        assert_eq!((runs(64, 1), runs(2, 4), runs(64, 64)), (64, 2, 8));
        assert_eq!(runs(1, 0), 1);
    }
}
