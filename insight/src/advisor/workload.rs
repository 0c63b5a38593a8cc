//! A description of a program's texts.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// A description of a program's texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Workload {
    /// How many there are.
    pub texts: usize,
    /// How many of them are different.
    pub distinct: usize,
    /// Tokens of all, before truncation.
    pub tokens: u64,
    /// The length in tokens that half of them stay within.
    pub p50_tokens: usize,
    /// The length that 99 in 100 stay within.
    pub p99_tokens: usize,
    /// The longest.
    pub max_tokens: usize,
}

impl Workload {
    /// Describes texts with their numbers of tokens.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = (T, usize)>) -> Self {
        let (texts, mut lengths): (Vec<T>, Vec<usize>) = texts.into_iter().unzip();
        let distinct: HashSet<&str> = texts.iter().map(AsRef::as_ref).collect();
        lengths.sort_unstable();
        let at = |part: f64| {
            let place = (lengths.len() as f64 * part).ceil() as usize;
            lengths.get(place.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            texts: lengths.len(),
            distinct: distinct.len(),
            tokens: lengths.iter().map(|&tokens| tokens as u64).sum(),
            p50_tokens: at(0.5),
            p99_tokens: at(0.99),
            max_tokens: at(1.0),
        }
    }

    /// The part of the texts that are equal to an earlier one.
    pub fn repeated(&self) -> f64 {
        if self.texts == 0 {
            return 0.0;
        }
        1.0 - self.distinct as f64 / self.texts as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted() {
        let workload = Workload::new([("a", 3), ("b", 5), ("a", 3), ("c", 100)]);
        assert_eq!((workload.texts, workload.distinct), (4, 3));
        assert_eq!((workload.p50_tokens, workload.max_tokens), (3, 100));
        assert_eq!(workload.p99_tokens, 100);
        assert_eq!(workload.tokens, 111);
        assert_eq!(workload.repeated(), 0.25);
        assert_eq!(Workload::new::<&str>([]).repeated(), 0.0);
    }
}
