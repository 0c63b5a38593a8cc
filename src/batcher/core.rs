//! The operations of callers and of the driver on their shared state.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures_channel::oneshot;
use isovec_engine::cancel::Cancel;
use isovec_engine::profile::{Scope, Stage};
use smallvec::SmallVec;

use super::guards::{Call, Direct, Seat};
use super::queue::{Priority, Queue, Ticket};
use super::state::{Answer, Batch, Caller, Later, Phase, QueueCounts, State};
use super::steering::Steering;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::encoded::Encoded;
use crate::plan::Budget;
use crate::sync::{AtomicWaker, Instant, Mutex, MutexGuard};

/// The hint of a full queue before anything was measured.
const UNKNOWN_WAIT: Duration = Duration::from_millis(50);

/// What [`Core::patience`] is.
const PATIENCE: Duration = Duration::from_millis(100);

/// What is short: how many wait, how many may, and of what.
type Short = (usize, usize, &'static str);

/// One embedder's batcher.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) model: Arc<Model>,
    state: Mutex<State>,
    pub(super) driver: AtomicWaker,
    /// How long a caller's own run keeps its place at the engine, whether the caller looks or not.
    pub(super) patience: Duration,
}

/// What the driver does next.
#[derive(Debug)]
pub(super) enum Due {
    Run(Batch),
    /// Companions may come until then.
    Wait(Duration),
    /// Nothing, until a call arrives.
    Nothing,
    /// Everybody is gone.
    End,
}

/// What became of a call's texts.
pub(super) enum Admitted {
    /// They wait; the answer comes here.
    Queued(Seat, oneshot::Receiver<Answer>),
    /// The engine is idle: the caller runs them.
    Direct(Direct, Vec<Encoded>),
}

impl Core {
    pub(super) fn new(model: Arc<Model>) -> Self {
        let settings = &model.batching;
        let most = model.budget().tokens.most();
        let steering = settings
            .steering
            .map(|steering| Steering::new(most, steering.target_latency, steering.throughput));
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> usize {
        let engine = self.model.engines.current();
        engine.capabilities().concurrent_runs.max(1)
    }

    fn budget(&self, state: &State) -> Budget {
        let budget = self.model.budget();
        let Some(steering) = &state.steering else {
            return budget;
        };
        Budget {
            tokens: budget.tokens.up_to(steering.positions()),
            least: self.model.batching.min_rows,
            ..budget
        }
    }

    /// Refuses a call when nobody is let in any more.
    pub(super) fn check_open(&self) -> Result<()> {
        match self.lock().phase {
            Phase::Open => Ok(()),
            _ => Err(Error::ShutDown),
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
        let Some((waiting, limit, unit)) = self.short_of(state, texts, tokens).or(awaited) else {
            return Ok(());
        };
        state.counts.overloaded += 1;
        self.model.profiler.instant("overloaded");
        let retry_after = state.speed.map_or(UNKNOWN_WAIT, |speed| {
            let speed = speed.max(1.0) * self.slots() as f64;
            let seconds = state.queue.tokens() as f64 / speed;
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
    pub(super) fn enter(
        self: &Arc<Self>,
        priority: Priority,
        cancel: &Cancel,
        scope: &Scope,
    ) -> Call {
        let mut state = self.lock();
        state.calls += 1;
        let number = state.number();
        Call {
            core: Arc::clone(self),
            number,
            priority,
            cancel: cancel.clone(),
            scope: scope.clone(),
        }
    }

    /// Takes the first texts of a call, or refuses them.
    pub(super) fn admit(self: &Arc<Self>, call: &Call, texts: Vec<Encoded>) -> Result<Admitted> {
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
                positions: self.computed(&texts),
                done: false,
            };
            return Ok(Admitted::Direct(direct, texts));
        }
        self.room(&mut state, texts.len(), tokens(&texts))?;
        self.queue(state, call, texts)
    }

    /// Takes more texts of a call that was let in, unless there is no room for them now: then the
    /// waker is told when there may be.
    pub(super) fn admit_more(
        self: &Arc<Self>,
        call: &Call,
        texts: Vec<Encoded>,
        waker: &Waker,
    ) -> Result<Result<Admitted, Vec<Encoded>>> {
        let mut state = self.lock();
        if state.phase == Phase::Closed {
            return Err(Error::ShutDown);
        }
        if self.short_of(&state, texts.len(), tokens(&texts)).is_some() {
            state.waiting_for_room.insert(call.number, waker.clone());
            return Ok(Err(texts));
        }
        state.waiting_for_room.remove(&call.number);
        self.queue(state, call, texts).map(Ok)
    }

    fn note_queue(&self, state: &State) {
        let texts = || state.queue.texts() as f64;
        self.model.profiler.counter("queued texts", texts);
    }

    /// Whether nobody is answered any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().phase == Phase::Closed
    }

    /// The texts' lengths in positions.
    fn lengths(&self, texts: &[Encoded]) -> impl ExactSizeIterator<Item = usize> {
        texts.iter().map(|text| self.model.feed.padded(text.len()))
    }

    /// Positions that the engine computes for these texts in one batch.
    fn computed(&self, texts: &[Encoded]) -> usize {
        self.model.budget().computed(self.lengths(texts))
    }

    fn may_run_itself(&self, state: &State, texts: &[Encoded]) -> bool {
        let budget = self.budget(state);
        state.phase == Phase::Open
            && self.model.batching.max_wait.is_zero()
            && state.queue.texts() == 0
            && state.running.len() + state.direct.len() < self.slots()
            && (texts.len() == 1 || self.fits_one_batch(texts, budget))
    }

    fn fits_one_batch(&self, texts: &[Encoded], budget: Budget) -> bool {
        let longest = self.lengths(texts).max().unwrap_or(0);
        texts.len() <= budget.rows
            && budget.computed(self.lengths(texts)) <= budget.tokens.at(longest)
    }

    fn queue(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        call: &Call,
        texts: Vec<Encoded>,
    ) -> Result<Admitted> {
        if !state.driven {
            super::driver::start(Arc::clone(self))?;
            state.driven = true;
        }
        let mut starts = vec![0];
        starts.extend(texts.iter().scan(0, |end, text| {
            *end += text.width(self.model.dim);
            Some(*end)
        }));
        let ticket = state.number();
        let (answer, answered) = oneshot::channel();
        state.callers.insert(
            ticket,
            Caller {
                since: Instant::now(),
                waited: None,
                scope: call.scope.clone(),
                queued: call.scope.span(Stage::Queue),
                values: vec![f32::NAN; starts[texts.len()]],
                starts,
                left: texts.len(),
                running: SmallVec::new(),
                answer,
            },
        );
        let lengths = texts.into_iter().map(|text| {
            let positions = self.model.feed.padded(text.len());
            (positions, text)
        });
        state.queue.push(ticket, call.priority, lengths);
        state.counts.peak_texts = state.counts.peak_texts.max(state.queue.texts());
        self.note_queue(&state);
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
        let most = self.model.budget().tokens.most();
        let mut state = self.lock();
        if let Some(steering) = &mut state.steering {
            steering.allow(most);
        }
        if state.phase == Phase::Closed && state.running.is_empty() && state.callers.is_empty() {
            return Due::End;
        }
        if state.queue.texts() == 0 {
            return Due::Nothing;
        }
        let budget = self.budget(&state);
        // One batch more than the engine works on waits there, if it would not grow any more.
        let full =
            state.queue.texts() >= budget.rows || state.queue.tokens() >= budget.tokens.most();
        let places = slots + usize::from(full);
        if state.running.len() >= places {
            return Due::Nothing;
        }
        if let Some(wait) = state.until_free(places, self.patience) {
            return Due::Wait(wait);
        }
        if let Some(more) = self.companions_may_come(&state, budget) {
            return Due::Wait(more);
        }
        let allowed = self.model.allowed_bytes();
        let fits = |rows, length| self.model.fits(rows, length, allowed);
        let picked = state.queue.pick(budget, fits);
        let batch = state.start(picked, slots);
        self.note_queue(&state);
        for ticket in batch.owners.iter().map(|owner| owner.0) {
            if let Some(caller) = state.callers.get_mut(&ticket)
                && caller.waited.is_none()
            {
                let waited = caller.since.elapsed();
                caller.waited = Some(waited);
                self.model.recorder.queued(waited);
                drop(std::mem::take(&mut caller.queued));
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
            || state.queue.tokens() >= budget.tokens.most()
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
        let slots = self.slots();
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
            .map(|(owners, texts)| state.register(owners, texts, slots))
    }

    /// A batch ran: hands its vectors, and how many values a text's row has, or its error to the callers.
    pub(super) fn settle(&self, mut batch: Batch, ran: Result<(&[f32], usize)>) {
        let span = std::mem::take(&mut batch.span);
        let copy = ran.is_ok().then(|| span.scope().span(Stage::Copy));
        let mut later = Later::default();
        let mut state = self.lock();
        let took = state.end(&batch);
        match ran {
            Ok((vectors, width)) => {
                if let Some(took) = took {
                    state.measure(self.computed(&batch.texts), took);
                }
                for (&(ticket, index), vector) in
                    batch.owners.iter().zip(vectors.chunks_exact(width))
                {
                    let Some(caller) = state.callers.get_mut(&ticket) else {
                        continue;
                    };
                    // What is behind a text's own tokens is padding.
                    let place = caller.starts[index]..caller.starts[index + 1];
                    if let Some(row) = caller.values.get_mut(place) {
                        row.copy_from_slice(&vector[..row.len()]);
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
        // Whoever is answered may end the profile.
        drop(copy);
        drop(span);
        later.run();
    }

    /// A caller gave up: its texts leave the queue, and a batch that nobody else wants is
    /// cancelled.
    pub(super) fn leave(&self, ticket: Ticket) {
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
            batch_tokens: self.budget(&state).tokens.most(),
            ..state.counts
        }
    }
}

fn tokens(texts: &[Encoded]) -> usize {
    texts.iter().map(|text| text.len()).sum()
}
