//! The processor beside a GPU: small batches are faster there, because a GPU takes the same time for
//! few tokens as for many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Engine;
use isovec_engine::stats::BesideStats;

use super::auto::Small;
use super::{Loaded, Result, load_one};
use crate::config::{ExecutionProvider, RuntimeConfig};

/// An engine for small batches.
pub(super) struct Beside {
    pub(super) loaded: Loaded,
    /// Tokens of the smallest batch that it does not take.
    until: usize,
    batches: AtomicU64,
}

impl Beside {
    pub(super) async fn load(
        bundle: &ModelBundle,
        config: &RuntimeConfig,
        small: Small,
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut config = config.clone();
        config.engine = small.engine;
        let chosen = load_one(bundle, &config, ExecutionProvider::Cpu, cancel).await?;
        let loaded = Loaded {
            engine: chosen.engine,
            provider: ExecutionProvider::Cpu,
            why: chosen.why,
        };
        Ok(Self::new(loaded, small.until))
    }

    pub(super) fn new(loaded: Loaded, until: usize) -> Self {
        Self {
            loaded,
            until,
            batches: AtomicU64::new(0),
        }
    }

    /// The engine, if it is for a batch of so many tokens, which is counted.
    pub(super) fn takes(&self, tokens: usize) -> Option<&Arc<dyn Engine>> {
        (tokens < self.until).then(|| {
            self.batches.fetch_add(1, Relaxed);
            &self.loaded.engine
        })
    }

    pub(super) fn stats(&self) -> BesideStats {
        let provider = self.loaded.engine.provider();
        let mut stats = BesideStats::default();
        stats.engine.clone_from(&provider.engine);
        stats.provider.clone_from(&provider.provider);
        stats.until_tokens = self.until;
        stats.batches = self.batches.load(Relaxed);
        stats
    }
}
