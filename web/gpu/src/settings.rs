//! Translates the knobs of the configuration for this engine.

use isovec_engine::buffers::PoolLimits;
use isovec_engine::config::EngineConfig;
use isovec_engine::effective::EffectiveConfig;

/// Notes what every knob came to: whether f16 is computed with, where it was asked for and why not if not; whether kernels
/// depend on the rows of a batch.
pub(crate) fn effective(
    config: &EngineConfig,
    f16: Option<bool>,
    half: bool,
    whole: Option<String>,
    varies: bool,
) -> EffectiveConfig {
    let mut effective = EffectiveConfig::default();
    let session = &config.session;
    let device = "the GPU computes";
    let threads = session.intra_op_threads;
    effective.note("session.intra_op_threads", threads, 1, device);
    let one = "the device has one queue, in which batches wait";
    effective.note("session.pool_size", session.pool_size, 1, one);
    effective.note(
        "session.graph_optimization_level",
        session.graph_optimization_level,
        3,
        "the graph is always optimised as far as it goes",
    );
    let arena = "results take turns in a few buffers on the device";
    effective.note("session.cpu_arena", session.cpu_arena, false, arena);
    let bits = match varies {
        true => "products of few rows and of many have kernels of their own",
        false => "every product has one kernel; other adapters may round differently",
    };
    effective.note(
        "session.deterministic_compute",
        session.deterministic_compute,
        !varies,
        bits,
    );
    effective.note_without_files(session);
    let copies = "padding is left out while inputs are copied to the device";
    effective.note_copied(&config.io, copies);
    PoolLimits::of(&config.memory).note(&mut effective, &config.memory);
    effective.note(
        "memory.memory_prediction",
        config.memory.memory_prediction,
        false,
        "this engine does not predict the memory of a run",
    );
    match whole {
        Some(why) => effective.note("providers.webgpu.f16", f16, half, why),
        None => effective.note_own("providers.webgpu.f16", f16.as_ref(), half, "the default"),
    }
    effective
}
