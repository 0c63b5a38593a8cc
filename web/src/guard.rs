//! Turns panics of the code underneath into errors.
//!
//! In the browser panics abort, so they cannot be caught, and the instance is lost.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use isovec_engine::panics;

/// Runs `work`; a panic becomes `Err` with its message.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // What the closure may leave half-changed is never used again: callers drop it on `Err`.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panics::message(&*panic))
}

/// Runs `work`, which may wait in between; a panic becomes `Err` with its message.
pub(crate) async fn catch_in<F: Future>(work: F) -> Result<F::Output, String> {
    let mut work = pin!(work);
    poll_fn(|context| match catch(|| work.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        // It is not polled again.
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_keeps_its_message() {
        let message = catch(|| panic!("row {} is missing", 3)).unwrap_err();
        assert_eq!(message, "row 3 is missing");
        assert_eq!(catch(|| 5), Ok(5));
    }

    #[test]
    fn a_panic_after_a_pause_is_caught_too() {
        let mut turns = 0;
        let work = poll_fn(|context| match turns {
            0 => {
                turns = 1;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => panic!("lost in the middle"),
        });
        let found: Result<(), String> = pollster::block_on(catch_in(work));
        assert_eq!(found.unwrap_err(), "lost in the middle");
        assert_eq!(pollster::block_on(catch_in(async { 5 })), Ok(5));
    }
}
