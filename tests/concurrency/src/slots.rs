//! The pool of slots as `native/src/engine.rs` uses it, with numbers for slots.

use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::cancel::{Cancel, OnCancel};

use crate::pool::{Lease, Pool};

/// Slots, each with a count of those who are in it.
#[derive(Debug)]
pub struct Slots(Arc<Pool<usize>>);

/// A slot that somebody has.
#[derive(Debug)]
pub struct Slot<'s>(Lease<'s, usize>);

impl Slot<'_> {
    /// Which it is.
    pub fn number(&self) -> Option<usize> {
        *self.0
    }

    /// As a thread of the engine's does before it answers the last one.
    pub fn give_back(&mut self) {
        self.0.give_back();
    }

    /// As after a panic: the slot does not come back.
    pub fn lose(&mut self) {
        self.0.take();
    }
}

/// What the pool says of itself when nobody is there any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Rest {
    /// Slots in somebody's hands.
    pub in_use: usize,
    /// The most at one time.
    pub peak_in_use: usize,
    /// Those who wait.
    pub waiting: usize,
}

impl Slots {
    /// Slots by their numbers.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Pool::new((0..count).collect())))
    }

    /// A slot, if one is idle and nobody waits.
    pub fn try_take(&self) -> Option<Slot<'_>> {
        self.0.try_take().map(Slot)
    }

    /// Waits for a slot until `cancel` is cancelled.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`].
    pub fn take(&self, cancel: &Cancel) -> Result<Slot<'_>, EngineError> {
        let _woken = cancel.hook(Arc::clone(&self.0) as Arc<dyn OnCancel>, 0);
        self.0.take(|| cancel.check()).map(Slot)
    }

    /// As whoever hands a run to the engine's threads.
    pub fn line_up(&self) {
        self.0.line_up();
    }

    /// As the thread that takes it.
    pub fn step_up(&self) {
        self.0.step_up();
    }

    /// Who is there.
    pub fn rest(&self) -> Rest {
        let usage = self.0.usage();
        Rest {
            in_use: usage.in_use,
            peak_in_use: usage.peak_in_use,
            waiting: usage.waiting,
        }
    }
}
