//! Threads that other code started and that help one caller. The caller never blocks, because a browser ends a page's
//! own thread that waits for a futex. It takes jobs until none is left, and then spins until the running jobs, which
//! are short, have finished.

use std::hint::spin_loop;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};
use std::thread::{self, Thread};

/// More than any processor in front of a browser brings to an operator.
const MOST: usize = 63;
/// How often a member looks for new work before it goes to sleep: some tens of microseconds, about
/// what waking it would take, and the pause between two operators.
const LOOKS: u32 = 20_000;

/// The threads, which are its members, and the work that they do.
#[derive(Debug)]
pub(crate) struct Crew {
    /// What is done now, or null. It lives on its caller's stack.
    work: AtomicPtr<Work<'static>>,
    /// Pieces of work so far, by which a member sees that there is a new one.
    pieces: AtomicU32,
    /// Members that may be looking at `work`.
    inside: AtomicUsize,
    /// Members that were ended inside.
    lost: AtomicUsize,
    joined: AtomicUsize,
    members: [OnceLock<Thread>; MOST],
    /// Members that sleep or are about to, for tests that do not wait for a clock.
    #[cfg(test)]
    asleep: AtomicUsize,
}

/// Jobs, by their numbers.
struct Work<'a> {
    job: &'a (dyn Fn(usize) + Sync),
    jobs: usize,
    next: AtomicUsize,
    /// How many members may still come to help.
    seats: AtomicUsize,
}

impl Work<'_> {
    fn sit_down(&self) -> bool {
        let seats = |seats: usize| seats.checked_sub(1);
        self.seats.fetch_update(Relaxed, Relaxed, seats).is_ok()
    }

    /// Does jobs until all are taken.
    fn take(&self) {
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            if number >= self.jobs {
                break;
            }
            (self.job)(number);
        }
    }
}

impl Crew {
    /// Nobody yet.
    pub(crate) const fn new() -> Self {
        Self {
            work: AtomicPtr::new(ptr::null_mut()),
            pieces: AtomicU32::new(0),
            inside: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            joined: AtomicUsize::new(0),
            members: [const { OnceLock::new() }; MOST],
            #[cfg(test)]
            asleep: AtomicUsize::new(0),
        }
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        let joined = self.joined.load(Acquire).min(MOST);
        let members = &self.members[..joined];
        members.iter().filter(|place| place.get().is_some()).count()
    }

    /// The thread that calls becomes a member, unless there are enough. It is to call
    /// [`Self::serve`] next.
    pub(crate) fn join(&self) -> bool {
        let place = self.members.get(self.joined.fetch_add(1, SeqCst));
        place.is_some_and(|place| place.set(thread::current()).is_ok())
    }

    /// Helps with all work to come.
    pub(crate) fn serve(&self) -> ! {
        let mut seen = 0;
        loop {
            seen = self.next_piece(seen);
            self.help();
        }
    }

    /// Notes that the calling member was ended. What it was doing is not done.
    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, SeqCst);
    }

    /// Waits for another piece of work than the one that was seen last.
    fn next_piece(&self, seen: u32) -> u32 {
        for look in 0.. {
            let now = self.pieces.load(Acquire);
            if now != seen {
                return now;
            }
            // Whoever has new work counts it first and wakes then: a wake-up in between is kept.
            if look < LOOKS {
                spin_loop();
            } else {
                #[cfg(test)]
                self.asleep.fetch_add(1, SeqCst);
                thread::park();
                #[cfg(test)]
                self.asleep.fetch_sub(1, SeqCst);
            }
        }
        seen
    }

    fn help(&self) {
        self.inside.fetch_add(1, SeqCst);
        // SAFETY: the caller puts its work here while it lives, takes it away before it goes, and
        // goes only when nobody is inside. All four steps have one order: whoever still finds the
        // work here is seen inside.
        if let Some(work) = unsafe { self.work.load(SeqCst).as_ref() }
            && work.sit_down()
        {
            work.take();
        }
        self.inside.fetch_sub(1, SeqCst);
    }

    /// Calls `job` with every number below `jobs`, on the calling thread and up to `threads - 1`
    /// members.
    ///
    /// # Panics
    /// If a member was ended in the middle of its work, now or before.
    pub(crate) fn run(&self, threads: usize, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let helpers = threads.min(jobs).saturating_sub(1);
        let work = Work {
            job,
            jobs,
            next: AtomicUsize::new(0),
            seats: AtomicUsize::new(helpers),
        };
        let place = (&raw const work).cast_mut().cast::<Work<'static>>();
        let free = || {
            let free = ptr::null_mut();
            self.work.compare_exchange(free, place, SeqCst, SeqCst)
        };
        // Work inside of work, and that of a second caller, is done by whoever brings it.
        if helpers == 0 || free().is_err() {
            return work.take();
        }
        let taken_away = TakenAway(self);
        self.pieces.fetch_add(1, Release);
        for member in self.members.iter().filter_map(OnceLock::get).take(helpers) {
            member.unpark();
        }
        work.take();
        drop(taken_away);
        assert!(
            self.lost.load(SeqCst) == 0,
            "a thread was ended in the middle of its work"
        );
    }
}

/// Takes the work away, and waits until nobody looks at it any more; also while a panic passes.
struct TakenAway<'a>(&'a Crew);

impl Drop for TakenAway<'_> {
    fn drop(&mut self) {
        self.0.work.store(ptr::null_mut(), SeqCst);
        while self.0.inside.load(SeqCst) > self.0.lost.load(SeqCst) {
            spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    /// A crew of so many members. They live as long as the tests.
    fn crew(members: usize) -> &'static Crew {
        let crew: &'static Crew = Box::leak(Box::new(Crew::new()));
        for _ in 0..members {
            thread::spawn(|| {
                assert!(crew.join());
                crew.serve()
            });
        }
        while crew.len() < members {
            thread::yield_now();
        }
        crew
    }

    #[test]
    fn every_job_is_done_once_and_is_done_when_the_call_returns() {
        let crew = crew(3);
        for jobs in (0..40).chain([1000]).cycle().take(2000) {
            let done: Vec<AtomicUsize> = (0..jobs).map(|_| AtomicUsize::new(0)).collect();
            crew.run(4, jobs, &|number| {
                done[number].fetch_add(1, Relaxed);
            });
            assert!(done.iter().all(|times| times.load(Relaxed) == 1), "{jobs}");
        }
    }

    #[test]
    fn members_help_and_no_more_than_were_asked_for() {
        let crew = crew(3);
        let seen = Mutex::new(Vec::new());
        let both = AtomicUsize::new(0);
        crew.run(2, 2, &|_| {
            // Neither job ends before both are under way.
            both.fetch_add(1, SeqCst);
            while both.load(SeqCst) < 2 {
                thread::yield_now();
            }
            seen.lock().unwrap().push(thread::current().id());
        });
        let seen = seen.into_inner().unwrap();
        assert_ne!(seen[0], seen[1]);

        let most = AtomicUsize::new(0);
        let now = AtomicUsize::new(0);
        for _ in 0..200 {
            crew.run(2, 16, &|_| {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                thread::yield_now();
                now.fetch_sub(1, SeqCst);
            });
        }
        assert!(most.into_inner() <= 2);
    }

    #[test]
    fn a_sleeping_member_wakes_for_work() {
        let crew = crew(1);
        for _ in 0..100 {
            // It has looked often enough: it sleeps or is about to.
            while crew.asleep.load(SeqCst) == 0 {
                thread::yield_now();
            }
            let both = AtomicUsize::new(0);
            crew.run(2, 2, &|_| {
                both.fetch_add(1, SeqCst);
                while both.load(SeqCst) < 2 {
                    thread::yield_now();
                }
            });
        }
    }

    #[test]
    fn work_inside_of_work_is_done() {
        let crew = crew(1);
        let done = AtomicUsize::new(0);
        crew.run(2, 4, &|_| {
            crew.run(2, 4, &|_| {
                done.fetch_add(1, Relaxed);
            });
        });
        assert_eq!(done.into_inner(), 16);
    }

    #[test]
    fn a_lost_member_is_not_waited_for_and_not_forgotten() {
        let crew: &'static Crew = Box::leak(Box::new(Crew::new()));
        let ended = thread::spawn(|| {
            crew.join();
            let served = std::panic::catch_unwind(|| crew.serve());
            crew.lose();
            served.is_err()
        });
        while crew.len() < 1 {
            thread::yield_now();
        }
        let caller = thread::current().id();
        let taken = AtomicBool::new(false);
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            crew.run(2, 2, &|_| {
                if thread::current().id() != caller {
                    taken.store(true, SeqCst);
                    panic!("as it is meant to");
                }
                while !taken.load(SeqCst) {
                    thread::yield_now();
                }
            });
        }));
        assert!(run.is_err());
        assert!(ended.join().unwrap());
        let later = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            crew.run(2, 2, &|_| ());
        }));
        assert!(later.is_err(), "its engine may not go on");
    }
}
