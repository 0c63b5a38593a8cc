//! Translates the knobs of the configuration for ONNX Runtime.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use isovec_engine::buffers::PoolLimits;
use isovec_engine::config::EngineConfig;
use isovec_engine::cores;
use isovec_engine::description::{Dim, ModelDescription};
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::fresh::Fresh;

use crate::options::{Options, Provider};
use crate::sys::{Result, SessionOptions};

/// Past this many threads an operator of an embedding model's size gains little.
const MOST_DEFAULT_THREADS: usize = 4;

/// Buffers made ahead, of each kind, unless the configuration says otherwise.
const DEFAULT_AHEAD: usize = 4;

/// The knobs, decided.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) provider: Provider,
    pub(crate) pool_size: usize,
    pub(crate) intra_op_threads: usize,
    optimization_level: u8,
    /// Whether the place of every intermediate tensor is decided once for each input shape. ONNX Runtime stores the places
    /// for every shape that it has seen, so never where shapes vary.
    memory_pattern: bool,
    cpu_arena: bool,
    pub(crate) deterministic: bool,
    pub(crate) profiling: Option<PathBuf>,
    pub(crate) optimized_model_cache: Option<PathBuf>,
    pub(crate) io_binding: bool,
    pub(crate) zero_copy: bool,
    pub(crate) inputs_ahead: usize,
    pub(crate) outputs_ahead: usize,
    pub(crate) prediction: bool,
    pub(crate) pool: PoolLimits,
    pub(crate) effective: EffectiveConfig,
}

impl Settings {
    /// Decides every knob for a model, and notes why.
    pub(crate) fn new(
        config: &EngineConfig,
        description: &ModelDescription,
        options: &Options,
    ) -> Self {
        let mut effective = EffectiveConfig::default();
        let provider = options.provider;
        let session = &config.session;
        let deterministic = session.deterministic_compute.unwrap_or(false);
        let cores = cores::usable();

        let intra_op_threads = match session.intra_op_threads {
            // Its sums are cut by the number of threads.
            _ if deterministic => 1,
            Some(threads) => threads,
            None => cores::physical().min(MOST_DEFAULT_THREADS),
        };
        let why = if deterministic {
            "session.deterministic_compute"
        } else {
            "the physical cores, at most 4"
        };
        let asked = session.intra_op_threads;
        effective.note_own(
            "session.intra_op_threads",
            asked.as_ref(),
            intra_op_threads,
            why,
        );
        let pool_size = session
            .pool_size
            .unwrap_or((cores / intra_op_threads).max(1));
        effective.note_own(
            "session.pool_size",
            session.pool_size.as_ref(),
            pool_size,
            "the cores, divided by session.intra_op_threads",
        );

        let optimization_level = session.graph_optimization_level.unwrap_or(3);
        own(
            &mut effective,
            "session.graph_optimization_level",
            session.graph_optimization_level,
            optimization_level,
        );

        let cpu_arena = session.cpu_arena.unwrap_or(true);
        own(
            &mut effective,
            "session.cpu_arena",
            session.cpu_arena,
            cpu_arena,
        );

        let promised = deterministic && provider == Provider::Cpu;
        let why = match session.deterministic_compute {
            Some(true) if !promised => {
                "only the processor promises it; kernels with a fixed order are preferred"
            }
            Some(_) => "the configuration",
            None => "the default",
        };
        effective.note(
            "session.deterministic_compute",
            session.deterministic_compute,
            promised,
            why,
        );
        for (name, path) in [
            ("session.profiling", &session.profiling),
            (
                "session.optimized_model_cache",
                &session.optimized_model_cache,
            ),
        ] {
            let path = path.as_ref().map(|path| path.display().to_string());
            let used = path.clone().unwrap_or_else(|| "none".into());
            effective.note_own(name, path.as_ref(), used, "the default");
        }

        let io = &config.io;
        let io_binding = io.io_binding.unwrap_or(true);
        let zero_copy = io.zero_copy.unwrap_or(true);
        own(&mut effective, "io.io_binding", io.io_binding, io_binding);
        own(&mut effective, "io.zero_copy", io.zero_copy, zero_copy);
        let pool = PoolLimits::of(&config.memory);
        let ahead = |asked: Option<usize>| match asked {
            Some(asked) => asked.min(pool.buffers),
            None => DEFAULT_AHEAD.min(pool.buffers / 2),
        };
        let (inputs_ahead, outputs_ahead) = (
            ahead(io.pre_allocated_input_buffers),
            ahead(io.pre_allocated_output_buffers),
        );
        for (name, asked, used) in [
            (
                "io.pre_allocated_input_buffers",
                io.pre_allocated_input_buffers,
                inputs_ahead,
            ),
            (
                "io.pre_allocated_output_buffers",
                io.pre_allocated_output_buffers,
                outputs_ahead,
            ),
        ] {
            let why = match asked {
                Some(asked) if asked != used => "the pool holds no more",
                Some(_) => "the configuration",
                None => "the default, within the limit of the pool",
            };
            effective.note(name, asked, used, why);
        }

        pool.note(&mut effective, &config.memory);
        let asked = config.memory.memory_prediction;
        let prediction = asked.unwrap_or(true) && cpu_arena;
        let why = match asked {
            Some(false) => "the configuration",
            _ if !cpu_arena => "without session.cpu_arena ONNX Runtime does not count its memory",
            Some(true) => "the configuration",
            None => "the default",
        };
        effective.note("memory.memory_prediction", asked, prediction, why);

        Self {
            provider,
            pool_size,
            intra_op_threads,
            optimization_level,
            memory_pattern: !shapes_vary(description),
            cpu_arena,
            deterministic,
            profiling: session.profiling.clone(),
            optimized_model_cache: session.optimized_model_cache.clone(),
            io_binding,
            zero_copy,
            inputs_ahead,
            outputs_ahead,
            prediction,
            pool,
            effective,
        }
    }

    /// The same as ONNX Runtime takes it; the provider is added by whoever can explain a failure.
    pub(crate) fn options(&self) -> Result<SessionOptions> {
        let mut options = SessionOptions::new()?;
        options.threads(self.intra_op_threads)?;
        options.optimization_level(self.optimization_level)?;
        options.memory_pattern(self.memory_pattern)?;
        options.cpu_arena(self.cpu_arena)?;
        if self.deterministic {
            options.deterministic(true)?;
        }
        if let Some(prefix) = &self.profiling {
            options.profile(prefix)?;
        }
        // Who truly computes can be read back only if it was recorded.
        options.entry(c"session.record_ep_graph_assignment_info", c"1")?;
        Ok(options)
    }

    /// What the optimised graph depends on, beside the model and the library.
    pub(crate) fn optimization_key(&self) -> String {
        format!("level{}-{}", self.optimization_level, self.provider)
    }
}

/// What is wrong with a configuration's paths; empty when they can be written to.
pub(crate) fn path_faults(config: &EngineConfig) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(prefix) = &config.session.profiling {
        // ONNX Runtime would log the failure and go on without a profile.
        let folder = match prefix.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if let Err(error) = writable(folder) {
            faults.push(format!(
                "session.profiling is {}, where nothing can be written: {error}",
                prefix.display()
            ));
        }
    }
    if let Some(folder) = &config.session.optimized_model_cache {
        let made = fs::create_dir_all(folder).and_then(|()| writable(folder));
        if let Err(error) = made {
            faults.push(format!(
                "session.optimized_model_cache is {}, where nothing can be written: {error}",
                folder.display()
            ));
        }
    }
    faults
}

/// Makes a file and takes it away again: permissions alone do not tell.
fn writable(folder: &Path) -> std::io::Result<()> {
    Fresh::file(&folder.join("isovec")).map(drop)
}

fn own<T: Display>(effective: &mut EffectiveConfig, name: &'static str, asked: Option<T>, used: T) {
    effective.note_own(name, asked.as_ref(), used, "the default");
}

fn shapes_vary(description: &ModelDescription) -> bool {
    description.inputs.iter().any(|input| {
        input
            .dims
            .as_ref()
            .is_none_or(|dims| dims.iter().any(|dim| matches!(dim, Dim::Symbolic(_))))
    })
}
