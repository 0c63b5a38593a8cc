//! Embedders that are loaded, used by many, replaced and disposed of.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use isovec::{DynamicBatcher, Embedder};

use crate::kind::Kind;
use crate::ledger::Ledger;

/// Looks at an embedder until it is at rest, each after a pause: runs that nobody wants any more end when the engine
/// next looks at them.
const LOOKS: usize = 30_000;
const PAUSE: Duration = Duration::from_millis(1);

/// An embedder, its batcher and its books.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) embedder: Embedder,
    pub(crate) batcher: DynamicBatcher,
    pub(crate) ledger: Ledger,
}

impl Loaded {
    pub(crate) fn new(embedder: Embedder) -> Self {
        Self {
            batcher: DynamicBatcher::new(&embedder),
            embedder,
            ledger: Ledger::default(),
        }
    }

    /// What does not balance, once nothing is under way.
    pub(crate) fn faults(&self) -> Vec<String> {
        let faults = || {
            self.ledger
                .faults(&self.embedder.stats(), &self.batcher.counts())
        };
        for _ in 0..LOOKS {
            if faults().is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        faults()
    }
}

/// A place for embedders of one kind.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) kind: Kind,
    loaded: RwLock<Arc<Loaded>>,
}

impl Slot {
    pub(crate) fn new(kind: Kind) -> isovec::Result<Self> {
        let loaded = pollster::block_on(
            Embedder::builder(kind.source())
                .config(kind.config())
                .load(),
        )?;
        Ok(Self {
            loaded: RwLock::new(Arc::new(Loaded::new(loaded))),
            kind,
        })
    }

    pub(crate) fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in its place, and gives back what was there.
    pub(crate) fn replace(&self, loaded: Loaded) -> Arc<Loaded> {
        let mut place = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, Arc::new(loaded))
    }

    /// Lets an embedder go. Whoever is the last to do so closes its books.
    pub(crate) fn release(&self, loaded: Arc<Loaded>) -> Result<(), String> {
        let Some(last) = Arc::into_inner(loaded) else {
            return Ok(());
        };
        self.balanced(&last)
    }

    /// What an embedder's books say when nothing is under way.
    pub(crate) fn balanced(&self, loaded: &Loaded) -> Result<(), String> {
        match &loaded.faults()[..] {
            [] => Ok(()),
            faults => Err(format!("{}: {}", self.kind.name, faults.join("; "))),
        }
    }
}
