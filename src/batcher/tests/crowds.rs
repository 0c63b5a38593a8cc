//! Too many callers, callers who leave, texts that fit nowhere, and calls after the end.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::*;

/// Nothing is kept of anybody, once the driver has seen that they are gone.
fn nobody_is_left(batcher: &DynamicBatcher) {
    let core = &batcher.owner.0;
    patiently("the end of all runs", || core.lock().running.is_empty());
    let state = core.lock();
    assert_eq!((state.queue.texts(), state.queue.tokens()), (0, 0));
    assert_eq!((state.calls, state.callers.len()), (0, 0));
    assert_eq!((state.direct.len(), state.waiting_for_room.len()), (0, 0));
}

#[test]
fn a_hundred_thousand_callers_are_answered_or_sent_away() {
    const CALLERS: usize = 100_000;
    const QUEUE: usize = 64;
    let (batcher, engine) = batcher(&config().with_max_queue(QUEUE));
    let held = busy(&batcher, &engine);
    let word = |caller: usize| (caller % 80) as u32 + 1;
    let mut calls: FuturesUnordered<_> = (0..CALLERS)
        .map(|caller| {
            let call = batcher.embed_one(text(&[word(caller)]));
            async move { (caller, call.await) }
        })
        .collect();
    let (mut answered, mut sent_away) = (0, 0);
    while let Some((caller, result)) = wait(calls.next()) {
        match result {
            Ok(vector) => {
                assert_eq!(vector, wanted(&[word(caller)]));
                answered += 1;
            }
            Err(Error::Overloaded { waiting, limit, .. }) => {
                assert_eq!((waiting, limit), (QUEUE, QUEUE));
                sent_away += 1;
                // The queue is full: now it may empty.
                engine.let_go.cancel();
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(answered + sent_away, CALLERS);
    assert!(answered >= QUEUE && sent_away > 0, "{answered} answered");
    let counts = batcher.counts();
    assert_eq!(counts.overloaded, sent_away as u64);
    assert_eq!(counts.peak_texts, QUEUE);
    held.join().unwrap().unwrap();
    nobody_is_left(&batcher);
}

#[test]
fn ten_thousand_callers_who_leave_at_any_point_leave_nothing() {
    const THREADS: u32 = 4;
    const CALLS: u32 = 2500;
    let mut engine = Counting::free();
    engine.capabilities.concurrent_runs = 2;
    let (model, _engine) = with_config(engine, &MemoryConfig::default(), &config());
    let batcher: DynamicBatcher = DynamicBatcher {
        owner: Arc::new(Owner(Arc::new(Core::new(model)))),
        priority: Priority::Normal,
        handle: PhantomData,
    };
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (batcher, answered) = (&batcher, &answered);
            scope.spawn(move || {
                for call in 0..CALLS {
                    // Every number of looks, in an order of the thread's own.
                    let looks = (call * 7 + thread) % 11;
                    let words = vec![call % 80 + 1; (call % 6 + 1) as usize];
                    let mut embedding = batcher.embed([text(&words), text(&words)]);
                    for _ in 0..looks {
                        if let Some(result) = (&mut embedding).now_or_never() {
                            assert_eq!(result.unwrap().get(1).unwrap(), wanted(&words));
                            answered.fetch_add(1, SeqCst);
                            break;
                        }
                        thread::yield_now();
                    }
                }
            });
        }
    });
    nobody_is_left(&batcher);
    let answered = answered.load(SeqCst);
    assert!(answered < (THREADS * CALLS) as usize, "nobody left");
    // And it works as before.
    assert_eq!(wait(batcher.embed_one(text(&[5]))).unwrap(), wanted(&[5]));
}

#[test]
fn a_text_past_every_limit_of_tokens_runs_alone() {
    let tight = config()
        .with_max_batch_tokens(3)
        .with_max_queue(1)
        .with_max_queue_tokens(2);
    let (batcher, engine) = batcher(&tight);
    let long = [9; 8];
    // Past the batch, on the caller's own run.
    let vector = wait(batcher.embed_one(text(&long))).unwrap();
    assert_eq!(vector, wanted(&long));
    // Past the queue too, which takes it when nobody else is there.
    let held = busy(&batcher, &engine);
    let ahead = call(&batcher, vec![text(&long)]);
    // It is a full batch, and waits at the engine.
    patiently("its turn", || batcher.counts().batches == 1);
    let waiting = call(&batcher, vec![text(&long)]);
    patiently("its place", || batcher.counts().tokens == 8);
    let error = wait(batcher.embed_one(text(&[1]))).unwrap_err();
    assert_eq!(error.kind(), "Overloaded");
    engine.let_go.cancel();
    for call in [ahead, waiting] {
        let vectors = call.join().unwrap().unwrap();
        assert_eq!(vectors.get(0).unwrap(), wanted(&long));
    }
    held.join().unwrap().unwrap();
    assert_eq!(shapes(&engine), [[1, 8], [1, 1], [1, 8], [1, 8]]);
    nobody_is_left(&batcher);
}

#[test]
fn a_text_that_no_memory_holds_fails_its_own_call() {
    let mut engine = Counting::free();
    engine.capabilities.concurrent_runs = 1;
    engine.bytes_per_position = Some(10);
    let mut memory = MemoryConfig::default();
    memory.memory_limit = Some(50);
    let (model, engine) = with_config(engine, &memory, &config());
    let mut core = Core::new(model);
    core.patience = Duration::from_secs(600);
    let batcher: DynamicBatcher = DynamicBatcher {
        owner: Arc::new(Owner(Arc::new(core))),
        priority: Priority::Normal,
        handle: PhantomData,
    };
    let error = wait(batcher.embed_one(text(&[9; 8]))).unwrap_err();
    assert_eq!(error.kind(), "InputTooLarge");
    let held = busy(&batcher, &engine);
    let large = call(&batcher, vec![text(&[9; 8])]);
    let beside: Vec<_> = (1..=3)
        .map(|word| call(&batcher, vec![text(&[word; 4])]))
        .collect();
    patiently("their places", || {
        let counts = batcher.counts();
        counts.texts + counts.batched_texts as usize == 4
    });
    engine.let_go.cancel();
    let error = large.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), "InputTooLarge");
    for (call, word) in beside.into_iter().zip(1..) {
        let vectors = call.join().unwrap().unwrap();
        assert_eq!(vectors.get(0).unwrap(), wanted(&[word; 4]));
    }
    held.join().unwrap().unwrap();
    nobody_is_left(&batcher);
}

#[test]
fn after_the_end_every_call_says_so_and_the_embedder_works_on() {
    for how in [Shutdown::Drain, Shutdown::Cancel] {
        let (batcher, _engine) = batcher(&config());
        let embedder = Embedder {
            model: Arc::clone(&batcher.owner.0.model),
        };
        wait(batcher.embed_one(text(&[1]))).unwrap();
        let late = batcher.embed_one(text(&[2]));
        let clone = batcher.clone();
        wait(batcher.shutdown(how));
        wait(batcher.shutdown(how));
        wait(clone.shutdown(Shutdown::Cancel));
        wait(clone.shutdown(Shutdown::Drain));
        let blocking = crate::blocking::DynamicBatcher::from(clone.clone());
        let errors = [
            // Made before the end, looked at after it.
            wait(late).unwrap_err(),
            wait(clone.embed(Vec::<String>::new())).unwrap_err(),
            wait(clone.embed_query(text(&[1]))).unwrap_err(),
            wait(clone.embed_passages(vec![text(&[1]); 9])).unwrap_err(),
            blocking.embed([text(&[1])]).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), "ShutDown");
        }
        nobody_is_left(&batcher);
        wait(embedder.embed([text(&[1])])).unwrap();
        wait(DynamicBatcher::new(&embedder).embed_one(text(&[1]))).unwrap();
    }
}

#[test]
fn a_queue_that_holds_nothing_and_an_hours_wait_are_refused() {
    let minute = Duration::from_secs(60);
    let refused = [
        (config().with_max_queue(0), "batching.max_queue"),
        (
            config().with_max_queue_tokens(0),
            "batching.max_queue_tokens",
        ),
        (config().with_max_wait(60 * minute), "batching.max_wait"),
    ];
    for (config, knob) in refused {
        let error = config.build().unwrap_err();
        assert!(error.to_string().contains(knob), "{error}");
    }
    // The longest wait that there is ends with the batcher.
    let (batcher, _engine) = batcher(&config().with_max_wait(minute));
    let waiting = call(&batcher, vec![text(&[1])]);
    patiently("its place", || batcher.counts().texts == 1);
    wait(batcher.shutdown(Shutdown::Drain));
    assert_eq!(
        waiting.join().unwrap().unwrap().get(0).unwrap(),
        wanted(&[1])
    );
    nobody_is_left(&batcher);
}
