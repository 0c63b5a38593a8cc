//! The time of a simulation, and what happens in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds since the start of all workers.
pub(crate) type Time = u64;

pub(crate) const NEVER: Time = Time::MAX;
/// Seconds of an hour.
pub(crate) const HOUR: f64 = 3600.0;
const SECOND: f64 = 1e9;

/// So many seconds. More than there can be are as many as there can be.
pub(crate) fn time(seconds: f64) -> Time {
    (seconds * SECOND) as Time
}

pub(crate) fn seconds(time: Time) -> f64 {
    time as f64 / SECOND
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A process goes on with its start.
    Start(usize),
    /// A thread has done what it did.
    Done(usize),
    Death(usize),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Happening {
    pub(crate) at: Time,
    /// Events at the same time happen in the order in which they were foreseen.
    number: u64,
    pub(crate) what: What,
    /// The life of the process that it belongs to.
    pub(crate) life: u32,
}

/// What is foreseen.
#[derive(Default)]
pub(crate) struct Events {
    ahead: BinaryHeap<Reverse<Happening>>,
    number: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at: Time, what: What, life: u32) {
        self.number += 1;
        self.ahead.push(Reverse(Happening {
            at,
            number: self.number,
            what,
            life,
        }));
    }

    /// The next event.
    pub(crate) fn pop(&mut self) -> Option<Happening> {
        self.ahead.pop().map(|Reverse(next)| next)
    }
}
