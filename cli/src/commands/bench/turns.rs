//! Contestants that take turns, so that a slow moment hits them all.

use std::time::Instant;

use isovec::Cancel;
use isovec_insight::advisor::Samples;

use super::check;
use crate::error::Result;

/// Something that is measured.
pub(super) type Contestant<'a> = Box<dyn FnMut() -> Result<()> + 'a>;

/// The seconds of each contestant's turns, after one that does not count.
pub(super) fn take(
    rounds: usize,
    cancel: &Cancel,
    contestants: &mut [Contestant<'_>],
) -> Result<Vec<Vec<f64>>> {
    let mut seconds = vec![Vec::with_capacity(rounds); contestants.len()];
    for round in 0..=rounds {
        for (contestant, seconds) in contestants.iter_mut().zip(&mut seconds) {
            check(cancel)?;
            let started = Instant::now();
            contestant()?;
            if round > 0 {
                seconds.push(started.elapsed().as_secs_f64());
            }
        }
    }
    Ok(seconds)
}

/// The middle turn, between the two middle ones where their number is even: as figures and comparisons have it. 0 of
/// none.
pub(super) fn middle(turns: &[f64]) -> f64 {
    Samples::new(turns).map_or(0.0, |turns| turns.median())
}

/// The value below which that part of the values lies; 0 of none.
pub(super) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * part).round() as usize)
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_values() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quantile(&values, 0.5), 3.0);
        assert_eq!(quantile(&values, 0.99), 5.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn the_middle_of_an_even_number_of_turns_is_between_two() {
        let turns = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        assert_eq!(middle(&turns), 1.5);
        assert_eq!(middle(&turns[..3]), 1.0);
        assert_eq!(middle(&[]), 0.0);
    }

    #[test]
    fn the_first_turn_does_not_count() {
        let mut turns = 0;
        let seconds = take(
            3,
            &Cancel::new(),
            &mut [Box::new(|| {
                turns += 1;
                Ok(())
            })],
        )
        .unwrap();
        assert_eq!((seconds.len(), seconds[0].len(), turns), (1, 3, 4));
    }
}
