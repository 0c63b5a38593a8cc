//! How fast a model computes, and when it was last seen to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lateness::Lateness;
use super::meter::Meter;

/// The pace of one model: a slow one lets nobody wait for a fast one.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Texts in work.
    texts: usize,
    meter: Meter,
    lateness: Lateness,
    /// When the model was last seen to compute.
    computed: Option<Instant>,
}

impl Pace {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When so many texts more would be there at the latest, as far as is known; `None` before anything was measured, and
    /// while nobody waits: who comes then begins at once.
    pub(super) fn expects(&self, texts: usize) -> Option<Duration> {
        let state = self.lock();
        let waiting = Some(state.texts).filter(|waiting| *waiting > 0)?;
        let expected = state.meter.wait(waiting.saturating_add(texts))?;
        Some(expected.mul_f64(state.lateness.factor()))
    }

    #[cfg(test)]
    pub(super) fn looks_back_on(&self) -> usize {
        self.lock().lateness.len()
    }

    /// So many texts come into work. Says when they will be there by the speed of those before them.
    pub(super) fn begin(&self, texts: usize) -> Option<Duration> {
        let mut state = self.lock();
        let busy = state.texts > 0;
        state.meter.tick(busy);
        state.texts += texts;
        state.meter.wait(state.texts)
    }

    /// Texts that were expected after so long, and had so long, were there after so long or are late.
    pub(super) fn took(&self, expected: Duration, left: Duration, took: Duration) {
        self.lock().lateness.note(expected, left, took);
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
