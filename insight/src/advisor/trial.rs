//! Two models in turns on the same texts or pictures: which is faster, by how much, and do they agree?

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use web_time::Instant;

use super::side::Side;
use super::signed_rank::interval;
#[cfg(not(target_arch = "wasm32"))]
use isovec::optimize::budget::Span;
use isovec::{Embedder, Error, Result};
use isovec_engine::cancel::Cancel;

/// Rounds below which an interval of 95 % has no ends.
const FEWEST: usize = 6;

/// The goal of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Goal {
    /// Texts a second, all of them in one call.
    #[default]
    Throughput,
    /// The time of a call with one text.
    Latency,
}

/// How two embedders are compared.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trial {
    /// The goal.
    pub goal: Goal,
    /// Pairs of turns, at least 6; one more goes before them and does not count.
    pub rounds: usize,
    /// How long a turn takes, about: texts are taken until it does.
    pub turn: Duration,
    /// How sure a verdict has to be: by default 0.95, which leaves 2.5 in 100 verdicts on two equal
    /// embedders to chance in either direction.
    pub confidence: f64,
    /// By how much it has to be faster for the change to be worth it: by default 0.01, one percent.
    pub worth: f64,
    /// The largest L2 distance between the two vectors of a text that still counts as the same: by
    /// default 1e-4, the bound between engines. The distance is that of what they return, which is
    /// of unit length for nearly all models.
    pub tolerance: f64,
    /// Whether it ends at once when vectors are others, and after six rounds in which the candidate
    /// was always slower: saves time where many are tried. By default it does not.
    pub gives_up: bool,
    /// Stops it.
    pub cancel: Option<Cancel>,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            goal: Goal::default(),
            rounds: 12,
            turn: Duration::from_millis(250),
            confidence: 0.95,
            worth: 0.01,
            tolerance: 1e-4,
            gives_up: false,
            cancel: None,
        }
    }
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrialReport {
    /// Whether to take the candidate.
    pub verdict: Verdict,
    /// The goal.
    pub goal: Goal,
    /// How many times as fast as the baseline the candidate is.
    pub speedup: f64,
    /// The lower end of the interval that the speed-up is in with `confidence`. `None`: too few rounds.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How sure it is.
    pub confidence: f64,
    /// Pairs of turns.
    pub rounds: usize,
    /// Seconds of the baseline's turns; a step of tuning leaves them out.
    pub baseline: Vec<f64>,
    /// Seconds of the candidate's turns, each beside the baseline's of the same round.
    pub candidate: Vec<f64>,
    /// Texts of a turn.
    pub texts: usize,
    /// The largest L2 distance between the two vectors of a text. `None`: they have not the same components, or a value is
    /// no number.
    pub distance: Option<f64>,
    /// Whether an index of the one may be searched with vectors of the other.
    pub compatible: bool,
}

/// The verdict of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The candidate is faster, and its vectors are the same.
    Better,
    /// It is slower.
    Worse,
    /// It may be either.
    NoDifference,
    /// Its vectors are others, however fast it is.
    OtherVectors,
}

impl Trial {
    /// For that goal.
    #[must_use]
    pub fn of(goal: Goal) -> Self {
        Self {
            goal,
            ..Self::default()
        }
    }

    /// Runs the baseline and the candidate in turns, each first equally often, on as many of the texts as a turn has
    /// time for. Other work on the machine affects both. Their caches of vectors in memory are emptied before every
    /// turn; load them without `embedding_cache.disk`.
    ///
    /// # Errors
    /// [`Error::Config`] for no texts, fewer than 6 rounds, or an invalid confidence; else the errors of embedding.
    pub async fn run<T: AsRef<str>>(
        &self,
        baseline: &Embedder,
        candidate: &Embedder,
        texts: &[T],
    ) -> Result<TrialReport> {
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        self.between(baseline, candidate, &texts).await
    }

    /// The same on texts or on pictures. In the report a text stands for a picture.
    pub(crate) async fn between<S: Side<T>, T: Clone>(
        &self,
        baseline: &S,
        candidate: &S,
        items: &[T],
    ) -> Result<TrialReport> {
        self.check(items.len())?;
        let count = self.items_of_a_turn(baseline, items).await?;
        let chosen = spread(items, count);
        let (distance, compatible) = self.compare(baseline, candidate, &chosen).await?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            if self.gives_up && (!self.agree(distance, compatible) || is_lost(&before, &after)) {
                break;
            }
            // Whoever goes second finds another cache and another clock speed.
            if round % 2 == 0 {
                before.push(self.turn(baseline, &chosen).await?.0);
                after.push(self.turn(candidate, &chosen).await?.0);
            } else {
                after.push(self.turn(candidate, &chosen).await?.0);
                before.push(self.turn(baseline, &chosen).await?.0);
            }
        }
        let report = self.judge(before, after, chosen.len());
        Ok(self.with_vectors(report, distance, compatible))
    }

    /// The report on turns that were taken elsewhere: seconds of the baseline's and of the candidate's,
    /// and the vectors that the two made of the same texts, row by row.
    ///
    /// # Errors
    /// [`Error::Config`] as for [`run`](Self::run), for turns that are not pairs, and for seconds that are no time.
    pub fn report(
        &self,
        (baseline, candidate): (Vec<f64>, Vec<f64>),
        texts: usize,
        vectors: (&[f32], &[f32]),
        compatible: bool,
    ) -> Result<TrialReport> {
        let rounds = baseline.len();
        Self {
            rounds,
            ..self.clone()
        }
        .check(texts)?;
        if candidate.len() != rounds {
            return Err(Error::Config(vec![format!(
                "a trial has {rounds} turns of the baseline and {} of the candidate; they are pairs",
                candidate.len()
            )]));
        }
        let is_time = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
        if let Some(wrong) = baseline.iter().chain(&candidate).find(|s| !is_time(s)) {
            return Err(Error::Config(vec![format!(
                "a turn of a trial took {wrong} seconds; that is no time"
            )]));
        }
        let distance = distance_of_rows(vectors.0, vectors.1, texts);
        let report = self.judge(baseline, candidate, texts);
        Ok(self.with_vectors(report, distance, compatible))
    }

    /// The largest distance between the vectors of the two, and whether what one embedded may be searched with the other.
    async fn compare<S: Side<T>, T: Clone>(
        &self,
        one: &S,
        other: &S,
        items: &[T],
    ) -> Result<(Option<f64>, bool)> {
        let (_, ours) = self.turn(one, items).await?;
        let (_, theirs) = self.turn(other, items).await?;
        let differences = one.fingerprint().differences(other.fingerprint());
        let distance = distance_of_rows(&ours, &theirs, items.len());
        Ok((distance, differences.is_empty()))
    }

    /// Whether the two make the same vectors of these texts, as far as the tolerance goes.
    pub(super) async fn are_same(
        &self,
        one: &Embedder,
        other: &Embedder,
        texts: &[&str],
    ) -> Result<bool> {
        let (distance, compatible) = self.compare(one, other, texts).await?;
        Ok(self.agree(distance, compatible))
    }

    pub(crate) fn check(&self, texts: usize) -> Result<()> {
        let mut faults = Vec::new();
        if texts == 0 {
            faults.push(
                "a trial needs texts to run with; give it some of those that are embedded".into(),
            );
        }
        if self.rounds < FEWEST {
            faults.push(format!(
                "a trial of {} rounds can prove nothing; take {FEWEST} or more",
                self.rounds
            ));
        }
        if !(self.confidence > 0.5 && self.confidence < 1.0) {
            faults.push(format!(
                "a trial's confidence is {}; it is a part of the whole, over 0.5 and below 1",
                self.confidence
            ));
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Error::Config(faults))
        }
    }

    fn agree(&self, distance: Option<f64>, compatible: bool) -> bool {
        compatible && distance.is_some_and(|distance| distance <= self.tolerance)
    }

    /// The report of two embedders whose vectors are that far apart.
    fn with_vectors(
        &self,
        mut report: TrialReport,
        distance: Option<f64>,
        compatible: bool,
    ) -> TrialReport {
        if !self.agree(distance, compatible) {
            report.verdict = Verdict::OtherVectors;
        }
        report.distance = distance;
        report.compatible = compatible;
        report
    }

    /// What the seconds of a candidate's turns say beside those of the baseline's. Vectors are not
    /// looked at.
    fn judge(&self, baseline: Vec<f64>, candidate: Vec<f64>, texts: usize) -> TrialReport {
        let logs: Vec<f64> = baseline
            .iter()
            .zip(&candidate)
            .map(|(before, after)| (before.max(1e-9) / after.max(1e-9)).ln())
            .collect();
        let found = interval(&logs, self.confidence);
        let verdict = if found.low > (1.0 + self.worth).ln() {
            Verdict::Better
        } else if found.high < 0.0 {
            Verdict::Worse
        } else {
            Verdict::NoDifference
        };
        let end = |end: f64| end.is_finite().then(|| end.exp());
        TrialReport {
            verdict,
            goal: self.goal,
            speedup: found.estimate.exp(),
            low: end(found.low),
            high: end(found.high),
            confidence: self.confidence,
            rounds: baseline.len(),
            baseline,
            candidate,
            texts,
            distance: None,
            compatible: true,
        }
    }

    /// One turn: its seconds, and the rows.
    async fn turn<T>(&self, side: &impl Side<T>, items: &[T]) -> Result<(f64, Vec<f32>)> {
        let cancel = self.cancel.as_ref();
        side.forget();
        let started = Instant::now();
        let rows = match self.goal {
            Goal::Throughput => side.rows(items, cancel).await?,
            Goal::Latency => {
                let mut all = Vec::new();
                for item in items {
                    all.extend(side.rows(std::slice::from_ref(item), cancel).await?);
                }
                all
            }
        };
        Ok((started.elapsed().as_secs_f64(), rows))
    }

    /// As many texts or pictures as a turn has time for.
    async fn items_of_a_turn<T: Clone>(&self, side: &impl Side<T>, items: &[T]) -> Result<usize> {
        let mut count = items.len().min(8);
        // The first call of all is not like the others.
        self.turn(side, &spread(items, count)).await?;
        loop {
            let (seconds, _) = self.turn(side, &spread(items, count)).await?;
            let asked = self.turn.as_secs_f64();
            if seconds >= asked / 2.0 || count == items.len() {
                let fits = count as f64 * asked / seconds.max(1e-9);
                return Ok((fits as usize).clamp(1, items.len()));
            }
            count = (count * 2).min(items.len());
        }
    }
}

impl TrialReport {
    /// Leaves out the single turns.
    pub(super) fn forget_turns(&mut self) {
        self.baseline.clear();
        self.candidate.clear();
    }

    /// Seconds of a text, before and after, with intervals of the same confidence as the speed-up's: of the logarithms of the
    /// turns, by the same statistic.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn times(&self) -> (Span, Span) {
        let of = |turns: &[f64]| {
            let texts = self.texts.max(1) as f64;
            let logs = turns.iter().map(|seconds| (seconds.max(1e-9) / texts).ln());
            let found = interval(&logs.collect::<Vec<f64>>(), self.confidence);
            Span {
                estimate: found.estimate.exp(),
                low: found.low.exp(),
                high: found.high.exp(),
            }
        };
        (of(&self.baseline), of(&self.candidate))
    }

    /// The middle one of the seconds that a turn took, before and after.
    pub fn medians(&self) -> (f64, f64) {
        let middle = |seconds: &[f64]| {
            let mut sorted = seconds.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
        };
        (middle(&self.baseline), middle(&self.candidate))
    }
}

/// "kept: 1.42 times as fast (95 % sure of 1.36 to 1.47, 12 rounds of 64 texts), vectors differ by at most 2.1e-7"
impl fmt::Display for TrialReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Better => "kept",
            Verdict::Worse => "rejected",
            Verdict::NoDifference => "rejected, no difference can be shown",
            Verdict::OtherVectors => "rejected, vectors are others",
        };
        write!(f, "{verdict}: {}", self.figures())
    }
}

impl TrialReport {
    /// What the interval says of the speed, whatever the vectors are: `Some(true)` if it is certainly faster, `Some(false)` if it is
    /// certainly slower.
    pub(super) fn is_faster(&self) -> Option<bool> {
        let faster = self.low.is_some_and(|low| low > 1.0);
        let slower = self.high.is_some_and(|high| high < 1.0);
        (faster != slower).then_some(faster)
    }

    /// What was measured, without what follows from it.
    pub(super) fn figures(&self) -> impl fmt::Display + '_ {
        Figures(self)
    }
}

/// "1.42 times as fast (95 % sure of 1.36 to 1.47, 12 rounds of 64 texts), vectors differ by at most 2.1e-7"
struct Figures<'a>(&'a TrialReport);

impl fmt::Display for Figures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        write!(f, "{:.2} times as fast", report.speedup)?;
        if let (Some(low), Some(high)) = (report.low, report.high) {
            let sure = report.confidence * 100.0;
            write!(f, " ({sure:.0} % sure of {low:.2} to {high:.2}, ")?;
        } else {
            f.write_str(" (")?;
        }
        write!(f, "{} rounds of {} texts)", report.rounds, report.texts)?;
        match report.distance {
            _ if !report.compatible => {
                f.write_str(", and earlier vectors cannot be compared any more")
            }
            Some(distance) => write!(f, ", vectors differ by at most {distance:.1e}"),
            None => Ok(()),
        }
    }
}

/// Whether the candidate was slower in every one of the fewest rounds that prove anything.
fn is_lost(before: &[f64], after: &[f64]) -> bool {
    before.len() == FEWEST
        && before
            .iter()
            .zip(after)
            .all(|(before, after)| after > before)
}

/// The largest L2 distance of two rows in the same place. `None`: they are not of one length, or a
/// value is no number.
fn distance_of_rows(one: &[f32], other: &[f32], rows: usize) -> Option<f64> {
    if one.len() != other.len() || rows == 0 || !one.len().is_multiple_of(rows) {
        return None;
    }
    let dim = (one.len() / rows).max(1);
    let pairs = one.chunks_exact(dim).zip(other.chunks_exact(dim));
    let distances = pairs.map(|(a, b)| {
        let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>().sqrt()
    });
    // `f64::max` would forget one that is no number.
    let largest = distances.fold(
        0.0,
        |most, distance| {
            if distance <= most { most } else { distance }
        },
    );
    largest.is_finite().then_some(largest)
}

/// So many of the items, from all parts of the list.
fn spread<T: Clone>(items: &[T], count: usize) -> Vec<T> {
    (0..count)
        .map(|at| items[at * items.len() / count].clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::advisor::noise::Noise;

    /// Seconds of a turn: some percent of jitter, now and then somebody else's work.
    fn seconds(noise: &mut Noise) -> f64 {
        let jitter = 1.0 + 0.05 * noise.next();
        let burst = if noise.next() > 0.9 {
            1.0 + noise.next()
        } else {
            1.0
        };
        0.25 * jitter * burst
    }

    #[test]
    fn equal_embedders_are_told_apart_no_more_often_than_promised() {
        let any = Trial {
            worth: 0.0,
            ..Trial::default()
        };
        let mut noise = Noise(7);
        let (mut better, mut worth_it) = (0, 0);
        for _ in 0..2000 {
            let mut turns = || (0..any.rounds).map(|_| seconds(&mut noise)).collect();
            let (before, after): (Vec<f64>, Vec<f64>) = (turns(), turns());
            let worth = Trial::default().judge(before.clone(), after.clone(), 1);
            worth_it += u32::from(worth.verdict == Verdict::Better);
            better += u32::from(any.judge(before, after, 1).verdict == Verdict::Better);
        }
        // 2.5 % are promised in this direction.
        assert!((10..=60).contains(&better), "{better} of 2000");
        assert!(worth_it <= better, "{worth_it} of 2000");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let trial = Trial::default();
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            let mut seconds = vec![1.0; 6];
            seconds[3] = wrong;
            for turns in [(vec![1.0; 6], seconds.clone()), (seconds, vec![1.0; 6])] {
                let report = trial.report(turns, 1, (&[1.0], &[1.0]), true);
                assert_eq!(report.unwrap_err().kind(), "Config", "{wrong}");
            }
        }
    }

    #[test]
    fn a_tenth_is_found_in_noise() {
        let trial = Trial::default();
        let mut noise = Noise(8);
        let mut found = 0;
        for _ in 0..200 {
            let before: Vec<f64> = (0..trial.rounds).map(|_| seconds(&mut noise)).collect();
            let after = (0..trial.rounds)
                .map(|_| seconds(&mut noise) / 1.1)
                .collect();
            found += u32::from(trial.judge(before, after, 1).verdict == Verdict::Better);
        }
        assert!(found >= 120, "{found} of 200");
    }

    #[test]
    fn slower_is_worse_and_other_vectors_are_never_better() {
        let trial = Trial::default();
        let report = trial.judge(vec![1.0; 12], vec![1.5; 12], 4);
        assert_eq!(report.verdict, Verdict::Worse);
        let faster = trial.judge(vec![1.5; 12], vec![1.0; 12], 4);
        assert_eq!(faster.verdict, Verdict::Better);
        assert!((faster.speedup - 1.5).abs() < 1e-9);
        for (distance, compatible) in [(Some(0.1), true), (Some(0.0), false), (None, true)] {
            let other = trial.with_vectors(faster.clone(), distance, compatible);
            assert_eq!(
                other.verdict,
                Verdict::OtherVectors,
                "{distance:?} {compatible}"
            );
        }
        let same = trial.with_vectors(faster, Some(1e-6), true);
        assert_eq!(same.verdict, Verdict::Better);
        assert_eq!(
            same.to_string(),
            "kept: 1.50 times as fast (95 % sure of 1.50 to 1.50, 12 rounds of 4 texts), vectors differ by at most 1.0e-6"
        );
    }

    #[test]
    fn what_can_prove_nothing_is_refused() {
        let mut trial = Trial::default();
        assert!(trial.check(1).is_ok());
        assert!(trial.check(0).is_err());
        trial.rounds = 5;
        trial.confidence = f64::NAN;
        match trial.check(0).unwrap_err() {
            Error::Config(faults) => assert_eq!(faults.len(), 3, "{faults:?}"),
            other => panic!("{other}"),
        }
    }
}
