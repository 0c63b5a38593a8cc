//! Counts the calls and results of callers, and compares them with the embedder's counts.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use isovec::stats::{QueueCounts, Stats};

/// How a call ended for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Cancelled,
    Failed,
}

/// The books of one embedder.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    calls: [AtomicU64; 3],
    asked: AtomicU64,
    texts: [AtomicU64; 3],
    /// Calls that streams made: so many at least, and at most.
    windows: [AtomicU64; 2],
}

impl Ledger {
    /// Notes a call of so many texts, when it begins.
    pub(crate) fn begins(&self, texts: usize) {
        self.asked.fetch_add(texts as u64, SeqCst);
    }

    /// Notes what became of a call.
    pub(crate) fn ends(&self, texts: usize, ended: Ended) {
        self.calls[ended as usize].fetch_add(1, SeqCst);
        self.texts[ended as usize].fetch_add(texts as u64, SeqCst);
    }

    /// Notes what became of a stream's texts, and how many calls it made for them.
    pub(crate) fn streamed(&self, well: usize, cancelled: usize, windows: (usize, usize)) {
        self.texts[Ended::Well as usize].fetch_add(well as u64, SeqCst);
        self.texts[Ended::Cancelled as usize].fetch_add(cancelled as u64, SeqCst);
        self.windows[0].fetch_add(windows.0 as u64, SeqCst);
        self.windows[1].fetch_add(windows.1 as u64, SeqCst);
    }

    /// Texts that were asked for.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(SeqCst)
    }

    /// What does not balance when nothing is under way.
    pub(crate) fn faults(&self, stats: &Stats, queue: &QueueCounts) -> Vec<String> {
        let mut faults = Vec::new();
        let mut hold = |holds: bool, what: String| {
            if !holds {
                faults.push(what);
            }
        };
        let texts = self.texts.each_ref().map(|count| count.load(SeqCst));
        let asked = self.asked();
        hold(
            asked == texts.iter().sum::<u64>(),
            format!("{asked} texts went in, and [well, cancelled, failed] came out: {texts:?}"),
        );
        let [well, cancelled, failed] = self.calls.each_ref().map(|count| count.load(SeqCst));
        let [least, most] = self.windows.each_ref().map(|count| count.load(SeqCst));
        let calls = &stats.calls;
        hold(
            calls.failed == failed,
            format!("{failed} calls failed, and {} are counted", calls.failed),
        );
        let ended = well + cancelled;
        let counted = calls.embedded + calls.cancelled;
        hold(
            (ended + least..=ended + most).contains(&counted)
                && calls.embedded >= well
                && calls.cancelled >= cancelled,
            format!(
                "{well} calls ended well and {cancelled} were given up, beside {least} to {most} of streams; {} and {} are counted",
                calls.embedded, calls.cancelled
            ),
        );
        let engine = &stats.engine;
        let (sessions, pool) = (&engine.sessions, &engine.memory_pool);
        hold(
            (sessions.in_use, sessions.waiting) == (0, 0),
            format!("sessions are in use or waited for: {sessions:?}"),
        );
        hold(
            pool.lent_memory_bytes == 0,
            format!("buffers are in use: {pool:?}"),
        );
        hold(
            (queue.texts, queue.tokens) == (0, 0),
            format!("texts wait: {queue:?}"),
        );
        if !sessions.per_session.is_empty() {
            let shares = sessions.per_session.iter();
            let runs: u64 = shares.map(|share| share.runs - share.cancelled).sum();
            hold(
                runs == engine.provider.runs,
                format!("sessions ended {runs} runs: {:?}", engine.provider),
            );
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_or_left_over_is_a_fault() {
        let (mut stats, mut queue) = (Stats::default(), QueueCounts::default());
        let ledger = Ledger::default();
        ledger.begins(3);
        assert_eq!(
            ledger.faults(&stats, &queue).len(),
            1,
            "texts are under way"
        );
        ledger.ends(3, Ended::Well);
        assert_eq!(ledger.faults(&stats, &queue).len(), 1, "no call is counted");
        stats.calls.embedded = 1;
        assert!(ledger.faults(&stats, &queue).is_empty());
        ledger.begins(600);
        ledger.streamed(512, 88, (1, 2));
        assert_eq!(ledger.faults(&stats, &queue).len(), 1);
        for (embedded, cancelled, faults) in [(2, 0, 0), (2, 1, 0), (2, 2, 1), (0, 2, 1)] {
            (stats.calls.embedded, stats.calls.cancelled) = (embedded, cancelled);
            assert_eq!(
                ledger.faults(&stats, &queue).len(),
                faults,
                "{embedded}, {cancelled}"
            );
        }
        (stats.calls.embedded, stats.calls.cancelled) = (2, 0);
        stats.calls.failed = 1;
        stats.engine.sessions.waiting = 1;
        stats.engine.memory_pool.lent_memory_bytes = 64;
        queue.texts = 1;
        assert_eq!(ledger.faults(&stats, &queue).len(), 4);
    }
}
