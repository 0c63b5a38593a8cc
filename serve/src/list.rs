//! A list of a request, which is bounded while it is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::failure::{Failure, Kind};
use crate::options::MOST_TEXTS;

/// A list of which at most [`MOST_TEXTS`] items are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T> {
    items: Vec<T>,
    /// All that there were.
    count: usize,
}

impl<T> List<T> {
    /// A list of one item.
    pub(crate) fn one(item: T) -> Self {
        Self {
            items: vec![item],
            count: 1,
        }
    }

    /// Reads the rest of a list behind the items that were read already.
    pub(crate) fn read<'de, A: SeqAccess<'de>>(
        mut items: Vec<T>,
        list: &mut A,
    ) -> Result<Self, A::Error>
    where
        T: Deserialize<'de>,
    {
        while items.len() < MOST_TEXTS {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        // What is over the limit is counted and not kept.
        let mut count = items.len();
        while count >= MOST_TEXTS && list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Self { items, count })
    }

    /// The items that were kept, and all that there were.
    #[cfg(test)]
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.items.len(), self.count)
    }

    /// The items.
    ///
    /// # Errors
    /// A list without items or with more than [`MOST_TEXTS`], and an item that is empty.
    pub(crate) fn checked(
        self,
        field: &'static str,
        empty: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>, Failure> {
        let Self { items, count } = self;
        if count > MOST_TEXTS {
            let message = format!("there are {count} texts; a request takes at most {MOST_TEXTS}");
            return Err(Failure::new(Kind::TooMany, message).about(field));
        }
        if items.is_empty() {
            return Err(Failure::new(Kind::Empty, "the list of texts is empty").about(field));
        }
        match items.iter().position(empty) {
            Some(at) => Err(Failure::field(field, format!("text {at} is empty"))),
            None => Ok(items),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of texts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                List::read(Vec::new(), &mut list)
            }
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}
