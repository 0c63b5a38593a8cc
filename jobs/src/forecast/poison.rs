//! Poisoned texts: where they are, and what finding them costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;

use super::costs::Costs;
use super::random::Random;
use super::work::{Work, files};
use crate::compute::{Compute, Refusal};
use crate::error::Result;
use crate::observer::{Event, Observer};
use crate::retry::Retry;
use crate::spec::{Poisoned, Spec};
use crate::vectors;

const MILLION: f64 = 1e6;

/// Which texts have no vector, and what they cost.
pub(crate) struct Poison {
    /// The part of the texts.
    part: f64,
    /// The part of these at which the model fails without a name.
    crashing: f64,
    retry: Retry,
    /// Seconds of all waits before the last try.
    waits: f64,
    seen: Arc<Retries>,
    random: Random,
}

/// Counts retries.
#[derive(Default)]
struct Retries(AtomicU64);

impl Observer for Retries {
    fn event(&self, _: Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A model that refuses or fails at marked texts, and counts the texts that it was given.
#[derive(Default)]
struct Refusing(AtomicU64);

const GOOD: &str = "good";
const REFUSED: &str = "refused";
const CRASHING: &str = "crashing";

impl Compute for Refusing {
    fn fingerprint(&self) -> Value {
        Value::Null
    }

    fn dim(&self) -> usize {
        0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal> {
        self.0.fetch_add(texts.len() as u64, Relaxed);
        if let Some(index) = texts.iter().position(|&text| text == REFUSED) {
            let reason = REFUSED.into();
            return Err(Refusal::Text { index, reason });
        }
        match texts.contains(&CRASHING) {
            true => Err(Refusal::Failed(CRASHING.into())),
            false => Ok(Vec::new()),
        }
    }
}

impl Poison {
    pub(crate) fn new(spec: &Spec, costs: &Costs, seed: u64) -> Self {
        let part = (costs.refused_per_million + costs.crashing_per_million) / MILLION;
        let seen = Arc::new(Retries::default());
        let retry = Retry {
            retries: spec.retries,
            wait: spec.retry_wait,
            observer: Arc::<Retries>::clone(&seen),
        };
        let waits = retry.waits().take(spec.retries as usize);
        Self {
            part,
            crashing: costs.crashing_per_million / MILLION / part,
            waits: waits.map(|wait| wait.as_secs_f64()).sum(),
            // The waits are summed up and not waited for.
            retry: Retry {
                wait: Duration::ZERO,
                ..retry
            },
            seen,
            random: Random::new(seed),
        }
    }

    /// The distance to the next poisoned text: geometric.
    fn next(&mut self) -> u64 {
        // Saturates where none is poisoned.
        (self.random.part().ln() / (1.0 - self.part).ln()) as u64
    }

    /// Draws poisoned texts, and tries their chunks with the code that finds them in real runs.
    pub(crate) fn spoil(mut self, spec: &Spec, units: &mut [(Work, Vec<u64>)]) -> Result<()> {
        if self.part == 0.0 {
            return Ok(());
        }
        let mut skip = self.next();
        for (work, chunks) in units {
            work.texts = 0;
            for (at, &rows) in chunks.iter().enumerate() {
                if skip >= rows {
                    skip -= rows;
                    work.texts += rows;
                    continue;
                }
                let mut texts = vec![GOOD; rows as usize];
                while skip < rows {
                    let crashes = self.random.part() <= self.crashing;
                    texts[skip as usize] = if crashes { CRASHING } else { REFUSED };
                    skip = skip.saturating_add(1).saturating_add(self.next());
                }
                skip -= rows;
                let model = Refusing::default();
                vectors::embed(&model, &texts, &self.retry)?;
                work.texts += model.0.load(Relaxed);
                let retries = self.seen.0.swap(0, Relaxed);
                work.waits += retries as f64 / f64::from(spec.retries.max(1)) * self.waits;
                match spec.poisoned {
                    Poisoned::Null => {}
                    Poisoned::Skip => work.side = true,
                    Poisoned::Fail if !work.fails => {
                        work.fails = true;
                        let (files, stored) = files(&chunks[..=at], spec);
                        work.files = files - 1;
                        work.written = stored;
                        work.rows = chunks[..=at].iter().sum();
                    }
                    Poisoned::Fail => {}
                }
                if work.fails {
                    // Later chunks are not computed; their poisoned texts are passed by.
                    let mut later: u64 = chunks[at + 1..].iter().sum();
                    while skip < later {
                        later -= skip + 1;
                        skip = self.next();
                    }
                    skip -= later;
                    break;
                }
            }
        }
        Ok(())
    }
}
