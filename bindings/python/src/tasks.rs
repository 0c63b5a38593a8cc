//! Calls that asyncio waits for. `python/isovec/_tasks.py` has the side of the event loop.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_channel::oneshot;
use futures_util::StreamExt;
use futures_util::future::select;
use isovec::{BoxFuture, Cancel};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::{error, fork, logs};

/// Makes Python's value of a call's result.
type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A call that is not under way yet.
#[pyclass(frozen, module = "isovec._isovec")]
pub(crate) struct Call {
    work: Mutex<Option<BoxFuture<'static, Finish>>>,
    cancel: Cancel,
}

impl Call {
    /// The coroutine of a call. `finish` makes Python's value of its result.
    pub(crate) fn coroutine<'py, T: Send + 'static>(
        py: Python<'py>,
        cancel: Cancel,
        result: impl Future<Output = isovec::Result<T>> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        let work: BoxFuture<'static, Finish> = Box::pin(async move {
            let result = result.await;
            let finish: Finish = Box::new(move |py| match result {
                Ok(value) => finish(py, value),
                Err(error) => Err(error::of(py, &error)),
            });
            finish
        });
        let call = Self {
            work: Mutex::new(Some(work)),
            cancel,
        };
        let drive = py.import("isovec._tasks")?.getattr("drive")?;
        drive.call1((call,))
    }
}

#[pymethods]
impl Call {
    /// Starts it. `done` is called once with a result and an exception, one of which is `None`, on a thread of isovec's.
    fn start(&self, done: Py<PyAny>) -> PyResult<()> {
        let work = lock(&self.work).take();
        let work = work.ok_or_else(|| PyRuntimeError::new_err("this call was started before"))?;
        submit(Box::pin(async move {
            let finish = work.await;
            // Where the interpreter ends nobody waits.
            Python::try_attach(|py| {
                logs::hand_over(py);
                let told = match finish(py) {
                    Ok(value) => done.call1(py, (value, py.None())),
                    Err(error) => done.call1(py, (py.None(), error.into_value(py))),
                };
                // It fails where the event loop was closed: nobody waits there either.
                drop(told);
            });
        }))
    }

    /// Cancels it; nothing happens where it is over.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.cancel.cancel());
    }
}

/// The thread that polls all calls.
struct Driver {
    calls: UnboundedSender<BoxFuture<'static, ()>>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

enum State {
    /// No call was made yet.
    Idle,
    Running(Driver),
    /// The interpreter ends.
    Ended,
}

static STATE: Mutex<State> = Mutex::new(State::Idle);

fn submit(call: BoxFuture<'static, ()>) -> PyResult<()> {
    let mut state = lock(&STATE);
    if let State::Idle = *state {
        *state = State::Running(Driver::start()?);
    }
    match &*state {
        State::Running(driver) if driver.calls.unbounded_send(call).is_ok() => Ok(()),
        _ => Err(PyRuntimeError::new_err("the interpreter is ending")),
    }
}

impl Driver {
    fn start() -> PyResult<Self> {
        let (calls, arriving) = unbounded::<BoxFuture<'static, ()>>();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("isovec-asyncio".into());
        let thread = thread.spawn(move || {
            let all = pin!(arriving.for_each_concurrent(None, |call| call));
            // Dropping a call cancels it.
            drop(pollster::block_on(select(all, stopped)));
        })?;
        Ok(Self {
            calls,
            stop,
            thread,
        })
    }
}

/// Cancels what is under way, and waits until no thread of isovec will ask for the interpreter again.
#[pyfunction]
fn end(py: Python<'_>) {
    // First, because the thread is in the process that this one was forked from, and so may be whoever holds the lock.
    if fork::claim(py).is_err() {
        return;
    }
    let state = std::mem::replace(&mut *lock(&STATE), State::Ended);
    let State::Running(driver) = state else {
        return;
    };
    py.detach(|| {
        // It is gone already if it panicked.
        let _ = driver.stop.send(());
        let _ = driver.thread.join();
    });
}

/// Has `end` called before the interpreter goes.
pub(crate) fn end_with_the_interpreter(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let end = wrap_pyfunction!(end, module)?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
