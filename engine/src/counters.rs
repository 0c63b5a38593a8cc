//! The counters of a running engine: atomic numbers, and two latencies.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::error::EngineError;
use crate::stats::{EngineStats, LatencyRecorder};

/// How a run ended, for the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With its outputs.
    Well,
    /// With an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Ended {
    /// The outcome of a result.
    pub fn of<T>(result: &Result<T, EngineError>) -> Self {
        match result {
            Ok(_) => Self::Well,
            Err(EngineError::Cancelled) => Self::Cancelled,
            Err(_) => Self::Failed,
        }
    }

    /// The word for it in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The counters that every engine has. Counting costs some nanoseconds a run.
#[derive(Debug, Default)]
pub struct Counters {
    wait: LatencyRecorder,
    run: LatencyRecorder,
    // Each outcome by itself: a difference of two counters can fall while they are written.
    runs: Both,
    inputs: Both,
    outputs: Both,
    copied_bytes: AtomicU64,
    to_device_bytes: AtomicU64,
    from_device_bytes: AtomicU64,
    buffers: Both,
    allocation_nanos: AtomicU64,
}

/// How often something was so, and how often it was not.
#[derive(Debug, Default)]
struct Both {
    yes: AtomicU64,
    no: AtomicU64,
}

impl Both {
    fn count(&self, is: bool) {
        let counter = if is { &self.yes } else { &self.no };
        counter.fetch_add(1, Relaxed);
    }

    /// Of all, those that were so.
    fn read(&self) -> (u64, u64) {
        let yes = self.yes.load(Relaxed);
        (yes + self.no.load(Relaxed), yes)
    }
}

impl Counters {
    /// A caller waited so long for its turn.
    pub fn waited(&self, time: Duration) {
        self.wait.record(time);
    }

    /// A run took so long. Cancelled ones are not counted.
    pub fn ran(&self, took: Duration, ended: Ended) {
        if ended == Ended::Cancelled {
            return;
        }
        self.run.record(took);
        self.runs.count(ended == Ended::Failed);
    }

    /// An input went in, for which so many bytes were copied.
    pub fn input(&self, copied: usize) {
        self.inputs.count(copied == 0);
        self.copied_bytes.fetch_add(copied as u64, Relaxed);
    }

    /// An output came back, for which so many bytes were copied.
    pub fn output(&self, copied: usize) {
        self.outputs.count(copied == 0);
        self.copied_bytes.fetch_add(copied as u64, Relaxed);
    }

    /// A run sent so many bytes to a device and got so many back.
    pub fn crossed(&self, to_device: usize, from_device: usize) {
        self.to_device_bytes.fetch_add(to_device as u64, Relaxed);
        self.from_device_bytes
            .fetch_add(from_device as u64, Relaxed);
    }

    /// Getting a buffer took so long.
    pub fn buffer(&self, took: Duration, reused: bool) {
        self.buffers.count(reused);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.allocation_nanos.fetch_add(nanos, Relaxed);
    }

    /// Writes everything into the statistics.
    pub fn read(&self, stats: &mut EngineStats) {
        stats.sessions.wait = self.wait.read();
        stats.sessions.run = self.run.read();
        let io = &mut stats.io_binding;
        (io.inputs, io.inputs_in_place) = self.inputs.read();
        (io.outputs, io.outputs_in_place) = self.outputs.read();
        io.copied_bytes = self.copied_bytes.load(Relaxed);
        io.to_device_bytes = self.to_device_bytes.load(Relaxed);
        io.from_device_bytes = self.from_device_bytes.load(Relaxed);
        (io.buffers, io.buffers_reused) = self.buffers.read();
        if io.buffers > 0 {
            let nanos = self.allocation_nanos.load(Relaxed) as f64;
            io.average_allocation_seconds = nanos / io.buffers as f64 / 1e9;
        }
        (stats.provider.runs, stats.provider.failed) = self.runs.read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_what_is_read() {
        let counters = Counters::default();
        counters.waited(Duration::ZERO);
        counters.ran(Duration::from_millis(2), Ended::Well);
        counters.ran(Duration::from_millis(4), Ended::Failed);
        counters.ran(Duration::from_secs(9), Ended::Cancelled);
        counters.input(0);
        counters.input(128);
        counters.output(0);
        counters.crossed(64, 32);
        counters.buffer(Duration::from_nanos(100), true);
        counters.buffer(Duration::from_nanos(300), false);
        let mut stats = EngineStats::default();
        counters.read(&mut stats);
        assert_eq!(
            (stats.sessions.wait.count, stats.sessions.run.count),
            (1, 2)
        );
        assert_eq!(stats.provider.success_rate(), 0.5);
        assert_eq!(stats.io_binding.copied_bytes, 128);
        assert_eq!(stats.io_binding.to_device_bytes, 64);
        assert_eq!(stats.io_binding.from_device_bytes, 32);
        assert!((stats.io_binding.zero_copy_ratio() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(stats.io_binding.buffer_reuse_ratio(), 0.5);
        assert!((stats.io_binding.average_allocation_seconds - 2e-7).abs() < 1e-15);
    }

    #[test]
    fn a_result_tells_how_it_ended() {
        assert_eq!(Ended::of(&Ok(1)), Ended::Well);
        assert_eq!(
            Ended::of::<()>(&Err(EngineError::Cancelled)),
            Ended::Cancelled
        );
        let failed = Err(EngineError::invalid_model("m", "d"));
        assert_eq!(Ended::of::<()>(&failed), Ended::Failed);
    }
}
