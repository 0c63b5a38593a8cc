//! What callers and the driver share: who waits, who runs, who is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::task::AtomicWaker;
use isovec_engine::cancel::Cancel;
use isovec_tokenize::Encoding;
use smallvec::SmallVec;
use web_time::Instant;

use super::queue::{Picked, Queue, Ticket};
use super::steering::Steering;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::plan::Budget;

/// How much a new measurement of the speed counts against all before it.
const WEIGHT: f64 = 0.1;
/// The hint of a full queue before anything was measured.
const UNKNOWN_WAIT: Duration = Duration::from_millis(50);

/// What [`Core::patience`] is.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is short: how many wait, how many may, and of what.
type Short = (usize, usize, &'static str);

/// The vectors of a caller's texts, row after row.
pub(super) type Answer = Result<Vec<f32>>;

/// One embedder's batcher.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) model: Arc<Model>,
    state: Mutex<State>,
    pub(super) driver: AtomicWaker,
    /// How long a caller's own run keeps its place at the engine, whether the caller looks or not.
    pub(super) patience: Duration,
}

#[derive(Debug)]
struct State {
    queue: Queue<Encoding>,
    /// Everyone who was not answered yet, whether waiting or running.
    callers: HashMap<Ticket, Caller>,
    running: HashMap<u64, Running>,
    /// Batches that callers run themselves: since when, and what stops them.
    direct: HashMap<u64, (Instant, Cancel)>,
    /// Calls that were let in and are not over.
    calls: usize,
    next: u64,
    phase: Phase,
    driven: bool,
    steering: Option<Steering>,
    /// Tokens a second.
    speed: Option<f64>,
    /// Calls that were let in and wait for room for more of their texts.
    waiting_for_room: HashMap<u64, Waker>,
    /// Those who wait for the end.
    ends: Vec<oneshot::Sender<()>>,
    counts: QueueCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nobody comes in any more.
    Draining,
    /// Nobody is answered any more.
    Closed,
}

#[derive(Debug)]
struct Caller {
    since: Instant,
    picked: bool,
    values: Vec<f32>,
    /// Texts without a vector.
    left: usize,
    /// Batches that run texts of this caller, and how many.
    running: SmallVec<[(u64, usize); 2]>,
    answer: oneshot::Sender<Answer>,
}

#[derive(Debug)]
struct Running {
    cancel: Cancel,
    /// Texts whose callers still wait.
    wanted: usize,
}

/// What a batcher did so far, and what waits in it now.
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
    /// Calls that ran at once, because nobody else was there.
    pub direct: u64,
    /// Calls that were refused because the queue was full.
    pub overloaded: u64,
    /// Callers who gave up before they were answered.
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
    pub(super) texts: Vec<Encoding>,
    pub(super) cancel: Cancel,
}

/// What the driver does next.
#[derive(Debug)]
pub(super) enum Due {
    Run(Batch),
    /// Companions may come until then.
    Wait(Duration),
    /// Nothing, until somebody calls.
    Nothing,
    /// Everybody is gone.
    End,
}

/// What became of a call's texts.
pub(super) enum Admitted {
    /// They wait; the answer comes here.
    Queued(Seat, oneshot::Receiver<Answer>),
    /// Nobody else is there: the caller runs them.
    Direct(Direct, Vec<Encoding>),
}

impl Core {
    pub(super) fn new(model: Arc<Model>) -> Self {
        let settings = &model.batching;
        let steering = settings.steering.map(|steering| {
            Steering::new(
                model.budget.tokens,
                steering.target_latency,
                steering.throughput,
            )
        });
        Self {
            state: Mutex::new(State {
                queue: Queue::default(),
                callers: HashMap::new(),
                running: HashMap::new(),
                direct: HashMap::new(),
                calls: 0,
                next: 0,
                phase: Phase::Open,
                driven: false,
                steering,
                speed: None,
                waiting_for_room: HashMap::new(),
                ends: Vec::new(),
                counts: QueueCounts::default(),
            }),
            driver: AtomicWaker::new(),
            patience: PATIENCE,
            model,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> usize {
        let engine = self.model.engines.current();
        engine.capabilities().concurrent_runs.max(1)
    }

    fn budget(&self, state: &State) -> Budget {
        let budget = self.model.budget;
        let Some(steering) = &state.steering else {
            return budget;
        };
        Budget {
            tokens: steering.positions(),
            least: self.model.batching.min_rows,
            ..budget
        }
    }

    /// Refuses a call at once where its texts would find no room, before they are tokenised.
    pub(super) fn check_room(&self, texts: usize) -> Result<()> {
        let mut state = self.lock();
        self.room(&mut state, texts, 0)
    }

    /// What the queue is short of for these; `None` when they fit. More than the queue holds
    /// waits alone rather than never.
    fn short_of(&self, state: &State, texts: usize, tokens: usize) -> Option<Short> {
        let settings = &self.model.batching;
        let fits =
            |waiting: usize, more: usize, most: usize| waiting == 0 || waiting + more <= most;
        if !fits(state.queue.texts(), texts, settings.max_queue) {
            Some((state.queue.texts(), settings.max_queue, "texts"))
        } else if !fits(state.queue.tokens(), tokens, settings.max_queue_tokens) {
            Some((state.queue.tokens(), settings.max_queue_tokens, "tokens"))
        } else {
            None
        }
    }

    fn room(&self, state: &mut State, texts: usize, tokens: usize) -> Result<()> {
        if state.phase != Phase::Open {
            return Err(Error::ShutDown);
        }
        // Those who were let in and wait for room come first.
        let awaited = (!state.waiting_for_room.is_empty()).then_some((
            state.queue.texts(),
            self.model.batching.max_queue,
            "texts",
        ));
        let Some((waiting, limit, unit)) = awaited.or(self.short_of(state, texts, tokens)) else {
            return Ok(());
        };
        state.counts.overloaded += 1;
        let retry_after = state.speed.map_or(UNKNOWN_WAIT, |speed| {
            let seconds = state.queue.tokens() as f64 / speed.max(1.0);
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        });
        Err(Error::Overloaded {
            waiting,
            limit,
            unit,
            retry_after,
        })
    }

    /// Counts a call in; the guard counts it out.
    pub(super) fn enter(self: &Arc<Self>, cancel: &Cancel) -> Call {
        let mut state = self.lock();
        state.calls += 1;
        let number = state.number();
        Call {
            core: Arc::clone(self),
            number,
            cancel: cancel.clone(),
        }
    }

    /// Takes the first texts of a call, or refuses them.
    pub(super) fn admit(self: &Arc<Self>, call: &Call, texts: Vec<Encoding>) -> Result<Admitted> {
        let mut state = self.lock();
        if self.may_run_itself(&state, &texts) {
            let since = Instant::now();
            state
                .direct
                .insert(call.number, (since, call.cancel.clone()));
            state.counts.direct += 1;
            let direct = Direct {
                core: Arc::clone(self),
                number: call.number,
                since,
                positions: texts.len() * self.longest(&texts),
                done: false,
            };
            return Ok(Admitted::Direct(direct, texts));
        }
        self.room(&mut state, texts.len(), tokens(&texts))?;
        self.queue(state, texts)
    }

    /// Takes more texts of a call that was let in, unless there is no room for them now: then the
    /// waker is told when there may be.
    pub(super) fn admit_more(
        self: &Arc<Self>,
        call: &Call,
        texts: Vec<Encoding>,
        waker: &Waker,
    ) -> Result<Result<Admitted, Vec<Encoding>>> {
        let mut state = self.lock();
        if state.phase == Phase::Closed {
            return Err(Error::ShutDown);
        }
        if self.short_of(&state, texts.len(), tokens(&texts)).is_some() {
            state.waiting_for_room.insert(call.number, waker.clone());
            return Ok(Err(texts));
        }
        state.waiting_for_room.remove(&call.number);
        self.queue(state, texts).map(Ok)
    }

    /// Whether nobody is answered any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().phase == Phase::Closed
    }

    /// Positions of the longest text, as the engine computes them.
    pub(super) fn longest(&self, texts: &[Encoding]) -> usize {
        let longest = texts.iter().map(|text| text.ids.len()).max();
        self.model.feed.padded(longest.unwrap_or(0))
    }

    fn may_run_itself(&self, state: &State, texts: &[Encoding]) -> bool {
        let budget = self.budget(state);
        state.phase == Phase::Open
            && self.model.batching.max_wait.is_zero()
            && state.queue.texts() == 0
            && state.running.len() + state.direct.len() < self.slots()
            && (texts.len() == 1
                || texts.len() <= budget.rows && texts.len() * self.longest(texts) <= budget.tokens)
    }

    fn queue(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        texts: Vec<Encoding>,
    ) -> Result<Admitted> {
        if !state.driven {
            super::driver::start(Arc::clone(self))?;
            state.driven = true;
        }
        let ticket = state.number();
        let (answer, answered) = oneshot::channel();
        state.callers.insert(
            ticket,
            Caller {
                since: Instant::now(),
                picked: false,
                values: vec![f32::NAN; texts.len() * self.model.dim],
                left: texts.len(),
                running: SmallVec::new(),
                answer,
            },
        );
        let lengths = texts.into_iter().map(|text| {
            let positions = self.model.feed.padded(text.ids.len());
            (positions, text)
        });
        state.queue.push(ticket, lengths);
        state.counts.peak_texts = state.counts.peak_texts.max(state.queue.texts());
        drop(state);
        self.driver.wake();
        let seat = Seat {
            core: Arc::clone(self),
            ticket,
        };
        Ok(Admitted::Queued(seat, answered))
    }

    /// Puts the next batch together, if one is due.
    pub(super) fn due(&self) -> Due {
        let slots = self.slots();
        let mut state = self.lock();
        if state.phase == Phase::Closed && state.running.is_empty() && state.callers.is_empty() {
            return Due::End;
        }
        if state.queue.texts() == 0 {
            return Due::Nothing;
        }
        let budget = self.budget(&state);
        // One batch more than the engine works on waits there, if it would not grow any more.
        let full = state.queue.texts() >= budget.rows || state.queue.tokens() >= budget.tokens;
        let slots = slots + usize::from(full);
        if state.running.len() >= slots {
            return Due::Nothing;
        }
        if let Some(wait) = state.until_free(slots, self.patience) {
            return Due::Wait(wait);
        }
        if let Some(more) = self.companions_may_come(&state, budget) {
            return Due::Wait(more);
        }
        let allowed = self.model.allowed_bytes();
        let fits = |rows, length| self.model.fits(rows, length, allowed);
        let picked = state.queue.pick(budget, fits);
        let batch = state.start(picked);
        for ticket in batch.owners.iter().map(|owner| owner.0) {
            if let Some(caller) = state.callers.get_mut(&ticket)
                && !std::mem::replace(&mut caller.picked, true)
            {
                self.model.recorder.queued(caller.since.elapsed());
            }
        }
        let mut later = Later::default();
        state.make_room(&mut later);
        drop(state);
        later.run();
        Due::Run(batch)
    }

    /// How much longer a batch may wait to be filled; `None` when it goes now.
    fn companions_may_come(&self, state: &State, budget: Budget) -> Option<Duration> {
        let settings = &self.model.batching;
        if settings.max_wait.is_zero()
            || state.phase != Phase::Open
            || state.queue.texts() >= settings.preferred_rows
            || state.queue.tokens() >= budget.tokens
        {
            return None;
        }
        let oldest = state.callers.get(&state.queue.oldest()?)?;
        let waited = oldest.since.elapsed();
        settings
            .max_wait
            .checked_sub(waited)
            .filter(|left| !left.is_zero())
    }

    /// Takes back a batch whose run failed, in two halves of which each runs again: a text that
    /// no run survives is alone in the end.
    pub(super) fn halves(&self, batch: Batch) -> [Batch; 2] {
        let mut state = self.lock();
        state.end(&batch);
        let Batch {
            mut owners,
            mut texts,
            ..
        } = batch;
        let half = texts.len() / 2;
        let (late_owners, late_texts) = (owners.split_off(half), texts.split_off(half));
        [(owners, texts), (late_owners, late_texts)]
            .map(|(owners, texts)| state.register(owners, texts))
    }

    /// A batch ran: hands its vectors, `[texts, dim]`, or its error to the callers.
    pub(super) fn settle(&self, batch: &Batch, took: Duration, ran: Result<&[f32]>) {
        let dim = self.model.dim;
        let mut later = Later::default();
        let mut state = self.lock();
        state.end(batch);
        match ran {
            Ok(vectors) => {
                state.measure(batch.texts.len() * self.longest(&batch.texts), took);
                for (&(ticket, index), vector) in batch.owners.iter().zip(vectors.chunks_exact(dim))
                {
                    let Some(caller) = state.callers.get_mut(&ticket) else {
                        continue;
                    };
                    if let Some(row) = caller.values.get_mut(index * dim..(index + 1) * dim) {
                        row.copy_from_slice(vector);
                    }
                    caller.left -= 1;
                    if caller.left == 0 {
                        state.answer(ticket, &mut later);
                    }
                }
            }
            Err(error) => {
                for &(ticket, _) in &batch.owners {
                    state.fail(ticket, &error, &mut later);
                }
            }
        }
        state.make_room(&mut later);
        state.end_if_empty(&mut later);
        drop(state);
        later.run();
    }

    /// A caller gave up: its texts leave the queue, and a batch that nobody else wants is
    /// cancelled.
    fn leave(&self, ticket: Ticket) {
        let mut later = Later::default();
        let mut state = self.lock();
        let Some(caller) = state.callers.remove(&ticket) else {
            return;
        };
        state.counts.left += 1;
        state.queue.leave(ticket);
        state.unwant(&caller, &mut later);
        state.make_room(&mut later);
        state.end_if_empty(&mut later);
        drop(state);
        later.run();
        self.driver.wake();
    }

    /// Lets nobody in any more; `cancel`: nor lets anybody finish.
    pub(super) fn shut_down(&self, cancel: bool) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let mut later = Later::default();
        let mut state = self.lock();
        if cancel {
            state.phase = Phase::Closed;
            state.fail_all(&Error::ShutDown, &mut later);
            let direct = state.direct.values().map(|(_, cancel)| cancel.clone());
            later.cancels.extend(direct);
        } else if state.phase == Phase::Open {
            state.phase = Phase::Draining;
        }
        state.ends.push(end);
        state.end_if_empty(&mut later);
        drop(state);
        later.run();
        self.driver.wake();
        ended
    }

    /// The driver is gone, by a panic: nobody may wait for it.
    pub(super) fn abandon(&self) {
        let gone = Error::Panicked {
            doing: "batching",
            detail: "the batcher's driver ended before its callers were answered".into(),
        };
        let mut later = Later::default();
        let mut state = self.lock();
        state.phase = Phase::Closed;
        state.running.clear();
        state.fail_all(&gone, &mut later);
        state.end_if_empty(&mut later);
        drop(state);
        later.run();
    }

    pub(super) fn counts(&self) -> QueueCounts {
        let state = self.lock();
        QueueCounts {
            texts: state.queue.texts(),
            tokens: state.queue.tokens(),
            batch_tokens: self.budget(&state).tokens,
            ..state.counts
        }
    }
}

impl State {
    fn start(&mut self, picked: Vec<Picked<Encoding>>) -> Batch {
        self.counts.batches += 1;
        self.counts.batched_texts += picked.len() as u64;
        let (owners, texts) = picked
            .into_iter()
            .map(|text| ((text.ticket, text.index), text.item))
            .unzip();
        self.register(owners, texts)
    }

    /// Notes a batch as running. One that nobody wants any more is cancelled before it begins.
    fn register(&mut self, owners: Vec<(Ticket, usize)>, texts: Vec<Encoding>) -> Batch {
        let id = self.number();
        let cancel = Cancel::new();
        let mut wanted = 0;
        for (ticket, _) in &owners {
            let Some(caller) = self.callers.get_mut(ticket) else {
                continue;
            };
            wanted += 1;
            match caller.running.iter_mut().find(|(batch, _)| *batch == id) {
                Some((_, texts)) => *texts += 1,
                None => caller.running.push((id, 1)),
            }
        }
        if wanted == 0 {
            cancel.cancel();
        }
        let own = cancel.clone();
        self.running.insert(id, Running { cancel, wanted });
        Batch {
            id,
            owners,
            texts,
            cancel: own,
        }
    }

    fn end(&mut self, batch: &Batch) {
        self.running.remove(&batch.id);
        for (ticket, _) in &batch.owners {
            if let Some(caller) = self.callers.get_mut(ticket) {
                caller.running.retain(|(running, _)| *running != batch.id);
            }
        }
    }

    fn measure(&mut self, positions: usize, took: Duration) {
        let speed = positions as f64 / took.as_secs_f64().max(1e-9);
        let known = self.speed.get_or_insert(speed);
        *known += (speed - *known) * WEIGHT;
        if let Some(steering) = &mut self.steering {
            steering.ran(positions, took);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How long until a caller's own run no longer keeps its place; `None` when there is one free.
    /// A caller is not obliged to poll, and the others do not wait for that.
    fn until_free(&self, slots: usize, patience: Duration) -> Option<Duration> {
        let mut left: SmallVec<[Duration; 8]> = self
            .direct
            .values()
            .filter_map(|(since, _)| patience.checked_sub(since.elapsed()))
            .collect();
        let needed = (self.running.len() + left.len()).checked_sub(slots)?;
        left.sort_unstable();
        left.get(needed).copied()
    }

    fn answer(&mut self, ticket: Ticket, later: &mut Later) {
        if let Some(caller) = self.callers.remove(&ticket) {
            if let Some(steering) = &mut self.steering {
                steering.answered(caller.since.elapsed());
            }
            later.answers.push((caller.answer, Ok(caller.values)));
        }
    }

    /// Answers a caller with an error; what else runs for it alone is cancelled.
    fn fail(&mut self, ticket: Ticket, error: &Error, later: &mut Later) {
        self.queue.leave(ticket);
        if let Some(caller) = self.callers.remove(&ticket) {
            self.unwant(&caller, later);
            later.answers.push((caller.answer, Err(error.clone())));
        }
    }

    fn fail_all(&mut self, error: &Error, later: &mut Later) {
        let tickets: Vec<Ticket> = self.callers.keys().copied().collect();
        for ticket in tickets {
            self.fail(ticket, error, later);
        }
        self.make_room(later);
    }

    /// Takes a caller out of the batches that run; those that nobody wants any more are cancelled.
    fn unwant(&mut self, caller: &Caller, later: &mut Later) {
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
    fn make_room(&mut self, later: &mut Later) {
        later
            .woken
            .extend(self.waiting_for_room.drain().map(|(_, waker)| waker));
    }

    fn end_if_empty(&mut self, later: &mut Later) {
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
struct Later {
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    cancels: Vec<Cancel>,
    woken: Vec<Waker>,
    ends: Vec<oneshot::Sender<()>>,
}

impl Later {
    fn run(self) {
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

fn tokens(texts: &[Encoding]) -> usize {
    texts.iter().map(|text| text.ids.len()).sum()
}

/// A caller's texts in the queue and in batches; dropping it gives them up.
#[derive(Debug)]
pub(super) struct Seat {
    core: Arc<Core>,
    ticket: Ticket,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.core.leave(self.ticket);
    }
}

/// A call that was let in.
#[derive(Debug)]
pub(super) struct Call {
    core: Arc<Core>,
    number: u64,
    cancel: Cancel,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut later = Later::default();
        let mut state = self.core.lock();
        state.calls -= 1;
        state.waiting_for_room.remove(&self.number);
        state.end_if_empty(&mut later);
        drop(state);
        later.run();
    }
}

/// A batch that its caller runs.
#[derive(Debug)]
pub(super) struct Direct {
    core: Arc<Core>,
    number: u64,
    since: Instant,
    positions: usize,
    done: bool,
}

impl Direct {
    /// It ran, and its time counts.
    pub(super) fn ran(mut self) {
        self.done = true;
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.direct.remove(&self.number);
        let took = self.since.elapsed();
        // Longer, and who knows how much of it nobody looked.
        if self.done && took < self.core.patience {
            state.measure(self.positions, took);
            if let Some(steering) = &mut state.steering {
                steering.answered(took);
            }
        }
        drop(state);
        self.core.driver.wake();
    }
}
