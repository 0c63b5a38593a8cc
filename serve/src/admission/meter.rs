//! How many texts a second the server has computed lately.

use std::time::{Duration, Instant};

use super::LONGEST_WAIT;

/// What was measured so long ago counts 1/e of what is measured now.
const MEMORY: Duration = Duration::from_secs(10);

/// Texts over the time in which there was work: an idle server is no slow one.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Seconds with work, old ones fading.
    busy: f64,
    /// Texts that were computed in them, fading alike.
    texts: f64,
    last: Option<Instant>,
}

impl Meter {
    /// Something begins or ends now; `busy` says whether there was work since the last time.
    pub(super) fn tick(&mut self, busy: bool) {
        self.tick_at(Instant::now(), busy);
    }

    fn tick_at(&mut self, now: Instant, busy: bool) {
        if let Some(last) = self.last.filter(|_| busy) {
            let passed = now.saturating_duration_since(last).as_secs_f64();
            let fade = (-passed / MEMORY.as_secs_f64()).exp();
            self.busy = self.busy * fade + passed;
            self.texts *= fade;
        }
        self.last = Some(now);
    }

    /// So many texts are computed.
    pub(super) fn done(&mut self, texts: usize) {
        self.texts += texts as f64;
    }

    /// How long so many texts take at this speed, within [`LONGEST_WAIT`].
    pub(super) fn wait(&self, texts: usize) -> Option<Duration> {
        let seconds = texts as f64 / self.speed()?;
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_WAIT);
        Some(wait.min(LONGEST_WAIT))
    }

    /// Texts a second; `None` before anything was measured.
    pub(super) fn speed(&self) -> Option<f64> {
        (self.busy > 0.0 && self.texts > 0.0).then(|| self.texts / self.busy)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_time_with_work_counts_and_old_work_fades() {
        let mut meter = Meter::default();
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        assert_eq!(meter.speed(), None);
        meter.tick_at(at(0.0), false);
        meter.tick_at(at(2.0), true);
        meter.done(20);
        assert!((meter.speed().unwrap() - 10.0).abs() < 1e-9);
        // An hour without work.
        meter.tick_at(at(3602.0), false);
        assert!((meter.speed().unwrap() - 10.0).abs() < 1e-9);
        // A minute at a fifth of the speed.
        for second in 1..=60 {
            meter.tick_at(at(3602.0 + f64::from(second)), true);
            meter.done(2);
        }
        let speed = meter.speed().unwrap();
        assert!((1.9..2.2).contains(&speed), "{speed}");
    }
}
