//! Each item of a batch once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// The different items of a batch, and which of them each row has. A query for all rows, or a value that a join repeats, is
/// computed once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Distinct<T> {
    pub(crate) items: Vec<T>,
    /// The first row of each item.
    pub(crate) first: Vec<usize>,
    /// The place among the items of each row; `None` for a null.
    pub(crate) of_row: Vec<Option<usize>>,
}

impl<T: Hash + Eq + Copy> Distinct<T> {
    pub(crate) fn new(rows: impl IntoIterator<Item = Option<T>>) -> Self {
        let (mut items, mut first) = (Vec::new(), Vec::new());
        let mut places = HashMap::new();
        let place = |(row, item): (usize, Option<T>)| {
            item.map(|item| match places.entry(item) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    items.push(item);
                    first.push(row);
                    *new.insert(items.len() - 1)
                }
            })
        };
        let of_row = rows.into_iter().enumerate().map(place).collect();
        Self {
            items,
            first,
            of_row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_there_once_and_nulls_are_not() {
        let found = Distinct::new([None, Some("b"), Some("a"), Some("b")]);
        let expected = Distinct {
            items: vec!["b", "a"],
            first: vec![1, 2],
            of_row: vec![None, Some(0), Some(1), Some(0)],
        };
        assert_eq!(found, expected);
    }
}
