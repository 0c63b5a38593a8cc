//! Who is let in: a request as a whole, or not at all.

mod lateness;
mod meter;
mod pace;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use isovec_http::body::Room;
use tokio::sync::Notify;

use self::meter::Meter;
pub(crate) use self::pace::Pace;
use crate::failure::{Failure, Kind};
use crate::keys::Key;
use crate::options::ServeOptions;
use crate::priority::Priority;

/// When to try again, before anything was measured and while the server starts or stops.
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);

/// The longest wait that is told.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The part of what may be in work that requests of low priority may fill: the rest is for others.
const LOW: f64 = 0.5;

/// How the requests that were let in ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// With vectors.
    pub(crate) answered: u64,
    /// With an error.
    pub(crate) failed: u64,
    /// Not at all: the client went away.
    pub(crate) cancelled: u64,
    /// Requests that were not let in, because there was no room.
    pub(crate) overloaded: u64,
    /// Requests that were not let in, because the server stops.
    pub(crate) stopped: u64,
}

/// What is in work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InWork {
    /// Requests that were let in.
    pub(crate) requests: usize,
    /// Their texts.
    pub(crate) texts: usize,
    /// Bytes of their bodies, and of bodies that are still being read.
    pub(crate) bytes: usize,
}

impl InWork {
    /// Says which bound there is no room below for a request with so many texts.
    fn full(self, most: Self, texts: usize) -> Option<String> {
        if self.requests >= most.requests {
            return Some(format!(
                "{} of {} requests are in work",
                self.requests, most.requests
            ));
        }
        (self.texts.saturating_add(texts) > most.texts).then(|| {
            format!(
                "{} of {} texts are in work, and this request has {texts}",
                self.texts, most.texts
            )
        })
    }
}

/// Bounds what is in work, in requests, texts and bytes.
#[derive(Debug)]
pub(crate) struct Gate {
    max: InWork,
    /// What the requests of one API key may have of it; `None` where there are no two keys.
    max_of_key: Option<InWork>,
    /// What may be in work when a request of low priority is let in.
    max_for_low: InWork,
    state: Mutex<State>,
    empty: Notify,
    closing: Notify,
}

#[derive(Debug, Default)]
struct State {
    now: InWork,
    /// What each API key has of it.
    keys: BTreeMap<Key, InWork>,
    counts: Counts,
    meter: Meter,
    closed: bool,
}

impl Gate {
    pub(crate) fn new(options: &ServeOptions) -> Arc<Self> {
        Arc::new(Self {
            max: options.share(1.0),
            max_of_key: options
                .api_keys
                .as_ref()
                .filter(|keys| keys.several())
                .map(|_| options.share(options.key_share)),
            max_for_low: options.share(LOW),
            state: Mutex::default(),
            empty: Notify::new(),
            closing: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place before the gate, for a request whose body is about to be read.
    pub(crate) fn place(self: &Arc<Self>) -> Place {
        Place {
            gate: Arc::clone(self),
            key: None,
            bytes: 0,
            inside: None,
            end: End::Cancelled,
        }
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.closing.notify_waiters();
    }

    /// Completes when nobody is let in any more.
    pub(crate) async fn closes(&self) {
        self.until(&self.closing, |state| state.closed).await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Completes when nobody is inside.
    pub(crate) async fn empty(&self) {
        let is_empty = |state: &State| state.now.requests == 0;
        self.until(&self.empty, is_empty).await;
    }

    /// Completes when the state is so, which `told` is told of.
    async fn until(&self, told: &Notify, is: impl Fn(&State) -> bool) {
        loop {
            let told = told.notified();
            tokio::pin!(told);
            // Before the look, so that nothing changes unnoticed between the two.
            told.as_mut().enable();
            if is(&self.lock()) {
                return;
            }
            told.await;
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }

    pub(crate) fn in_work(&self) -> InWork {
        self.lock().now
    }

    /// Says which bound of its own the key has come to, if any. `now` is what it has in work.
    fn key_is_full(&self, now: InWork, texts: usize) -> Option<String> {
        let why = now.full(self.max_of_key?, texts)?;
        Some(format!("of the share of this API key, {why}"))
    }
}

impl State {
    /// Changes what is in work, in all and of a key.
    fn change(&mut self, key: Option<Key>, change: impl Fn(&mut InWork)) {
        change(&mut self.now);
        let Some(key) = key else {
            return;
        };
        let of_key = self.keys.entry(key).or_default();
        change(of_key);
        if *of_key == InWork::default() {
            self.keys.remove(&key);
        }
    }

    fn of_key(&self, key: Option<Key>) -> InWork {
        let of_key = key.and_then(|key| self.keys.get(&key));
        of_key.copied().unwrap_or_default()
    }

    fn overloaded(&mut self, why: impl fmt::Display) -> Failure {
        // How long the texts that are inside will take, by the speed of those before them.
        let wait = self.meter.wait(self.now.texts);
        self.overloaded_for(wait.unwrap_or(UNKNOWN_WAIT), why)
    }

    fn overloaded_for(&mut self, wait: Duration, why: impl fmt::Display) -> Failure {
        self.counts.overloaded += 1;
        Failure::new(
            Kind::Overloaded,
            format!("the server is at its limit: {why}; try again in about {wait:.1?}"),
        )
        .retry_after(wait)
    }
}

/// A request's share of what is in work; dropping it gives the share back.
#[derive(Debug)]
pub(crate) struct Place {
    gate: Arc<Gate>,
    /// The API key that the request came with.
    pub(crate) key: Option<Key>,
    bytes: usize,
    /// Once the request was let in.
    inside: Option<Inside>,
    end: End,
}

/// A request that was let in.
#[derive(Debug)]
struct Inside {
    texts: usize,
    /// That of its model.
    pace: Arc<Pace>,
    since: Instant,
    /// How long it was expected to take.
    expected: Option<Duration>,
    /// How long it might take.
    left: Duration,
}

/// How a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    Failed,
    /// Its deadline passed.
    Late,
    Cancelled,
    /// The batcher had no room for it after all.
    Overloaded,
}

impl Place {
    /// Lets the request in with all of its texts, or not at all. `left` is the time until its deadline: a request that
    /// would take longer than that, by the pace of its model, is not let in, since it would be computed for nobody.
    pub(crate) fn admit(
        &mut self,
        texts: usize,
        left: Duration,
        pace: &Arc<Pace>,
        priority: Priority,
    ) -> Result<(), Failure> {
        let gate = Arc::clone(&self.gate);
        let mut state = self.gate.lock();
        if state.closed {
            state.counts.stopped += 1;
            return Err(stopping());
        }
        let now = state.now;
        if let Some(why) = now.full(gate.max, texts) {
            return Err(state.overloaded(why));
        }
        if let Some(why) = gate.key_is_full(state.of_key(self.key), texts) {
            return Err(state.overloaded(why));
        }
        if priority == Priority::Low
            && let Some(why) = now.full(gate.max_for_low, texts)
        {
            return Err(state.overloaded(format_args!("of what low priority may fill, {why}")));
        }
        if let Some(expected) = pace.expects(texts).filter(|&expected| expected > left) {
            let why = format_args!(
                "with the texts in work these take up to {expected:.1?}, and this request has {left:.1?} left"
            );
            return Err(state.overloaded_for(expected, why));
        }
        let expected = pace.begin(texts);
        state.meter.tick(now.requests > 0);
        state.change(self.key, |now| {
            now.requests += 1;
            now.texts += texts;
        });
        self.inside = Some(Inside {
            texts,
            pace: Arc::clone(pace),
            since: Instant::now(),
            expected,
            left,
        });
        Ok(())
    }

    /// Says how the request ends; without this it was cancelled.
    pub(crate) fn ends(&mut self, end: End) {
        self.end = end;
    }
}

/// The server lets nobody in any more.
pub(crate) fn stopping() -> Failure {
    Failure::new(Kind::Unready, "the server is stopping; ask another one").retry_after(UNKNOWN_WAIT)
}

/// The model is not there yet.
pub(crate) fn loading() -> Failure {
    Failure::new(Kind::Unready, "the model is being loaded").retry_after(UNKNOWN_WAIT)
}

impl Room for Place {
    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        let mut state = self.gate.lock();
        let most = self.gate.max.bytes;
        if state.now.bytes.saturating_add(bytes) > most {
            let now = state.now.bytes;
            return Err(state.overloaded(format_args!("{now} of {most} bytes are in work")));
        }
        if let Some(InWork { bytes: most, .. }) = self.gate.max_of_key {
            let now = state.of_key(self.key).bytes;
            if now.saturating_add(bytes) > most {
                return Err(state.overloaded(format_args!(
                    "of the share of this API key, {now} of {most} bytes are in work"
                )));
            }
        }
        state.change(self.key, |now| now.bytes += bytes);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.change(self.key, |now| now.bytes -= self.bytes);
        let Some(inside) = self.inside.take() else {
            return;
        };
        let texts = inside.texts;
        inside.pace.end(texts, self.end == End::Answered);
        if let (Some(expected), End::Answered | End::Late) = (inside.expected, self.end) {
            let took = inside.since.elapsed();
            inside.pace.took(expected, inside.left, took);
        }
        state.meter.tick(true);
        state.change(self.key, |now| {
            now.requests -= 1;
            now.texts -= texts;
        });
        match self.end {
            End::Answered => {
                state.counts.answered += 1;
                state.meter.done(texts);
            }
            End::Failed | End::Late => state.counts.failed += 1,
            End::Cancelled => state.counts.cancelled += 1,
            End::Overloaded => state.counts.overloaded += 1,
        }
        if state.now.requests == 0 {
            drop(state);
            self.gate.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    const NORMAL: Priority = Priority::Normal;

    fn gate() -> Arc<Gate> {
        Gate::new(&ServeOptions {
            max_requests: 2,
            max_texts: 10,
            max_bytes: 100,
            ..ServeOptions::default()
        })
    }

    #[test]
    fn a_request_is_let_in_as_a_whole_or_not_at_all() {
        let gate = gate();
        let pace = Arc::<Pace>::default();
        let (mut a, mut b, mut c) = (gate.place(), gate.place(), gate.place());
        a.admit(8, LONG, &pace, NORMAL).unwrap();
        let refused = b.admit(3, LONG, &pace, NORMAL).unwrap_err();
        assert_eq!(refused.kind, Kind::Overloaded);
        assert!(refused.retry_after.is_some());
        assert_eq!((gate.in_work().requests, gate.in_work().texts), (1, 8));
        b.admit(2, LONG, &pace, NORMAL).unwrap();
        assert!(
            c.admit(0, LONG, &pace, NORMAL).is_err(),
            "two requests are the most"
        );
        drop(a);
        c.admit(8, LONG, &pace, NORMAL).unwrap();
        drop((b, c));
        assert_eq!(gate.in_work(), InWork::default());
    }

    #[test]
    fn bytes_are_bounded_while_a_body_is_read_and_come_back() {
        let gate = gate();
        let (mut a, mut b) = (gate.place(), gate.place());
        a.take(60).unwrap();
        a.take(40).unwrap();
        assert_eq!(b.take(1).unwrap_err().kind, Kind::Overloaded);
        assert_eq!(gate.in_work().bytes, 100);
        drop(a);
        b.take(100).unwrap();
        drop(b);
        assert_eq!(gate.in_work(), InWork::default());
        assert_eq!(gate.counts().overloaded, 1);
        assert_eq!(gate.counts().cancelled, 0, "it was never let in");
    }

    #[test]
    fn every_request_that_was_let_in_ends_in_one_of_the_counts() {
        let gate = gate();
        let pace = Arc::<Pace>::default();
        for end in [End::Answered, End::Failed, End::Cancelled, End::Overloaded] {
            let mut place = gate.place();
            place.admit(1, LONG, &pace, NORMAL).unwrap();
            place.ends(end);
        }
        drop(gate.place());
        gate.close();
        assert_eq!(
            gate.place().admit(1, LONG, &pace, NORMAL).unwrap_err().kind,
            Kind::Unready
        );
        let counts = Counts {
            answered: 1,
            failed: 1,
            cancelled: 1,
            overloaded: 1,
            stopped: 1,
        };
        assert_eq!(gate.counts(), counts);
    }

    #[test]
    fn a_request_that_would_come_too_late_is_not_let_in() {
        let gate = gate();
        let pace = Arc::<Pace>::default();
        let mut first = gate.place();
        first.admit(1, LONG, &pace, NORMAL).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        first.ends(End::Answered);
        drop(first);
        let (mut a, mut b) = (gate.place(), gate.place());
        // Nobody waits: whatever its deadline, it begins at once.
        a.admit(5, Duration::from_nanos(1), &pace, NORMAL).unwrap();
        let refused = b
            .admit(1, Duration::from_nanos(1), &pace, NORMAL)
            .unwrap_err();
        assert_eq!(refused.kind, Kind::Overloaded);
        // Five texts and its own, of at least 2 ms each.
        assert!(refused.retry_after.unwrap() >= Duration::from_millis(12));
        b.admit(1, LONG, &pace, NORMAL).unwrap();
    }

    #[test]
    fn what_came_and_what_was_late_is_looked_back_on() {
        let gate = gate();
        for (end, noted) in [
            (End::Answered, 2),
            (End::Late, 2),
            (End::Failed, 1),
            (End::Cancelled, 1),
            (End::Overloaded, 1),
        ] {
            let pace = Arc::<Pace>::default();
            for end in [End::Answered, End::Answered, end] {
                let mut place = gate.place();
                place
                    .admit(1, Duration::from_nanos(1), &pace, NORMAL)
                    .unwrap();
                std::thread::sleep(Duration::from_millis(1));
                place.ends(end);
            }
            assert_eq!(pace.looks_back_on(), noted, "{end:?}");
        }
    }

    #[test]
    fn a_slow_model_lets_nobody_wait_for_a_fast_one() {
        let gate = gate();
        let (slow, fast) = (Arc::<Pace>::default(), Arc::<Pace>::default());
        let mut first = gate.place();
        first.admit(1, LONG, &slow, NORMAL).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        first.ends(End::Answered);
        drop(first);
        assert!(slow.since_computed().is_some() && fast.since_computed().is_none());
        let (mut a, mut b) = (gate.place(), gate.place());
        a.admit(5, LONG, &slow, NORMAL).unwrap();
        assert!(b.admit(1, Duration::from_nanos(1), &slow, NORMAL).is_err());
        b.admit(1, Duration::from_nanos(1), &fast, NORMAL).unwrap();
    }

    #[test]
    fn low_priority_leaves_half_of_the_room_to_others() {
        let gate = Gate::new(&ServeOptions {
            max_requests: 4,
            ..ServeOptions::default()
        });
        let pace = Arc::<Pace>::default();
        let admit = |priority| {
            let mut place = gate.place();
            place.admit(1, LONG, &pace, priority).map(|()| place)
        };
        let first = admit(Priority::Low).unwrap();
        let second = admit(Priority::Normal).unwrap();
        let refused = admit(Priority::Low).unwrap_err();
        assert_eq!(refused.kind, Kind::Overloaded);
        assert!(
            refused.message.contains("low priority"),
            "{}",
            refused.message
        );
        let others = [
            admit(Priority::Normal).unwrap(),
            admit(Priority::Normal).unwrap(),
        ];
        assert!(admit(Priority::Normal).is_err());
        drop((first, second, others));
        admit(Priority::Low).unwrap();
    }

    #[tokio::test]
    async fn the_gate_is_empty_when_the_last_one_left() {
        let gate = gate();
        let pace = Arc::<Pace>::default();
        gate.empty().await;
        let mut place = gate.place();
        place.admit(1, LONG, &pace, NORMAL).unwrap();
        let waiting = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.empty().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(place);
        waiting.await.unwrap();
    }
}
