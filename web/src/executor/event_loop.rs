//! Jobs inside the caller's event loop: a window, a worker, or node.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_lock::Mutex;
use futures_channel::oneshot;
use isovec_engine::Result;
use isovec_engine::maybe_send::BoxFuture;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_time::Instant;

use super::{Executor, Job, MOST_BY_DEFAULT, Worker};
use crate::threads;

/// Compute this long at most before a pause, in a page. An operator cannot be interrupted, and the
/// time of one comes on top; with this slice the two together stay near 10 ms for models that a
/// browser can run at all.
const IN_A_PAGE: Duration = Duration::from_millis(5);
/// The same in a worker, where pauses only let cancellations and further calls arrive. One takes
/// some 0.1 ms there: half a percent of this slice.
const IN_A_WORKER: Duration = Duration::from_millis(20);

/// The time, counted from the first call.
pub(crate) fn clock() -> Duration {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    STARTED.get_or_init(Instant::now).elapsed()
}

thread_local! {
    /// When the last job of this thread ended, and when it had paused last: many short jobs in a row, such as the
    /// batches of one call, keep everybody waiting as one long job does.
    static LAST: Cell<Option<(Duration, Duration)>> = const { Cell::new(None) };
}

/// The event loop that the caller lives in.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventLoop;

impl Executor for EventLoop {
    fn worker(&self, _runs: usize) -> Result<Arc<dyn Worker>> {
        // The contract asks for `Arc`; without threads there is nothing to send it to.
        #[allow(clippy::arc_with_non_send_sync)]
        Ok(Arc::new(Turns {
            one_at_a_time: Rc::new(Mutex::new(())),
            slice: match web_sys::window() {
                Some(_) => IN_A_PAGE,
                None => IN_A_WORKER,
            },
            channel: Channel::open(),
        }))
    }

    /// An event loop has one thread, and jobs take turns on it.
    fn concurrent_runs(&self, _asked: Option<usize>, _threads: usize) -> usize {
        1
    }

    fn cores(&self, threads: usize) -> usize {
        threads
    }

    fn intra_op_threads(&self, asked: Option<usize>) -> usize {
        asked
            .unwrap_or(MOST_BY_DEFAULT)
            .clamp(1, threads::in_event_loop())
    }
}

/// Turns in the event loop. Jobs of one engine take it one after another: interleaved, they would
/// all be late, and hold all their memory at once.
#[derive(Debug)]
struct Turns {
    one_at_a_time: Rc<Mutex<()>>,
    slice: Duration,
    channel: Option<Channel>,
}

impl Worker for Turns {
    fn run(&self, job: Job) -> Job {
        let lock = Rc::clone(&self.one_at_a_time);
        Box::pin(async move {
            let _turn = lock.lock().await;
            job.await;
        })
    }

    fn time_slice(&self) -> Option<Duration> {
        Some(self.slice)
    }

    fn now(&self) -> Duration {
        clock()
    }

    fn begins(&self) -> Duration {
        let now = clock();
        match LAST.get() {
            // Whoever waited that long in between may have had a turn, or not; one pause too many is cheap.
            Some((ended, paused)) if now.saturating_sub(ended) < self.slice => paused,
            _ => now,
        }
    }

    fn ends(&self, paused: Duration) {
        LAST.set(Some((clock(), paused)));
    }

    fn pause(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(channel) = &self.channel {
                channel.turn().await;
            }
        })
    }
}

/// A message to ourselves comes back as a task of its own, after input, painting and other
/// messages had their chance. A promise would not do (its continuation runs before any of them),
/// and a timer is clamped to 4 ms.
#[derive(Debug)]
struct Channel {
    waiting: Rc<RefCell<Vec<oneshot::Sender<()>>>>,
    send: web_sys::MessagePort,
    receive: web_sys::MessagePort,
    on_message: Closure<dyn FnMut()>,
}

impl Channel {
    /// `None` where there is no `MessageChannel`: pausing is then impossible, not wrong.
    fn open() -> Option<Self> {
        let channel = web_sys::MessageChannel::new().ok()?;
        let (receive, send) = (channel.port1(), channel.port2());
        let waiting = Rc::new(RefCell::new(Vec::<oneshot::Sender<()>>::new()));
        let (woken, port) = (Rc::clone(&waiting), receive.clone());
        let on_message = Closure::<dyn FnMut()>::new(move || {
            // A port that listens keeps node's process alive; listen only while somebody waits.
            port.set_onmessage(None);
            for waiter in woken.take() {
                let _ = waiter.send(());
            }
        });
        Some(Self {
            waiting,
            send,
            receive,
            on_message,
        })
    }

    async fn turn(&self) {
        let (wake, woken) = oneshot::channel();
        self.waiting.borrow_mut().push(wake);
        self.receive
            .set_onmessage(Some(self.on_message.as_ref().unchecked_ref()));
        if self.send.post_message(&JsValue::NULL).is_ok() {
            let _ = woken.await;
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.receive.set_onmessage(None);
        self.receive.close();
        self.send.close();
    }
}
