//! The statistics of an engine, in the same shape on every target.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The statistics of an engine since it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EngineStats {
    /// Sessions, and the waiting for them.
    pub sessions: SessionStats,
    /// The buffer pool.
    pub memory_pool: PoolStats,
    /// How tensors went in and out.
    pub io_binding: IoStats,
    /// The provider that computes.
    pub provider: ProviderStats,
    /// The GPU's work, on the engine that drives one itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuStats>,
}

/// The statistics of a GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GpuStats {
    /// The adapter, as it names itself.
    pub adapter: String,
    /// Its interface: Vulkan, Metal, DirectX 12 or the browser's.
    pub backend: String,
    /// Whether it emulates a GPU on the processor.
    pub software: bool,
    /// Kernels of one run.
    pub dispatches_per_run: usize,
    /// Kernels that were started.
    pub dispatches: u64,
    /// Times that work was handed to the device.
    pub submissions: u64,
    /// Kernels that were compiled.
    pub pipelines: u64,
    /// Bytes of the weights on the device.
    pub weight_bytes: u64,
    /// Bytes that results of kernels take turns in.
    pub arena_bytes: u64,
    /// Times that a lost device was opened again.
    pub recreated: u64,
    /// Whether it computes with 16-bit floats.
    pub f16: bool,
    /// Whether its kernels share by subgroups.
    pub subgroups: bool,
    /// Whether the vectors for the device's check were cached at an earlier start.
    pub check_recalled: bool,
    /// Whether kernels were chosen by their times on this device, and not by a rule.
    pub tuned: bool,
    /// Whether those times were measured at an earlier start.
    pub tuning_recalled: bool,
    /// Whether the device can measure the time of its kernels.
    pub timestamps: bool,
    /// The kernels of those runs that a profile recorded operators of, by their names.
    pub kernels: Vec<KernelStats>,
}

/// The time of kernels of one kind, by the GPU's own clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KernelStats {
    /// The kind.
    pub name: String,
    /// Dispatches that were timed.
    pub dispatches: u64,
    /// Seconds that they took together. Browsers round each to 0.1 ms.
    pub seconds: f64,
}

/// Sessions, and the waiting for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SessionStats {
    /// How many there are.
    pub count: usize,
    /// How many are running something now.
    pub in_use: usize,
    /// The most that ran at the same time.
    pub peak_in_use: usize,
    /// Callers that wait for one now.
    pub waiting: usize,
    /// The most that waited at the same time.
    pub peak_waiting: usize,
    /// The most bytes that runs took beside the weights, all sessions together, where the engine
    /// counts them; 0 elsewhere.
    pub peak_run_bytes: u64,
    /// The wait for a session, in seconds; runs that found one idle count as 0.
    pub wait: Latency,
    /// The run itself, in seconds.
    pub run: Latency,
    /// Each session's share; empty on the portable engine, which has no sessions and counts neither uses nor waiting.
    pub per_session: Vec<SessionShare>,
}

/// The statistics of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SessionShare {
    /// Runs that it began.
    pub runs: u64,
    /// Of these, runs that failed, cancelled ones not counted.
    pub failed: u64,
    /// Of these, runs that were cancelled.
    pub cancelled: u64,
    /// Seconds that it spent in runs.
    pub busy_seconds: f64,
}

/// The statistics of the buffer pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Whether there is one.
    pub enabled: bool,
    /// Requested buffers.
    pub requests: u64,
    /// Of these, buffers that were there.
    pub pool_hits: u64,
    /// Buffers that had to be made, those ahead of any request included.
    pub total_allocations: u64,
    /// Buffers that were freed because the pool was full.
    pub evictions: u64,
    /// Times that the pool let everything go because memory was short.
    pub pressure_cleanups: u64,
    /// Buffers that wait to be used.
    pub current_buffers: usize,
    /// Their bytes.
    pub current_memory_bytes: u64,
    /// Bytes of buffers in use: 0 if no run is active and no result of a run is held.
    pub lent_memory_bytes: u64,
    /// The most bytes that buffers took at one time, those in use included.
    pub peak_memory_bytes: u64,
}

impl PoolStats {
    /// The part of the requests that found a buffer; 1 before the first request.
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.pool_hits, self.requests)
    }
}

/// How tensors went in and out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct IoStats {
    /// Whether outputs were bound before runs.
    pub bound: bool,
    /// Why outputs were not bound, where they were not.
    pub fallback: Option<String>,
    /// Input tensors of all runs.
    pub inputs: u64,
    /// Of these, tensors that the engine read where they were.
    pub inputs_in_place: u64,
    /// Output tensors of all runs.
    pub outputs: u64,
    /// Of these, tensors that the engine wrote where they stay.
    pub outputs_in_place: u64,
    /// Bytes that were copied between the caller's buffers and the engine's on the host.
    pub copied_bytes: u64,
    /// Bytes that went from the host to a device.
    pub to_device_bytes: u64,
    /// Bytes that came from a device.
    pub from_device_bytes: u64,
    /// Buffers that inputs and outputs took.
    pub buffers: u64,
    /// Of these, buffers that had been used before.
    pub buffers_reused: u64,
    /// Seconds that getting a buffer took on average.
    pub average_allocation_seconds: f64,
}

impl IoStats {
    /// The part of the buffers that had been used before; 1 before the first run.
    pub fn buffer_reuse_ratio(&self) -> f64 {
        ratio(self.buffers_reused, self.buffers)
    }

    /// The part of the inputs and outputs that were not copied; 1 before the first run.
    pub fn zero_copy_ratio(&self) -> f64 {
        ratio(
            self.inputs_in_place + self.outputs_in_place,
            self.inputs + self.outputs,
        )
    }
}

/// The provider that computes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProviderStats {
    /// The engine, by the name of its factory.
    pub engine: String,
    /// Its provider.
    pub selected: String,
    /// Nodes of the graph by the provider that runs them, where the engine can say.
    pub nodes: Vec<(String, usize)>,
    /// Every time that something else was tried first, or lost.
    pub fallbacks: Vec<Fallback>,
    /// The provider for small batches, if the processor computes them faster than a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideStats>,
    /// Runs that ended, well or not; cancelled ones are not counted.
    pub runs: u64,
    /// Of these, runs that failed.
    pub failed: u64,
}

impl ProviderStats {
    /// The part of the runs that ended well; 1 before the first run.
    pub fn success_rate(&self) -> f64 {
        ratio(self.runs - self.failed.min(self.runs), self.runs)
    }
}

/// An engine that takes the small batches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BesideStats {
    /// The engine.
    pub engine: String,
    /// Its provider.
    pub provider: String,
    /// Tokens of the smallest batch that it does not take.
    pub until_tokens: usize,
    /// Batches that it took.
    pub batches: u64,
}

/// A requested provider that does not compute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Fallback {
    /// The provider that was tried or lost.
    pub from: String,
    /// The provider that replaced it.
    pub to: String,
    /// Why.
    pub cause: String,
}

impl Fallback {
    /// Names both and the cause.
    pub fn new(from: impl Into<String>, to: impl Into<String>, cause: impl Into<String>) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            cause: cause.into(),
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// Times of one stage, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Their sum.
    pub total: f64,
    /// The time that half of them stayed within, to two digits.
    pub p50: f64,
    /// The time that 90 in 100 stayed within.
    pub p90: f64,
    /// The time that 99 in 100 stayed within.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Takes times from any thread. Holds its lock for some ten nanoseconds, once per run.
#[derive(Debug)]
pub struct LatencyRecorder(Mutex<Recorded>);

#[derive(Debug)]
struct Recorded {
    /// In microseconds.
    times: Histogram<u64>,
    total: Duration,
}

/// Longer times count as this one.
const LONGEST: u64 = 3_600_000_000;

impl Default for LatencyRecorder {
    fn default() -> Self {
        let times = Histogram::new_with_max(LONGEST, 2)
            .expect("two digits up to an hour are within what a histogram takes");
        Self(Mutex::new(Recorded {
            times,
            total: Duration::ZERO,
        }))
    }
}

impl LatencyRecorder {
    /// Notes a time.
    pub fn record(&self, time: Duration) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.times.saturating_record(
            u64::try_from(time.as_micros())
                .unwrap_or(LONGEST)
                .min(LONGEST),
        );
        recorded.total += time;
    }

    /// The measurements so far.
    pub fn read(&self) -> Latency {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = |micros: u64| micros as f64 / 1e6;
        let at = |quantile| seconds(recorded.times.value_at_quantile(quantile));
        Latency {
            count: recorded.times.len(),
            total: recorded.total.as_secs_f64(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: seconds(recorded.times.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let recorder = LatencyRecorder::default();
        assert_eq!(recorder.read(), Latency::default());
        for millis in 1..=100 {
            recorder.record(Duration::from_millis(millis));
        }
        recorder.record(Duration::from_secs(90_000));
        let read = recorder.read();
        assert_eq!(read.count, 101);
        assert!((read.p50 - 0.051).abs() < 0.001, "{read:?}");
        assert!((read.p90 - 0.091).abs() < 0.001, "{read:?}");
        assert!(read.max >= 3500.0, "{read:?}");
        assert!((read.total - 90_005.05).abs() < 1e-6, "{read:?}");
    }

    #[test]
    fn ratios_are_whole_before_anything_happened() {
        let stats = EngineStats::default();
        assert_eq!(stats.memory_pool.hit_ratio(), 1.0);
        assert_eq!(stats.io_binding.zero_copy_ratio(), 1.0);
        assert_eq!(stats.provider.success_rate(), 1.0);
        let io = IoStats {
            inputs: 3,
            inputs_in_place: 3,
            outputs: 1,
            ..IoStats::default()
        };
        assert_eq!(io.zero_copy_ratio(), 0.75);
    }

    #[test]
    fn statistics_survive_json() {
        let mut stats = EngineStats::default();
        stats
            .provider
            .fallbacks
            .push(Fallback::new("gpu", "cpu", "no device"));
        let json = serde_json::to_string(&stats).unwrap();
        assert_eq!(serde_json::from_str::<EngineStats>(&json).unwrap(), stats);
    }
}
