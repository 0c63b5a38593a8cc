//! The state under the batcher's one lock: waiting, running and finished callers.

use std::collections::HashMap;
use std::task::Waker;
use std::time::Duration;

use futures_channel::oneshot;
use isovec_engine::cancel::Cancel;
use isovec_engine::profile::{Scope, Span};
use smallvec::SmallVec;

use super::queue::{Picked, Queue, Ticket};
use super::steering::Steering;
use crate::error::{Error, Result};
use crate::model::encoded::Encoded;
use crate::sync::Instant;

/// How much a new measurement of the speed counts against all before it.
const WEIGHT: f64 = 0.1;

/// The vectors of a caller's texts, row after row.
pub(super) type Answer = Result<Vec<f32>>;

#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: Queue<Encoded>,
    /// Everyone who was not answered yet, whether waiting or running.
    pub(super) callers: HashMap<Ticket, Caller>,
    pub(super) running: HashMap<u64, Running>,
    /// Batches that callers run themselves: since when, and what stops them.
    pub(super) direct: HashMap<u64, (Instant, Cancel)>,
    /// Calls that were let in and are not over.
    pub(super) calls: usize,
    pub(super) next: u64,
    pub(super) phase: Phase,
    pub(super) driven: bool,
    pub(super) steering: Option<Steering>,
    /// Tokens a second.
    pub(super) speed: Option<f64>,
    /// Calls that were let in and wait for room for more of their texts.
    pub(super) waiting_for_room: HashMap<u64, Waker>,
    /// Those who wait for the end.
    pub(super) ends: Vec<oneshot::Sender<()>>,
    pub(super) counts: QueueCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// No more calls are accepted.
    Draining,
    /// No more calls are answered.
    Closed,
}

#[derive(Debug)]
pub(super) struct Caller {
    pub(super) since: Instant,
    /// How long it waited until the first of its texts was picked.
    pub(super) waited: Option<Duration>,
    /// Where what is done for this caller is recorded.
    pub(super) scope: Scope,
    /// Its wait, until the first of its texts is picked.
    pub(super) queued: Span,
    pub(super) values: Vec<f32>,
    /// Where the values of each text begin, and where the last ones end.
    pub(super) starts: Vec<usize>,
    /// Texts without a vector.
    pub(super) left: usize,
    /// Batches that run texts of this caller, and how many.
    pub(super) running: SmallVec<[(u64, usize); 2]>,
    pub(super) answer: oneshot::Sender<Answer>,
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) cancel: Cancel,
    /// Texts whose callers still wait.
    pub(super) wanted: usize,
    /// Since when the engine works on it; `None` while it waits there for another one to end.
    pub(super) began: Option<Instant>,
}

/// The counts of a batcher so far, and its waiting calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct QueueCounts {
    /// Texts that wait now.
    pub texts: usize,
    /// Their tokens.
    pub tokens: usize,
    /// The most texts that ever waited.
    pub peak_texts: usize,
    /// Batches that were put together from the queue.
    pub batches: u64,
    /// Texts in them.
    pub batched_texts: u64,
    /// Calls that ran at once, because the engine was idle.
    pub direct: u64,
    /// Calls that were refused because the queue was full.
    pub overloaded: u64,
    /// Calls that were cancelled before they were answered.
    pub left: u64,
    /// Positions (rows times the longest row) that a batch may have now.
    pub batch_tokens: usize,
}

/// A batch to run.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) id: u64,
    /// Whose texts, and which of theirs.
    pub(super) owners: Vec<(Ticket, usize)>,
    pub(super) texts: Vec<Encoded>,
    pub(super) cancel: Cancel,
    pub(super) span: Span,
}

impl State {
    pub(super) fn start(&mut self, picked: Vec<Picked<Encoded>>, slots: usize) -> Batch {
        self.counts.batches += 1;
        self.counts.batched_texts += picked.len() as u64;
        let (owners, texts) = picked
            .into_iter()
            .map(|text| ((text.ticket, text.index), text.item))
            .unzip();
        self.register(owners, texts, slots)
    }

    /// Notes a batch as running at an engine with so many places. One that nobody wants any more is cancelled before it
    /// begins.
    pub(super) fn register(
        &mut self,
        owners: Vec<(Ticket, usize)>,
        texts: Vec<Encoded>,
        slots: usize,
    ) -> Batch {
        let id = self.number();
        let cancel = Cancel::new();
        let (mut wanted, mut profiled) = (0, false);
        for (ticket, _) in &owners {
            let Some(caller) = self.callers.get_mut(ticket) else {
                continue;
            };
            wanted += 1;
            profiled |= caller.scope.is_on();
            match caller.running.iter_mut().find(|(batch, _)| *batch == id) {
                Some((_, texts)) => *texts += 1,
                None => caller.running.push((id, 1)),
            }
        }
        if wanted == 0 {
            cancel.cancel();
        }
        let span = if profiled {
            let callers = owners.iter().filter_map(|owner| self.callers.get(&owner.0));
            Scope::batch(callers.map(|caller| &caller.scope))
        } else {
            Span::default()
        };
        let own = cancel.clone();
        let free = self.running.len() + self.direct.len() < slots;
        let running = Running {
            cancel,
            wanted,
            began: free.then(Instant::now),
        };
        self.running.insert(id, running);
        Batch {
            id,
            owners,
            texts,
            cancel: own,
            span,
        }
    }

    /// A batch is over. Says how long the engine worked on it.
    pub(super) fn end(&mut self, batch: &Batch) -> Option<Duration> {
        let running = self.running.remove(&batch.id);
        self.next_begins();
        for (ticket, _) in &batch.owners {
            if let Some(caller) = self.callers.get_mut(ticket) {
                caller.running.retain(|(running, _)| *running != batch.id);
            }
        }
        running?.began.map(|began| began.elapsed())
    }

    /// A place at the engine came free: the batch that has waited there longest takes it.
    pub(super) fn next_begins(&mut self) {
        let waiting = self.running.iter_mut();
        let waiting = waiting.filter(|(_, running)| running.began.is_none());
        if let Some((_, next)) = waiting.min_by_key(|(id, _)| **id) {
            next.began = Some(Instant::now());
        }
    }

    pub(super) fn measure(&mut self, positions: usize, took: Duration) {
        let speed = positions as f64 / took.as_secs_f64().max(1e-9);
        let known = self.speed.get_or_insert(speed);
        *known += (speed - *known) * WEIGHT;
        if let Some(steering) = &mut self.steering {
            steering.ran(positions, took);
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How long until a caller's own run no longer keeps its place; `None` when there is one free.
    /// A caller is not obliged to poll, and the others do not wait for that.
    pub(super) fn until_free(&self, slots: usize, patience: Duration) -> Option<Duration> {
        let mut left: SmallVec<[Duration; 8]> = self
            .direct
            .values()
            .filter_map(|(since, _)| patience.checked_sub(since.elapsed()))
            .collect();
        let needed = (self.running.len() + left.len()).checked_sub(slots)?;
        left.sort_unstable();
        left.get(needed).copied()
    }

    pub(super) fn answer(&mut self, ticket: Ticket, later: &mut Later) {
        if let Some(caller) = self.callers.remove(&ticket) {
            if let Some(steering) = &mut self.steering {
                let waited = caller.waited.unwrap_or_default();
                steering.answered(caller.since.elapsed(), waited);
            }
            later.answers.push((caller.answer, Ok(caller.values)));
        }
    }

    /// Answers a caller with an error; what else runs for it alone is cancelled.
    pub(super) fn fail(&mut self, ticket: Ticket, error: &Error, later: &mut Later) {
        self.queue.leave(ticket);
        if let Some(caller) = self.callers.remove(&ticket) {
            self.unwant(&caller, later);
            later.answers.push((caller.answer, Err(error.clone())));
        }
    }

    pub(super) fn fail_all(&mut self, error: &Error, later: &mut Later) {
        let tickets: Vec<Ticket> = self.callers.keys().copied().collect();
        for ticket in tickets {
            self.fail(ticket, error, later);
        }
        self.make_room(later);
    }

    /// Takes a caller out of the batches that run; those that nobody wants any more are cancelled.
    pub(super) fn unwant(&mut self, caller: &Caller, later: &mut Later) {
        for &(batch, texts) in &caller.running {
            if let Some(running) = self.running.get_mut(&batch) {
                running.wanted = running.wanted.saturating_sub(texts);
                if running.wanted == 0 {
                    later.cancels.push(running.cancel.clone());
                }
            }
        }
    }

    /// Places came free.
    pub(super) fn make_room(&mut self, later: &mut Later) {
        later
            .woken
            .extend(self.waiting_for_room.drain().map(|(_, waker)| waker));
    }

    pub(super) fn end_if_empty(&mut self, later: &mut Later) {
        let over = match self.phase {
            Phase::Open => return,
            Phase::Draining => self.calls == 0 && self.running.is_empty(),
            // Callers' own runs are cancelled, and end when their callers look.
            Phase::Closed => self.running.is_empty(),
        };
        if over {
            later.ends.append(&mut self.ends);
        }
    }
}

/// What is done once the state is unlocked: whoever hears of it may call back.
#[derive(Debug, Default)]
pub(super) struct Later {
    pub(super) answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    pub(super) cancels: Vec<Cancel>,
    pub(super) woken: Vec<Waker>,
    pub(super) ends: Vec<oneshot::Sender<()>>,
}

impl Later {
    pub(super) fn run(self) {
        for (sender, answer) in self.answers {
            // A caller who is gone wants no answer.
            let _ = sender.send(answer);
        }
        for cancel in self.cancels {
            cancel.cancel();
        }
        self.woken.into_iter().for_each(Waker::wake);
        for end in self.ends {
            let _ = end.send(());
        }
    }
}
