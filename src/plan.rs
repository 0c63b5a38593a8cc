//! The planner: decides which texts run together.
//!
//! Texts are sorted by their number of tokens and cut into batches by a budget of *padded*
//! tokens (rows times the longest row). Neighbours in the order have almost the same length, so
//! little is padded: on two CPU cores, 259 texts of 1 to 256 tokens took 15.5 s padded into one
//! batch and 1.4 s in sorted batches of 256 tokens.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What a batch may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Rows.
    pub(crate) rows: usize,
    /// Positions that are computed. A single longer text is a batch of its own.
    pub(crate) tokens: Tokens,
    /// Rows that a batch may have however many tokens they are.
    pub(crate) least: usize,
    /// Whether rows are computed at their own length, so that nothing is padded.
    pub(crate) ragged: bool,
}

impl Budget {
    /// Positions that are computed for rows of these lengths.
    pub(crate) fn computed(self, lengths: impl ExactSizeIterator<Item = usize>) -> usize {
        if self.ragged {
            return lengths.sum();
        }
        let rows = lengths.len();
        rows * lengths.max().unwrap_or(0)
    }
}

/// The longest row, in positions, of each band of lengths but the last, which has no end.
pub(crate) const BANDS: [usize; 2] = [32, 128];

/// Rows times positions that a batch may have, by the length of its longest row: what is fastest
/// for short rows is not for long ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens(pub(crate) [usize; BANDS.len() + 1]);

impl Tokens {
    /// The same for all lengths.
    pub(crate) const fn same(tokens: usize) -> Self {
        Self([tokens; BANDS.len() + 1])
    }

    /// For rows of this length.
    pub(crate) fn at(self, length: usize) -> usize {
        self.0[BANDS.partition_point(|&longest| longest < length)]
    }

    /// For the lengths that may have the most.
    pub(crate) fn most(self) -> usize {
        self.0.into_iter().max().unwrap_or(0)
    }

    /// No more than this for any length.
    pub(crate) fn up_to(self, most: usize) -> Self {
        Self(self.0.map(|tokens| tokens.min(most)))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([short, middle, long]) = self;
        if [middle, long] == [short; 2] {
            return write!(f, "{short}");
        }
        let [shorter, longer] = BANDS;
        write!(
            f,
            "{short} in texts of up to {shorter}, {middle} up to {longer}, {long} beyond"
        )
    }
}

impl Tokens {
    /// The most tokens of a batch, of what [`Display`](fmt::Display) has written.
    pub(crate) fn most_of(written: &str) -> Option<usize> {
        let parts = written.split(", ");
        let tokens = parts.map(|part| part.split(' ').next().unwrap_or_default().parse().ok());
        tokens.collect::<Option<Vec<usize>>>()?.into_iter().max()
    }
}

/// The texts of a list, put into batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The texts' places in the list, longest first.
    order: Vec<usize>,
    /// Ranges of `order`.
    batches: Vec<Range<usize>>,
}

impl Plan {
    /// Plans texts of these lengths. Longest first: memory is at its peak at once and not at the
    /// end, and the last batch, which others may have to wait for, is a short one. Equal lengths
    /// keep their order, so a plan is the same on every target.
    ///
    /// `fits` says whether so many rows of such a length fit into memory; a batch that would not
    /// is made smaller, down to one row, which its caller has to refuse.
    pub(crate) fn new(
        lengths: &[usize],
        budget: Budget,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        // By place too, which makes it stable without the memory that a stable sort takes.
        order.sort_unstable_by_key(|&text| (std::cmp::Reverse(lengths[text]), text));
        let mut batches = Vec::with_capacity(order.len());
        let mut start = 0;
        while start < order.len() {
            let rows = rows_within(budget, lengths[order[start]], &fits);
            let end = order.len().min(start + rows);
            batches.push(start..end);
            start = end;
        }
        Self { order, batches }
    }

    /// The same in the caller's order, whatever is padded: batches of as many rows as there may
    /// be, cut where they would not fit into memory.
    pub(crate) fn in_order(
        lengths: &[usize],
        rows: usize,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut batches = Vec::with_capacity(lengths.len());
        let mut start = 0;
        while start < lengths.len() {
            let mut longest = lengths[start].max(1);
            let mut end = start + 1;
            while end < lengths.len() && end - start < rows.max(1) {
                let with = longest.max(lengths[end]);
                if !fits(end + 1 - start, with) {
                    break;
                }
                longest = with;
                end += 1;
            }
            batches.push(start..end);
            start = end;
        }
        Self {
            order: (0..lengths.len()).collect(),
            batches,
        }
    }

    /// Whether there is more than one batch.
    pub(crate) fn is_several(&self) -> bool {
        self.batches.len() > 1
    }

    /// The places of the texts of a batch, in the order in which they run; `None` past the last.
    pub(crate) fn batch(&self, index: usize) -> Option<&[usize]> {
        self.order.get(self.batches.get(index)?.clone())
    }
}

/// Rows of such a length that a batch may have, at least one.
pub(crate) fn rows_within(
    budget: Budget,
    longest: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> usize {
    let most = budget.rows.max(1);
    let rows =
        (budget.tokens.at(longest) / longest.max(1)).clamp(budget.least.clamp(1, most), most);
    fitting(rows, longest.max(1), fits)
}

/// The most rows that fit, at least one. What takes memory grows with the rows, so halving finds
/// it in a few steps.
fn fitting(rows: usize, length: usize, fits: impl Fn(usize, usize) -> bool) -> usize {
    if rows <= 1 || fits(rows, length) {
        return rows;
    }
    let (mut fit, mut too_many) = (1, rows);
    while too_many - fit > 1 {
        let middle = fit + (too_many - fit) / 2;
        if fits(middle, length) {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUDGET: Budget = Budget {
        rows: 64,
        tokens: Tokens::same(256),
        least: 1,
        ragged: false,
    };

    fn any(_: usize, _: usize) -> bool {
        true
    }

    #[test]
    fn a_batch_that_would_not_fit_is_made_smaller() {
        let plan = Plan::new(&[10; 20], BUDGET, |rows, length| rows * length <= 70);
        let sizes: Vec<usize> = (0..)
            .map_while(|at| plan.batch(at))
            .map(<[usize]>::len)
            .collect();
        assert_eq!(sizes, [7, 7, 6]);
        // One row is left to whoever can refuse it.
        let plan = Plan::new(&[10, 10], BUDGET, |_, _| false);
        assert!(plan.is_several() && plan.batch(2).is_none());
    }

    #[test]
    fn without_sorting_the_order_stays() {
        let plan = Plan::in_order(&[3, 9, 1, 2, 8], 2, any);
        assert_eq!(plan.batch(0), Some(&[0, 1][..]));
        assert_eq!(plan.batch(2), Some(&[4][..]));
        let plan = Plan::in_order(&[3, 9, 1], 3, |rows, length| rows * length <= 9);
        assert_eq!(
            (plan.batch(0), plan.batch(1), plan.batch(2)),
            (Some(&[0][..]), Some(&[1][..]), Some(&[2][..]))
        );
    }

    #[test]
    fn what_is_padded_is_computed_too() {
        let computed = |ragged, lengths: &[usize]| {
            let budget = Budget { ragged, ..BUDGET };
            budget.computed(lengths.iter().copied())
        };
        assert_eq!(computed(false, &[3, 9, 1]), 27);
        assert_eq!(computed(true, &[3, 9, 1]), 13);
        assert_eq!((computed(false, &[]), computed(true, &[])), (0, 0));
    }

    #[test]
    fn nothing_makes_no_batch() {
        assert!(Plan::new(&[], BUDGET, any).batch(0).is_none());
    }

    #[test]
    fn a_text_over_the_budget_runs_alone() {
        let plan = Plan::new(&[3, 512, 4], BUDGET, any);
        assert_eq!(
            (plan.batch(0), plan.batch(1)),
            (Some(&[1][..]), Some(&[2, 0][..]))
        );
        assert_eq!(plan.batch(2), None);
    }

    #[test]
    fn short_and_long_rows_have_budgets_of_their_own() {
        let tokens = Tokens([64, 256, 128]);
        assert_eq!(
            [32, 33, 128, 129].map(|length| tokens.at(length)),
            [64, 256, 256, 128]
        );
        assert_eq!(
            (tokens.most(), tokens.up_to(100)),
            (256, Tokens([64, 100, 100]))
        );
        let budget = Budget { tokens, ..BUDGET };
        let rows = [16, 64, 129, 130].map(|length| rows_within(budget, length, any));
        assert_eq!(rows, [4, 4, 1, 1]);
        assert_eq!(Tokens::same(256).to_string(), "256");
        assert_eq!(
            tokens.to_string(),
            "64 in texts of up to 32, 256 up to 128, 128 beyond"
        );
        assert_eq!(Tokens::most_of(&tokens.to_string()), Some(256));
        assert_eq!(Tokens::most_of(&Tokens::same(64).to_string()), Some(64));
        assert_eq!(Tokens::most_of("none"), None);
    }

    proptest! {
        #[test]
        fn every_text_runs_once_within_the_budget(
            lengths in prop::collection::vec(0usize..600, 0..200),
            rows in 1usize..70,
            tokens in 1usize..2000,
        ) {
            let plan = Plan::new(&lengths, Budget { rows, tokens: Tokens::same(tokens), ..BUDGET }, any);
            let mut seen = vec![0; lengths.len()];
            for batch in (0..).map_while(|index| plan.batch(index)) {
                prop_assert!(!batch.is_empty() && batch.len() <= rows);
                let longest = batch.iter().map(|&text| lengths[text]).max().unwrap();
                prop_assert!(batch.len() == 1 || longest * batch.len() <= tokens);
                for &text in batch {
                    seen[text] += 1;
                }
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
        }
    }
}
