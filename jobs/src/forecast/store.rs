//! A store that is none: what it is asked, and when it answers.

use super::Requests;
use super::costs::Costs;
use super::events::{Time, seconds, time};

/// What the store is asked.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    List,
    Look,
    Read,
    Write,
}

pub(crate) struct Store<'a> {
    costs: &'a Costs,
    /// What it was asked.
    pub(crate) requests: Requests,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// When it has answered all reads that it was asked so far, taken all writes and moved all bytes, in seconds.
    reads: f64,
    writes: f64,
    bytes: f64,
}

impl<'a> Store<'a> {
    pub(crate) fn new(costs: &'a Costs) -> Self {
        Self {
            costs,
            requests: Requests::default(),
            bytes_read: 0,
            bytes_written: 0,
            reads: 0.0,
            writes: 0.0,
            bytes: 0.0,
        }
    }

    /// Asks `count` times, one after another, and gives the time of the last answer.
    ///
    /// Alone that takes the time of the requests and their bytes. Among others it also takes as long as the store needs for all
    /// that it was asked before.
    pub(crate) fn ask(&mut self, now: Time, what: Ask, count: u64, bytes: u64) -> Time {
        self.count(what, count);
        let moved = match what {
            Ask::Write => &mut self.bytes_written,
            _ => &mut self.bytes_read,
        };
        *moved = moved.saturating_add(bytes);
        let costs = self.costs;
        let begun = seconds(now);
        let queue = |until: &mut f64, amount: u64, rate: f64| {
            *until = until.max(begun) + amount as f64 / rate;
            *until
        };
        let alone = count as f64 * costs.request_seconds + bytes as f64 / costs.bytes_per_second;
        let answered = match what {
            Ask::Write => queue(&mut self.writes, count, costs.store_writes_per_second),
            _ => queue(&mut self.reads, count, costs.store_reads_per_second),
        };
        let moved = queue(&mut self.bytes, bytes, costs.store_bytes_per_second);
        now.max(time((begun + alone).max(answered).max(moved)))
    }

    /// Counts requests that nobody waits for.
    pub(crate) fn count(&mut self, what: Ask, count: u64) {
        let requests = &mut self.requests;
        *match what {
            Ask::List => &mut requests.lists,
            Ask::Look => &mut requests.looks,
            Ask::Read => &mut requests.reads,
            Ask::Write => &mut requests.writes,
        } += count;
    }

    /// The part of what it can do in so many seconds that was asked of it.
    pub(crate) fn used(&self, seconds: f64) -> f64 {
        let Requests {
            lists,
            looks,
            reads,
            writes,
        } = self.requests;
        let bytes = self.bytes_read + self.bytes_written;
        let used = [
            (lists + looks + reads) as f64 / self.costs.store_reads_per_second,
            writes as f64 / self.costs.store_writes_per_second,
            bytes as f64 / self.costs.store_bytes_per_second,
        ];
        used.into_iter().fold(0.0, f64::max) / seconds.max(f64::MIN_POSITIVE)
    }
}
