//! A session, and the profile that it becomes.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use web_time::{Instant, SystemTime};

use super::event::{Event, Kind, Stage};
use super::merge::Runs;
use super::recorder::{Kept, Recorder};
use super::scope::{Profiler, Scope, Span};
use crate::maybe_send::{MaybeSend, MaybeSync};

/// Options of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// The most events to keep; beyond that the oldest are dropped. 65,536 by default, of about 150 bytes each;
    /// memory is allocated as events arrive. 0 counts as 1.
    pub capacity: usize,
    /// Whether operators are recorded, if the engine reports them: a run of a small model has about 60 of them. True
    /// by default.
    pub operators: bool,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self {
            capacity: 1 << 16,
            operators: true,
        }
    }
}

impl ProfileOptions {
    /// Keeps so many events.
    #[must_use]
    pub fn with_capacity(mut self, events: usize) -> Self {
        self.capacity = events;
        self
    }

    /// Records operators, or does not.
    #[must_use]
    pub fn with_operators(mut self, on: bool) -> Self {
        self.operators = on;
        self
    }
}

/// Another session records this model; only one at a time can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another profile of this model is under way; finish that session, or drop it, first")]
pub struct AlreadyProfiled;

/// Records events until it is finished or dropped, of every model that is attached to it.
pub struct ProfileSession {
    recorder: Arc<Recorder>,
    capacity: usize,
    attached: Mutex<Vec<(Profiler, Arc<dyn EndProfile>)>>,
}

/// Ends the profile of a model's engine: [`Engine::end_profile`](crate::engine::Engine::end_profile).
pub trait EndProfile: MaybeSend + MaybeSync {
    /// Ends the runtime's own profile, and returns its events of these runs.
    fn end_profile(&self, runs: &Runs) -> Vec<Event>;
}

impl fmt::Debug for ProfileSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileSession").finish_non_exhaustive()
    }
}

impl ProfileSession {
    /// Begins to record.
    pub fn start(options: ProfileOptions) -> Self {
        let ProfileOptions {
            capacity,
            operators,
        } = options;
        let capacity = capacity.max(1);
        Self {
            recorder: Arc::new(Recorder::new(capacity, operators)),
            capacity,
            attached: Mutex::default(),
        }
    }

    /// Records a model's work from now on. Running requests are not recorded. The runtime's own events are added when
    /// the session is finished.
    ///
    /// # Errors
    /// [`AlreadyProfiled`] while another session does.
    pub fn attach(
        &self,
        profiler: &Profiler,
        model: Arc<dyn EndProfile>,
    ) -> Result<(), AlreadyProfiled> {
        if !profiler.attach(&self.recorder) {
            return Err(AlreadyProfiled);
        }
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.push((profiler.clone(), model));
        Ok(())
    }

    /// Opens a span of the caller's own on this thread, which is recorded when it is dropped.
    pub fn span(&self, name: impl Into<Cow<'static, str>>) -> Span {
        let mut span = Scope::of(&self.recorder).span(Stage::Other);
        span.rename(name);
        span
    }

    /// Notes that something happened.
    pub fn instant(&self, name: impl Into<Cow<'static, str>>) {
        self.recorder.moment(Kind::Instant, name.into());
    }

    /// Records the current value of a number.
    pub fn counter(&self, name: impl Into<Cow<'static, str>>, value: f64) {
        self.recorder.moment(Kind::Counter { value }, name.into());
    }

    /// Ends the recording. Unfinished spans are not in the profile.
    pub fn finish(self) -> Profile {
        let models = self.detach();
        let took = self.recorder.since_start(Instant::now());
        let Kept {
            events,
            mut dropped,
            threads,
            ..
        } = self.recorder.finish();
        let mut events = Vec::from(events);
        // They came in the order in which they ended.
        sort(&mut events);
        if self.recorder.operators {
            let runs = events.iter().filter(|event| event.stage == Stage::Run);
            let runs = Runs {
                started: self.recorder.started,
                events: runs.cloned().collect(),
            };
            let before = events.len();
            for model in &models {
                events.append(&mut model.end_profile(&runs));
            }
            if events.len() > before {
                sort(&mut events);
            }
        }
        let too_many = events.len().saturating_sub(self.capacity);
        events.drain(..too_many);
        dropped += too_many as u64;
        Profile {
            began: self.recorder.began,
            took,
            events,
            dropped,
            threads,
        }
    }

    fn detach(&self) -> Vec<Arc<dyn EndProfile>> {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let models = attached.drain(..).map(|(profiler, model)| {
            profiler.detach(&self.recorder);
            model
        });
        models.collect()
    }
}

impl Drop for ProfileSession {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Puts events into the order that a profile has them in.
fn sort(events: &mut [Event]) {
    events.sort_unstable_by(|a, b| a.start.cmp(&b.start).then(b.took().cmp(&a.took())));
}

/// The recorded events of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub(super) began: SystemTime,
    pub(super) took: Duration,
    pub(super) events: Vec<Event>,
    pub(super) dropped: u64,
    pub(super) threads: Vec<(u32, String)>,
}

impl Profile {
    /// The events by when they began; of those that began together, the longer ones first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Events that the session had no room for, earlier than all that are there.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// When the session began.
    pub fn began(&self) -> SystemTime {
        self.began
    }

    /// How long the session was.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Numbers and names of the threads that recorded anything.
    pub fn threads(&self) -> &[(u32, String)] {
        &self.threads
    }
}

impl Event {
    /// Its duration; zero if it is not a span.
    pub fn took(&self) -> Duration {
        match self.kind {
            Kind::Span { took } => took,
            _ => Duration::ZERO,
        }
    }
}
