//! The threads that work on one operator.

use tract_linalg::multithread::Executor;

/// A pool of `threads`, or none at all for one. Results do not depend on the number: work is
/// split between rows and tiles, never inside a sum.
#[cfg(feature = "threads")]
pub(crate) fn pool(threads: usize) -> isovec_engine::Result<Executor> {
    if threads <= 1 {
        return Ok(Executor::SingleThread);
    }
    super::panics::runtime("starting its thread pool", || {
        Ok(Executor::multithread_with_name(
            threads,
            "isovec-portable-op",
        ))
    })
}

/// Without the feature `threads` there is one.
#[cfg(not(feature = "threads"))]
pub(crate) fn pool(_threads: usize) -> isovec_engine::Result<Executor> {
    Ok(Executor::SingleThread)
}
