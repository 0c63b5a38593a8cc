//! Threads that all begin together, or not at all.

use std::io;
use std::sync::OnceLock;
use std::thread::{self, Builder};

use crate::error::{CliError, Result};

/// What the work came to on each of these threads, none of which begins before all are started.
///
/// # Errors
/// [`CliError::Usage`] where the system refuses one of them. Those that were started end without having begun.
pub(super) fn at_once<T: Send>(
    threads: impl ExactSizeIterator<Item = Builder>,
    work: impl Fn() -> T + Sync,
) -> Result<Vec<T>> {
    let count = threads.len();
    // A barrier would keep those that wait for ever where one is never started.
    let all_started: OnceLock<bool> = OnceLock::new();
    let member = || all_started.wait().then(&work);
    thread::scope(|scope| {
        let started: Result<Vec<_>> = threads
            .enumerate()
            .map(|(before, thread)| {
                let started = thread.spawn_scoped(scope, member);
                started.map_err(|error| refused(before + 1, count, &error))
            })
            .collect();
        let _ = all_started.set(started.is_ok());
        let came_to = started?.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(came_to.flatten().collect())
    })
}

fn refused(number: usize, count: usize, error: &io::Error) -> CliError {
    CliError::Usage(format!(
        "the system refuses a thread for caller {number} of {count} ({error}); ask for fewer with --callers, or allow \
         this program more threads"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_begin_and_each_has_an_answer() {
        let next = AtomicUsize::new(0);
        let work = || next.fetch_add(1, Ordering::Relaxed);
        let mut numbers = at_once((0..5).map(|_| Builder::new()), work).unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    }

    /// Where those that were started were not sent home, this would not end.
    #[test]
    fn none_begins_where_one_is_refused() {
        let begun = AtomicUsize::new(0);
        let work = || begun.fetch_add(1, Ordering::Relaxed);
        // No address space has room for such a stack.
        let refused = Builder::new().stack_size(usize::MAX / 8);
        let threads = [Builder::new(), Builder::new(), refused, Builder::new()];
        let error = at_once(threads.into_iter(), work).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("caller 3 of 4"), "{said}");
        assert!(said.contains("fewer with --callers"), "{said}");
        assert_eq!(error.exit_code(), 2);
        assert_eq!(begun.into_inner(), 0);
    }
}
