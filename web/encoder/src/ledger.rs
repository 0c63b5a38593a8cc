//! The cost of reading one graph, and its limit.
//!
//! A few hundred bytes of a file can ask for terabytes: a range, an axis, a sum, each as large as the square of the
//! last. So there is one account for a whole lowering, with a budget that grows with the model's size. Numbers are
//! entered before memory is allocated for them, and their bytes are returned when the last holder is dropped. The
//! count of numbers made is never returned, because making them takes time.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isovec_engine::EngineError;
use isovec_engine::budget::{Budget, Resource};

use crate::error::Why;
use crate::node::Floats;

/// The most numbers of one tensor, however large the model is.
const MOST: usize = 1 << 24;

/// The account of one lowering; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<Account>);

#[derive(Debug)]
struct Account {
    budget: Mutex<Budget>,
    refused: OnceLock<EngineError>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new(Budget::for_files(0))
    }
}

impl Account {
    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    pub(crate) fn new(budget: Budget) -> Self {
        Self(Arc::new(Account {
            budget: Mutex::new(budget),
            refused: OnceLock::new(),
        }))
    }

    /// The first thing that was refused because of what it costs, or because nobody waits for it any
    /// more. Whoever else fails after it may do so because of it.
    pub(crate) fn refused(&self) -> Option<&EngineError> {
        self.0.refused.get()
    }

    /// Takes from the budget before anything is spent.
    pub(crate) fn take(&self, resource: Resource, amount: u64, place: &str) -> Why<()> {
        let taken = self.0.budget().take(resource, amount, place);
        taken.map_err(|error| self.0.refused.get_or_init(|| error).to_string())
    }

    fn make(&self, count: usize, bytes: usize, place: &str) -> Why<u64> {
        if count > MOST {
            return Err(format!("{count} are too many constants"));
        }
        let bytes = count as u64 * bytes as u64;
        self.take(Resource::Elements, count as u64, place)?;
        self.take(Resource::Bytes, bytes, place)?;
        Ok(bytes)
    }

    /// `count` numbers, taken from the budget before memory is.
    pub(crate) fn numbers(
        &self,
        count: usize,
        values: impl Iterator<Item = f64>,
    ) -> Why<Arc<Numbers>> {
        let bytes = self.make(count, size_of::<f64>(), "constants made of the graph")?;
        let account = Some((Arc::clone(&self.0), bytes));
        let mut all = Vec::with_capacity(count);
        all.extend(values.take(count));
        Ok(Arc::new(Numbers {
            values: all,
            account,
            facts: OnceLock::new(),
        }))
    }

    /// Numbers that the program holds.
    pub(crate) fn floats(&self, values: impl ExactSizeIterator<Item = f32>) -> Why<Floats> {
        self.make(values.len(), size_of::<f32>(), "constants of the program")?;
        Ok(Arc::from_iter(values))
    }
}

/// Numbers in double precision, on a lowering's account while anything holds them.
#[derive(Debug)]
pub(crate) struct Numbers {
    values: Vec<f64>,
    account: Option<(Arc<Account>, u64)>,
    facts: OnceLock<Facts>,
}

/// What all numbers of a list have in common, found out once: a list may be read by every node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// The one that they all are.
    pub(crate) uniform: Option<f64>,
    /// From which on they count up by one.
    pub(crate) counts_from: Option<f64>,
    /// The smallest and the largest; `None` where one is no number, or there are none.
    pub(crate) range: Option<(f64, f64)>,
}

impl Numbers {
    /// A single one, which nobody needs to account for.
    pub(crate) fn one(value: f64) -> Arc<Self> {
        Arc::new(Self {
            values: vec![value],
            account: None,
            facts: OnceLock::new(),
        })
    }

    pub(crate) fn facts(&self) -> Facts {
        *self.facts.get_or_init(|| Facts::of(&self.values))
    }
}

impl Facts {
    fn of(values: &[f64]) -> Self {
        let Some(&first) = values.first() else {
            return Self {
                uniform: None,
                counts_from: None,
                range: None,
            };
        };
        let same = values
            .iter()
            .all(|value| value.to_bits() == first.to_bits());
        let mut places = values.iter().enumerate();
        let counts = places.all(|(at, value)| *value == first + at as f64);
        let range = values.iter().try_fold((first, first), |(least, most), &x| {
            (!x.is_nan()).then(|| (x.min(least), x.max(most)))
        });
        Self {
            uniform: same.then_some(first),
            counts_from: counts.then_some(first),
            range,
        }
    }
}

impl std::ops::Deref for Numbers {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.values
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        if let Some((account, bytes)) = &self.account {
            account.budget().give_back(Resource::Bytes, *bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros(ledger: &Ledger, count: usize) -> Why<Arc<Numbers>> {
        ledger.numbers(count, std::iter::repeat_n(0.0, count))
    }

    #[test]
    fn what_is_dropped_may_be_taken_again_until_too_much_was_made() {
        let budget = Budget::for_files(0).with_limit(Resource::Bytes, 24);
        let ledger = Ledger::new(budget.with_limit(Resource::Elements, 7));
        let all: Vec<_> = (0..3).map(|_| zeros(&ledger, 1).unwrap()).collect();
        zeros(&ledger.clone(), 1).unwrap_err();
        assert!(
            ledger
                .refused()
                .unwrap()
                .to_string()
                .contains("may use only 24")
        );
        drop(all);
        // Four were made, the refused one among them.
        zeros(&ledger, 3).unwrap();
        zeros(&ledger, 1).unwrap_err();
    }

    #[test]
    fn no_memory_is_taken_for_what_is_refused() {
        let ledger = Ledger::new(Budget::for_files(u64::MAX));
        for count in [MOST + 1, usize::MAX] {
            ledger.numbers(count, std::iter::empty()).unwrap_err();
        }
        assert!(ledger.refused().is_none(), "it is no matter of the budget");
    }

    #[test]
    fn what_all_numbers_have_in_common() {
        let facts = |values: &[f64]| Facts::of(values);
        assert_eq!(facts(&[3.0, 4.0]).counts_from, Some(3.0));
        assert_eq!(facts(&[3.0, -4.0]).range, Some((-4.0, 3.0)));
        assert_eq!(facts(&[2.0, f64::NAN]).range, None);
        assert_eq!(facts(&[0.5, 0.5]).uniform, Some(0.5));
        assert_eq!(facts(&[]).uniform, None);
    }
}
