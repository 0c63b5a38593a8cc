//! Interleaved measuring: contestants take turns round after round, so that a noisy minute hits
//! them all, and each is judged by its median against the first one's.

use std::time::{Duration, Instant};

/// Something that is measured, under its name.
pub type Contestant<'a> = (&'a str, Box<dyn FnMut() + 'a>);

/// Median times of contestants that took turns.
#[derive(Debug, Clone)]
pub struct Medians(pub Vec<(String, Duration)>);

/// Runs every contestant `rounds` times, in turn, after a few rounds that do not count. Every
/// other round goes backwards, so that nobody always runs on a predecessor's warm cache.
pub fn take_turns(rounds: usize, mut contestants: Vec<Contestant<'_>>) -> Medians {
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); contestants.len()];
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
                times[index].push(elapsed);
            }
        }
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    Medians(
        contestants
            .iter()
            .zip(times)
            .map(|((name, _), times)| ((*name).to_owned(), median(times)))
            .collect(),
    )
}

impl std::fmt::Display for Medians {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((_, first)) = self.0.first() else {
            return Ok(());
        };
        for (name, median) in &self.0 {
            let ratio = median.as_secs_f64() / first.as_secs_f64();
            writeln!(
                f,
                "{name:<48} {:>9.3} ms  {ratio:>6.3}x",
                median.as_secs_f64() * 1e3
            )?;
        }
        Ok(())
    }
}
