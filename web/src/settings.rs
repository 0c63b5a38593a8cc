//! Translates the knobs of the configuration for this engine.

use std::fmt::Display;

use isovec_engine::buffers::PoolLimits;
use isovec_engine::config::EngineConfig;
use isovec_engine::effective::EffectiveConfig;

/// Whether workers can share the memory that this is compiled for.
const SHARED: bool = cfg!(target_feature = "atomics");

/// The knobs, decided.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) threads: usize,
    pub(crate) runs: usize,
    /// The threads of all runs together.
    pub(crate) cores: usize,
    pub(crate) deterministic: bool,
    pub(crate) pool: PoolLimits,
    pub(crate) effective: EffectiveConfig,
}

impl Settings {
    /// Decides every knob, and notes why. `threads` and `runs` are what the executor makes of the
    /// numbers that were asked for.
    pub(crate) fn new(config: &EngineConfig, threads: usize, runs: usize, cores: usize) -> Self {
        let mut effective = EffectiveConfig::default();
        let session = &config.session;
        let deterministic = session.deterministic_compute.unwrap_or(false);
        let why = match session.intra_op_threads {
            Some(asked) if asked == threads => "the configuration",
            None if cfg!(not(target_family = "wasm")) => "the physical cores, at most 4",
            None if SHARED => "the workers that the page started, and its own thread, at most 4",
            Some(_) if SHARED => "the workers that the page could start, and its own thread",
            _ => "all that this page can use: its memory is not shared with workers",
        };
        effective.note(
            "session.intra_op_threads",
            session.intra_op_threads,
            threads,
            why,
        );

        let why = match session.pool_size {
            Some(asked) if asked == runs => "the configuration",
            _ if cfg!(target_family = "wasm") => "runs take turns in the event loop",
            _ => "one for each physical core or every few, which the runs at the same time share",
        };
        effective.note("session.pool_size", session.pool_size, runs, why);
        effective.note(
            "session.graph_optimization_level",
            session.graph_optimization_level,
            3,
            "the graph is always optimised as far as it goes",
        );
        let state = "every run has a state of its own, which goes with it";
        effective.note("session.cpu_arena", session.cpu_arena, false, state);
        own(
            &mut effective,
            "session.deterministic_compute",
            session.deterministic_compute,
            deterministic,
        );
        effective.note_without_files(session);
        let copies =
            "padding is left out while inputs are copied; the processor has no other memory";
        effective.note_copied(&config.io, copies);

        let pool = PoolLimits::of(&config.memory);
        pool.note(&mut effective, &config.memory);
        effective.note(
            "memory.memory_prediction",
            config.memory.memory_prediction,
            false,
            "this engine does not measure the memory of a run",
        );
        Self {
            threads,
            runs,
            cores,
            deterministic,
            pool,
            effective,
        }
    }
}

fn own<T: Display>(effective: &mut EffectiveConfig, name: &'static str, asked: Option<T>, used: T) {
    effective.note_own(name, asked.as_ref(), used, "the default");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_honoured_is_said() {
        let mut config = EngineConfig::default();
        config.session.intra_op_threads = Some(4);
        config.session.cpu_arena = Some(true);
        config.io.zero_copy = Some(true);
        config.session.profiling = Some("profile".into());
        let effective = Settings::new(&config, 1, 1, 1).effective;
        let names: Vec<_> = effective.not_honoured().map(|knob| &*knob.name).collect();
        assert_eq!(
            names,
            [
                "session.intra_op_threads",
                "session.cpu_arena",
                "session.profiling",
                "io.zero_copy"
            ]
        );
    }
}
