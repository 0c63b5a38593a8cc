//! An executor whose clock the tests turn, and a weight source that keeps count.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use isovec_engine::Result;
use isovec_engine::maybe_send::{BoxFuture, EngineFuture};
use isovec_engine::weights::{BytesWeights, WeightInfo, WeightSource};
use isovec_web::executor::{Executor, Job, Worker};

/// The slice that the fake worker gives, in ticks of a millisecond.
pub const SLICE: u64 = 2;

type OnPause = Box<dyn Fn(usize) + Send + Sync>;

/// Polls jobs where the caller polls, as the browser does. Every look at the clock takes a
/// millisecond, and the engine looks once after each operator.
#[derive(Default)]
pub struct Turns {
    clock: AtomicU64,
    pauses: AtomicUsize,
    last_pause: AtomicU64,
    longest: AtomicU64,
    on_pause: Mutex<Option<OnPause>>,
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turns")
    }
}

impl Turns {
    pub fn pauses(&self) -> usize {
        self.pauses.load(SeqCst)
    }

    /// The most ticks between two pauses since [`forget`](Self::forget).
    pub fn longest(&self) -> u64 {
        self.longest.load(SeqCst)
    }

    /// Starts counting anew.
    pub fn forget(&self) {
        self.pauses.store(0, SeqCst);
        self.longest.store(0, SeqCst);
        self.last_pause.store(self.clock.load(SeqCst), SeqCst);
    }

    /// Calls `then` at every pause with the number of pauses so far.
    pub fn on_pause(&self, then: impl Fn(usize) + Send + Sync + 'static) {
        *self.on_pause.lock().unwrap() = Some(Box::new(then));
    }
}

/// Hands out one shared worker.
#[derive(Debug)]
pub struct FakeExecutor(pub Arc<Turns>);

impl Executor for FakeExecutor {
    fn worker(&self, _runs: usize) -> Result<Arc<dyn Worker>> {
        Ok(Arc::clone(&self.0) as Arc<dyn Worker>)
    }

    fn intra_op_threads(&self, _asked: Option<usize>) -> usize {
        1
    }

    fn concurrent_runs(&self, _asked: Option<usize>, _threads: usize) -> usize {
        1
    }

    fn cores(&self, _threads: usize) -> usize {
        1
    }
}

impl Worker for Turns {
    fn run(&self, job: Job) -> Job {
        job
    }

    fn time_slice(&self) -> Option<Duration> {
        Some(Duration::from_millis(SLICE))
    }

    fn now(&self) -> Duration {
        let now = self.clock.fetch_add(1, SeqCst);
        let since = now.saturating_sub(self.last_pause.load(SeqCst));
        self.longest.fetch_max(since, SeqCst);
        Duration::from_millis(now)
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        let count = self.pauses.fetch_add(1, SeqCst) + 1;
        self.last_pause.store(self.clock.load(SeqCst), SeqCst);
        if let Some(then) = &*self.on_pause.lock().unwrap() {
            then(count);
        }
        // Once pending, so that the caller's poll returns.
        let mut asked = false;
        Box::pin(std::future::poll_fn(move |context| {
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}

/// Counts the bytes that are out at the same time.
#[derive(Debug)]
pub struct CountingWeights {
    inner: BytesWeights,
    reads: Mutex<Vec<String>>,
    live: Arc<AtomicUsize>,
    most: AtomicUsize,
}

impl CountingWeights {
    pub fn new(inner: BytesWeights) -> Self {
        Self {
            inner,
            reads: Mutex::default(),
            live: Arc::default(),
            most: AtomicUsize::new(0),
        }
    }

    /// The weights read so far, in order.
    pub fn reads(&self) -> Vec<String> {
        self.reads.lock().unwrap().clone()
    }

    /// Bytes handed out and not dropped yet.
    pub fn live(&self) -> usize {
        self.live.load(SeqCst)
    }

    /// The most that ever was.
    pub fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

/// Bytes that tell when they are dropped.
struct Counted(Bytes, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len(), SeqCst);
    }
}

impl WeightSource for CountingWeights {
    fn weights(&self) -> &[WeightInfo] {
        self.inner.weights()
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        Box::pin(async move {
            let data = self.inner.read(index).await?;
            self.reads
                .lock()
                .unwrap()
                .push(self.weights()[index].name.clone());
            let live = self.live.fetch_add(data.len(), SeqCst) + data.len();
            self.most.fetch_max(live, SeqCst);
            Ok(Bytes::from_owner(Counted(data, Arc::clone(&self.live))))
        })
    }
}
