//! The counters of this engine beyond those of every engine: its slots, and the nodes of each provider.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use isovec_engine::counters::Counters;
use isovec_engine::stats::{EngineStats, SessionShare};

use crate::pool::Pool;
use crate::slot::Slot;

/// An engine's counters.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    counters: Counters,
    binds: bool,
    unbound: Option<String>,
    shares: Vec<Arc<Mutex<SessionShare>>>,
    /// Nodes of the optimised graph by the provider that has them.
    placement: BTreeMap<String, usize>,
}

impl Deref for Counts {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        &self.counters
    }
}

impl Counts {
    /// Counters over these slots. `unbound` is why outputs cannot be bound, where they cannot.
    pub(crate) fn new(
        slots: &[Slot],
        binds: bool,
        unbound: Option<String>,
        placement: BTreeMap<String, usize>,
    ) -> Self {
        Self {
            counters: Counters::default(),
            binds,
            unbound,
            shares: slots.iter().map(|slot| Arc::clone(&slot.share)).collect(),
            placement,
        }
    }

    /// Forgets the runs that were made while loading.
    pub(crate) fn reset(&mut self) {
        self.counters = Counters::default();
        for share in &self.shares {
            *share.lock().unwrap_or_else(PoisonError::into_inner) = SessionShare::default();
        }
    }

    pub(crate) fn binds(&self) -> bool {
        self.binds && self.unbound.is_none()
    }

    pub(crate) fn read(&self, slots: &Pool<Slot>) -> EngineStats {
        let mut stats = EngineStats::default();
        self.counters.read(&mut stats);
        let usage = slots.usage();
        let sessions = &mut stats.sessions;
        sessions.count = self.shares.len();
        sessions.in_use = usage.in_use;
        sessions.peak_in_use = usage.peak_in_use;
        sessions.waiting = usage.waiting;
        sessions.peak_waiting = usage.peak_waiting;
        sessions.per_session = self
            .shares
            .iter()
            .map(|share| share.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .collect();
        let io = &mut stats.io_binding;
        io.bound = self.binds();
        io.fallback = match (&self.unbound, self.binds) {
            (Some(why), _) => Some(why.clone()),
            (None, false) => Some("io.io_binding is off".into()),
            (None, true) => None,
        };
        stats.provider.nodes = self.placement.clone().into_iter().collect();
        stats
    }
}
