//! In the browser: vectors are kept in memory alone.

use std::path::Path;

use crate::cache::{Entry, Key};

/// There is none.
#[derive(Debug)]
pub(crate) enum Shelf {}

impl Shelf {
    /// The shelf, or why there is none.
    pub(crate) fn open(
        _folder: Option<&Path>,
        _limit: u64,
        _dim: usize,
    ) -> Result<Self, &'static str> {
        Err("a page keeps vectors in memory only")
    }

    /// Where it is.
    pub(crate) fn place(&self) -> String {
        match *self {}
    }

    /// The entries of these keys, as far as they are there.
    pub(crate) async fn read(&self, _keys: Vec<Key>) -> Vec<Option<Entry>> {
        match *self {}
    }

    /// Keeps entries.
    pub(crate) async fn write(&self, _entries: Vec<(Key, Entry)>) {
        match *self {}
    }

    /// What is there and what was done.
    pub(crate) fn counts(&self) -> ShelfCounts {
        match *self {}
    }
}

pub(crate) use crate::cache::ShelfCounts;
