//! Two benchmarks, figure by figure: how much slower or faster, and how sure that is.

use std::fmt;

use serde::Serialize;

use super::figure::{Figure, Key};
use super::kept::{Benchmark, KeptError, Machine, Texts};
use super::plan::Options;
use crate::error::{CliError, Result};

/// How sure all figures together are.
const CONFIDENCE: f64 = 0.95;

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Comparison {
    pub(super) baseline: String,
    pub(super) candidate: Option<String>,
    pub(super) threshold_percent: f64,
    /// Of each figure's interval, so that all of them are right with 95 %.
    pub(super) confidence: f64,
    /// The baseline's, where it is not this one and that was allowed.
    pub(super) other_machine: Option<Machine>,
    /// In what else the two differ: what may be the cause.
    pub(super) differences: Vec<String>,
    pub(super) figures: Vec<Compared>,
}

/// A figure, before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Compared {
    #[serde(flatten)]
    pub(super) key: Key,
    pub(super) before: String,
    pub(super) after: String,
    /// How many times as long it takes.
    pub(super) ratio: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) verdict: Verdict,
}

/// What is known of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// By more than the threshold, wherever in the interval it is.
    Slower,
    /// The same, in the other direction.
    Faster,
    /// Within the threshold, wherever in the interval it is.
    Same,
    /// The interval has both in it, or there are too few turns for one.
    Unclear,
}

/// What has to be the same of both before anything is measured.
pub(super) struct Setting<'a> {
    pub(super) fingerprint: &'a isovec::fingerprint::Fingerprint,
    pub(super) machine: &'a Machine,
    pub(super) options: &'a Options,
    pub(super) texts: usize,
    pub(super) texts_hash: &'a str,
}

impl<'a> Setting<'a> {
    fn of(benchmark: &'a Benchmark) -> Self {
        Self {
            fingerprint: &benchmark.fingerprint,
            machine: &benchmark.machine,
            options: &benchmark.options,
            texts: benchmark.texts.count,
            texts_hash: &benchmark.texts.hash,
        }
    }
}

/// Refuses a baseline that is of something else.
///
/// # Errors
/// [`KeptError::Other`] with all that differs, [`KeptError::OtherMachine`] where that is all and was not allowed.
pub(super) fn check(
    now: &Setting<'_>,
    then: &Benchmark,
    allow_other_machine: bool,
) -> Result<(), KeptError> {
    let mut differences: Vec<String> = now
        .fingerprint
        .differences(&then.fingerprint)
        .iter()
        .map(|difference| format!("the model's {difference}"))
        .collect();
    if (now.texts_hash, now.texts) != (&*then.texts.hash, then.texts.count) {
        let Texts { count, hash, .. } = &then.texts;
        let (now, hash_now) = (now.texts, now.texts_hash);
        differences.push(format!(
            "{now} texts ({hash_now}) now, {count} ({hash}) then"
        ));
    }
    differences.extend(then.options.differences(now.options));
    if !differences.is_empty() {
        return Err(KeptError::Other(differences));
    }
    if now.machine.id != then.machine.id && !allow_other_machine {
        return Err(KeptError::OtherMachine {
            then: then.machine.to_string(),
            now: now.machine.to_string(),
        });
    }
    Ok(())
}

impl Comparison {
    /// Compares them.
    ///
    /// # Errors
    /// [`CliError::Kept`] where no comparison would say anything.
    pub(super) fn new(
        (baseline, then): (&str, &Benchmark),
        (candidate, now): (Option<&str>, &Benchmark),
        threshold_percent: f64,
        allow_other_machine: bool,
    ) -> Result<Self> {
        let kept = |error| CliError::Kept {
            name: baseline.to_owned(),
            error,
        };
        check(&Setting::of(now), then, allow_other_machine).map_err(kept)?;
        let same_work = |one: &Figure, other: &Figure| {
            one.texts == other.texts && one.calls == other.calls && one.tokens == other.tokens
        };
        let find = |figure: &Figure| {
            let found = then.figures.iter().find(|other| other.key == figure.key);
            found.filter(|other| same_work(figure, other))
        };
        let pairs: Vec<(&Figure, &Figure)> = now
            .figures
            .iter()
            .filter_map(|figure| Some((find(figure)?, figure)))
            .collect();
        let alone =
            now.figures.len().abs_diff(pairs.len()) + then.figures.len().abs_diff(pairs.len());
        if alone > 0 {
            return Err(kept(KeptError::Other(vec![format!(
                "{} figures then and {} now; {} of them measure the same work",
                then.figures.len(),
                now.figures.len(),
                pairs.len()
            )])));
        }
        // Bonferroni's: with a hundred figures five of them would be wrong by chance.
        let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.len().max(1) as f64;
        let most = 1.0 + threshold_percent / 100.0;
        let figures = pairs.into_iter().map(|(then, now)| {
            let ratio = now.seconds.ratio_to(&then.seconds, confidence)?;
            Ok(Compared {
                key: now.key.clone(),
                before: then.shown(),
                after: now.shown(),
                ratio: ratio.estimate,
                low: ratio.low,
                high: ratio.high,
                verdict: Verdict::of(ratio.low.zip(ratio.high), most),
            })
        });
        Ok(Self {
            baseline: baseline.to_owned(),
            candidate: candidate.map(str::to_owned),
            threshold_percent,
            confidence,
            other_machine: (then.machine.id != now.machine.id).then(|| then.machine.clone()),
            differences: differences(then, now),
            figures: figures.collect::<Result<_>>()?,
        })
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let of = |figure: &&Compared| figure.verdict == verdict;
        self.figures.iter().filter(of).count()
    }

    /// # Errors
    /// [`CliError::Slower`] where anything is.
    pub(super) fn verdict(&self) -> Result<()> {
        let slower = self
            .figures
            .iter()
            .filter(|figure| figure.verdict == Verdict::Slower);
        let figures: Vec<String> = slower
            .map(|figure| format!("{} {}", figure.key, figure.interval()))
            .collect();
        if figures.is_empty() {
            return Ok(());
        }
        Err(CliError::Slower {
            baseline: self.baseline.clone(),
            percent: self.threshold_percent,
            figures,
        })
    }

    /// In a sentence.
    pub(super) fn summary(&self) -> String {
        let [slower, faster, same, unclear] = [
            Verdict::Slower,
            Verdict::Faster,
            Verdict::Same,
            Verdict::Unclear,
        ]
        .map(|one| self.count(one));
        format!(
            "{slower} slower, {faster} faster, {same} the same within {} %, {unclear} that may be either",
            self.threshold_percent
        )
    }
}

impl Verdict {
    fn of(interval: Option<(f64, f64)>, most: f64) -> Self {
        match interval {
            Some((low, _)) if low > most => Self::Slower,
            Some((_, high)) if high < 1.0 / most => Self::Faster,
            Some((low, high)) if low >= 1.0 / most && high <= most => Self::Same,
            _ => Self::Unclear,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::Unclear => "unclear",
        }
    }
}

impl Compared {
    /// The ratio with its interval.
    pub(super) fn interval(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{:.3}x ({low:.3} to {high:.3})", self.ratio),
            _ => format!("{:.3}x (too few turns)", self.ratio),
        }
    }
}

/// What may be why one is slower, and what is compared on purpose.
fn differences(then: &Benchmark, now: &Benchmark) -> Vec<String> {
    let mut found = Vec::new();
    for (what, then, now) in [
        ("isovec", &then.isovec, &now.isovec),
        ("provider", &then.provider, &now.provider),
    ] {
        if then != now {
            found.push(format!("{what}: {then} then, {now} now"));
        }
    }
    let precision = [then, now].map(|benchmark| format!("{:?}", benchmark.fingerprint.precision));
    if precision[0] != precision[1] {
        found.push(format!(
            "precision: {} then, {} now",
            precision[0], precision[1]
        ));
    }
    for knob in now.effective_config.knobs() {
        let before = then
            .effective_config
            .get(&knob.name)
            .map(|knob| knob.used.as_str());
        if before != Some(&knob.used) {
            let before = before.unwrap_or("unknown");
            found.push(format!("{}: {before} then, {} now", knob.name, knob.used));
        }
    }
    found
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let candidate = self.candidate.as_deref().unwrap_or("now");
        writeln!(
            f,
            "{candidate} against {}: {}",
            self.baseline,
            self.summary()
        )?;
        if let Some(machine) = &self.other_machine {
            writeln!(f, "the baseline is of ANOTHER MACHINE: {machine}")?;
        }
        for difference in &self.differences {
            writeln!(f, "  {difference}")?;
        }
        writeln!(
            f,
            "\n{:<48} {:>18} {:>18}  times as long",
            "", "then", "now"
        )?;
        for figure in &self.figures {
            writeln!(
                f,
                "{:<48} {:>18} {:>18}  {:<26} {}",
                figure.key.to_string(),
                figure.before,
                figure.after,
                figure.interval(),
                figure.verdict.word()
            )?;
        }
        writeln!(
            f,
            "\nIntervals of {:.3} % each: all of them together are right with 95 %. They are of the scatter inside \
             each run; what changed on the machine between the two looks like a change.",
            self.confidence * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_of_the_whole_interval() {
        for (interval, verdict) in [
            (Some((1.06, 1.2)), Verdict::Slower),
            (Some((1.04, 1.2)), Verdict::Unclear),
            (Some((0.96, 1.04)), Verdict::Same),
            (Some((0.8, 0.94)), Verdict::Faster),
            (Some((0.8, 0.96)), Verdict::Unclear),
            (Some((0.5, 2.0)), Verdict::Unclear),
            (None, Verdict::Unclear),
        ] {
            assert_eq!(Verdict::of(interval, 1.05), verdict, "{interval:?}");
        }
        // Without a threshold anything that is not the same is told.
        assert_eq!(Verdict::of(Some((1.001, 1.002)), 1.0), Verdict::Slower);
    }
}
