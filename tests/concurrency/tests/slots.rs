//! The pool of slots: a slot is one run's at a time, whoever waits gets one or is told to stop,
//! and the counts return to nothing.
//!
//! What they find when it is broken on purpose: a slot that is given back, or a wait that is given
//! up, without waking the others.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::in_many_orders;
use isovec_concurrency::slots::{Rest, Slot, Slots};
use isovec_engine::cancel::Cancel;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const SLOTS: usize = 2;

struct Pool {
    slots: Slots,
    inside: [AtomicUsize; SLOTS],
}

impl Pool {
    fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self {
            slots: Slots::new(slots),
            inside: Default::default(),
        })
    }

    /// A run, in which nobody else may be.
    fn run(&self, slot: &Slot<'_>) {
        let inside = &self.inside[slot.number().unwrap()];
        assert_eq!(inside.fetch_add(1, SeqCst), 0, "two runs in one slot");
        thread::yield_now();
        inside.fetch_sub(1, SeqCst);
    }

    fn nobody_is_there(&self) {
        let Rest {
            in_use,
            peak_in_use,
            waiting,
        } = self.slots.rest();
        assert_eq!((in_use, waiting), (0, 0));
        assert!(peak_in_use <= SLOTS);
    }
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn whoever_waits_gets_a_slot_or_is_cancelled() {
    in_many_orders(|| {
        let pool = Pool::new(SLOTS);
        let mut threads = Vec::new();
        for caller in 0..4 {
            let (own, cancel) = (Arc::clone(&pool), Cancel::new());
            if caller % 2 == 1 {
                let cancel = cancel.clone();
                threads.push(thread::spawn(move || cancel.cancel()));
            }
            threads.push(thread::spawn(move || {
                // As `run_blocking` does, and as the engine's threads do.
                let slot = match own.slots.try_take() {
                    Some(slot) => Ok(slot),
                    None => own.slots.take(&cancel),
                };
                match slot {
                    Ok(slot) => own.run(&slot),
                    Err(_) => assert!(cancel.is_cancelled()),
                }
            }));
        }
        join(threads);
        pool.nobody_is_there();
        assert!(pool.slots.try_take().is_some() && pool.slots.try_take().is_some());
    });
}

#[test]
fn whoever_gives_up_the_first_place_lets_the_next_one_in() {
    in_many_orders(|| {
        let pool = Pool::new(1);
        let held = pool.slots.try_take();
        let cancel = Cancel::new();
        let waits = |cancel: Cancel| {
            let own = Arc::clone(&pool);
            thread::spawn(move || {
                if let Ok(slot) = own.slots.take(&cancel) {
                    own.run(&slot);
                }
            })
        };
        let threads = vec![
            waits(cancel.clone()),
            waits(Cancel::new()),
            thread::spawn(move || cancel.cancel()),
        ];
        drop(held);
        join(threads);
        pool.nobody_is_there();
    });
}

#[test]
fn a_line_is_worked_off_by_threads_that_keep_their_slots() {
    in_many_orders(|| {
        let pool = Pool::new(SLOTS);
        let (send, receive) = shuttle::sync::mpsc::channel();
        let receive = Arc::new(shuttle::sync::Mutex::new(receive));
        let mut threads = Vec::new();
        for _ in 0..SLOTS {
            let (own, receive) = (Arc::clone(&pool), Arc::clone(&receive));
            threads.push(thread::spawn(move || {
                let next = || receive.try_lock().ok()?.try_recv().ok();
                // `work` of the engine: the first job is waited for, the next ones are not.
                loop {
                    let Ok(()) = receive.lock().unwrap().recv() else {
                        return;
                    };
                    own.slots.step_up();
                    let mut slot = own.slots.take(&Cancel::new()).unwrap();
                    loop {
                        own.run(&slot);
                        match next() {
                            Some(()) => own.slots.step_up(),
                            None => break slot.give_back(),
                        }
                    }
                }
            }));
        }
        for _ in 0..2 {
            let (own, send) = (Arc::clone(&pool), send.clone());
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    match own.slots.try_take() {
                        Some(slot) => own.run(&slot),
                        None => {
                            own.slots.line_up();
                            send.send(()).unwrap();
                        }
                    }
                }
            }));
        }
        drop(send);
        join(threads);
        pool.nobody_is_there();
    });
}

#[test]
fn a_slot_that_is_lost_leaves_the_others_in_use() {
    in_many_orders(|| {
        let pool = Pool::new(SLOTS);
        let threads = (0..3)
            .map(|caller| {
                let own = Arc::clone(&pool);
                let unlucky = caller == 0 && thread_rng().gen_bool(0.5);
                thread::spawn(move || {
                    let mut slot = own.slots.take(&Cancel::new()).unwrap();
                    own.run(&slot);
                    if unlucky {
                        slot.lose();
                    }
                })
            })
            .collect();
        join(threads);
        pool.nobody_is_there();
    });
}
