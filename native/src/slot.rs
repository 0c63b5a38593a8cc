//! A place in a session for one run at a time: its settings, its statistics, and how it is
//! stopped from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isovec_engine::cancel::OnCancel;
use isovec_engine::counters::Ended;
use isovec_engine::stats::SessionShare;

use crate::sys::{Result, RunOptions};

/// A place for one run at a time.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) run: Arc<SlotRun>,
    /// Read by whoever asks for statistics, written by whoever has the slot.
    pub(crate) share: Arc<Mutex<SessionShare>>,
}

/// What a run in the slot and whoever cancels it hold together.
#[derive(Debug)]
pub(crate) struct SlotRun {
    options: RunOptions,
    /// For when memory is short: the same, and what the arena does not need is given back.
    frugal: RunOptions,
    current: Mutex<Current>,
    cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct Current {
    /// Grows with every run, so that a cancellation that comes late finds another number.
    number: u64,
    running: bool,
}

impl Slot {
    pub(crate) fn new() -> Result<Self> {
        let mut frugal = RunOptions::new()?;
        frugal.entry(c"memory.enable_memory_arena_shrinkage", c"cpu:0")?;
        Ok(Self {
            run: Arc::new(SlotRun {
                options: RunOptions::new()?,
                frugal,
                current: Mutex::default(),
                cancelled: AtomicBool::new(false),
            }),
            share: Arc::default(),
        })
    }

    /// Adds a run to the slot's share.
    pub(crate) fn count(&self, took: Duration, ended: Ended) {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        share.runs += 1;
        share.failed += u64::from(ended == Ended::Failed);
        share.cancelled += u64::from(ended == Ended::Cancelled);
        share.busy_seconds += took.as_secs_f64();
    }
}

impl SlotRun {
    /// Begins a run; its number is what a cancellation has to name.
    pub(crate) fn begin(&self) -> Result<u64> {
        let mut current = self.lock();
        self.cancelled.store(false, Ordering::SeqCst);
        self.options.resume()?;
        self.frugal.resume()?;
        current.number += 1;
        current.running = true;
        Ok(current.number)
    }

    /// Ends it: from here on nothing can cancel it.
    pub(crate) fn end(&self) {
        self.lock().running = false;
    }

    /// Whether the run was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn options(&self, memory_is_short: bool) -> &RunOptions {
        if memory_is_short {
            &self.frugal
        } else {
            &self.options
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OnCancel for SlotRun {
    fn cancelled(&self, number: u64) {
        let current = self.lock();
        if current.running && current.number == number {
            self.cancelled.store(true, Ordering::SeqCst);
            self.options.stop();
            self.frugal.stop();
        }
    }
}
