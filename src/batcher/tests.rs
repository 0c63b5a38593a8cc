//! Many callers around an engine that only counts.

mod crowds;

use std::marker::PhantomData;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use isovec_engine::config::MemoryConfig;
use proptest::prelude::*;

use super::*;
use crate::backend::wait;
use crate::config::EmbeddingConfig;
use crate::model::counting::*;

fn config() -> EmbeddingConfig {
    EmbeddingConfig::default()
        .with_max_batch_size(4)
        .with_max_batch_tokens(12)
        .with_dynamic_batching(false)
}

/// A batcher over an engine that works on one batch at a time.
fn batcher(config: &EmbeddingConfig) -> (DynamicBatcher, Arc<Counting>) {
    let mut engine = Counting::free();
    engine.capabilities.concurrent_runs = 1;
    let (model, engine) = with_config(engine, &MemoryConfig::default(), config);
    let mut core = Core::new(model);
    // Whoever is held is held for as long as a test takes.
    core.patience = Duration::from_secs(600);
    let owner = Arc::new(Owner(Arc::new(core)));
    (
        DynamicBatcher {
            owner,
            priority: Priority::Normal,
            handle: PhantomData,
        },
        engine,
    )
}

/// What a text of these words becomes.
fn wanted(words: &[u32]) -> [f32; 3] {
    let ids: Vec<i64> = words.iter().copied().map(i64::from).collect();
    vector(&ids)
}

fn patiently(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if done() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("{what} never came");
}

/// Starts a call on a thread of its own.
fn call(batcher: &DynamicBatcher, texts: Vec<String>) -> thread::JoinHandle<Result<Embeddings>> {
    let call = batcher.embed(texts);
    thread::spawn(move || wait(call))
}

/// Keeps the engine busy until it is let go.
fn busy(batcher: &DynamicBatcher, engine: &Counting) -> thread::JoinHandle<Result<Embeddings>> {
    let held = call(batcher, vec![text(&[HELD])]);
    patiently("the held run", || *engine.held.lock().unwrap() == 1);
    held
}

fn shapes(engine: &Counting) -> Vec<Vec<usize>> {
    engine.shapes.lock().unwrap().clone()
}

#[test]
fn a_call_that_finds_nobody_runs_at_once() {
    let (batcher, engine) = batcher(&config());
    let vectors = wait(batcher.embed([text(&[1, 2]), text(&[3])])).unwrap();
    assert_eq!(vectors.get(0).unwrap(), wanted(&[1, 2]));
    assert_eq!(vectors.get(1).unwrap(), wanted(&[3]));
    let counts = batcher.counts();
    assert_eq!((counts.direct, counts.batches), (1, 0));
    assert_eq!(shapes(&engine), [[2, 2]]);
    assert!(
        wait(batcher.embed(Vec::<String>::new()))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn calls_that_wait_run_together() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let calls: Vec<_> = (1..=8)
        .map(|word| call(&batcher, vec![text(&[word])]))
        .collect();
    // One batch waits at the engine, because it would not grow any more.
    patiently("eight texts", || {
        let counts = batcher.counts();
        (counts.texts, counts.batches) == (4, 1)
    });
    engine.let_go.cancel();
    for (call, word) in calls.into_iter().zip(1..) {
        let vectors = call.join().unwrap().unwrap();
        assert_eq!(vectors.get(0).unwrap(), wanted(&[word]));
    }
    held.join().unwrap().unwrap();
    assert_eq!(shapes(&engine), [[1, 1], [4, 1], [4, 1]]);
    let counts = batcher.counts();
    assert_eq!(
        (counts.batches, counts.batched_texts, counts.texts),
        (2, 8, 0)
    );
}

#[test]
fn calls_of_low_priority_leave_their_place_to_others() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    // Fewer than a batch holds, which would be put together at once.
    let low = call(&batcher.low_priority(), vec![text(&[5; 3]); 2]);
    patiently("its place", || batcher.counts().texts == 2);
    let normal = call(&batcher, vec![text(&[7])]);
    patiently("its place", || batcher.counts().texts == 3);
    engine.let_go.cancel();
    let vectors = low.join().unwrap().unwrap();
    assert_eq!(vectors.get(1).unwrap(), wanted(&[5; 3]));
    for call in [held, normal] {
        call.join().unwrap().unwrap();
    }
    assert_eq!(shapes(&engine), [[1, 1], [1, 1], [2, 3]]);
}

#[test]
fn a_full_queue_refuses_at_once_and_says_when_to_come_back() {
    let (batcher, engine) = batcher(&config().with_max_queue(2));
    let held = busy(&batcher, &engine);
    let calls: Vec<_> = (1..=2)
        .map(|word| {
            let call = call(&batcher, vec![text(&[word])]);
            patiently("its place", || batcher.counts().texts == word as usize);
            call
        })
        .collect();
    let error = wait(batcher.embed([text(&[4])])).unwrap_err();
    let Error::Overloaded {
        waiting,
        limit,
        unit,
        retry_after,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((*waiting, *limit, *unit), (2, 2, "texts"));
    assert!(!retry_after.is_zero());
    assert_eq!(batcher.counts().overloaded, 1);
    engine.let_go.cancel();
    for call in calls {
        call.join().unwrap().unwrap();
    }
    held.join().unwrap().unwrap();
    wait(batcher.embed([text(&[4])])).unwrap();
}

#[test]
fn tokens_are_counted_as_texts_are() {
    let (batcher, engine) = batcher(&config().with_max_queue_tokens(5));
    let held = busy(&batcher, &engine);
    let one = call(&batcher, vec![text(&[1; 4])]);
    patiently("its place", || batcher.counts().tokens == 4);
    let error = wait(batcher.embed([text(&[3, 3])])).unwrap_err();
    assert!(
        matches!(error, Error::Overloaded { unit: "tokens", .. }),
        "{error}"
    );
    engine.let_go.cancel();
    for call in [held, one] {
        call.join().unwrap().unwrap();
    }
}

#[test]
fn a_call_larger_than_the_queue_waits_for_room_and_takes_turns() {
    let (batcher, engine) = batcher(&config().with_max_queue(8));
    let held = busy(&batcher, &engine);
    let many: Vec<String> = (0..100).map(|word| text(&[word % 80 + 1])).collect();
    let large = call(&batcher, many);
    // Its share of the queue.
    patiently("the large call", || batcher.counts().texts == 2);
    let small = call(&batcher, vec![text(&[7; 3])]);
    patiently("the small call", || batcher.counts().tokens == 5);
    engine.let_go.cancel();
    let vectors = large.join().unwrap().unwrap();
    for (row, word) in (0..100).enumerate() {
        assert_eq!(vectors.get(row).unwrap(), wanted(&[word % 80 + 1]));
    }
    assert_eq!(
        small.join().unwrap().unwrap().get(0).unwrap(),
        wanted(&[7; 3])
    );
    held.join().unwrap().unwrap();
    let order = shapes(&engine);
    let turn = order.iter().position(|shape| shape[1] == 3).unwrap();
    assert!(
        turn <= 3,
        "the small call came at turn {turn} of {}",
        order.len()
    );
}

#[test]
fn a_dropped_call_frees_its_place() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let other = call(&batcher, vec![text(&[1])]);
    patiently("the other", || batcher.counts().texts == 1);
    let mut dropped = batcher.embed(vec![text(&[2]); 2]);
    patiently("two more texts", || {
        assert!((&mut dropped).now_or_never().is_none());
        batcher.counts().texts == 3
    });
    drop(dropped);
    let counts = batcher.counts();
    assert_eq!((counts.texts, counts.tokens, counts.left), (1, 1, 1));
    engine.let_go.cancel();
    other.join().unwrap().unwrap();
    held.join().unwrap().unwrap();
    assert_eq!(shapes(&engine), [[1, 1], [1, 1]]);
}

#[test]
fn a_batch_that_nobody_wants_is_cancelled_and_one_that_somebody_wants_is_not() {
    // Companions are waited for, so nobody runs alone.
    let waiting = config()
        .with_preferred_batch_size(2)
        .with_max_wait(Duration::from_secs(60));
    let (batcher, engine) = batcher(&waiting);
    let mut one = batcher.embed([text(&[HELD])]);
    let two = batcher.embed([text(&[2])]);
    let mut two = Some(thread::spawn(move || wait(two)));
    patiently("the batch", || {
        assert!((&mut one).now_or_never().is_none());
        *engine.held.lock().unwrap() == 1
    });
    drop(one);
    assert_eq!(*engine.held.lock().unwrap(), 1, "the other still wants it");
    engine.let_go.cancel();
    let vectors = two.take().unwrap().join().unwrap().unwrap();
    assert_eq!(vectors.get(0).unwrap(), wanted(&[2]));

    let (batcher, engine) = self::batcher(&waiting);
    let mut alone = batcher.embed([text(&[HELD]), text(&[HELD])]);
    patiently("the batch", || {
        assert!((&mut alone).now_or_never().is_none());
        *engine.held.lock().unwrap() == 1
    });
    drop(alone);
    patiently("the cancellation", || *engine.held.lock().unwrap() == 0);
}

#[test]
fn a_poisoned_text_fails_alone() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let words = [1, POISON, NAN, 2];
    let calls: Vec<_> = words
        .iter()
        .enumerate()
        .map(|(place, &word)| {
            let call = call(&batcher, vec![text(&[word])]);
            patiently("its place", || {
                let counts = batcher.counts();
                counts.texts + counts.batched_texts as usize == place + 1
            });
            call
        })
        .collect();
    engine.let_go.cancel();
    let results: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
    assert_eq!(results[0].as_ref().unwrap().get(0).unwrap(), wanted(&[1]));
    assert_eq!(results[1].as_ref().unwrap_err().kind(), "Runtime");
    assert_eq!(results[2].as_ref().unwrap_err().kind(), "NotFinite");
    assert_eq!(results[3].as_ref().unwrap().get(0).unwrap(), wanted(&[2]));
    held.join().unwrap().unwrap();
}

#[test]
fn a_cancelled_token_ends_the_call_that_it_belongs_to() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let cancel = Cancel::new();
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let waiting = batcher.embed_with([text(&[1])], options);
    let waiting = thread::spawn(move || wait(waiting));
    patiently("its place", || batcher.counts().texts == 1);
    cancel.cancel();
    assert!(waiting.join().unwrap().unwrap_err().is_cancelled());
    engine.let_go.cancel();
    held.join().unwrap().unwrap();
}

#[test]
fn a_batch_is_waited_for_until_it_is_as_large_as_preferred() {
    let waiting = config()
        .with_preferred_batch_size(3)
        .with_max_wait(Duration::from_secs(60));
    let (batcher, engine) = batcher(&waiting);
    let calls = (1..=3).map(|word| batcher.embed_one(text(&[word])));
    // Alone, each would wait for a minute.
    for vector in wait(join_all(calls)) {
        vector.unwrap();
    }
    assert_eq!(shapes(&engine), [[3, 1]]);
    // And not for ever, if nobody comes.
    let (batcher, _engine) = self::batcher(&config().with_max_wait(Duration::from_millis(2)));
    wait(batcher.embed_one(text(&[1]))).unwrap();
    assert_eq!(batcher.counts().batches, 1);
}

#[test]
fn a_drain_answers_everybody_and_lets_nobody_in() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let calls: Vec<_> = (1..=6)
        .map(|word| call(&batcher, vec![text(&[word])]))
        .collect();
    patiently("six texts", || {
        let counts = batcher.counts();
        counts.texts + counts.batched_texts as usize == 6
    });
    let mut drained = batcher.shutdown(Shutdown::Drain);
    assert!((&mut drained).now_or_never().is_none());
    let error = wait(batcher.embed_one(text(&[1]))).unwrap_err();
    assert_eq!(error.kind(), "ShutDown");
    engine.let_go.cancel();
    wait(drained);
    for call in calls {
        call.join().unwrap().unwrap();
    }
    held.join().unwrap().unwrap();
    wait(batcher.shutdown(Shutdown::Drain));
}

#[test]
fn a_cancelling_shutdown_answers_everybody_now() {
    let (batcher, engine) = batcher(&config().with_max_wait(Duration::from_millis(1)));
    let calls: Vec<_> = (1..=6)
        .map(|_| call(&batcher, vec![text(&[HELD])]))
        .collect();
    patiently("a run", || *engine.held.lock().unwrap() > 0);
    patiently("six texts", || {
        let counts = batcher.counts();
        counts.texts + counts.batched_texts as usize == 6
    });
    let drained = batcher.shutdown(Shutdown::Drain);
    wait(batcher.shutdown(Shutdown::Cancel));
    wait(drained);
    for call in calls {
        assert_eq!(call.join().unwrap().unwrap_err().kind(), "ShutDown");
    }
    assert_eq!(*engine.held.lock().unwrap(), 0);
}

#[test]
fn a_run_that_its_caller_does_not_look_at_holds_nobody_up() {
    let mut engine = Counting::free();
    engine.capabilities.concurrent_runs = 1;
    let (model, engine) = with_config(engine, &MemoryConfig::default(), &config());
    let batcher: DynamicBatcher = DynamicBatcher {
        owner: Arc::new(Owner(Arc::new(Core::new(model)))),
        priority: Priority::Normal,
        handle: PhantomData,
    };
    let mut unseen = batcher.embed([text(&[HELD])]);
    patiently("its run", || {
        assert!((&mut unseen).now_or_never().is_none());
        *engine.held.lock().unwrap() == 1
    });
    let other = call(&batcher, vec![text(&[2])]);
    // Another batch goes to the engine, though the first run is never looked at again.
    patiently("the other's turn", || batcher.counts().batches == 1);
    drop(unseen);
    let vectors = other.join().unwrap().unwrap();
    assert_eq!(vectors.get(0).unwrap(), wanted(&[2]));
}

#[test]
fn a_call_that_waits_for_room_can_be_cancelled_and_comes_before_newcomers() {
    let (batcher, engine) = batcher(&config().with_max_queue(8));
    let held = busy(&batcher, &engine);
    let cancel = Cancel::new();
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    // Shares of two: four calls fill the queue, one batch goes ahead.
    let large: Vec<_> = (0..3)
        .map(|_| call(&batcher, vec![text(&[5; 3]); 2]))
        .collect();
    patiently("six texts", || {
        let counts = batcher.counts();
        counts.texts + counts.batched_texts as usize == 6
    });
    let waiting = batcher.embed_with(vec![text(&[6; 3]); 40], options);
    let waiting = thread::spawn(move || wait(waiting));
    patiently("its share", || {
        let counts = batcher.counts();
        counts.texts + counts.batched_texts as usize == 8
    });
    cancel.cancel();
    assert!(waiting.join().unwrap().unwrap_err().is_cancelled());
    engine.let_go.cancel();
    for call in large.into_iter().chain([held]) {
        call.join().unwrap().unwrap();
    }
    wait(batcher.shutdown(Shutdown::Drain));
}

#[test]
fn a_batch_without_limits_takes_no_memory_for_them() {
    let limitless = EmbeddingConfig::default()
        .with_max_batch_size(usize::MAX)
        .with_max_batch_tokens(usize::MAX)
        .with_max_wait(Duration::from_millis(1))
        .with_dynamic_batching(false);
    let (batcher, _engine) = batcher(&limitless);
    assert_eq!(wait(batcher.embed_one(text(&[3]))).unwrap(), wanted(&[3]));
}

#[test]
fn a_driver_that_dies_leaves_nobody_waiting() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let calls = [PANIC, 1].map(|word| call(&batcher, vec![text(&[word])]));
    patiently("both", || batcher.counts().texts == 2);
    engine.let_go.cancel();
    for call in calls {
        assert_eq!(call.join().unwrap().unwrap_err().kind(), "Panicked");
    }
    held.join().unwrap().unwrap();
}

#[test]
fn the_last_handle_takes_the_driver_with_it() {
    let (batcher, engine) = batcher(&config());
    let held = busy(&batcher, &engine);
    let call = call(&batcher, vec![text(&[1])]);
    patiently("its place", || batcher.counts().texts == 1);
    let core = Arc::downgrade(&batcher.owner.0);
    drop(batcher);
    engine.let_go.cancel();
    call.join().unwrap().unwrap();
    held.join().unwrap().unwrap();
    patiently("the end of the driver", || core.strong_count() == 0);
}

#[test]
fn a_batch_that_waits_at_the_engine_begins_when_another_one_ends() {
    let (batcher, _engine) = batcher(&config());
    let mut state = batcher.owner.0.lock();
    let mut register = |slots| state.register(Vec::new(), Vec::new(), slots);
    let [first, second, third] = [2, 2, 2].map(&mut register);
    thread::sleep(Duration::from_millis(5));
    let before = Instant::now();
    assert!(state.end(&first).unwrap() >= Duration::from_millis(5));
    assert!(state.end(&third).unwrap() <= before.elapsed());
    assert!(state.end(&second).unwrap() >= Duration::from_millis(5));
    // One that ended before its turn says nothing of the engine.
    let [first, second] = [1, 1].map(|slots| state.register(Vec::new(), Vec::new(), slots));
    assert_eq!(state.end(&second), None);
    assert!(state.end(&first).is_some());
}

#[test]
fn steering_follows_what_is_measured() {
    let (batcher, engine) = batcher(
        &config()
            .with_dynamic_batching(true)
            .with_target_latency(Duration::from_nanos(1)),
    );
    let before = batcher.counts().batch_tokens;
    wait(batcher.embed_one(text(&[1, 2, 3]))).unwrap();
    assert!(batcher.counts().batch_tokens < before);
    assert_eq!(shapes(&engine).len(), 1);
}

/// What one caller does.
#[derive(Debug, Clone)]
struct Deed {
    texts: Vec<Vec<u32>>,
    /// Polls before it gives up; `None`: it stays.
    patience: Option<u8>,
}

fn deed() -> impl Strategy<Value = Deed> {
    let word = prop_oneof![20 => 1u32..80, 1 => Just(POISON), 1 => Just(NAN)];
    let text = prop::collection::vec(word, 1..6);
    let texts = prop::collection::vec(text, 0..12);
    let patience = prop::option::weighted(0.3, 0u8..4);
    (texts, patience).prop_map(|(texts, patience)| Deed { texts, patience })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_caller_gets_its_own_answer_once(
        deeds in prop::collection::vec(deed(), 1..24),
        queue in 1usize..40,
        drained in any::<bool>(),
    ) {
        let (batcher, _engine) = batcher(&config().with_max_queue(queue));
        let callers: Vec<_> = deeds
            .into_iter()
            .map(|deed| {
                let texts: Vec<String> = deed.texts.iter().map(|words| text(words)).collect();
                let mut call = batcher.embed(texts);
                thread::spawn(move || {
                    if let Some(patience) = deed.patience {
                        for _ in 0..patience {
                            if let Some(result) = (&mut call).now_or_never() {
                                return check(&deed, result);
                            }
                            thread::yield_now();
                        }
                    } else {
                        check(&deed, wait(call));
                    }
                })
            })
            .collect();
        if drained {
            wait(batcher.shutdown(Shutdown::Drain));
        }
        for caller in callers {
            prop_assert!(caller.join().is_ok());
        }
        let counts = batcher.counts();
        prop_assert_eq!((counts.texts, counts.tokens), (0, 0));
    }
}

fn check(deed: &Deed, result: Result<Embeddings>) {
    let has = |id| deed.texts.iter().flatten().any(|&word| word == id);
    match result {
        Ok(vectors) => {
            assert!(!has(POISON) && !has(NAN));
            assert_eq!(vectors.len(), deed.texts.len());
            for (row, words) in deed.texts.iter().enumerate() {
                assert_eq!(vectors.get(row).unwrap(), wanted(words));
            }
        }
        Err(error) => match error.kind() {
            "Runtime" => assert!(has(POISON)),
            "NotFinite" => assert!(has(NAN)),
            "Overloaded" | "ShutDown" => {}
            other => panic!("{other}: {error}"),
        },
    }
}
