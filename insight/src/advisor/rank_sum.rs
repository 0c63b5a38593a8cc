//! Mann and Whitney's statistic: the Hodges–Lehmann estimate of the shift between two samples that are not paired, and
//! its confidence interval.
//!
//! It is the counterpart of `signed_rank` for runs at different times, whose turns are not paired. It assumes only
//! that the distributions of both samples have the same shape. (Hollander, Wolfe and Chicken, *Nonparametric
//! Statistical Methods*, 4.2 and 4.3.)

use super::signed_rank::Interval;

/// Products of the samples' sizes up to which the statistic's distribution is computed; past it the normal one is as
/// good.
const EXACT: usize = 2_500;

/// How much larger the values of `after` are than those of `before`. Where there are too few for the confidence, the
/// interval has no ends.
pub(super) fn shift(before: &[f64], after: &[f64], confidence: f64) -> Interval {
    let mut differences: Vec<f64> = after
        .iter()
        .flat_map(|&after| before.iter().map(move |&before| after - before))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let endless = |estimate| Interval {
        estimate,
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    let Some(last) = differences.len().checked_sub(1) else {
        return endless(0.0);
    };
    let estimate = f64::midpoint(differences[last / 2], differences[last.div_ceil(2)]);
    match outside(before.len(), after.len(), confidence).checked_sub(1) {
        Some(cut) => Interval {
            estimate,
            low: differences[cut],
            high: differences[last - cut],
        },
        None => endless(estimate),
    }
}

/// How many differences may be left out at either end: the largest number so that the statistic is smaller with at most
/// half of what the confidence leaves.
fn outside(before: usize, after: usize, confidence: f64) -> usize {
    let tail = (1.0 - confidence) / 2.0;
    let most = before * after / 2;
    if before * after > EXACT {
        let (m, n) = (before as f64, after as f64);
        let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
        // Half a step less, because the statistic has whole values only.
        let cut = m * n / 2.0 + 0.5 - upper_normal_quantile(tail) * deviation;
        return (cut.max(0.0) as usize).min(most);
    }
    let mut below = 0.0;
    let fits = |part: &&f64| {
        below += **part;
        below <= tail
    };
    let likely = probabilities(before, after);
    likely.iter().take_while(fits).count().min(most)
}

/// How likely the statistic has each value from 0 on, if there is no shift. The largest of all values is one of the
/// second sample's with the probability `n / (m + n)`, and then counts once for each value of the first.
fn probabilities(before: usize, after: usize) -> Vec<f64> {
    // Those of `m` values before and 0, 1, 2 … after.
    let mut rows: Vec<Vec<f64>> = vec![vec![1.0]; after + 1];
    for m in 1..=before {
        let mut of_m: Vec<Vec<f64>> = Vec::with_capacity(after + 1);
        of_m.push(vec![1.0]);
        for n in 1..=after {
            let own = n as f64 / (m + n) as f64;
            let mut next = vec![0.0; m * n + 1];
            for (value, part) in of_m[n - 1].iter().enumerate() {
                next[value + m] += part * own;
            }
            for (value, part) in rows[n].iter().enumerate() {
                next[value] += part * (1.0 - own);
            }
            of_m.push(next);
        }
        rows = of_m;
    }
    rows.pop().unwrap_or_default()
}

/// Where the normal distribution leaves so much above it, for at most a half; within 4.5e-4. (Abramowitz and Stegun,
/// *Handbook of Mathematical Functions*, 26.2.23.)
fn upper_normal_quantile(part: f64) -> f64 {
    let t = (-2.0 * part.max(f64::MIN_POSITIVE).ln()).sqrt();
    let over = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - over / under
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of Mann and Whitney's U, two-sided, as most textbooks print them: 5 % and 1 %.
    #[test]
    fn cuts_are_those_of_the_tables() {
        let table = [
            (4, 4, Some(0), None),
            (5, 5, Some(2), Some(0)),
            (5, 10, Some(8), Some(4)),
            (6, 6, Some(5), Some(2)),
            (8, 8, Some(13), Some(7)),
            (8, 12, Some(22), Some(15)),
            (10, 10, Some(23), Some(16)),
            (15, 15, Some(64), Some(51)),
            (20, 20, Some(127), Some(105)),
        ];
        for (m, n, five, one) in table {
            for (confidence, critical) in [(0.95, five), (0.99, one)] {
                let cut = critical.map_or(0, |critical| critical + 1);
                assert_eq!(outside(m, n, confidence), cut, "{m} and {n}, {confidence}");
                assert_eq!(outside(n, m, confidence), cut, "{n} and {m}, {confidence}");
            }
        }
        assert_eq!(outside(3, 3, 0.95), 0);
        assert!(shift(&[1.0; 3], &[2.0; 3], 0.95).low.is_infinite());
    }

    /// The values of the permeability of membranes in their examples 4.1, 4.3 and 4.4.
    #[test]
    fn the_interval_is_that_of_the_book() {
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = shift(&term, &early, 0.96);
        assert!((found.estimate + 0.305).abs() < 1e-9, "{found:?}");
        assert!((found.low + 0.76).abs() < 1e-9, "{found:?}");
        assert!((found.high - 0.15).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_normal_distribution_goes_on_where_the_exact_one_ends() {
        assert!((upper_normal_quantile(0.025) - 1.959_964).abs() < 4.5e-4);
        assert!((upper_normal_quantile(0.000_5) - 3.290_527).abs() < 4.5e-4);
        for confidence in [0.95, 0.999] {
            // The exact one at the largest size that has it, and the normal one just past it.
            let (exact, normal) = (outside(50, 50, confidence), outside(50, 51, confidence));
            let apart = normal.abs_diff(exact);
            assert!((10..45).contains(&apart), "{exact} and {normal}");
        }
        let sum: f64 = probabilities(50, 50).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        for (before, after) in [(&[][..], &[][..]), (&[1.0], &[]), (&[], &[1.0])] {
            let found = shift(before, after, 0.95);
            assert_eq!(found.estimate, 0.0);
            assert!(found.low.is_infinite() && found.high.is_infinite());
        }
    }
}
