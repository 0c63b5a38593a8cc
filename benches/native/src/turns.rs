//! Interleaved measuring: contestants take turns round after round, so that a noisy minute hits
//! them all. Each is judged by the median over the rounds of its time against the first one's in
//! the same round, which a slow minute moves less than a ratio of two medians.

use std::fmt;
use std::time::{Duration, Instant};

/// Something that is measured, under its name.
pub type Contestant<'a> = (&'a str, Box<dyn FnMut() + 'a>);

/// What contestants that took turns came to.
#[derive(Debug, Clone)]
pub struct Medians(Vec<Line>);

#[derive(Debug, Clone)]
struct Line {
    name: String,
    median: Duration,
    /// Median of the rounds' ratios to the first contestant.
    ratio: f64,
}

/// Runs every contestant `rounds` times, in turn, after a few rounds that do not count. Every
/// other round goes backwards, so that nobody always runs on a predecessor's warm cache.
pub fn take_turns(rounds: usize, mut contestants: Vec<Contestant<'_>>) -> Medians {
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); contestants.len()];
    let warm_up = (rounds / 10).max(3);
    for round in 0..warm_up + rounds {
        let order: Vec<usize> = if round % 2 == 0 {
            (0..contestants.len()).collect()
        } else {
            (0..contestants.len()).rev().collect()
        };
        for index in order {
            let started = Instant::now();
            (contestants[index].1)();
            let elapsed = started.elapsed();
            if round >= warm_up {
                times[index].push(elapsed.as_secs_f64());
            }
        }
    }
    let first = times.first().cloned().unwrap_or_default();
    let lines = contestants.iter().zip(times).map(|((name, _), times)| {
        let ratios = times.iter().zip(&first).map(|(own, first)| own / first);
        Line {
            name: (*name).to_owned(),
            ratio: median(ratios),
            median: Duration::from_secs_f64(median(times.iter().copied())),
        }
    });
    Medians(lines.collect())
}

impl Medians {
    /// The median time of a contestant, in seconds; 0 where there is none.
    pub fn seconds(&self, contestant: usize) -> f64 {
        self.0
            .get(contestant)
            .map_or(0.0, |line| line.median.as_secs_f64())
    }

    /// The median of its times against the first one's in the same round; 0 where there is none.
    pub fn ratio(&self, contestant: usize) -> f64 {
        self.0.get(contestant).map_or(0.0, |line| line.ratio)
    }
}

/// The middle value; 0 of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl fmt::Display for Medians {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line {
            name,
            median,
            ratio,
        } in &self.0
        {
            let millis = median.as_secs_f64() * 1e3;
            writeln!(f, "{name:<48} {millis:>9.3} ms  {ratio:>6.3}x")?;
        }
        Ok(())
    }
}
