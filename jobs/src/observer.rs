//! Who watches a run.

use std::time::Duration;

use crate::unit::UnitId;

/// Watches a run, and may end it.
pub trait Observer: Send + Sync {
    /// Asked before every unit and in every wait; `true` ends the run. Units in work are given up.
    fn stopped(&self) -> bool {
        false
    }

    /// Something happened. Workers call it from their threads.
    fn event(&self, _event: Event<'_>) {}
}

/// Watches nothing.
impl Observer for () {}

/// What happens in a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The units are known.
    Planned {
        /// All units of the input.
        units: u64,
        /// Those that are finished already.
        done: u64,
        /// Finished units whose input has changed or is not named any more.
        stale: u64,
    },
    /// A unit is finished.
    Finished {
        /// The unit.
        unit: UnitId,
        /// Rows of the input in it.
        rows: u64,
        /// Rows among them without a vector.
        poisoned: u64,
    },
    /// Another run finished a unit before this one began it.
    Elsewhere {
        /// The unit.
        unit: UnitId,
    },
    /// Another run finished a unit that was in work here; this work was thrown away.
    Lost {
        /// The unit.
        unit: UnitId,
        /// Its file, and the part of it.
        of: &'a str,
    },
    /// Something failed and is tried again.
    Retrying {
        /// What failed.
        what: &'a str,
        /// Why.
        reason: &'a str,
        /// The time until then.
        wait: Duration,
    },
    /// A unit failed. The run goes on with the others.
    Failed {
        /// The unit.
        unit: UnitId,
        /// Its file, and the part of it.
        of: &'a str,
        /// Why.
        reason: &'a str,
    },
}
