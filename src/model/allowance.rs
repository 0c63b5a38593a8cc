//! The memory that a batch may take.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isovec_engine::EngineError;
use isovec_engine::buffers::{DEFAULT_THRESHOLD, Gauge, Memory, system_memory};
use isovec_engine::config::MemoryConfig;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::Engine;
use web_time::Instant;

/// How often the machine's memory is looked at, at most. A look reads four files of the kernel's,
/// which is some percent of a short call.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What one model's batches may take, all that run at the same time together.
pub(crate) struct Allowance {
    limit: Limit,
    /// Batches that share it.
    sharers: u64,
}

enum Limit {
    /// Memory is not predicted, so nothing can be refused.
    None,
    /// So many bytes.
    Fixed(u64),
    /// The free memory of the machine, up to a share of the total.
    Free(Free),
}

struct Free {
    gauge: Arc<dyn Gauge>,
    threshold: f64,
    /// The last look, and when it was.
    seen: Mutex<Option<(Instant, Memory)>>,
}

impl Free {
    fn bytes(&self) -> Option<u64> {
        let memory = self.memory()?;
        let kept = (memory.total as f64 * (1.0 - self.threshold)) as u64;
        Some(memory.available.saturating_sub(kept))
    }

    fn memory(&self) -> Option<Memory> {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match *seen {
            Some((at, memory)) if now.duration_since(at) < LOOK_EVERY => Some(memory),
            _ => {
                let memory = self.gauge.memory()?;
                *seen = Some((now, memory));
                Some(memory)
            }
        }
    }
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
            None if foretells && gauge.memory().is_some() => Limit::Free(Free {
                gauge,
                threshold,
                seen: Mutex::default(),
            }),
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
                "the free memory",
                "the default: the free memory of the machine, up to memory.memory_pressure_threshold",
            ),
            Limit::None => effective.note_unused(
                "memory.memory_limit",
                asked,
                "memory.memory_prediction is not in effect, and the limit cannot be enforced without it",
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
            Limit::Free(free) => free.bytes()?,
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
