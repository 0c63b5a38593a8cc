//! Trying again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::observer::{Event, Observer};

/// The longest wait before a retry.
const LONGEST: Duration = Duration::from_secs(30);
/// How often a wait looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(20);

/// How often, and after which waits, something is tried again.
#[derive(Clone)]
pub(crate) struct Retry {
    pub(crate) retries: u32,
    pub(crate) wait: Duration,
    pub(crate) observer: Arc<dyn Observer>,
}

impl Retry {
    /// Does something until it succeeds, fails for good or was tried often enough. The last error comes with the number of
    /// tries.
    pub(crate) fn run<T, E: ToString>(
        &self,
        what: &str,
        may_pass: impl Fn(&E) -> bool,
        mut once: impl FnMut() -> Result<T, E>,
    ) -> Result<T, (E, u32)> {
        for (tries, wait) in (1..).zip(self.waits()) {
            let error = match once() {
                Ok(value) => return Ok(value),
                Err(error) if tries > self.retries || !may_pass(&error) => {
                    return Err((error, tries));
                }
                Err(error) => error,
            };
            self.observer.event(Event::Retrying {
                what,
                reason: &error.to_string(),
                wait,
            });
            if !self.pause(wait) {
                return Err((error, tries));
            }
        }
        unreachable!("the numbers of tries have an end")
    }

    /// The time before each retry.
    pub(crate) fn waits(&self) -> impl Iterator<Item = Duration> + use<> {
        let doubled = |wait: &Duration| Some((*wait * 2).min(LONGEST));
        std::iter::successors(Some(self.wait.min(LONGEST)), doubled)
    }

    /// Waits; `false` if the run is to end.
    fn pause(&self, wait: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.observer.stopped() {
                return false;
            }
            match wait.checked_sub(begun.elapsed()) {
                None | Some(Duration::ZERO) => return true,
                Some(left) => std::thread::sleep(left.min(GLANCE)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;

    /// Notes the waits, and ends the run when it was told to.
    #[derive(Default)]
    struct Notes {
        waits: Mutex<Vec<Duration>>,
        stop: AtomicBool,
    }

    impl Observer for Notes {
        fn stopped(&self) -> bool {
            self.stop.load(Relaxed)
        }

        fn event(&self, event: Event<'_>) {
            if let Event::Retrying { wait, .. } = event {
                self.waits.lock().unwrap().push(wait);
            }
        }
    }

    fn retry(retries: u32, notes: &Arc<Notes>) -> Retry {
        Retry {
            retries,
            wait: Duration::from_millis(1),
            observer: Arc::<Notes>::clone(notes),
        }
    }

    #[test]
    fn waits_double_and_the_last_error_is_said_with_its_number() {
        let notes = Arc::new(Notes::default());
        let mut tries = 0;
        let result = retry(3, &notes).run(
            "it",
            |_| true,
            || {
                tries += 1;
                Err::<(), _>(format!("error {tries}"))
            },
        );
        assert_eq!(result, Err(("error 4".into(), 4)));
        let waits = notes.waits.lock().unwrap();
        let expected: Vec<_> = [1, 2, 4].map(Duration::from_millis).into();
        assert_eq!(*waits, expected);
    }

    #[test]
    fn what_passes_is_a_success_and_what_cannot_pass_is_not_tried_again() {
        let notes = Arc::new(Notes::default());
        let mut tries = 0;
        let result = retry(3, &notes).run(
            "it",
            |_| true,
            || {
                tries += 1;
                if tries < 3 { Err("not yet") } else { Ok(tries) }
            },
        );
        assert_eq!(result, Ok(3));
        let result = retry(3, &notes).run("it", |_| false, || Err::<(), _>("never"));
        assert_eq!(result, Err(("never", 1)));
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let notes = Arc::new(Notes::default());
        notes.stop.store(true, Relaxed);
        let patient = Retry {
            wait: Duration::from_secs(1000),
            ..retry(3, &notes)
        };
        let result = patient.run("it", |_| true, || Err::<(), _>("late"));
        assert_eq!(result, Err(("late", 1)));
    }
}
