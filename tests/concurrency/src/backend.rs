//! Threads as the scheduler knows them.

use std::future::Future;

use isovec_engine::cancel::Cancel;

use crate::error::Result;

/// The scheduler holds a run to be stuck as long as this thread has not ended.
pub(crate) fn spawn(_: &str, future: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    shuttle::thread::spawn(move || shuttle::future::block_on(future));
    Ok(())
}

pub(crate) async fn in_slices<T, R>(
    _: &str,
    items: Vec<T>,
    cancel: Cancel,
    work: impl Fn(&[T]) -> Result<Vec<R>> + Send + 'static,
) -> Result<Vec<R>> {
    // Tokenising takes a while, and others go on.
    shuttle::future::yield_now().await;
    cancel.check()?;
    work(&items)
}
