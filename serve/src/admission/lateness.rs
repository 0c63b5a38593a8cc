//! How much later than expected a model's texts are there.

use std::collections::VecDeque;
use std::time::Duration;

/// How many requests are looked back on.
const KEPT: usize = 256;

/// The largest factor. Who finds a batch of texts in work is done with the next batch, at the latest after twice the expected time. On
/// a machine that does something else it is more; less is let in then as well, since the speed falls.
const MOST: f64 = 2.0;

/// The times that requests took, as parts of those that were expected. A text is there when its batch is, with the texts
/// that came after it, and not when those before it are: the mean speed alone would let in what comes too late.
#[derive(Debug, Default)]
pub(super) struct Lateness(VecDeque<f64>);

impl Lateness {
    /// A request that had the time `left` was expected to take so long, and took so long. One that had plenty says nothing of
    /// those that have little: of a few milliseconds every interruption is a multiple.
    pub(super) fn note(&mut self, expected: Duration, left: Duration, took: Duration) {
        if expected.mul_f64(2.0 * MOST) < left || expected.is_zero() {
            return;
        }
        self.0.truncate(KEPT - 1);
        self.0
            .push_front(took.as_secs_f64() / expected.as_secs_f64());
    }

    /// What an expected time is multiplied with, so that hardly any request takes longer.
    pub(super) fn factor(&self) -> f64 {
        self.0.iter().copied().fold(1.0, f64::max).min(MOST)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after(ratios: impl IntoIterator<Item = f64>) -> Lateness {
        let mut lateness = Lateness::default();
        for ratio in ratios {
            lateness.note(SECOND, 2 * SECOND, SECOND.mul_f64(ratio));
        }
        lateness
    }

    #[test]
    fn the_latest_of_those_looked_back_on_counts() {
        assert_eq!(Lateness::default().factor(), 1.0);
        assert_eq!(after([0.5]).factor(), 1.0);
        assert_eq!(after([1.2, 1.9, 1.1]).factor(), 1.9);
        assert_eq!(after([1.2, 7.0]).factor(), MOST);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let since = |requests| std::iter::once(1.5).chain(std::iter::repeat_n(0.5, requests));
        assert_eq!(after(since(KEPT - 1)).factor(), 1.5);
        assert_eq!(after(since(KEPT)).factor(), 1.0);
    }

    #[test]
    fn who_had_plenty_of_time_does_not_count() {
        let mut lateness = after([1.2]);
        for _ in 0..KEPT {
            lateness.note(SECOND, 5 * SECOND, 2 * SECOND);
            lateness.note(Duration::ZERO, SECOND, SECOND);
        }
        assert_eq!(lateness.factor(), 1.2);
    }
}
