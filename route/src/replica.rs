//! A server that requests are sent to, and what is known of it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::target::Target;

/// Whether a replica is in rotation, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// No probe has been answered yet.
    Unknown,
    In,
    /// It failed, or says itself that it is not ready.
    Out(String),
    /// It has these models, which are others than those of the others.
    Refused(HeaderValue, String),
}

/// What all replicas share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The models that answers have to be of: those of the first replica that was ready.
    models: Mutex<Option<HeaderValue>>,
    /// Told when a replica comes into rotation.
    pub(crate) came: Notify,
}

impl Shared {
    /// The models, once there was a replica.
    pub(crate) fn models(&self) -> Option<HeaderValue> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these are the models of all others, which they are if there is no other.
    fn agrees(&self, models: &HeaderValue) -> bool {
        self.lock().get_or_insert_with(|| models.clone()) == models
    }
}

/// What is counted of a replica.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Tries that were sent, second ones included.
    pub(crate) requests: AtomicU64,
    /// Tries of which no answer came that could be given out.
    pub(crate) failures: AtomicU64,
    /// Tries that another replica had failed before.
    pub(crate) retries: AtomicU64,
    /// How often it left the rotation.
    pub(crate) ejections: AtomicU64,
}

/// A replica.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) target: Target,
    /// The target as the log, the metrics and the status have it.
    pub(crate) name: Arc<str>,
    shared: Arc<Shared>,
    state: Mutex<State>,
    is_in: AtomicBool,
    /// Wakes the service that waits for the rotation.
    pub(crate) waker: AtomicWaker,
    /// Asks for a probe now.
    pub(crate) doubted: Notify,
    in_flight: AtomicU64,
    /// How often it failed and left the rotation since it last answered a request.
    fails: AtomicU32,
    /// Until when it said that it is full.
    full_until: Mutex<Option<Instant>>,
    pub(crate) counts: Counts,
}

impl Replica {
    pub(crate) fn new(target: Target, shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            name: target.to_string().into(),
            target,
            shared,
            state: Mutex::new(State::Unknown),
            is_in: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            doubted: Notify::new(),
            in_flight: AtomicU64::new(0),
            fails: AtomicU32::new(0),
            full_until: Mutex::new(None),
            counts: Counts::default(),
        })
    }

    pub(crate) fn is_in(&self) -> bool {
        self.is_in.load(Ordering::Acquire)
    }

    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// How often it left the rotation.
    pub(crate) fn ejections(&self) -> u64 {
        self.counts.ejections.load(Ordering::Acquire)
    }

    /// How often it failed and left the rotation since it last answered a request.
    pub(crate) fn fails(&self) -> u32 {
        self.fails.load(Ordering::Acquire)
    }

    /// Requests that it is computing.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether it said lately that it has no room.
    pub(crate) fn is_full(&self) -> bool {
        let until = *self
            .full_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// It has no room for so long.
    pub(crate) fn fills(&self, time: Duration) {
        let mut until = self
            .full_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *until = Some(Instant::now() + time);
    }

    /// Counts a request from now to the end of the guard.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// It answered a request.
    pub(crate) fn answered(&self) {
        self.fails.store(0, Ordering::Release);
    }

    /// A request failed: it leaves the rotation until a probe says otherwise.
    pub(crate) fn failed(&self, why: String) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        // Requests that fail together are one failure of the replica.
        if self.set(self.lock(), State::Out(why)) == State::In {
            self.fails.fetch_add(1, Ordering::AcqRel);
        }
        self.doubted.notify_one();
    }

    /// A probe found it so: ready with these models, or not ready. `ejections` is how often it had left the rotation before the
    /// probe; a probe that began before it left proves nothing.
    pub(crate) fn found(&self, found: Result<HeaderValue, String>, ejections: u64) {
        let state = self.lock();
        match found {
            Ok(_) if self.ejections() != ejections => self.doubted.notify_one(),
            Ok(models) if self.shared.agrees(&models) => drop(self.set(state, State::In)),
            Ok(models) => {
                let why = self.other(&models);
                drop(self.set(state, State::Refused(models, why)));
            }
            Err(why) => drop(self.set(state, State::Out(why))),
        }
    }

    /// Whether an answer is of the models of all others.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, models: Option<&HeaderValue>) -> Result<(), String> {
        match models {
            Some(models) if self.shared.lock().as_ref() == Some(models) => Ok(()),
            Some(models) => Err(self.other(models)),
            None => Err("its answer does not name its models".into()),
        }
    }

    fn other(&self, models: &HeaderValue) -> String {
        let text = |value: &HeaderValue| value.to_str().unwrap_or("?").to_owned();
        format!(
            "its models are {}, and those of the others {}; /info of each says which",
            text(models),
            self.shared.lock().as_ref().map_or_else(String::new, text)
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it a state, and gives back the one before. Nobody else gives it one since the lock was taken.
    fn set(&self, mut state: MutexGuard<'_, State>, new: State) -> State {
        let before = std::mem::replace(&mut *state, new.clone());
        self.is_in.store(new == State::In, Ordering::Release);
        if before == State::In && new != State::In {
            self.counts.ejections.fetch_add(1, Ordering::AcqRel);
        }
        drop(state);
        if before == new {
            return before;
        }
        let replica = &*self.name;
        match (&new, &before) {
            (State::In, _) => {
                tracing::info!(replica, "the replica is in rotation");
                self.waker.wake();
                self.shared.came.notify_waiters();
            }
            (State::Refused(_, why), _) => {
                tracing::error!(replica, why, "the replica is refused: it has other models");
            }
            (State::Out(why), State::In) => {
                tracing::warn!(replica, why, "the replica is out of rotation");
            }
            // What is out may be so for one reason after another.
            (State::Out(_), State::Out(_)) | (State::Unknown, _) => {}
            (State::Out(why), _) => tracing::info!(replica, why, "the replica is not ready"),
        }
        before
    }
}

/// Takes other models as the right ones, if all replicas have been given the same others. One that is away may still have those of
/// before, so none may be.
pub(crate) fn follow(replicas: &[Arc<Replica>]) {
    let mut new = None;
    for replica in replicas {
        match (replica.state(), &new) {
            (State::Refused(models, _), None) => new = Some(models),
            (State::Refused(models, _), Some(before)) if models == *before => {}
            _ => return,
        }
    }
    let (Some(models), Some(first)) = (new, replicas.first()) else {
        return;
    };
    tracing::warn!(
        models = models.to_str().unwrap_or("?"),
        "all replicas have other models now; these are the right ones"
    );
    *first.shared.lock() = Some(models.clone());
    for replica in replicas {
        replica.found(Ok(models.clone()), replica.ejections());
    }
}

/// A request that a replica is computing.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Replica>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// How often two threads try to hinder each other.
    const ROUNDS: usize = 20_000;

    fn two() -> [Arc<Replica>; 2] {
        let shared = Arc::new(Shared::default());
        ["http://a:1", "http://b:1"]
            .map(|url| Replica::new(url.parse().unwrap(), Arc::clone(&shared)))
    }

    fn models(name: &'static str) -> HeaderValue {
        HeaderValue::from_static(name)
    }

    #[test]
    fn the_first_that_is_ready_says_what_all_have_to_have() {
        let [first, second] = two();
        second.found(Err("no".into()), 0);
        first.found(Ok(models("x")), 0);
        second.found(Ok(models("y")), 0);
        assert!(first.is_in() && !second.is_in());
        assert!(
            matches!(second.state(), State::Refused(_, why) if why.contains("are y") && why.contains("others x"))
        );
        // It comes back when it has been given the same.
        second.found(Ok(models("x")), 0);
        assert!(second.is_in());
        assert!(second.check(Some(&models("x"))).is_ok());
        assert!(second.check(Some(&models("y"))).is_err());
        assert!(second.check(None).is_err());
    }

    #[test]
    fn other_models_are_right_once_every_replica_has_them() {
        let replicas = two();
        let [first, second] = &replicas;
        first.found(Ok(models("x")), 0);
        second.found(Ok(models("x")), 0);
        second.found(Ok(models("y")), 0);
        follow(&replicas);
        assert!(
            first.is_in() && !second.is_in(),
            "one still has those of before"
        );
        first.found(Err("away".into()), 0);
        follow(&replicas);
        assert!(!second.is_in(), "it may come back with those of before");
        first.found(Ok(models("z")), first.ejections());
        follow(&replicas);
        assert!(!first.is_in() && !second.is_in(), "no two agree");
        first.found(Ok(models("y")), first.ejections());
        follow(&replicas);
        assert!(first.is_in() && second.is_in());
        assert!(
            first.check(Some(&models("y"))).is_ok() && first.check(Some(&models("x"))).is_err()
        );
    }

    #[test]
    fn a_failure_is_believed_over_a_probe_that_began_before_it() {
        let [replica, _] = two();
        replica.found(Ok(models("x")), 0);
        let before = replica.ejections();
        replica.failed("reset".into());
        replica.found(Ok(models("x")), before);
        assert!(!replica.is_in());
        replica.found(Ok(models("x")), replica.ejections());
        assert!(replica.is_in());
        assert_eq!((replica.ejections(), replica.fails()), (1, 1));
        // What fails together is one failure.
        replica.failed("reset".into());
        replica.failed("reset".into());
        assert_eq!((replica.ejections(), replica.fails()), (2, 2));
        assert_eq!(replica.counts.failures.load(Ordering::Relaxed), 3);
        replica.answered();
        assert_eq!(replica.fails(), 0);
    }

    #[test]
    fn a_failure_is_believed_over_a_probe_that_ends_with_it() {
        let [replica, _] = two();
        let together = Barrier::new(2);
        let mut back = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    together.wait();
                    replica.failed("reset".into());
                    together.wait();
                }
            });
            for _ in 0..ROUNDS {
                replica.found(Ok(models("x")), replica.ejections());
                let before = replica.ejections();
                together.wait();
                replica.found(Ok(models("x")), before);
                together.wait();
                back += u32::from(replica.is_in());
            }
        });
        assert_eq!(back, 0, "rounds after which it was in rotation");
    }

    #[test]
    fn requests_in_flight_are_counted_to_their_end() {
        let [replica, _] = two();
        let one = replica.begin();
        let two = replica.begin();
        assert_eq!(replica.in_flight(), 2);
        drop((one, two));
        assert_eq!(replica.in_flight(), 0);
        assert_eq!(replica.counts.requests.load(Ordering::Relaxed), 2);
    }
}
