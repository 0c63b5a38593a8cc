//! Many numbers to one, in WGSL.

use isovec_encoder::program::Reduction;

/// How many numbers become one.
pub(super) struct Fold {
    pub(super) start: String,
    /// Of `sum`, one more: of column `c`.
    pub(super) step: String,
    /// The function that does it between threads.
    pub(super) tree: &'static str,
    /// What is made of `sum`.
    pub(super) end: String,
}

impl Fold {
    pub(super) fn sum(term: String, end: String) -> Self {
        Self {
            start: "0.0f".into(),
            step: format!("sum + {term}"),
            tree: "tree_sum",
            end,
        }
    }

    pub(super) fn of(f: Reduction, term: &str, count: &str) -> Self {
        let extreme = |start: &str, pick: &str, tree| Self {
            start: start.into(),
            step: format!("{pick}(sum, {term})"),
            tree,
            end: "sum".into(),
        };
        match f {
            Reduction::Sum => Self::sum(term.into(), "sum".into()),
            Reduction::Mean => Self::sum(term.into(), format!("sum / {count}")),
            Reduction::Max => extreme("-3.4028234e38f", "larger", "tree_max"),
            Reduction::Min => extreme("3.4028234e38f", "smaller", "tree_min"),
            Reduction::Product => Self {
                start: "1.0f".into(),
                step: format!("sum * {term}"),
                tree: "tree_product",
                end: "sum".into(),
            },
            Reduction::L2 => Self::sum(format!("square({term})"), "sqrt(sum)".into()),
            Reduction::SumOfSquares => Self::sum(format!("square({term})"), "sum".into()),
        }
    }
}
