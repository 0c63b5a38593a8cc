//! Merges events that a runtime recorded by itself into the runs of a session.

use std::time::Duration;

use web_time::Instant;

use super::event::{Detail, Event, Kind, Stage};

/// The runs of a session, for code that has events of them.
#[derive(Debug)]
pub struct Runs {
    /// When the session began.
    pub(super) started: Instant,
    /// Their events, by when they began.
    pub(super) events: Vec<Event>,
}

/// The events that a runtime recorded by itself: runs and their operators.
#[derive(Debug, Default)]
pub struct OwnProfile {
    /// Runs.
    pub runs: Vec<Lap>,
    /// Operators.
    pub operators: Vec<Lap>,
}

/// Something that a runtime did.
#[derive(Debug, Clone)]
pub struct Lap {
    /// Its name.
    pub name: String,
    /// When it began.
    pub began: Instant,
    /// How long it took.
    pub took: Duration,
    /// The runtime's number for the thread that did it.
    pub thread: u64,
    /// Details.
    pub detail: Detail,
}

impl Lap {
    fn end(&self) -> Instant {
        self.began + self.took
    }
}

impl Runs {
    /// The operators of isovec's own runs, as events, each with the details of its run.
    pub fn operators(&self, own: OwnProfile) -> Vec<Event> {
        let OwnProfile {
            runs,
            mut operators,
        } = own;
        operators.sort_by_key(|lap| (lap.thread, lap.began));
        let mut events = Vec::new();
        for run in &runs {
            let Some(of) = self.around(run) else { continue };
            let key = |lap: &Lap| (lap.thread, lap.began);
            let from = operators.partition_point(|lap| key(lap) < (run.thread, run.began));
            let to = operators.partition_point(|lap| key(lap) < (run.thread, run.end()));
            events.extend(operators[from..to].iter().map(|lap| Event {
                kind: Kind::Span { took: lap.took },
                stage: Stage::Operator,
                name: lap.name.clone().into(),
                // Theirs are whole microseconds; an operator does not begin before its run.
                start: self.since_start(lap.began).max(of.start),
                thread: of.thread,
                request: of.request,
                batch: of.batch,
                detail: lap.detail.clone(),
            }));
        }
        events
    }

    /// The run of ours that this one of theirs lies in.
    fn around(&self, run: &Lap) -> Option<&Event> {
        /// Theirs are whole microseconds.
        const ROUNDING: Duration = Duration::from_micros(5);
        if run.end() <= self.started {
            return None;
        }
        let start = self.since_start(run.began);
        let events = &self.events;
        let until = events.partition_point(|event| event.start <= start + ROUNDING);
        // The latest to begin is the nearest, unless another thread's began in between.
        let mut before = events[..until].iter().rev();
        before.find(|event| event.start + event.took() + ROUNDING >= start + run.took)
    }

    fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.started)
    }
}
