//! How a session computes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// More threads than this are surely a mistake.
const MOST_THREADS: usize = 1024;

/// How a session computes. `None` in a field means the default that is stated there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionConfig {
    /// Runs at the same time, on one copy of the weights. `None`: as many as fit the cores with `intra_op_threads`
    /// each, at least 1; where runs share the cores as many as there are, and of more than 8 cores 1 run for every few;
    /// a page has 1.
    pub pool_size: Option<usize>,
    /// Threads that work on one operator. `None`: the physical cores, at most 4; in a page half of the processors, 2
    /// to 4, and 1 if its memory is not shared with workers.
    pub intra_op_threads: Option<usize>,
    /// 0: the graph as it is; 1: constants folded and dead operators dropped; 2: operators fused;
    /// 3: data laid out for this machine as well. `None`: 3.
    pub graph_optimization_level: Option<u8>,
    /// Hold memory for intermediate tensors between runs. `None`: true.
    pub cpu_arena: Option<bool>,
    /// Make a text's vector bit-identical whatever else is computed at the same time. An engine that pads runs every text
    /// alone, unpadded, on one thread. On the portable engine the bits are also the same in every build and on every
    /// processor. `None`: false.
    pub deterministic_compute: Option<bool>,
    /// Write the engine's own profile to a file whose name begins with this text. `None`: no profile.
    pub profiling: Option<PathBuf>,
    /// Cache the optimised graph in this folder, so that the next start need not optimise again. `None`: it is not
    /// cached.
    pub optimized_model_cache: Option<PathBuf>,
}

impl SessionConfig {
    /// The contradictions and impossible values of this group, in words, by the names that configurations write.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        count(&mut faults, "session.pool_size", self.pool_size);
        count(
            &mut faults,
            "session.intra_op_threads",
            self.intra_op_threads,
        );
        if let Some(level) = self.graph_optimization_level.filter(|&level| level > 3) {
            faults.push(format!(
                "session.graph_optimization_level is {level}; the levels are 0 to 3"
            ));
        }
        for (knob, path) in [
            ("session.profiling", &self.profiling),
            ("session.optimized_model_cache", &self.optimized_model_cache),
        ] {
            if path
                .as_ref()
                .is_some_and(|path| path.as_os_str().is_empty())
            {
                faults.push(format!("{knob} is empty; leave it out for the default"));
            }
        }
        faults
    }
}

/// A number of threads or runs that is neither none nor absurd.
fn count(faults: &mut Vec<String>, knob: &str, asked: Option<usize>) {
    match asked {
        Some(0) => faults.push(format!("{knob} is 0; leave it out for the default")),
        Some(asked) if asked > MOST_THREADS => faults.push(format!(
            "{knob} is {asked}; more than {MOST_THREADS} is surely a mistake"
        )),
        _ => {}
    }
}
