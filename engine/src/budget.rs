//! Limits on the cost of reading a model's files, checked before it is spent.
//!
//! A model's files are untrusted. A few bytes can ask for gigabytes of memory or hours of work, so every reader
//! counts what it is about to use and asks the budget first. The limits grow with the size of the files: a large
//! model may cost more than a small one, and no model costs more than a multiple of the bytes that were sent.
//!
//! One load has one [`Budget`]. Readers share it, so many small demands cannot add up to a large one. All counts are
//! `u64` on every target: a page, where `usize` has 32 bits, refuses the same files as a native process, with the
//! same message.
//!
//! ```
//! use isovec_engine::budget::{Budget, Resource};
//!
//! let mut budget = Budget::for_files(1 << 20);
//! budget.take(Resource::Nodes, 3, "the graph")?;
//! let error = budget.take(Resource::Bytes, u64::MAX, "tensor table").unwrap_err();
//! assert_eq!(error.kind(), "OverBudget");
//! # Ok::<(), isovec_engine::EngineError>(())
//! ```

use std::fmt;

use crate::cancel::Cancel;
use crate::error::{EngineError, Result};

/// The resources that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// Memory that is taken, beside the files themselves.
    Bytes,
    /// Elements of tensors that are decoded or computed one by one.
    Elements,
    /// Steps of work: bytes that are hashed, patterns that are tried.
    Steps,
    /// Messages of a file, nodes of a graph, entries of a list.
    Nodes,
}

impl Resource {
    const COUNT: usize = 4;

    const fn place(self) -> usize {
        match self {
            Self::Bytes => 0,
            Self::Elements => 1,
            Self::Steps => 2,
            Self::Nodes => 3,
        }
    }

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes of memory",
            Self::Elements => "elements",
            Self::Steps => "steps",
            Self::Nodes => "nodes",
        }
    }

    const fn scale(self) -> Scale {
        match self {
            Self::Bytes => Scale {
                base: BASE_BYTES,
                for_each: BYTES_PER_BYTE,
                most: MOST_BYTES,
            },
            Self::Elements => Scale::of(1 << 24, 8),
            // Less than a second for any file of 64 KiB, then in proportion to its size.
            Self::Steps => Scale::of(1 << 26, 16),
            // The shortest message takes two bytes.
            Self::Nodes => Scale::of(1 << 18, 1),
        }
    }
}

/// What is allowed.
struct Scale {
    /// For any model.
    base: u64,
    /// For each byte of its files.
    for_each: u64,
    /// In all.
    most: u64,
}

impl Scale {
    const fn of(base: u64, for_each: u64) -> Self {
        Self {
            base,
            for_each,
            most: u64::MAX,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Memory that any model may take, however small its files are.
const BASE_BYTES: u64 = 32 << 20;

/// Memory for each byte of the files. What is counted stays until loading ends; a list that grows holds its old and its
/// new place for a moment, and names are looked up in sets. With these, reading stays within twice what is counted: 64 MiB
/// and 32 times the files.
const BYTES_PER_BYTE: u64 = 16;

/// Memory that no model may take, however large its files are: half of what a page can address. The same natively, so that
/// a model that loads in one place loads in the other. Bytes of weights are not counted, only what is made of the rest.
const MOST_BYTES: u64 = 2 << 30;

/// The limits of one load, and the use so far.
#[derive(Debug, Clone)]
pub struct Budget {
    files: u64,
    used: [u64; Resource::COUNT],
    /// Limits that the caller set.
    limits: [Option<u64>; Resource::COUNT],
    cancel: Option<Cancel>,
}

impl Budget {
    /// For files of so many bytes in all.
    pub const fn for_files(bytes: u64) -> Self {
        Self {
            files: bytes,
            used: [0; Resource::COUNT],
            limits: [None; Resource::COUNT],
            cancel: None,
        }
    }

    /// Ends with [`EngineError::Cancelled`] at the next [`take`](Self::take) once `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Allows exactly so much of one resource, whatever the size of the files.
    #[must_use]
    pub const fn with_limit(mut self, resource: Resource, limit: u64) -> Self {
        self.limits[resource.place()] = Some(limit);
        self
    }

    /// Another file belongs to the model.
    pub const fn add_file(&mut self, bytes: u64) {
        self.files = self.files.saturating_add(bytes);
    }

    /// The limit of a resource.
    pub const fn allowed(&self, resource: Resource) -> u64 {
        if let Some(limit) = self.limits[resource.place()] {
            return limit;
        }
        let scale = resource.scale();
        let scaled = self.files.saturating_mul(scale.for_each);
        let allowed = scale.base.saturating_add(scaled);
        if allowed < scale.most {
            allowed
        } else {
            scale.most
        }
    }

    /// The amount of a resource in use.
    pub const fn used(&self, resource: Resource) -> u64 {
        self.used[resource.place()]
    }

    /// The free amount of a resource.
    pub const fn left(&self, resource: Resource) -> u64 {
        self.allowed(resource).saturating_sub(self.used(resource))
    }

    /// Takes so much before it is spent. `place` says where, for the message, and is written only when that is needed.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`] when not so much is left, and then nothing is taken; [`EngineError::Cancelled`].
    pub fn take(
        &mut self,
        resource: Resource,
        amount: u64,
        place: impl fmt::Display,
    ) -> Result<()> {
        self.check()?;
        let asked = self.used(resource).saturating_add(amount);
        let allowed = self.allowed(resource);
        if asked > allowed {
            return Err(EngineError::OverBudget {
                resource,
                asked,
                allowed,
                place: place.to_string(),
            });
        }
        self.used[resource.place()] = asked;
        Ok(())
    }

    /// Returns an amount that is free again.
    pub const fn give_back(&mut self, resource: Resource, amount: u64) {
        let used = &mut self.used[resource.place()];
        *used = used.saturating_sub(amount);
    }

    /// # Errors
    /// [`EngineError::Cancelled`] once cancelled: for long work that takes nothing.
    pub fn check(&self) -> Result<()> {
        match &self.cancel {
            Some(cancel) => cancel.check(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_adds_up_and_what_is_refused_is_not_taken() {
        let mut budget = Budget::for_files(10);
        let allowed = budget.allowed(Resource::Bytes);
        assert_eq!(allowed, BASE_BYTES + 10 * BYTES_PER_BYTE);
        budget.take(Resource::Bytes, allowed - 1, "one").unwrap();
        budget.take(Resource::Bytes, 2, "two").unwrap_err();
        assert_eq!(budget.left(Resource::Bytes), 1);
        budget.take(Resource::Bytes, 1, "three").unwrap();
        budget.give_back(Resource::Bytes, 5);
        assert_eq!(budget.left(Resource::Bytes), 5);
        assert_eq!(budget.used(Resource::Nodes), 0, "each is counted by itself");
    }

    #[test]
    fn an_error_names_the_budget_the_place_and_both_counts() {
        let mut budget = Budget::for_files(0).with_limit(Resource::Steps, 7);
        budget.take(Resource::Steps, 5, "here").unwrap();
        let error = budget.take(Resource::Steps, 4, format_args!("tensor {}", "x"));
        let error = error.unwrap_err();
        assert_eq!(error.kind(), "OverBudget");
        let message = error.to_string();
        for part in ["tensor x", "9 steps", "7"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn counts_past_32_and_64_bits_are_refused_and_do_not_wrap() {
        let mut budget = Budget::for_files(u64::MAX);
        assert_eq!(budget.allowed(Resource::Elements), u64::MAX);
        assert_eq!(budget.allowed(Resource::Bytes), MOST_BYTES);
        let mut small = Budget::for_files(1 << 20);
        for amount in [1 << 32, u64::MAX - 1, u64::MAX] {
            assert!(small.take(Resource::Bytes, amount, "it").is_err());
        }
        budget.add_file(1);
        assert_eq!(small.used(Resource::Bytes), 0);
    }

    #[test]
    fn a_file_that_comes_later_allows_more() {
        let mut budget = Budget::for_files(0);
        let before = budget.allowed(Resource::Elements);
        budget.add_file(100);
        assert_eq!(budget.allowed(Resource::Elements), before + 800);
    }

    #[test]
    fn whoever_cancels_ends_it() {
        let cancel = Cancel::new();
        let mut budget = Budget::for_files(1).with_cancel(&cancel);
        budget.take(Resource::Nodes, 1, "it").unwrap();
        cancel.cancel();
        for error in [
            budget.take(Resource::Nodes, 1, "it").unwrap_err(),
            budget.check().unwrap_err(),
        ] {
            assert_eq!(error.kind(), "Cancelled");
        }
    }
}
