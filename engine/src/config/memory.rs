//! What memory an engine may take and keep.

use serde::{Deserialize, Serialize};

/// The memory that an engine may use. `None` in a field means the default that is stated there. Sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// Hold buffers for inputs and outputs in a pool and reuse them. `None`: true.
    pub memory_pool: Option<bool>,
    /// Buffers that wait in the pool; the one unused for longest goes first. `None`: 32.
    pub max_pool_size: Option<usize>,
    /// Bytes that wait in the pool. `None`: 256 MiB.
    pub max_pool_memory: Option<u64>,
    /// Watch the free memory of the machine and of its control group, and free the pool's buffers when it is short.
    /// `None`: true.
    pub memory_pressure_detection: Option<bool>,
    /// The share of memory in use from which memory counts as short: 0 to 1. `None`: 0.8.
    pub memory_pressure_threshold: Option<f64>,
    /// Predict the memory of a batch, and split or refuse a batch that would not fit. `None`: true.
    pub memory_prediction: Option<bool>,
    /// The most bytes that one model may take: its weights and its batches. `None`: the free memory of the machine,
    /// up to the pressure threshold.
    pub memory_limit: Option<u64>,
    /// Map the model's file into memory instead of reading it, so that processes share its pages and the system can
    /// drop them. `None`: true.
    pub mmap: Option<bool>,
}

impl MemoryConfig {
    /// Whether buffers are pooled.
    pub fn pools(&self) -> bool {
        self.memory_pool.unwrap_or(true)
    }

    /// The contradictions and impossible values of this group, in words, by the names that configurations write.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let zero = [
            ("memory.max_pool_size", self.max_pool_size.map(|n| n as u64)),
            ("memory.max_pool_memory", self.max_pool_memory),
            ("memory.memory_limit", self.memory_limit),
        ];
        for (knob, value) in zero {
            if value == Some(0) {
                faults.push(format!("{knob} is 0; leave it out for the default"));
            }
            if value.is_some() && !self.pools() && knob != "memory.memory_limit" {
                faults.push(format!("{knob} is set, but memory.memory_pool is off"));
            }
        }
        if let Some(threshold) = self.memory_pressure_threshold {
            if !(threshold > 0.0 && threshold <= 1.0) {
                faults.push(format!(
                    "memory.memory_pressure_threshold is {threshold}; it is a part of the whole, \
                     over 0 and at most 1"
                ));
            }
            if self.memory_pressure_detection == Some(false) {
                faults.push(
                    "memory.memory_pressure_threshold is set, but \
                     memory.memory_pressure_detection is off"
                        .into(),
                );
            }
        }
        if let Some(limit) = self.memory_limit {
            if self.memory_prediction == Some(false) {
                faults.push(
                    "memory.memory_limit is set, but memory.memory_prediction is off, without \
                     which it cannot be kept"
                        .into(),
                );
            }
            if let Some(pool) = self.max_pool_memory.filter(|&pool| pool > limit) {
                faults.push(format!(
                    "memory.max_pool_memory is {pool}, more than memory.memory_limit, {limit}"
                ));
            }
        }
        faults
    }
}
