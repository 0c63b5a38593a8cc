//! The threads of engines and of loads, and the end of the process.
//!
//! They are not joined: an engine may be dropped where nobody may wait, and what a thread still holds goes when its run
//! has ended. When the process ends, somebody has to wait all the same: a session that is released while the libraries
//! of its provider are torn down calls into what is gone. Programs that had computed with CUDA ended with a segmentation
//! fault, their work done.

use std::ffi::c_int;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use isovec_engine::error::{EngineError, Result};

use crate::NAME;

/// The longest that the process's end is held up: far more than what releasing a session takes.
const PATIENCE: Duration = Duration::from_secs(10);

static THREADS: Threads = Threads {
    counts: Mutex::new(Counts {
        running: 0,
        at_work: 0,
    }),
    ended: Condvar::new(),
};

struct Threads {
    counts: Mutex<Counts>,
    ended: Condvar,
}

struct Counts {
    running: usize,
    /// Those of engines that are still there, which wait for runs and touch nothing meanwhile.
    at_work: usize,
}

impl Threads {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts one of the engine's threads.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let running = Running::new();
    thread::Builder::new()
        .name("isovec-onnxruntime".into())
        // As much as a main thread has; ONNX Runtime recurses over nested graphs.
        .stack_size(8 << 20)
        .spawn(move || {
            // Goes behind whatever the work holds.
            let _running = running;
            work();
        })
        .map(drop)
        .map_err(|error| EngineError::Runtime {
            engine: NAME,
            doing: "starting a thread",
            detail: error.to_string(),
        })
}

struct Running;

impl Running {
    fn new() -> Self {
        THREADS.lock().running += 1;
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        THREADS.lock().running -= 1;
        THREADS.ended.notify_all();
    }
}

/// The threads of an engine that is there. They end when it is gone.
#[derive(Debug)]
pub(crate) struct AtWork(usize);

impl AtWork {
    pub(crate) fn new(threads: usize) -> Self {
        THREADS.lock().at_work += threads;
        Self(threads)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        THREADS.lock().at_work -= self.0;
    }
}

/// Threads that are about to end: their engine is gone, or they load a model that nobody waits for any more.
fn leaving(counts: &Counts) -> usize {
    counts.running.saturating_sub(counts.at_work)
}

/// Has the process wait at its end for threads that are about to end, before the destructors of the libraries that are
/// loaded by now. To be called once a provider has loaded its own.
pub(crate) fn end_before_libraries(first_of_provider: &'static Once) {
    unsafe extern "C" {
        /// Of C's standard library: what was registered last is called first.
        safe fn atexit(function: extern "C" fn()) -> c_int;
    }
    extern "C" fn wait() {
        let counts = THREADS.lock();
        let waited = THREADS
            .ended
            .wait_timeout_while(counts, PATIENCE, |counts| leaving(counts) > 0);
        drop(waited);
    }
    first_of_provider.call_once(|| {
        if atexit(wait) != 0 {
            tracing::debug!("the process will not wait for threads at its end");
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

    use std::process::Command;

    use super::*;

    /// Set for the process that ends.
    const ENDS: &str = "ISOVEC_TEST_ENDS";

    #[test]
    fn threads_of_engines_that_are_there_are_not_waited_for() {
        let counts = |running, at_work| Counts { running, at_work };
        assert_eq!(leaving(&counts(3, 3)), 0);
        assert_eq!(leaving(&counts(3, 1)), 2);
        // An engine says that it is there when all of its threads are; a thread may have panicked.
        assert_eq!(leaving(&counts(1, 2)), 0);
    }

    #[test]
    fn the_process_ends_after_what_its_threads_hold() {
        if std::env::var_os(ENDS).is_some() {
            static PROVIDER: Once = Once::new();
            struct Held;
            impl Drop for Held {
                fn drop(&mut self) {
                    thread::sleep(Duration::from_millis(300));
                    eprintln!("released");
                }
            }
            end_before_libraries(&PROVIDER);
            // The thread of an engine that is there, which never ends.
            let _at_work = std::mem::ManuallyDrop::new(AtWork::new(1));
            spawn(|| thread::sleep(Duration::from_secs(600))).unwrap();
            let held = Held;
            spawn(move || drop(held)).unwrap();
            return;
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "the_process_ends_after_what_its_threads_hold",
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
