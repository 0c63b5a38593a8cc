//! Waiting for isovec without the interpreter's lock, and without being deaf to Ctrl-C.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use isovec::Cancel;
use pyo3::prelude::*;

use crate::texts::Text;
use crate::{error, logs};

/// How long a call waits before it asks for signals again.
const PATIENCE: Duration = Duration::from_millis(50);

/// The most bytes of texts that are computed on the calling thread, which no signal reaches: some 250 tokens.
const SHORT: usize = 1024;

/// What a text counts for at least: it makes a few tokens whatever is in it.
const LEAST: usize = 32;

/// Whether a call's texts are so short that waking other threads would cost more than it brings.
pub(crate) fn is_short(texts: &[Text]) -> bool {
    let mut bytes = 0;
    texts.iter().all(|text| {
        bytes += text.as_ref().len().max(LEAST);
        bytes <= SHORT
    })
}

/// Computes on this thread.
pub(crate) fn here<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> isovec::Result<T> + Send,
) -> PyResult<T> {
    let result = py.detach(work);
    logs::hand_over(py);
    result.map_err(|error| error::of(py, &error))
}

/// Waits for a future's result. When a signal's handler raises, as that of Ctrl-C does, the work is cancelled.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    future: impl Future<Output = isovec::Result<T>> + Send,
) -> PyResult<T> {
    match until(py, cancel, future)? {
        Ok(value) => Ok(value),
        Err(error) => Err(error::of(py, &error)),
    }
}

/// The same for a future of any result.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    future: impl Future<Output = T> + Send,
) -> PyResult<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        let polled = py.detach(|| {
            let mut context = Context::from_waker(&waker);
            let end = Instant::now() + PATIENCE;
            loop {
                if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                    return Some(value);
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                thread::park_timeout(left);
            }
        });
        logs::hand_over(py);
        if let Some(value) = polled {
            return Ok(value);
        }
        if let Err(raised) = py.check_signals() {
            cancel.cancel();
            return Err(raised);
        }
    }
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
