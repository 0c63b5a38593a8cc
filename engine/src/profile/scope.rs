//! The scope in which work is recorded, and the guards that record it.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use web_time::Instant;

use super::bridge;
use super::event::{Detail, Event, Kind, Stage};
use super::recorder::Recorder;
use crate::counters::Ended;

/// A model's place for a session: clones share it.
#[derive(Clone, Default)]
pub struct Profiler(Arc<Slot>);

#[derive(Default)]
struct Slot {
    /// Whether there is a recorder: all that a call looks at while nobody profiles.
    on: AtomicBool,
    recorder: Mutex<Option<Arc<Recorder>>>,
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(f, self.0.on.load(Relaxed))
    }
}

/// What stands for a session in `Debug`: its events would fill pages.
fn word(f: &mut fmt::Formatter<'_>, on: bool) -> fmt::Result {
    f.write_str(if on { "on" } else { "off" })
}

impl Profiler {
    /// Records into `recorder` from now on; `false` where another one is in its place.
    pub(super) fn attach(&self, recorder: &Arc<Recorder>) -> bool {
        let mut slot = self.lock();
        let free = slot
            .as_ref()
            .is_none_or(|other| Arc::ptr_eq(other, recorder));
        if free {
            *slot = Some(Arc::clone(recorder));
            self.0.on.store(true, Relaxed);
        }
        free
    }

    /// Records no longer into `recorder`.
    pub(super) fn detach(&self, recorder: &Arc<Recorder>) {
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|own| Arc::ptr_eq(own, recorder)) {
            *slot = None;
            self.0.on.store(false, Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Recorder>>> {
        let recorder = self.0.recorder.lock();
        recorder.unwrap_or_else(PoisonError::into_inner)
    }

    fn recorder(&self) -> Option<Arc<Recorder>> {
        if !self.0.on.load(Relaxed) {
            return None;
        }
        self.lock().clone()
    }

    /// The span of a call with so many texts, under an id of its own.
    pub fn request(&self, texts: usize) -> Span {
        static REQUESTS: AtomicU64 = AtomicU64::new(1);
        let recorder = self.recorder();
        if recorder.is_none() && !tracing::enabled!(target: bridge::TARGET, tracing::Level::INFO) {
            return Span::default();
        }
        let on = On {
            recorder,
            request: Some(REQUESTS.fetch_add(1, Relaxed)),
            batch: None,
            around: tracing::Span::none(),
        };
        let mut span = open(&Arc::new(on), Stage::Request);
        span.set(Detail::Request {
            texts,
            ended: Ended::Cancelled,
        });
        span
    }

    /// Records the current value of a number. `value` is called only during a profile.
    pub fn counter(&self, name: &'static str, value: impl FnOnce() -> f64) {
        if let Some(recorder) = self.recorder() {
            let kind = Kind::Counter { value: value() };
            recorder.moment(kind, Cow::Borrowed(name));
        }
    }

    /// Notes that something happened.
    pub fn instant(&self, name: &'static str) {
        if let Some(recorder) = self.recorder() {
            recorder.moment(Kind::Instant, Cow::Borrowed(name));
        }
    }
}

/// For whom work is done, and where that is recorded. The default is nowhere, and costs nothing to
/// hand on.
#[derive(Clone, Default)]
pub struct Scope(Option<Arc<On>>);

/// A scope that somebody looks at.
struct On {
    /// A session's, unless only `tracing` looks.
    recorder: Option<Arc<Recorder>>,
    request: Option<u64>,
    batch: Option<u64>,
    /// The span of `tracing` that encloses this work; disabled where nobody collects it.
    around: tracing::Span,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(f, self.is_on())
    }
}

static OFF: Scope = Scope(None);

impl Scope {
    /// A scope of a recorder's own, for nobody.
    pub(super) fn of(recorder: &Arc<Recorder>) -> Self {
        Self(Some(Arc::new(On {
            recorder: Some(Arc::clone(recorder)),
            request: None,
            batch: None,
            around: tracing::Span::none(),
        })))
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The request that the work is for.
    pub fn request(&self) -> Option<u64> {
        self.0.as_ref()?.request
    }

    /// Opens a span, which is recorded when it is dropped.
    pub fn span(&self, stage: Stage) -> Span {
        match &self.0 {
            None => Span::default(),
            Some(on) => open(on, stage),
        }
    }

    /// Whether a session wants operators that a device ran: engines have to prepare for timing those.
    pub fn wants_device_operators(&self) -> bool {
        let recorder = self.0.as_ref().and_then(|on| on.recorder.as_ref());
        recorder.is_some_and(|recorder| recorder.operators)
    }

    /// Records an operator that a device ran, by times that the device has noted. Spans of `tracing` cannot be given
    /// times, and know nothing of it.
    pub fn ran_on_device(
        &self,
        began: Instant,
        took: Duration,
        name: impl Into<Cow<'static, str>>,
        detail: Detail,
    ) {
        if let Some(on) = &self.0 {
            on.note(Stage::Operator, name.into(), detail, began, took);
        }
    }

    /// Begins an operator, where operators are wanted: of these there are many, and they get no
    /// [`Span`], which takes memory of its own.
    pub fn operator(&self) -> Option<Begun> {
        let on = self.0.as_ref()?;
        if !on.wants_operators() {
            return None;
        }
        let around = match on.around.is_disabled() {
            true => tracing::Span::none(),
            false => bridge::open(Stage::Operator, &on.around, on.request, on.batch),
        };
        Some(Begun {
            at: Instant::now(),
            around,
        })
    }

    /// Records an operator that ends now.
    pub fn ran(&self, begun: Begun, name: impl Into<Cow<'static, str>>, detail: Detail) {
        if let Some(on) = &self.0 {
            let Begun { at, around } = begun;
            on.end(Stage::Operator, name.into(), detail, at, &around);
        }
    }

    /// The span of a batch with texts of these requests.
    pub fn batch<'s>(requests: impl IntoIterator<Item = &'s Scope>) -> Span {
        let on: SmallVec<[&Arc<On>; 8]> = requests
            .into_iter()
            .filter_map(|scope| scope.0.as_ref())
            .collect();
        match on.first() {
            None => Span::default(),
            Some(first) => batch(first, &on),
        }
    }
}

/// An operator under way. Dropped, it is recorded nowhere.
pub struct Begun {
    at: Instant,
    around: tracing::Span,
}

impl On {
    /// Records something that ends now.
    fn end(
        &self,
        stage: Stage,
        name: Cow<'static, str>,
        detail: Detail,
        began: Instant,
        around: &tracing::Span,
    ) {
        let took = began.elapsed();
        bridge::close(around, &name, &detail);
        self.note(stage, name, detail, began, took);
    }

    fn note(
        &self,
        stage: Stage,
        name: Cow<'static, str>,
        detail: Detail,
        began: Instant,
        took: Duration,
    ) {
        if let Some(recorder) = &self.recorder {
            recorder.push(Event {
                kind: Kind::Span { took },
                stage,
                name,
                start: recorder.since_start(began),
                thread: 0,
                request: self.request,
                batch: self.batch,
                detail,
            });
        }
    }

    fn wants_operators(&self) -> bool {
        match &self.recorder {
            Some(recorder) => recorder.operators,
            None => !self.around.is_disabled(),
        }
    }
}

#[cold]
fn batch(first: &On, all: &[&Arc<On>]) -> Span {
    static BATCHES: AtomicU64 = AtomicU64::new(1);
    let mut requests: Vec<u64> = Vec::new();
    let mut others: Vec<tracing::Id> = Vec::new();
    for on in all {
        if on.request.is_some_and(|id| !requests.contains(&id)) {
            requests.extend(on.request);
            others.extend(on.around.id());
        }
    }
    let on = On {
        // A request that began before the profile did is not recorded; the others of its batch are.
        recorder: all.iter().find_map(|on| on.recorder.clone()),
        request: first.request.filter(|_| requests.len() == 1),
        batch: Some(BATCHES.fetch_add(1, Relaxed)),
        around: first.around.clone(),
    };
    let mut span = open(&Arc::new(on), Stage::Batch);
    if let Some(under) = &mut span.0 {
        for other in others.into_iter().skip(1) {
            under.around.follows_from(other);
        }
        under.detail = Detail::Batch {
            rows: 0,
            tokens: 0,
            positions: 0,
            requests: requests.into_boxed_slice(),
        };
    }
    span
}

#[cold]
fn open(on: &Arc<On>, stage: Stage) -> Span {
    let around = bridge::open(stage, &on.around, on.request, on.batch);
    let scope = match around.is_disabled() {
        true => Arc::clone(on),
        false => Arc::new(On {
            recorder: on.recorder.clone(),
            request: on.request,
            batch: on.batch,
            around: around.clone(),
        }),
    };
    Span(Some(Box::new(Under {
        scope: Scope(Some(scope)),
        around,
        stage,
        name: Cow::Borrowed(stage.name()),
        detail: Detail::None,
        began: Instant::now(),
    })))
}

/// Work under way: recorded, with the time that it took, when this is dropped. The default is
/// nothing.
#[derive(Default)]
#[must_use = "a span ends when it is dropped"]
pub struct Span(Option<Box<Under>>);

/// A span that somebody looks at.
struct Under {
    /// What is done inside it.
    scope: Scope,
    around: tracing::Span,
    stage: Stage,
    name: Cow<'static, str>,
    detail: Detail,
    began: Instant,
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(f, self.0.is_some())
    }
}

impl Span {
    /// What is done inside it.
    pub fn scope(&self) -> &Scope {
        self.0.as_ref().map_or(&OFF, |under| &under.scope)
    }

    /// Gives it another name than its stage's.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(under) = &mut self.0 {
            under.name = name.into();
        }
    }

    /// Sets its details.
    pub fn set(&mut self, detail: Detail) {
        if let Some(under) = &mut self.0 {
            under.detail = detail;
        }
    }

    /// Says how a request ended.
    pub fn ended(&mut self, how: Ended) {
        if let Some(Detail::Request { ended, .. }) = self.detail() {
            *ended = how;
        }
    }

    /// Sets the size of a batch: rows, their tokens, and the positions that they take.
    pub fn holds(&mut self, own: (usize, usize, usize)) {
        if let Some(Detail::Batch {
            rows,
            tokens,
            positions,
            ..
        }) = self.detail()
        {
            (*rows, *tokens, *positions) = own;
        }
    }

    fn detail(&mut self) -> Option<&mut Detail> {
        self.0.as_mut().map(|under| &mut under.detail)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(under) = self.0.take() {
            end(*under);
        }
    }
}

#[cold]
fn end(under: Under) {
    let Under {
        scope,
        around,
        stage,
        name,
        detail,
        began,
    } = under;
    if let Some(on) = scope.0 {
        on.end(stage, name, detail, began, &around);
    }
}
