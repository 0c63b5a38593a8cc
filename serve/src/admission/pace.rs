//! How fast a model computes, and when it was last seen to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::meter::Meter;

/// The pace of one model: a slow one lets nobody wait for a fast one.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Texts in work.
    texts: usize,
    meter: Meter,
    /// When the model was last seen to compute.
    computed: Option<Instant>,
}

impl Pace {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the model's texts in work will take; `None` before anything was measured.
    pub(super) fn wait(&self) -> Option<Duration> {
        let state = self.lock();
        state.meter.wait(state.texts)
    }

    /// So many texts come into work.
    pub(super) fn begin(&self, texts: usize) {
        let mut state = self.lock();
        let busy = state.texts > 0;
        state.meter.tick(busy);
        state.texts += texts;
    }

    /// So many texts leave, computed or not.
    pub(super) fn end(&self, texts: usize, computed: bool) {
        let mut state = self.lock();
        state.meter.tick(true);
        state.texts -= texts;
        if computed {
            state.computed = Some(Instant::now());
            state.meter.done(texts);
        }
    }

    /// The model computed something.
    pub(crate) fn computed(&self) {
        self.lock().computed = Some(Instant::now());
    }

    /// How long ago that was.
    pub(crate) fn since_computed(&self) -> Option<Duration> {
        self.lock().computed.map(|at| at.elapsed())
    }
}
