//! The ring that events go into.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use web_time::{Instant, SystemTime};

use super::event::{Detail, Event, Kind, Stage};

/// Takes events from any thread. Its lock is held for as long as it takes to move one event.
pub(super) struct Recorder {
    number: u64,
    pub(super) started: Instant,
    pub(super) began: SystemTime,
    pub(super) operators: bool,
    kept: Mutex<Kept>,
}

/// What was recorded so far.
pub(super) struct Kept {
    /// Events, at most; 0 once the session is over.
    capacity: usize,
    pub(super) events: VecDeque<Event>,
    /// Events that had to go for later ones.
    pub(super) dropped: u64,
    /// Names of the threads that recorded anything.
    pub(super) threads: Vec<(u32, String)>,
}

impl Recorder {
    pub(super) fn new(capacity: usize, operators: bool) -> Self {
        static RECORDERS: AtomicU64 = AtomicU64::new(1);
        Self {
            number: RECORDERS.fetch_add(1, Relaxed),
            started: Instant::now(),
            began: SystemTime::now(),
            operators,
            kept: Mutex::new(Kept {
                capacity,
                events: VecDeque::new(),
                dropped: 0,
                threads: Vec::new(),
            }),
        }
    }

    /// How long after the session's start `at` is; what began before it begins with it.
    pub(super) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.started)
    }

    /// Takes an event of now that belongs to nobody.
    pub(super) fn moment(&self, kind: Kind, name: Cow<'static, str>) {
        self.push(Event {
            kind,
            stage: Stage::Other,
            name,
            start: self.since_start(Instant::now()),
            thread: 0,
            request: None,
            batch: None,
            detail: Detail::None,
        });
    }

    /// Takes an event of the calling thread, whose number is filled in.
    pub(super) fn push(&self, mut event: Event) {
        let (thread, is_new) = thread(self.number);
        event.thread = thread;
        let mut kept = self.lock();
        if kept.capacity == 0 {
            return;
        }
        if is_new {
            kept.name_thread(thread);
        }
        if kept.events.len() == kept.capacity {
            kept.events.pop_front();
            kept.dropped += 1;
        }
        kept.events.push_back(event);
    }

    /// Ends the recording: what comes later is nobody's.
    pub(super) fn finish(&self) -> Kept {
        let mut kept = self.lock();
        let ended = Kept {
            capacity: 0,
            events: VecDeque::new(),
            dropped: 0,
            threads: Vec::new(),
        };
        std::mem::replace(&mut *kept, ended)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn name_thread(&mut self, number: u32) {
        if self.threads.iter().any(|&(known, _)| known == number) {
            return;
        }
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("thread").to_owned();
        self.threads.push((number, name));
    }
}

/// The calling thread's number, and whether this recorder may not know it yet.
fn thread(recorder: u64) -> (u32, bool) {
    static THREADS: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        /// The thread's number, and the recorder that it wrote to last.
        static OWN: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
    }
    let own = OWN.try_with(|own| {
        let (mut number, last) = own.get();
        if number == 0 {
            number = THREADS.fetch_add(1, Relaxed);
        }
        own.set((number, recorder));
        (number, last != recorder)
    });
    // A thread that is ending has no number any more.
    own.unwrap_or((0, true))
}
