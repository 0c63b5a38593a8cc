//! A process that was forked from one that used isovec has isovec's locks and memory, but none of its threads.

use std::ops::Deref;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::error;

/// The process that loaded the first model; 0 before that.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Makes this process the one that uses isovec.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    let me = process::id();
    match OWNER.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(owner) if owner == me => Ok(()),
        Err(owner) => Err(error::with_kind(
            py,
            "Forked",
            &format!(
                "process {me} was forked from process {owner}, which had loaded a model, and isovec's threads are not in it; \
                 load models after the fork only, or start processes by `spawn` or `forkserver` \
                 (multiprocessing.set_start_method), to which models are pickled by their source"
            ),
        )),
    }
}

fn is_owner() -> bool {
    OWNER.load(Ordering::Relaxed) == process::id()
}

/// A value that only the process that made it may use or end.
#[derive(Debug)]
pub(crate) struct Owned<T>(Option<T>);

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value, or the error that says that this process was forked.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        claim(py)?;
        Ok(self)
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    /// For facts that are read without a thread, also in a forked process.
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("it is taken when it is dropped"),
        }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // It would wait for threads that are not there.
        if !is_owner() {
            std::mem::forget(self.0.take());
        }
    }
}
