//! The statistics of an embedder, in the same shape on both targets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use isovec_engine::counters::Ended;
use isovec_engine::stats::LatencyRecorder;
use serde::{Deserialize, Serialize};
use web_time::Instant;

pub use isovec_engine::stats::{
    BesideStats, EngineStats, Fallback, GpuStats, IoStats, KernelStats, Latency, PoolStats,
    ProviderStats, SessionShare, SessionStats,
};

pub use crate::batcher::QueueCounts;
use crate::error::Error;
pub use crate::metrics::open_metrics;
use crate::model::encoded::Encoded;

/// The statistics of an embedder since its model was loaded. Counting has no measurable cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Stats {
    /// The engine's part: sessions, buffers, inputs and outputs, the provider.
    #[serde(flatten)]
    pub engine: EngineStats,
    /// Calls and texts.
    pub calls: CallStats,
    /// Tokens, real ones and padding.
    pub tokens: TokenStats,
    /// Where the time goes, in seconds.
    pub stages: StageStats,
    /// The embedding cache; `None` if it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_cache: Option<EmbeddingCacheStats>,
}

/// The counts of the embedding cache. Texts of failed calls are counted if they were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EmbeddingCacheStats {
    /// Texts that were not computed: found in memory or on the disk, or again in one call.
    pub hits: u64,
    /// Different texts of these that were found on the disk.
    pub disk_hits: u64,
    /// Texts that had to be computed.
    pub misses: u64,
    /// Vectors in memory.
    pub entries: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Vectors that had to go from memory for others.
    pub evictions: u64,
    /// Files on the disk, of all models and processes, as far as this one has looked.
    pub disk_entries: u64,
    /// Bytes of these files.
    pub disk_bytes: u64,
    /// Files that this embedder took away for others.
    pub disk_evictions: u64,
    /// Files that were damaged, and were not used.
    pub disk_rejected: u64,
    /// Times that the disk failed.
    pub disk_failures: u64,
}

impl EmbeddingCacheStats {
    /// The part of all texts that was not computed, 0 to 1; 0 before the first.
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 {
            return 0.0;
        }
        self.hits as f64 / all as f64
    }
}

/// Calls and texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CallStats {
    /// Calls that ended with vectors.
    pub embedded: u64,
    /// Calls that ended with an error.
    pub failed: u64,
    /// Cancelled calls.
    pub cancelled: u64,
    /// Texts that were tokenised.
    pub texts: u64,
    /// Of these, texts of which the model saw only a part.
    pub truncated: u64,
    /// Batches that were run.
    pub batches: u64,
}

/// Tokens, real ones and padding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenStats {
    /// Tokens of the texts, special ones included.
    pub real: u64,
    /// Positions that were computed for nothing, because another text of the batch was longer.
    pub padding: u64,
}

impl TokenStats {
    /// The share of computed positions that was padding; 0 before the first batch.
    pub fn padding_ratio(&self) -> f64 {
        let all = self.real + self.padding;
        if all == 0 {
            return 0.0;
        }
        self.padding as f64 / all as f64
    }
}

/// Where the time goes, in seconds. Waiting for a session and running stand in the engine's part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StageStats {
    /// Tokenising, up to 4096 texts at a time.
    pub tokenize: Latency,
    /// A caller's wait in a batcher's queue, until the first of its texts runs.
    pub queue: Latency,
    /// A batch, from asking the engine to having its vectors.
    pub batch: Latency,
    /// A whole call.
    pub embed: Latency,
}

/// Takes what is counted, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    embedded: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    texts: AtomicU64,
    truncated: AtomicU64,
    batches: AtomicU64,
    real: AtomicU64,
    padding: AtomicU64,
    tokenize: LatencyRecorder,
    queue: LatencyRecorder,
    batch: LatencyRecorder,
    embed: LatencyRecorder,
}

/// A call that is under way. One that is dropped before it ended was given up by its caller.
#[derive(Debug)]
#[must_use]
pub(crate) struct Call<'r> {
    recorder: &'r Recorder,
    started: Instant,
    open: bool,
}

impl Call<'_> {
    pub(crate) fn ended<T>(mut self, result: &crate::Result<T>) {
        self.open = false;
        let counter = match Error::ended(result) {
            Ended::Well => {
                self.recorder.embed.record(self.started.elapsed());
                &self.recorder.embedded
            }
            Ended::Cancelled => &self.recorder.cancelled,
            Ended::Failed => &self.recorder.failed,
        };
        counter.fetch_add(1, Relaxed);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.open {
            self.recorder.cancelled.fetch_add(1, Relaxed);
        }
    }
}

impl Recorder {
    /// Begins a call, which is counted when it ends or is dropped.
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            recorder: self,
            started: Instant::now(),
            open: true,
        }
    }

    pub(crate) fn tokenized(&self, took: Duration, encodings: &[Encoded]) {
        self.tokenize.record(took);
        self.texts.fetch_add(encodings.len() as u64, Relaxed);
        let truncated = encodings.iter().filter(|text| text.truncated()).count();
        self.truncated.fetch_add(truncated as u64, Relaxed);
    }

    pub(crate) fn queued(&self, waited: Duration) {
        self.queue.record(waited);
    }

    /// A batch of `computed` positions, `real` of which were tokens.
    pub(crate) fn ran(&self, took: Duration, real: usize, computed: usize) {
        self.batch.record(took);
        self.batches.fetch_add(1, Relaxed);
        self.real.fetch_add(real as u64, Relaxed);
        let padding = computed.saturating_sub(real);
        self.padding.fetch_add(padding as u64, Relaxed);
    }

    /// What all batches took together, waiting for the engine included.
    pub(crate) fn batch_seconds(&self) -> f64 {
        self.batch.read().total
    }

    pub(crate) fn read(&self, engine: EngineStats) -> Stats {
        Stats {
            embedding_cache: None,
            engine,
            calls: CallStats {
                embedded: self.embedded.load(Relaxed),
                failed: self.failed.load(Relaxed),
                cancelled: self.cancelled.load(Relaxed),
                texts: self.texts.load(Relaxed),
                truncated: self.truncated.load(Relaxed),
                batches: self.batches.load(Relaxed),
            },
            tokens: TokenStats {
                real: self.real.load(Relaxed),
                padding: self.padding.load(Relaxed),
            },
            stages: StageStats {
                tokenize: self.tokenize.read(),
                queue: self.queue.read(),
                batch: self.batch.read(),
                embed: self.embed.read(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_what_is_read() {
        let recorder = Recorder::default();
        recorder.call().ended(&Ok(()));
        let cancelled = isovec_engine::EngineError::Cancelled;
        recorder.call().ended::<()>(&Err(cancelled.into()));
        let failed = crate::Error::NoTokens { text: 0 };
        recorder.call().ended::<()>(&Err(failed));
        drop(recorder.call());
        recorder.ran(Duration::from_millis(1), 30, 40);
        let stats = recorder.read(EngineStats::default());
        let calls = stats.calls;
        assert_eq!((calls.embedded, calls.cancelled, calls.failed), (1, 2, 1));
        assert_eq!(stats.tokens.padding_ratio(), 0.25);
        assert_eq!(stats.stages.embed.count, 1);
        assert_eq!(TokenStats::default().padding_ratio(), 0.0);
    }

    #[test]
    fn the_engines_part_stands_beside_the_others_in_json() {
        let json = serde_json::to_value(Stats::default()).unwrap();
        for group in [
            "sessions",
            "memory_pool",
            "io_binding",
            "provider",
            "calls",
            "tokens",
            "stages",
        ] {
            assert!(json.get(group).is_some(), "{group}");
        }
    }
}
