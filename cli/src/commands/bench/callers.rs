//! Measures many callers with one text each: joined by a `DynamicBatcher`, and separately.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isovec::blocking::{DynamicBatcher, Embedder};
use isovec::{Cancel, EmbedOptions, Result as SdkResult};
use serde::Serialize;

use super::check;
use super::crowd::at_once;
use super::figure::{Figure, Of, Part};
use super::plan::Options;
use super::turns::{middle, quantile};
use crate::error::Result;

/// Calls of a single caller, each way.
const SINGLE_CALLS: usize = 100;

/// What came of them.
#[derive(Debug, Serialize)]
pub(super) struct Callers {
    pub(super) callers: usize,
    pub(super) alone: Served,
    pub(super) joined: Served,
    pub(super) texts_per_batch: f64,
    pub(super) target_latency: Option<String>,
    /// The part of the joined calls that took longer than the target.
    pub(super) late: Option<f64>,
    /// What the batcher adds to the median of a single caller's calls.
    pub(super) added_milliseconds: f64,
}

/// How callers were served.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Served {
    pub(super) texts_per_second: f64,
    pub(super) p50_milliseconds: f64,
    pub(super) p99_milliseconds: f64,
}

type Call<'a> = &'a (dyn Fn(&str) -> SdkResult<()> + Sync);

/// Measures both, in turns.
pub(super) fn compare(
    plan: &Options,
    embedder: &Embedder,
    texts: &[String],
    cancel: &Cancel,
) -> Result<(Callers, Vec<Figure>)> {
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let batcher = DynamicBatcher::new(embedder);
    let alone = |text: &str| embedder.embed_with([text], options.clone()).map(drop);
    let joined = |text: &str| batcher.embed_with([text], options.clone()).map(drop);
    let ways: [Call<'_>; 2] = [&alone, &joined];

    let mut seconds: [Vec<f64>; 2] = Default::default();
    let mut turns: [Turns; 2] = Default::default();
    for round in 0..=plan.rounds {
        for (call, (seconds, turns)) in ways.iter().zip(seconds.iter_mut().zip(&mut turns)) {
            check(cancel)?;
            let (took, elapsed) = turn(plan, texts, *call)?;
            // The first round warms up, and lets the batcher find its size.
            if round > 0 {
                turns.add(&took, elapsed);
                seconds.extend(took);
            }
        }
    }
    let counts = batcher.counts();
    let target = embedder.effective_config().get("batching.target_latency");
    let target = target.map(|knob| knob.used.clone());
    let late = target
        .as_deref()
        .and_then(|target| humantime::parse_duration(target).ok())
        .map(|target| {
            let late = seconds[1]
                .iter()
                .filter(|&&took| took > target.as_secs_f64());
            late.count() as f64 / seconds[1].len().max(1) as f64
        });
    let figures = [
        "callers, each for itself",
        "callers joined by a DynamicBatcher",
    ];
    let figures = figures.into_iter().zip(&turns);
    let figures = figures
        .flat_map(|(name, turns)| turns.figures(name))
        .collect();
    let callers = Callers {
        callers: plan.callers,
        alone: turns[0].served(&seconds[0]),
        joined: turns[1].served(&seconds[1]),
        texts_per_batch: counts.batched_texts as f64 / counts.batches.max(1) as f64,
        target_latency: target.filter(|_| late.is_some()),
        late,
        added_milliseconds: added(texts, ways, cancel)?,
    };
    Ok((callers, figures))
}

/// What turns came to: seconds of the whole for each text, and what half and 99 in 100 of its calls took.
#[derive(Default)]
struct Turns {
    a_text: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Turns {
    fn add(&mut self, seconds: &[f64], elapsed: f64) {
        self.a_text.push(elapsed / seconds.len().max(1) as f64);
        self.p50.push(quantile(seconds, 0.5));
        self.p99.push(quantile(seconds, 0.99));
    }

    /// The middle turn, and what half and 99 in 100 of all turns' calls took.
    fn served(&self, calls: &[f64]) -> Served {
        Served {
            texts_per_second: 1.0 / middle(&self.a_text),
            p50_milliseconds: quantile(calls, 0.5) * 1e3,
            p99_milliseconds: quantile(calls, 0.99) * 1e3,
        }
    }

    fn figures(&self, name: &'static str) -> impl Iterator<Item = Figure> {
        let all = [
            (Of::Time, &self.a_text),
            (Of::P50, &self.p50),
            (Of::P99, &self.p99),
        ];
        all.into_iter()
            .filter_map(move |(of, seconds)| Figure::new(Part::Callers, name, of, 1, seconds))
    }
}

/// Every caller asks again and again until the time is over, and once at least: the seconds of the calls that
/// ended, and of the whole.
fn turn(plan: &Options, texts: &[String], call: Call<'_>) -> Result<(Vec<f64>, f64)> {
    let next = AtomicUsize::new(0);
    let time = Duration::from_secs_f64(plan.seconds);
    let caller = || {
        let mut seconds = Vec::new();
        let began = Instant::now();
        // A caller that was only refused until now goes on: a turn has a time for each.
        while seconds.is_empty() || began.elapsed() < time {
            let text = &texts[next.fetch_add(1, Ordering::Relaxed) % texts.len()];
            let asked = Instant::now();
            match call(text) {
                Ok(()) => seconds.push(asked.elapsed().as_secs_f64()),
                // What a caller does that was refused; it has no answer, and no time.
                Err(isovec::Error::Overloaded { retry_after, .. }) => {
                    thread::sleep(retry_after.min(Duration::from_millis(20)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(seconds)
    };
    let began = Instant::now();
    let all = at_once((0..plan.callers).map(|_| thread::Builder::new()), caller)?;
    let all = all.into_iter().collect::<SdkResult<Vec<Vec<f64>>>>()?;
    Ok((all.concat(), began.elapsed().as_secs_f64()))
}

/// Milliseconds that the batcher adds to a single caller's median.
fn added(texts: &[String], ways: [Call<'_>; 2], cancel: &Cancel) -> Result<f64> {
    let mut seconds: [Vec<f64>; 2] = Default::default();
    for text in texts.iter().cycle().take(SINGLE_CALLS) {
        check(cancel)?;
        for (call, seconds) in ways.iter().zip(&mut seconds) {
            let asked = Instant::now();
            call(text)?;
            seconds.push(asked.elapsed().as_secs_f64());
        }
    }
    let differences: Vec<f64> = seconds[1]
        .iter()
        .zip(&seconds[0])
        .map(|(joined, alone)| joined - alone)
        .collect();
    Ok(quantile(&differences, 0.5) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_that_is_shown_is_that_of_the_figure() {
        let mut turns = Turns::default();
        let seconds = [[1.0; 4], [2.0; 4]].concat();
        for &took in &seconds {
            turns.add(&[took], took);
        }
        let shown = turns.served(&seconds).texts_per_second;
        let kept: Vec<f64> = turns
            .figures("callers")
            .filter(|figure| figure.key.of == Of::Time)
            .map(|figure| figure.texts_per_second())
            .collect();
        assert_eq!((shown, kept), (1.0 / 1.5, vec![1.0 / 1.5]));
    }
}
