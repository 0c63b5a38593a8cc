//! The batcher: every caller gets its own answer, once; no caller waits forever; nothing is left.
//!
//! A caller who is not answered, a driver that does not end and a run that nobody cancels all leave
//! a thread that waits, which the scheduler reports as a deadlock.
//!
//! What these tests found: a caller's own run that ends without waking the driver (left out of
//! `guards.rs` on purpose; seven of them fail), and a call of several parts that a shutdown between
//! two of them answered with `Cancelled`, which was a fault of the batcher's.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

mod common;

use std::sync::Arc;
use std::task::Poll;

use common::in_many_orders;
use futures_util::FutureExt;
use isovec_concurrency::batcher::{DynamicBatcher, Shutdown};
use isovec_concurrency::embedder::Embedder;
use isovec_concurrency::embeddings::Embeddings;
use isovec_concurrency::error::{Error, Result};
use isovec_concurrency::model::{EmbedOptions, HELD, Model, POISON};
use isovec_engine::cancel::Cancel;
use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

/// What a caller does with its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Stay,
    /// Gives up after so many looks at it.
    Leave(usize),
    /// Has somebody else cancel it.
    Cancel,
}

/// What may happen to a call beside its answer.
#[derive(Debug, Clone, Copy, Default)]
struct May {
    be_shut_out: bool,
    find_no_room: bool,
}

fn batcher(slots: usize, max_queue: usize) -> (DynamicBatcher, Arc<Model>) {
    let model = Model::new(slots, max_queue);
    let embedder = Embedder {
        model: Arc::clone(&model),
    };
    (DynamicBatcher::new(&embedder), model)
}

fn below(limit: usize) -> usize {
    thread_rng().gen_range(0..limit)
}

/// One to three texts of one to four numbers, which no other caller has.
fn texts(caller: usize) -> Vec<String> {
    (0..1 + below(3))
        .map(|text| {
            let numbers = (0..1 + below(4)).map(|at| (caller * 100 + text * 10 + at).to_string());
            numbers.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// Makes the call and sees to it that the answer is the right one.
fn call(batcher: &DynamicBatcher, texts: Vec<String>, deed: Deed, may: May) {
    let cancel = Cancel::new();
    let mut options = EmbedOptions::default();
    options.cancel = Some(cancel.clone());
    let mut call = batcher.embed_with(&texts, options);
    let result = match deed {
        Deed::Stay => Some(block_on(call)),
        Deed::Leave(mut looks) => block_on(std::future::poll_fn(move |context| {
            if let Poll::Ready(result) = call.poll_unpin(context) {
                return Poll::Ready(Some(result));
            }
            if looks == 0 {
                return Poll::Ready(None);
            }
            looks -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })),
        Deed::Cancel => {
            let other = thread::spawn(move || cancel.cancel());
            let result = block_on(call);
            other.join().unwrap();
            Some(result)
        }
    };
    if let Some(result) = result {
        check(&texts, result, deed, may);
    }
}

fn check(texts: &[String], result: Result<Embeddings>, deed: Deed, may: May) {
    let has = |number: u32| {
        let mut numbers = texts.iter().flat_map(|text| text.split(' '));
        numbers.any(|word| word == number.to_string())
    };
    match result {
        Ok(Embeddings(values)) => {
            assert!(!has(POISON) && !has(HELD));
            let wanted: Vec<f32> = texts.iter().flat_map(|text| Model::vector(text)).collect();
            assert_eq!(values, wanted);
        }
        Err(error) if error.is_cancelled() => assert_eq!(deed, Deed::Cancel),
        Err(Error::ShutDown) => assert!(may.be_shut_out),
        Err(Error::Overloaded { .. }) => assert!(may.find_no_room),
        Err(error) => assert!(has(POISON), "{error}"),
    }
}

/// Nobody is there any more, so nothing may be left.
fn nothing_left(batcher: &DynamicBatcher, model: &Model) {
    let counts = batcher.counts();
    assert_eq!((counts.texts, counts.tokens), (0, 0));
    // A driver that lives counts as a thread that waits.
    block_on(batcher.shutdown(Shutdown::Drain));
    assert_eq!(model.running(), 0);
}

fn each<const N: usize>(
    batcher: &DynamicBatcher,
    callers: [(Vec<String>, Deed); N],
    may: May,
) -> Vec<thread::JoinHandle<()>> {
    let callers = callers.into_iter().map(|(texts, deed)| {
        let batcher = batcher.clone();
        thread::spawn(move || call(&batcher, texts, deed, may))
    });
    callers.collect()
}

fn join(callers: Vec<thread::JoinHandle<()>>) {
    for caller in callers {
        caller.join().unwrap();
    }
}

#[test]
fn callers_who_stay_are_answered() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1 + below(2), 64);
        let callers = [1, 2, 3, 4].map(|caller| (texts(caller), Deed::Stay));
        join(each(&batcher, callers, May::default()));
        nothing_left(&batcher, &model);
    });
}

#[test]
fn callers_who_leave_take_nothing_from_others() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1, 64);
        let callers = [1, 2, 3, 4].map(|caller| {
            let deed = match below(4) {
                0 => Deed::Stay,
                1 => Deed::Cancel,
                _ => Deed::Leave(below(8)),
            };
            (texts(caller), deed)
        });
        join(each(&batcher, callers, May::default()));
        nothing_left(&batcher, &model);
    });
}

#[test]
fn a_run_that_only_its_caller_wants_ends_with_it() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1, 64);
        let held = vec![HELD.to_string(); 1 + below(2)];
        let deed = [Deed::Cancel, Deed::Leave(below(8))][below(2)];
        // Whoever runs together with it has to wait, and is answered once it is gone: alone.
        let callers = [
            (held, deed),
            (vec!["200 201 202 203".into()], Deed::Stay),
            (texts(3), Deed::Leave(below(8))),
        ];
        join(each(&batcher, callers, May::default()));
        nothing_left(&batcher, &model);
    });
}

#[test]
fn poison_fails_the_call_that_brought_it() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1, 64);
        let mut poisoned = texts(1);
        let place = below(poisoned.len());
        poisoned[place] = POISON.to_string();
        let callers = [
            (poisoned, Deed::Stay),
            (vec!["200".into(), "201".into()], Deed::Stay),
            (vec!["300".into()], Deed::Stay),
            (vec!["400".into()], Deed::Leave(below(8))),
        ];
        join(each(&batcher, callers, May::default()));
        nothing_left(&batcher, &model);
    });
}

#[test]
fn a_queue_without_room_makes_large_calls_wait_and_new_ones_go() {
    in_many_orders(|| {
        // Shares of one text: every call of several waits for room between them.
        let (batcher, model) = batcher(1, 2);
        let may = May {
            find_no_room: true,
            ..May::default()
        };
        let callers = [1, 2, 3, 4].map(|caller| {
            let deed = [Deed::Stay, Deed::Stay, Deed::Cancel, Deed::Leave(below(8))][below(4)];
            (texts(caller), deed)
        });
        join(each(&batcher, callers, may));
        nothing_left(&batcher, &model);
    });
}

#[test]
fn a_drain_and_a_cancel_end_for_everybody() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1, 4);
        let may = May {
            be_shut_out: true,
            find_no_room: true,
        };
        let callers = [1, 2, 3].map(|caller| {
            let deed = [Deed::Stay, Deed::Leave(below(8))][below(2)];
            (texts(caller), deed)
        });
        let callers = each(&batcher, callers, may);
        let ways = [Shutdown::Drain, Shutdown::Cancel];
        let enders: Vec<_> = (0..1 + below(2))
            .map(|_| {
                let (batcher, how) = (batcher.clone(), ways[below(2)]);
                thread::spawn(move || block_on(batcher.shutdown(how)))
            })
            .collect();
        join(enders);
        join(callers);
        nothing_left(&batcher, &model);
    });
}

#[test]
fn a_cancelling_shutdown_ends_what_would_run_for_ever() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1, 64);
        let may = May {
            be_shut_out: true,
            ..May::default()
        };
        let held = || vec![HELD.to_string()];
        let callers = [
            (held(), Deed::Stay),
            (held(), Deed::Stay),
            (texts(3), Deed::Stay),
        ];
        let callers = each(&batcher, callers, may);
        // A drain that can never end becomes a cancel.
        let drained = batcher.shutdown(Shutdown::Drain);
        block_on(batcher.shutdown(Shutdown::Cancel));
        block_on(drained);
        join(callers);
        nothing_left(&batcher, &model);
    });
}

#[test]
fn the_last_handle_may_go_while_calls_are_under_way() {
    in_many_orders(|| {
        let (batcher, model) = batcher(1, 64);
        let callers = [1, 2].map(|caller| (texts(caller), Deed::Stay));
        let callers = each(&batcher, callers, May::default());
        drop(batcher);
        join(callers);
        assert_eq!(model.running(), 0);
    });
}
