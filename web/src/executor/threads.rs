//! Jobs on threads: one per engine, so that polling never computes.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use isovec_engine::maybe_send::BoxFuture;
use isovec_engine::{EngineError, Result};

use super::{Executor, Job, MOST_BY_DEFAULT, Worker};
use crate::ENGINE;

/// A thread per engine, and a pool of threads per engine for its operators.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl Executor for Threads {
    fn worker(&self) -> Result<Arc<dyn Worker>> {
        Ok(Arc::new(Thread::start()?))
    }

    fn intra_op_threads(&self, asked: Option<usize>) -> usize {
        asked.unwrap_or_else(|| num_cpus::get_physical().clamp(1, MOST_BY_DEFAULT))
    }
}

/// A running thread. It ends when this handle and all jobs are gone.
#[derive(Debug)]
struct Thread {
    jobs: mpsc::Sender<Job>,
    started: Instant,
}

impl Thread {
    fn start() -> Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name(format!("isovec-{ENGINE}"))
            .spawn(move || {
                for job in queue {
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
                doing: "starting its thread",
                detail: error.to_string(),
            })?;
        Ok(Self {
            jobs,
            started: Instant::now(),
        })
    }
}

impl Worker for Thread {
    fn run(&self, job: Job) -> Job {
        let (done, wait) = oneshot::channel::<()>();
        // Sending fails only if the thread is gone, and then `done` is dropped with the job.
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
