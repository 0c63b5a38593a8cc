//! Runs an engine's jobs, and gives other work a turn.
//!
//! The engine is the same code on every target. Targets differ in who drives its futures. An [`Executor`] gives every
//! engine a [`Worker`] when it is loaded:
//!
//! - `threads` (feature `threads`): threads of the engine's, one for each run at the same time, drive jobs to
//!   their end while the callers' futures only wait.
//! - `event_loop` (feature `event-loop`): the job is polled where the caller polls it, in a
//!   window, a worker or node, and gives the event loop a turn between operators.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use isovec_engine::Result;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend, MaybeSync};
pub use isovec_engine::pause::Pause;

#[cfg(feature = "event-loop")]
pub mod event_loop;
#[cfg(feature = "threads")]
pub mod threads;

/// More threads than this bring an embedding model little and take memory bandwidth from others.
#[cfg(any(feature = "event-loop", feature = "threads"))]
const MOST_BY_DEFAULT: usize = 4;

/// A piece of work: computes while polled.
pub type Job = BoxFuture<'static, ()>;

/// Gives every engine a place to run its jobs.
pub trait Executor: MaybeSend + MaybeSync + Debug {
    /// A place for one engine's jobs, `runs` of which make progress at the same time.
    ///
    /// # Errors
    /// [`EngineError::Runtime`](isovec_engine::EngineError::Runtime) when the platform has none
    /// to give.
    fn worker(&self, runs: usize) -> Result<Arc<dyn Worker>>;

    /// How many threads work on one operator when `asked` for that many (`None`: the default).
    fn intra_op_threads(&self, asked: Option<usize>) -> usize;

    /// How many runs make progress at the same time when `asked` for that many (`None`: the default) of up to `threads` each.
    fn concurrent_runs(&self, asked: Option<usize>, threads: usize) -> usize;

    /// How many threads all runs have together.
    fn cores(&self, threads: usize) -> usize;
}

/// Runs one engine's jobs, begun in the order in which they came.
pub trait Worker: MaybeSend + MaybeSync + Debug {
    /// Takes a job. The future completes when the job has run to its end; dropping it does not
    /// promise that the job stops, which is the job's own affair.
    fn run(&self, job: Job) -> Job;

    /// For how long a job may compute before it [pauses](Self::pause); `None` if computing blocks no other work.
    fn time_slice(&self) -> Option<Duration>;

    /// The time, counted from any fixed point.
    fn now(&self) -> Duration;

    /// Lets everything else that waits for this thread have a turn.
    fn pause(&self) -> BoxFuture<'_, ()>;

    /// The start of the time slice of a job that begins now. It is earlier than now if other jobs have blocked the
    /// loop until now.
    fn begins(&self) -> Duration {
        self.now()
    }

    /// A job ends that paused last at `paused`.
    fn ends(&self, paused: Duration) {
        let _ = paused;
    }
}

/// Pauses as that worker's own jobs do, for other long work.
pub fn pause(worker: &Arc<dyn Worker>) -> Box<dyn Pause> {
    Box::new(Pacer::new(worker))
}

/// Paces one job: counts the time since the last pause.
#[derive(Debug)]
pub(crate) struct Pacer {
    worker: Arc<dyn Worker>,
    paused: Duration,
}

impl Pacer {
    pub(crate) fn new(worker: &Arc<dyn Worker>) -> Self {
        Self {
            worker: Arc::clone(worker),
            paused: worker.begins(),
        }
    }

    /// Pauses if the time slice is used up.
    pub(crate) async fn step(&mut self) {
        let Some(slice) = self.worker.time_slice() else {
            return;
        };
        if self.worker.now().saturating_sub(self.paused) >= slice {
            self.pause().await;
        }
    }

    /// Pauses, where pausing means anything.
    pub(crate) async fn pause(&mut self) {
        if self.worker.time_slice().is_some() {
            self.worker.pause().await;
            self.paused = self.worker.now();
        }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.worker.ends(self.paused);
    }
}
