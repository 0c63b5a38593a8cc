//! Replaces a lost device, and opens it again later.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::lock;
use isovec_engine::EngineError;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Engine;
use isovec_engine::stats::Fallback;
use web_time::Instant;

use super::{Engines, Loaded, Result, Spare, first, load_one};
use crate::config::ExecutionProvider;

/// Losses and recoveries that are followed; after that the processor keeps the work.
const MOST: usize = 8;

/// How long a lost device is left alone before it is asked for again; twice as long every time.
const PATIENCE: Duration = Duration::from_secs(1);

/// What computed after the first engine, the latest last.
#[derive(Default)]
pub(super) struct Losses {
    /// In turns, the replacement of a lost device and the reopened device.
    later: [OnceLock<Loaded>; MOST],
    /// One caller loads, the others wait for it.
    loading: lock::Mutex<()>,
    asked: Mutex<Option<Asked>>,
    recovered: AtomicU64,
}

/// When a lost device was asked for last.
#[derive(Clone, Copy)]
struct Asked {
    at: Instant,
    patience: Duration,
}

impl Losses {
    pub(super) fn latest(&self) -> Option<&Loaded> {
        self.later.iter().rev().find_map(OnceLock::get)
    }

    pub(super) fn recovered(&self) -> u64 {
        self.recovered.load(Relaxed)
    }

    /// Makes `loaded` the one that computes; `false` where there is no room for another.
    fn push(&self, loaded: Loaded) -> bool {
        let free = self.later.iter().find(|later| later.get().is_none());
        free.is_some_and(|free| free.set(loaded).is_ok())
    }

    fn has_room(&self) -> bool {
        // A device that comes back may be lost again, which takes another place.
        self.later[MOST - 2..]
            .iter()
            .all(|later| later.get().is_none())
    }

    /// Whether it is time to ask for the device again.
    fn is_due(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|asked| asked.at.elapsed() >= asked.patience)
    }

    /// Ends the patience with a lost device, for tests that do not wait for a clock.
    #[cfg(test)]
    pub(super) fn expire(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = &mut *asked {
            asked.patience = Duration::ZERO;
        }
    }

    fn wait(&self, longer: bool) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = match *asked {
            Some(asked) if longer => asked.patience * 2,
            _ => PATIENCE,
        };
        *asked = Some(Asked {
            at: Instant::now(),
            patience,
        });
    }
}

impl Engines {
    /// The engine to run a batch again on, after `failed` has lost its device; any other error
    /// comes back as it is.
    pub(crate) async fn after_loss(
        &self,
        failed: &Arc<dyn Engine>,
        error: EngineError,
        cancel: &Cancel,
    ) -> Result<&Arc<dyn Engine>> {
        if !matches!(error, EngineError::DeviceLost { .. }) {
            return Err(error);
        }
        let Some(spare) = &self.spare else {
            return Err(error);
        };
        let _one_at_a_time = self.losses.loading.lock().await;
        // Another caller may have seen to it.
        if !Arc::ptr_eq(failed, self.current()) {
            return Ok(self.current());
        }
        let mut events = Vec::new();
        let mut loaded = match &self.beside {
            Some(beside) => beside.loaded.clone(),
            // There is nothing else: the device is opened anew, or the loss is an error.
            None if spare.rest.is_empty() => self.reopen(spare, cancel).await?,
            None => {
                let (bundle, config) = (&spare.bundle, &spare.config);
                first(bundle, config, &spare.rest, cancel, &mut events)
                    .await?
                    .0
            }
        };
        let lost = Fallback::new(
            self.provider().name(),
            loaded.provider.name(),
            error.to_string(),
        );
        loaded.why.clone_from(&lost.cause);
        let reopened = loaded.provider == self.first.provider;
        if !self.losses.push(loaded) {
            return Err(error);
        }
        if reopened {
            self.losses.recovered.fetch_add(1, Relaxed);
        }
        self.losses.wait(false);
        self.record(lost);
        events.into_iter().for_each(|event| self.record(event));
        Ok(self.current())
    }

    /// The model on the first engine's provider once more.
    async fn reopen(&self, spare: &Spare, cancel: &Cancel) -> Result<Loaded> {
        let (config, provider) = (&spare.config, self.first.provider);
        let chosen = load_one(&spare.bundle, config, provider, cancel).await?;
        Ok(Loaded {
            engine: chosen.engine,
            provider,
            why: "its device was opened again".into(),
        })
    }

    /// Opens a lost device anew, where it is time to try. Whatever comes of it, there is an engine.
    pub(crate) async fn recover(&self, cancel: &Cancel) {
        let Some(spare) = &self.spare else { return };
        let lost = self.first.provider;
        // A library's own devices are not given back to a process that has lost them.
        if lost != ExecutionProvider::WebGpu || !self.losses.is_due() || !self.losses.has_room() {
            return;
        }
        let Some(_one_at_a_time) = self.losses.loading.try_lock() else {
            return;
        };
        if self.provider() == lost || !self.losses.is_due() {
            return;
        }
        match self.reopen(spare, cancel).await {
            Ok(loaded) => {
                let stood_in = self.provider();
                if self.losses.push(loaded) {
                    self.losses.recovered.fetch_add(1, Relaxed);
                    let cause = "the lost device could be opened again";
                    self.record(Fallback::new(stood_in.name(), lost.name(), cause));
                }
            }
            Err(error) => {
                tracing::debug!(target: "isovec", %error, "the lost device does not come back yet");
                self.losses.wait(true);
            }
        }
    }
}
