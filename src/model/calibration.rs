//! Measures the fastest batch size on the engine itself.
//!
//! On processors small batches win, because they stay in the processor's caches and have no padding. A GPU needs
//! large batches. The best size depends on the machine. So after half a minute of work in large calls a few runs are
//! measured, once, and the result is cached on disk for the next start.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, ProviderInfo};
use web_time::Instant;

use super::Model;
use super::encoded::Encoded;
use crate::effective::EffectiveConfig;
use crate::error::Result;
use crate::plan::{BANDS, Budget, Tokens};
use crate::record::Record;

/// Work that the engine has to have done before anything is measured.
const AFTER: Duration = Duration::from_secs(30);
/// The part of it that measuring may take.
const PART: f64 = 0.05;
/// A row length out of each band.
const LENGTHS: [usize; BANDS.len() + 1] = [16, 64, 256];
/// Times that a size is measured; the fastest counts.
const PASSES: usize = 2;
/// By how much faster a larger batch has to be: it takes more memory, and longer to cancel.
const WORTH_MORE: f64 = 1.02;

/// What is found out about the batches of a model.
#[derive(Debug, Default)]
pub(crate) struct Calibration {
    to_measure: bool,
    record: Option<Record>,
    /// The provider that the sizes are for. The replacement of a lost provider does not use them.
    provider: Option<ProviderInfo>,
    begun: AtomicBool,
    found: OnceLock<Found>,
}

#[derive(Debug)]
struct Found {
    tokens: Tokens,
    effective: EffectiveConfig,
}

/// Whoever measures; gone without having ended, somebody else may.
struct Claim<'a> {
    begun: &'a AtomicBool,
    ended: bool,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.begun.store(false, Ordering::Relaxed);
        }
    }
}

impl Calibration {
    /// Measures where that can change anything and was not done, and keeps it in the record.
    pub(super) fn new(to_measure: bool, record: Option<Record>, provider: ProviderInfo) -> Self {
        Self {
            to_measure,
            record,
            provider: Some(provider),
            ..Self::default()
        }
    }
}

impl Model {
    /// What a batch may hold now.
    pub(crate) fn budget(&self) -> Budget {
        self.found().map_or(self.budget, |found| Budget {
            tokens: found.tokens,
            ..self.budget
        })
    }

    /// What each knob comes to now.
    pub(crate) fn effective(&self) -> &EffectiveConfig {
        self.found()
            .map_or(&self.effective, |found| &found.effective)
    }

    fn found(&self) -> Option<&Found> {
        let found = self.calibration.found.get()?;
        self.is_on_what_is_measured().then_some(found)
    }

    fn is_on_what_is_measured(&self) -> bool {
        self.calibration.provider.as_ref() == Some(self.engines.current().provider())
    }

    /// Measures, if enough was run and nobody has; whether there is something new.
    ///
    /// # Errors
    /// A cancellation. That nothing could be measured is no error: things stay as they are.
    pub(crate) async fn calibrate_if_due(&self, cancel: &Cancel) -> Result<bool> {
        let calibration = &self.calibration;
        if !calibration.to_measure || calibration.begun.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // Batches are under way side by side, one of them waiting: this is the least that it took.
        let at_once = self.engines.current().capabilities().concurrent_runs;
        let worked = self.recorder.batch_seconds() / (at_once.max(1) + 1) as f64;
        if worked < AFTER.as_secs_f64()
            || !self.is_on_what_is_measured()
            || calibration.begun.swap(true, Ordering::Relaxed)
        {
            return Ok(false);
        }
        let mut claim = Claim {
            begun: &calibration.begun,
            ended: false,
        };
        let measured = self.measure(worked * PART, cancel).await;
        claim.ended = !matches!(&measured, Err(error) if error.is_cancelled());
        match measured {
            Ok(Some(tokens)) if self.is_on_what_is_measured() => {
                self.calibrated(tokens).await;
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) if error.is_cancelled() => Err(error),
            Err(error) => {
                tracing::debug!(target: "isovec", "batches could not be measured: {error}");
                Ok(false)
            }
        }
    }

    async fn calibrated(&self, tokens: Tokens) {
        let mut effective = self.effective.clone();
        effective.amend(
            "batching.max_batch_tokens",
            tokens,
            "measured while running",
        );
        if let Some(record) = &self.calibration.record {
            record.write(tokens).await;
        }
        // Set once: whoever measures has claimed it.
        let _ = self.calibration.found.set(Found { tokens, effective });
    }

    /// `None` when the time was over before everything was compared.
    async fn measure(&self, seconds: f64, cancel: &Cancel) -> Result<Option<Tokens>> {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let allowed = self.allowed_bytes();
        let mut tokens = self.budget.tokens;
        for (length, tokens) in LENGTHS.into_iter().zip(&mut tokens.0) {
            if length > self.max_length {
                break;
            }
            let from = (*tokens / length).max(1);
            let fits = |rows: usize| rows <= self.budget.rows && self.fits(rows, length, allowed);
            let rate = |rows: usize| self.rate(rows, length, cancel);
            match best(from, fits, rate, || Instant::now() >= until).await? {
                Best::Rows(rows) => *tokens = rows * length,
                // More might be faster still, in longer texts of the band.
                Best::AsManyAsThereMayBe(rows) => *tokens = (rows * length).max(*tokens),
                Best::NothingToCompare => {}
                Best::Unknown => return Ok(None),
            }
        }
        Ok(Some(tokens))
    }

    /// Rows times positions a second, with as many runs at a time as the engine works on.
    async fn rate(&self, rows: usize, length: usize, cancel: &Cancel) -> Result<f64> {
        let engine = self.engines.current();
        let at_once = engine.capabilities().concurrent_runs.max(1);
        // What the tokens are makes no difference; the first of the vocabulary is always there.
        let texts = vec![Encoded::sample(length); rows];
        let places: Vec<usize> = (0..rows).collect();
        let mut runs = Vec::with_capacity(at_once);
        for _ in 0..at_once {
            let batch = self
                .feed
                .batch(&**engine, &texts, &places, Batch::default())?;
            runs.push(engine.run(batch, cancel));
        }
        let started = Instant::now();
        try_join_all(runs).await?;
        let seconds = started.elapsed().as_secs_f64().max(1e-9);
        Ok((at_once * rows * length) as f64 / seconds)
    }
}

/// How many rows are fastest.
#[derive(Debug, PartialEq, Eq)]
enum Best {
    Rows(usize),
    /// These, and no more fit.
    AsManyAsThereMayBe(usize),
    /// Only one number of rows fits, or none.
    NothingToCompare,
    /// The time was over before all had their turn.
    Unknown,
}

/// The fewest rows that are about as fast as any, out of those around `from` that fit, and twice
/// as many for as long as that pays.
async fn best<R>(
    from: usize,
    fits: impl Fn(usize) -> bool,
    rate: impl Fn(usize) -> R,
    over: impl Fn() -> bool,
) -> Result<Best>
where
    R: Future<Output = Result<f64>>,
{
    let mut rates: Vec<(usize, f64)> = [from / 4, from / 2, from, from.saturating_mul(2)]
        .into_iter()
        .filter(|&rows| rows > 0 && fits(rows))
        .map(|rows| (rows, 0.0))
        .collect();
    if rates.len() < 2 {
        return Ok(Best::NothingToCompare);
    }
    // In turns, so that a slow moment hits them all.
    for _ in 0..PASSES {
        for (rows, fastest) in &mut rates {
            if over() {
                return Ok(Best::Unknown);
            }
            *fastest = rate(*rows).await?.max(*fastest);
        }
    }
    while let [.., (_, before), (rows, last)] = rates[..]
        && last > before * WORTH_MORE
        && fits(rows.saturating_mul(2))
        && !over()
    {
        let mut fastest = 0.0f64;
        for _ in 0..PASSES {
            fastest = fastest.max(rate(rows * 2).await?);
        }
        rates.push((rows * 2, fastest));
    }
    let fastest = rates.iter().fold(0.0f64, |best, rate| best.max(rate.1));
    let enough = rates.iter().find(|rate| rate.1 * WORTH_MORE >= fastest);
    Ok(match enough {
        Some(&(rows, _)) if fits(rows.saturating_mul(2)) => Best::Rows(rows),
        Some(&(rows, _)) => Best::AsManyAsThereMayBe(rows),
        None => Best::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;
    use isovec_engine::config::MemoryConfig;

    use super::*;
    use crate::EmbeddingConfig;
    use crate::backend::wait;
    use crate::model::counting::{Counting, with_config};

    use Best::{AsManyAsThereMayBe, NothingToCompare, Rows, Unknown};

    /// What is best, where a run takes `fixed` and `each` for every row, and beyond `cache` rows
    /// four times that.
    fn found(from: usize, fixed: f64, each: f64, cache: usize, most: usize) -> Best {
        let rate = |rows: usize| async move {
            let slow = if rows > cache { 4.0 } else { 1.0 };
            Ok(rows as f64 / (fixed + each * slow * rows as f64))
        };
        wait(best(from, |rows| rows <= most, rate, || false)).unwrap()
    }

    #[test]
    fn small_batches_where_more_rows_bring_nothing() {
        assert_eq!(found(16, 0.0, 1.0, 1000, 32), Rows(4));
        assert_eq!(found(1, 0.0, 1.0, 1000, 32), Rows(1));
    }

    #[test]
    fn as_large_as_the_cache() {
        assert_eq!(found(16, 10.0, 1.0, 8, 64), Rows(8));
        assert_eq!(found(16, 10.0, 1.0, 32, 64), Rows(32));
    }

    #[test]
    fn a_device_is_filled_as_far_as_rows_go() {
        assert_eq!(found(4, 1e6, 1.0, 1_000_000, 128), AsManyAsThereMayBe(128));
        // Only what fits is ever run.
        assert_eq!(found(4, 1e6, 1.0, 1_000_000, 5), AsManyAsThereMayBe(4));
        assert_eq!(found(512, 1e6, 1.0, 1_000_000, 128), NothingToCompare);
        assert_eq!(found(4, 1e6, 1.0, 1_000_000, 0), NothingToCompare);
    }

    #[test]
    fn nothing_is_changed_when_the_time_is_over() {
        let left = Cell::new(3);
        let over = || left.replace(left.get() - 1) == 0;
        let rate = |_| async { Ok(1.0) };
        assert_eq!(wait(best(8, |_| true, rate, over)).unwrap(), Unknown);
        let model = model(&EmbeddingConfig::default(), true);
        assert_eq!(wait(model.measure(0.0, &Cancel::new())).unwrap(), None);
    }

    /// A model whose batches nobody has set, with texts as long as are measured.
    fn model(config: &EmbeddingConfig, to_measure: bool) -> Model {
        let (model, engine) = with_config(Counting::free(), &MemoryConfig::default(), config);
        let mut model = std::sync::Arc::into_inner(model).unwrap();
        model.max_length = 512;
        model.calibration = Calibration::new(to_measure, None, engine.provider.clone());
        model
    }

    /// As if so much had been run that measuring is due.
    fn works(model: &Model) {
        for _ in 0..3 {
            model.recorder.ran(AFTER, 1, 1);
        }
    }

    #[test]
    fn what_was_measured_is_what_batches_hold_and_is_said() {
        let model = model(&EmbeddingConfig::default().with_max_batch_size(8), true);
        let tokens = wait(model.measure(10.0, &Cancel::new())).unwrap().unwrap();
        for (tokens, length) in tokens.0.into_iter().zip(LENGTHS) {
            assert!(tokens >= length && tokens % 16 == 0, "{tokens:?}");
        }
        let tokens = Tokens([64, 128, 512]);
        wait(model.calibrated(tokens));
        assert_eq!((model.budget().tokens, model.budget().rows), (tokens, 8));
        let knob = model.effective().get("batching.max_batch_tokens").unwrap();
        assert_eq!(knob.used, tokens.to_string());
        assert_eq!(knob.why, "measured while running");
    }

    #[test]
    fn what_was_measured_on_a_lost_device_is_not_used() {
        let mut model = model(&EmbeddingConfig::default(), true);
        let before = model.budget().tokens;
        wait(model.calibrated(Tokens([64, 128, 512])));
        model.calibration.provider = Some(ProviderInfo::new("counting", "CUDA", "1"));
        assert_eq!(model.budget().tokens, before);
        let knob = model.effective().get("batching.max_batch_tokens").unwrap();
        assert_eq!(knob.used, before.to_string());
        works(&model);
        assert!(!wait(model.calibrate_if_due(&Cancel::new())).unwrap());
    }

    #[test]
    fn little_work_a_set_size_and_a_cancellation_measure_nothing() {
        let cancel = Cancel::new();
        let model = model(&EmbeddingConfig::default(), true);
        assert!(!wait(model.calibrate_if_due(&cancel)).unwrap());
        assert!(!model.calibration.begun.load(Ordering::Relaxed));
        works(&model);
        cancel.cancel();
        assert!(
            wait(model.calibrate_if_due(&cancel))
                .unwrap_err()
                .is_cancelled()
        );
        assert!(model.calibration.found.get().is_none());
        // Whoever comes next does it.
        assert!(wait(model.calibrate_if_due(&Cancel::new())).unwrap());
        assert!(!wait(model.calibrate_if_due(&Cancel::new())).unwrap());

        let set = self::model(&EmbeddingConfig::default(), false);
        works(&set);
        assert!(!wait(set.calibrate_if_due(&Cancel::new())).unwrap());
    }

    #[test]
    fn whoever_is_dropped_while_measuring_leaves_it_to_the_next() {
        let mut engine = Counting::free();
        engine.stuck = true;
        let config = EmbeddingConfig::default();
        let (model, engine) = with_config(engine, &MemoryConfig::default(), &config);
        let mut model = std::sync::Arc::into_inner(model).unwrap();
        model.max_length = 512;
        model.calibration = Calibration::new(true, None, engine.provider.clone());
        works(&model);
        let cancel = Cancel::new();
        assert!(model.calibrate_if_due(&cancel).now_or_never().is_none());
        assert!(!model.calibration.begun.load(Ordering::Relaxed));
    }
}
