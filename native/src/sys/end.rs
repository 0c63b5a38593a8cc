//! The end of the process, and sessions that are released then.
//!
//! The last to hold a session is often one of the engine's threads, which nobody joins: an engine may be dropped where
//! nobody may wait. A session that is released while the process ends calls into libraries of its provider that are
//! being torn down. Programs that had computed with CUDA ended with a segmentation fault, their work done.

use std::ffi::c_int;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// The longest that the process's end is held up: far more than releasing a session takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What happens to sessions while the process ends.
struct End {
    state: Mutex<State>,
    released: Condvar,
}

struct State {
    /// Sessions that are being released.
    releasing: usize,
    /// From here on none is released: the memory goes with the process.
    ending: bool,
}

static END: End = End::new();

impl End {
    const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                releasing: 0,
                ending: false,
            }),
            released: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases a session, unless the process ends.
    fn release(&self, session: impl FnOnce()) {
        {
            let mut state = self.lock();
            if state.ending {
                return;
            }
            state.releasing += 1;
        }
        session();
        self.lock().releasing -= 1;
        self.released.notify_all();
    }

    /// Lets no release begin any more, and waits for those that have.
    fn begin(&self) {
        let mut state = self.lock();
        state.ending = true;
        let waited = self
            .released
            .wait_timeout_while(state, PATIENCE, |state| state.releasing > 0);
        drop(waited);
    }
}

/// Releases a session, unless the process ends.
pub(super) fn release(session: impl FnOnce()) {
    END.release(session);
}

/// Has the process's end wait for sessions that are being released, before the destructors of the libraries that are
/// loaded by now. To be called once a provider has loaded its own; `registered` is the same for all calls of one provider.
pub(crate) fn comes_before_libraries(registered: &Once) {
    unsafe extern "C" {
        /// Of C's standard library: what was registered last is called first.
        safe fn atexit(function: extern "C" fn()) -> c_int;
    }
    extern "C" fn begin() {
        END.begin();
    }
    registered.call_once(|| {
        if atexit(begin) != 0 {
            tracing::debug!("the process's end will not wait for sessions that are being released");
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    /// Set for the process that ends.
    const ENDS: &str = "ISOVEC_TEST_ENDS";

    #[test]
    fn the_end_waits_for_what_has_begun_and_lets_nothing_begin() {
        let end = &End::new();
        thread::scope(|scope| {
            let (begun, has_begun) = channel();
            let (go_on, may_go_on) = channel::<()>();
            scope.spawn(move || {
                end.release(|| {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                });
            });
            has_begun.recv().unwrap();
            let ending = scope.spawn(|| end.begin());
            while !end.lock().ending {
                thread::yield_now();
            }
            end.release(|| panic!("the process ends"));
            assert!(!ending.is_finished());
            go_on.send(()).unwrap();
            ending.join().unwrap();
            assert_eq!(end.lock().releasing, 0);
        });
    }

    #[test]
    fn the_process_ends_after_a_release_that_takes_its_time() {
        if std::env::var_os(ENDS).is_some() {
            comes_before_libraries(&Once::new());
            let (begun, has_begun) = channel();
            thread::spawn(move || {
                release(|| {
                    begun.send(()).unwrap();
                    thread::sleep(Duration::from_millis(300));
                    eprintln!("released");
                });
            });
            has_begun.recv().unwrap();
            return;
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "the_process_ends_after_a_release_that_takes_its_time",
                "--nocapture",
            ])
            .env(ENDS, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(
            child.status.success() && said.contains("released"),
            "{said}"
        );
    }
}
