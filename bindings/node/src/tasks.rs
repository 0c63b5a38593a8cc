//! Calls that the event loop waits for.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::thread;

use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_util::{FutureExt, StreamExt};
use isovec::BoxFuture;
use napi::bindgen_prelude::{Object, ToNapiValue};
use napi::{Env, Error, Result};

use crate::error;

/// The promise of a call. `finish` makes JavaScript's value of its result, on the event loop.
pub(crate) fn promise<'env, T, V>(
    env: &'env Env,
    work: impl Future<Output = isovec::Result<T>> + Send + 'static,
    finish: impl FnOnce(T) -> V + Send + 'static,
) -> Result<Object<'env>>
where
    T: Send + 'static,
    V: ToNapiValue + 'static,
{
    let (deferred, promise) = env.create_deferred()?;
    submit(Box::pin(async move {
        // What panics would take the thread of all calls with it.
        let result = AssertUnwindSafe(work).catch_unwind().await;
        deferred.resolve(move |env| match result {
            Ok(Ok(value)) => Ok(finish(value)),
            Ok(Err(error)) => Err(error::of(&env, &error)),
            Err(panic) => Err(error::with_kind(&env, "Panicked", &said(&*panic))),
        });
    }))?;
    Ok(promise)
}

/// The error of a panic, in words.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "isovec stopped at an internal error ({}); please report it",
        text.unwrap_or_default()
    )
}

/// The thread that polls all calls of the process. It sleeps where there are none, and goes with the process.
static DRIVER: Mutex<Option<UnboundedSender<BoxFuture<'static, ()>>>> = Mutex::new(None);

/// Has something done by the thread of all calls.
pub(crate) fn submit(work: BoxFuture<'static, ()>) -> Result<()> {
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    if driver.is_none() {
        let (calls, arriving) = unbounded();
        let thread = thread::Builder::new().name("isovec-node".into());
        thread
            .spawn(move || {
                let all = arriving.for_each_concurrent(None, |call: BoxFuture<'static, ()>| call);
                pollster::block_on(all);
            })
            .map_err(|error| Error::from_reason(format!("no thread can be started: {error}")))?;
        *driver = Some(calls);
    }
    let sent = driver.as_ref().map(|calls| calls.unbounded_send(work));
    match sent {
        Some(Ok(())) => Ok(()),
        _ => Err(Error::from_reason("the thread of isovec's calls is gone")),
    }
}
