//! Guards that callers hold. Dropping one returns its place.

use std::sync::Arc;
use std::time::Duration;

use isovec_engine::cancel::Cancel;
use isovec_engine::profile::Scope;

use super::core::Core;
use super::queue::{Priority, Ticket};
use super::state::Later;
use crate::sync::Instant;

/// A caller's texts in the queue and in batches; dropping it gives them up.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) core: Arc<Core>,
    pub(super) ticket: Ticket,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.core.leave(self.ticket);
    }
}

/// A call that was let in.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) core: Arc<Core>,
    pub(super) number: u64,
    pub(super) priority: Priority,
    pub(super) cancel: Cancel,
    /// Where what is done for it is recorded.
    pub(super) scope: Scope,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut later = Later::default();
        let mut state = self.core.lock();
        state.calls -= 1;
        state.waiting_for_room.remove(&self.number);
        state.end_if_empty(&mut later);
        drop(state);
        later.run();
    }
}

/// A batch that its caller runs.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) core: Arc<Core>,
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) positions: usize,
    pub(super) done: bool,
}

impl Direct {
    /// It ran, and its time counts.
    pub(super) fn ran(mut self) {
        self.done = true;
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.direct.remove(&self.number);
        state.next_begins();
        let took = self.since.elapsed();
        // Longer, and who knows how much of it nobody looked.
        if self.done && took < self.core.patience {
            state.measure(self.positions, took);
            if let Some(steering) = &mut state.steering {
                steering.answered(took, Duration::ZERO);
            }
        }
        drop(state);
        self.core.driver.wake();
    }
}
