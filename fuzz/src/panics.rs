//! Panics of an oracle, which are its answer and no failure of isovec's.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic in this thread is caught by [`caught`].
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `run` gives; `None` where it panics, which says nothing then. Under libFuzzer too, whose hook would end the program
/// before a panic could be caught.
pub fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                before(panic);
            }
        }));
    });
    CAUGHT.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    CAUGHT.set(false);
    result.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_panic_is_nothing_and_says_nothing() {
        static HEARD: AtomicUsize = AtomicUsize::new(0);
        panic::set_hook(Box::new(|_| {
            HEARD.fetch_add(1, Ordering::Relaxed);
        }));
        assert_eq!(caught(|| 3), Some(3));
        assert_eq!(caught(|| panic!("theirs")), None::<()>);
        assert_eq!(HEARD.load(Ordering::Relaxed), 0);
        assert!(panic::catch_unwind(|| panic!("ours")).is_err());
        assert_eq!(HEARD.load(Ordering::Relaxed), 1);
    }
}
