//! Work that would hold other requests up.

use crate::failure::Failure;

/// The size of a body, in bytes or in numbers that are written, above which work on it takes milliseconds.
const LARGE: usize = 64 << 10;

/// Does work that takes milliseconds where no other request waits for it.
///
/// # Errors
/// That it panicked.
pub async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Failure::panicked())
}

/// The same for work on a body of this size, in bytes or in numbers; if it is small, the work is done at once.
///
/// # Errors
/// As [`apart`].
pub async fn apart_if_large<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    if size > LARGE {
        apart(work).await
    } else {
        Ok(work())
    }
}
