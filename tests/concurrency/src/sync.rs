//! Locks, wake-ups and time under the scheduler's hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
pub(crate) use shuttle::sync::atomic::AtomicBool;
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};

/// The one that ships, with a chance for others to go first on either side of every step.
#[derive(Debug, Default)]
pub(crate) struct AtomicWaker {
    inner: futures_util::task::AtomicWaker,
    step: AtomicBool,
}

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.step.load(Ordering::SeqCst);
        self.inner.register(waker);
        self.step.load(Ordering::SeqCst);
    }

    pub(crate) fn wake(&self) {
        self.step.load(Ordering::SeqCst);
        self.inner.wake();
    }
}

/// A clock that stands still for the batcher, so that what it decides by measured times is the
/// same in every run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instant;

impl Instant {
    pub(crate) fn now() -> Self {
        Self
    }

    pub(crate) fn elapsed(self) -> Duration {
        Duration::ZERO
    }

    /// No time, or a long one: whatever is done at intervals is due at any look or is not.
    pub(crate) fn duration_since(self, _: Self) -> Duration {
        if thread_rng().gen_bool(0.5) {
            Duration::from_secs(3600)
        } else {
            Duration::ZERO
        }
    }
}

/// A time that never comes: whoever waits for one has to be woken by something else.
#[derive(Debug)]
pub(crate) struct Delay;

impl Delay {
    pub(crate) fn new(_: Duration) -> Self {
        Self
    }

    pub(crate) fn reset(&mut self, _: Duration) {}
}

impl Future for Delay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
