//! The workers of a simulation: what they do, and where their time goes.

use std::collections::VecDeque;

use super::Shares;
use super::events::{Time, seconds};
use super::order::Order;
use super::store::Ask;

/// What a thread spends its time with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doing {
    #[default]
    Starting,
    /// Listing the input, and learning its row groups.
    Learning,
    /// Listing what is finished.
    Listing,
    Looking,
    Reading,
    /// Waiting until the model is free.
    Queueing,
    Computing,
    /// Waiting before retries.
    Pausing,
    Writing,
    /// Creating the entry of a unit, or the note of its failure.
    Noting,
    /// Nothing is left.
    Ended,
}

const DOINGS: usize = Doing::Ended as usize + 1;

/// A run of the job. It is started again when it has died.
#[derive(Default)]
pub(crate) struct Process {
    /// How often it was started.
    pub(crate) life: u32,
    pub(crate) order: Option<Order>,
    /// When it last listed the manifest: what was finished by then it does not look at.
    pub(crate) listed: Time,
    /// How many units were finished then.
    pub(crate) names: u64,
    /// Looks since then that found a unit finished.
    pub(crate) found: u64,
    /// When the listing began that is under way.
    pub(crate) listing: Option<Time>,
    /// When its model is free.
    pub(crate) free: Time,
    /// Threads that have not ended.
    pub(crate) left: u64,
    /// What it asks the store to learn its units: so many times, for so many bytes.
    pub(crate) asks: VecDeque<(Ask, u64, u64)>,
}

#[derive(Clone, Default)]
pub(crate) struct Thread {
    pub(crate) doing: Doing,
    since: Time,
    pub(crate) unit: Option<u32>,
    /// Seconds of computing the unit so far.
    pub(crate) computed: f64,
}

/// Seconds of all threads.
#[derive(Default)]
pub(crate) struct Times {
    spent: [f64; DOINGS],
    /// Computing that was thrown away.
    pub(crate) again: f64,
}

impl Times {
    /// Ends what a thread was doing.
    pub(crate) fn turn(&mut self, thread: &mut Thread, now: Time, doing: Doing) {
        let spent = seconds(now - thread.since);
        self.spent[thread.doing as usize] += spent;
        if thread.doing == Doing::Computing {
            thread.computed += spent;
        }
        (thread.doing, thread.since) = (doing, now);
    }

    pub(crate) fn shares(&self) -> Shares {
        let spent = |doing: Doing| self.spent[doing as usize];
        let sum: f64 = self.spent.iter().sum::<f64>() - spent(Doing::Ended);
        let share = |seconds: f64| if sum > 0.0 { seconds / sum } else { 0.0 };
        Shares {
            computing: share(spent(Doing::Computing) - self.again),
            again: share(self.again),
            starting: share(spent(Doing::Starting)),
            listing: share(spent(Doing::Learning) + spent(Doing::Listing)),
            looking: share(spent(Doing::Looking)),
            store: share(spent(Doing::Reading) + spent(Doing::Writing) + spent(Doing::Noting)),
            waiting: share(spent(Doing::Queueing) + spent(Doing::Pausing)),
        }
    }
}
