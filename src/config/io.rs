//! How tensors reach an engine and return.

use isovec_engine::config;
use serde::{Deserialize, Serialize};

/// How tensors reach an engine and return. `None` in a field means the default that is stated there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct IoConfig {
    /// Bind outputs to pooled buffers before a run, so that the engine writes into them. `None`: true. Off, the
    /// engine allocates its own outputs, and they are copied.
    pub io_binding: Option<bool>,
    /// Let the engine read inputs in place. `None`: true. Off, they are copied first.
    pub zero_copy: Option<bool>,
    /// Input buffers that are allocated when the model is loaded, ready for the first batches. `None`: 4.
    pub pre_allocated_input_buffers: Option<usize>,
    /// The same for outputs. `None`: 4.
    pub pre_allocated_output_buffers: Option<usize>,
    /// Sort texts by length and cut batches by tokens, so that there is little padding. `None`: true. Off, batches
    /// follow the caller's order and hold `batching.max_batch_size` rows. Measured on two cores with texts of 1 to
    /// 256 tokens: 1.4 s against 15.5 s in one batch.
    pub batch_optimization: Option<bool>,
}

/// More pre-allocated buffers than this are surely a mistake.
const MOST_BUFFERS: usize = 4096;

impl IoConfig {
    /// The part that every engine gets. The rest is for the planner of batches.
    pub(super) fn of_every_engine(&self) -> config::IoConfig {
        let mut io = config::IoConfig::default();
        io.io_binding = self.io_binding;
        io.zero_copy = self.zero_copy;
        io.pre_allocated_input_buffers = self.pre_allocated_input_buffers;
        io.pre_allocated_output_buffers = self.pre_allocated_output_buffers;
        io
    }

    pub(super) fn check(&self, faults: &mut Vec<String>, memory_pool: bool) {
        for (knob, asked) in [
            (
                "io.pre_allocated_input_buffers",
                self.pre_allocated_input_buffers,
            ),
            (
                "io.pre_allocated_output_buffers",
                self.pre_allocated_output_buffers,
            ),
        ] {
            let Some(asked) = asked.filter(|&asked| asked > 0) else {
                continue;
            };
            if asked > MOST_BUFFERS {
                faults.push(format!(
                    "{knob} is {asked}; more than {MOST_BUFFERS} is surely a mistake"
                ));
            }
            if !memory_pool {
                faults.push(format!(
                    "{knob} is {asked}, but memory.memory_pool is off, so nothing keeps them"
                ));
            }
        }
    }
}
