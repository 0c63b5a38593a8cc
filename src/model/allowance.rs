//! How much memory a batch may take.

use std::fmt;
use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::buffers::{DEFAULT_THRESHOLD, Gauge, system_memory};
use isovec_engine::config::MemoryConfig;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::Engine;

/// What one model's batches may take, all that run at the same time together.
pub(crate) struct Allowance {
    limit: Limit,
    /// Batches that share it.
    sharers: u64,
}

enum Limit {
    /// Nothing is foretold, so nothing can be refused.
    None,
    /// So many bytes.
    Fixed(u64),
    /// What the machine has free, up to this part of all.
    Free(Arc<dyn Gauge>, f64),
}

impl Allowance {
    /// What the configuration leaves for batches beside the weights.
    pub(crate) fn new(
        config: &MemoryConfig,
        engine: &Arc<dyn Engine>,
        effective: &mut EffectiveConfig,
    ) -> Self {
        let weights = engine.description().weights_bytes;
        let foretells = engine.predicted_bytes(1, 1).is_some();
        let threshold = config
            .memory_pressure_threshold
            .unwrap_or(DEFAULT_THRESHOLD);
        let gauge = system_memory();
        let limit = match config.memory_limit {
            Some(limit) if foretells => Limit::Fixed(limit.saturating_sub(weights)),
            None if foretells && gauge.memory().is_some() => Limit::Free(gauge, threshold),
            _ => Limit::None,
        };
        let asked = config.memory_limit;
        match limit {
            Limit::Fixed(_) => effective.note_own(
                "memory.memory_limit",
                asked.as_ref(),
                asked.unwrap_or(0),
                "",
            ),
            Limit::Free(..) => effective.note(
                "memory.memory_limit",
                asked,
                "what is free",
                "the default: what the machine has free, up to memory.memory_pressure_threshold",
            ),
            Limit::None => effective.note_unused(
                "memory.memory_limit",
                asked,
                "memory.memory_prediction is not in effect, and nothing else could keep it",
            ),
        }
        Self {
            limit,
            sharers: engine.capabilities().concurrent_runs.max(1) as u64,
        }
    }

    /// Bytes that one batch may take now; `None`: nobody knows.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let all = match &self.limit {
            Limit::None => return None,
            Limit::Fixed(bytes) => *bytes,
            Limit::Free(gauge, threshold) => {
                let memory = gauge.memory()?;
                let kept = (memory.total as f64 * (1.0 - threshold)) as u64;
                memory.available.saturating_sub(kept)
            }
        };
        Some(all / self.sharers)
    }

    /// Refuses a batch that would not fit; nothing has been allocated for it.
    pub(crate) fn check(predicted: Option<u64>, allowed: Option<u64>) -> Result<(), EngineError> {
        match (predicted, allowed) {
            (Some(asked), Some(limit)) if asked > limit => Err(EngineError::InputTooLarge {
                asked,
                limit,
                unit: "bytes of memory",
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allowance").field(&self.bytes()).finish()
    }
}
