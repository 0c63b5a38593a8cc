//! The batching in effect: the `batching` knobs within the limits of the model and the engine.

use std::time::Duration;

use isovec_engine::engine::{Engine, ProviderInfo};
use isovec_engine::weights::WeightsIdentity;
use isovec_model::bundle::RowMixer;

use crate::config::{BatchingConfig, EmbeddingConfig};
use crate::effective::EffectiveConfig;
use crate::json;
use crate::plan::{Budget, Tokens};
use crate::record::{self, Record};

use super::feed::Feed;

/// Positions of a batch: what is fastest on most processors.
const BATCH_TOKENS: usize = 256;
/// The same for GPUs, which want to be filled, and the rows to do it.
const GPU_BATCH_TOKENS: usize = 8192;
const GPU_BATCH_SIZE: usize = 128;
/// How long an answer may take.
const TARGET_LATENCY: Duration = Duration::from_millis(100);
/// How long a batch is waited for, where a preferred size is named.
const WAIT_FOR_PREFERRED: Duration = Duration::from_millis(5);
/// Texts that may wait.
const QUEUE: usize = 8192;
/// Tokens that may wait: 16 MiB of ids and types.
const QUEUE_TOKENS: usize = 1 << 20;
/// Bytes of pictures that may wait, as the model reads them: some hundred of 224 x 224 pixels.
const QUEUE_BYTES_OF_PICTURES: usize = 64 << 20;

/// What a batcher reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batching {
    pub(crate) min_rows: usize,
    /// Rows for which nobody waits any longer.
    pub(crate) preferred_rows: usize,
    pub(crate) max_wait: Duration,
    pub(crate) max_queue: usize,
    pub(crate) max_queue_tokens: usize,
    /// `None`: batches are as large as the budget allows.
    pub(crate) steering: Option<SteeringAim>,
}

/// What the configuration comes to.
pub(super) struct Resolved {
    pub(super) budget: Budget,
    pub(super) batching: Batching,
    /// Whether measuring could find a better size, and nobody has.
    pub(super) to_measure: bool,
}

/// What batches are steered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SteeringAim {
    pub(crate) target_latency: Duration,
    pub(crate) throughput: bool,
}

/// What the configuration comes to, noted knob by knob. Texts of a model that mixes rows run alone:
/// they would get other vectors in other company.
///
/// A model of a fixed number of rows gets the one text in all of them, and one of a fixed number of
/// positions the same padding for a text every time: both are the text's own.
pub(super) fn resolve(
    config: &EmbeddingConfig,
    engine: &dyn Engine,
    feed: &Feed,
    mixer: Option<&RowMixer>,
    measured: Option<Tokens>,
    effective: &mut EffectiveConfig,
) -> Resolved {
    let asked = &config.batching;
    let capabilities = engine.capabilities();
    let alone = why_alone(config, mixer, capabilities.ragged);

    let (rows, tokens) = if on_a_gpu(engine.provider()) {
        (GPU_BATCH_SIZE, GPU_BATCH_TOKENS)
    } else {
        (BatchingConfig::MAX_BATCH_SIZE, BATCH_TOKENS)
    };
    let rows = asked.max_batch_size.unwrap_or(rows);
    let taken = feed.rows.map_or(rows, |most| most.min(rows));
    let taken = if alone.is_some() { 1 } else { taken };
    let tokens = asked.max_batch_tokens.unwrap_or(tokens);
    let most_tokens = capabilities
        .max_batch_tokens
        .map_or(tokens, |most| most.min(tokens));
    let why = |asked: Option<usize>, limited: bool| match (asked, &alone) {
        (_, Some(alone)) if limited => alone,
        _ if limited => "the most that the model or the engine takes",
        (Some(_), _) => "the configuration",
        (None, _) => "the default",
    };
    let in_order = config.runtime.io.batch_optimization == Some(false);
    // Otherwise the sizes are somebody's decision, or have no part in the speed.
    let measurable = asked.max_batch_tokens.is_none()
        && taken > 1
        && !in_order
        && !capabilities.ragged
        && feed.positions.is_none();
    let measured = measured.filter(|_| measurable);
    let budget = Budget {
        rows: taken,
        tokens: measured.map_or(Tokens::same(most_tokens), |tokens| {
            tokens.up_to(capabilities.max_batch_tokens.unwrap_or(usize::MAX))
        }),
        least: 1,
        // A model of a fixed number of positions pads every text to them.
        ragged: capabilities.ragged && feed.positions.is_none(),
    };
    effective.note(
        "batching.max_batch_size",
        asked.max_batch_size,
        taken,
        why(asked.max_batch_size, taken != rows),
    );
    effective.note(
        "batching.max_batch_tokens",
        asked.max_batch_tokens,
        budget.tokens,
        match measured {
            _ if in_order => "only a DynamicBatcher reads it: io.batch_optimization is off",
            Some(_) => "measured at an earlier start",
            None => why(asked.max_batch_tokens, most_tokens != tokens),
        },
    );

    let min = asked.min_batch_size.unwrap_or(1).min(taken);
    effective.note(
        "batching.min_batch_size",
        asked.min_batch_size,
        min,
        why(
            asked.min_batch_size,
            asked.min_batch_size.is_some_and(|rows| rows != min),
        ),
    );
    let preferred = asked.preferred_batch_size.unwrap_or(taken).min(taken);
    effective.note(
        "batching.preferred_batch_size",
        asked.preferred_batch_size,
        preferred,
        match asked.preferred_batch_size {
            None => "the default: batching.max_batch_size",
            Some(rows) => why(Some(rows), rows != preferred),
        },
    );
    let max_wait = asked.max_wait.unwrap_or(match asked.preferred_batch_size {
        Some(_) => WAIT_FOR_PREFERRED,
        None => Duration::ZERO,
    });
    note_duration(effective, "batching.max_wait", asked.max_wait, max_wait);
    let max_queue = asked.max_queue.unwrap_or(QUEUE);
    let default_tokens = match feed.picture_bytes() {
        Some(bytes) => (QUEUE_BYTES_OF_PICTURES / bytes).max(1) * feed.padded(1),
        None => QUEUE_TOKENS,
    };
    let max_queue_tokens = asked.max_queue_tokens.unwrap_or(default_tokens);
    for (knob, asked, used) in [
        ("batching.max_queue", asked.max_queue, max_queue),
        (
            "batching.max_queue_tokens",
            asked.max_queue_tokens,
            max_queue_tokens,
        ),
    ] {
        effective.note_own(knob, asked.as_ref(), used, "the default");
    }

    let steered = asked.dynamic_batching.unwrap_or(true) && alone.is_none();
    let target_latency = asked.target_latency.unwrap_or(TARGET_LATENCY);
    let throughput = asked.throughput_optimization.unwrap_or(false);
    match &alone {
        None => effective.note_own(
            "batching.dynamic_batching",
            asked.dynamic_batching.as_ref(),
            steered,
            "the default",
        ),
        Some(alone) => effective.note(
            "batching.dynamic_batching",
            asked.dynamic_batching,
            false,
            alone,
        ),
    }
    let target = asked.target_latency.map(written);
    if steered && !throughput {
        note_duration(
            effective,
            "batching.target_latency",
            asked.target_latency,
            target_latency,
        );
    } else {
        let why = if throughput {
            "batching.throughput_optimization: batches are as large as pays"
        } else {
            "batches are not steered"
        };
        effective.note_unused("batching.target_latency", target, why);
    }
    effective.note_own(
        "batching.throughput_optimization",
        asked.throughput_optimization.as_ref(),
        throughput && steered,
        "the default",
    );
    let batching = Batching {
        min_rows: min,
        preferred_rows: preferred,
        max_wait,
        max_queue,
        max_queue_tokens,
        steering: steered.then_some(SteeringAim {
            target_latency,
            throughput,
        }),
    };
    Resolved {
        budget,
        batching,
        to_measure: measurable && measured.is_none(),
    }
}

/// Where it is kept how large batches of this model are fastest, on this engine as it is set up.
pub(super) fn record(
    weights: &WeightsIdentity,
    engine: &dyn Engine,
    max_length: usize,
    config: &EmbeddingConfig,
) -> Record {
    let capabilities = engine.capabilities();
    let measured_on = format!(
        "{}, {}, {} runs of {} threads, rows of {max_length}, {}",
        record::machine(),
        engine.provider(),
        capabilities.concurrent_runs,
        capabilities.intra_op_threads,
        json::text(&(
            config.batching.max_batch_size,
            &config.runtime.session,
            &config.runtime.providers,
            config.runtime.memory.memory_limit,
        )),
    );
    Record::of("batches", weights, &config.runtime, measured_on)
}

/// As `ProviderInfo` names them.
const GPUS: [&str; 7] = [
    "CUDA", "Tensorrt", "MIGraphX", "Dml", "CoreML", "WebGpu", "WebGPU",
];

fn on_a_gpu(provider: &ProviderInfo) -> bool {
    GPUS.contains(&provider.provider.as_str())
}

/// Why every text runs alone and unpadded, if it does.
///
/// Rows that are computed at their own length have no neighbours to depend on.
fn why_alone(config: &EmbeddingConfig, mixer: Option<&RowMixer>, ragged: bool) -> Option<String> {
    if ragged {
        return None;
    }
    if config.runtime.session.deterministic_compute == Some(true) {
        return Some("session.deterministic_compute: every text runs alone".into());
    }
    let mixer = mixer?;
    let why = format!(
        "{mixer} makes a text's vector depend on the other texts of a batch, so every text runs alone"
    );
    tracing::warn!(target: "isovec", "{why}");
    Some(why)
}

fn note_duration(
    effective: &mut EffectiveConfig,
    knob: &'static str,
    asked: Option<Duration>,
    used: Duration,
) {
    let asked = asked.map(written);
    effective.note_own(knob, asked.as_ref(), written(used), "the default");
}

/// A duration as configuration files write it.
fn written(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}
