//! Ten thousand calls on each engine whose callers give up at any point: afterwards every slot and
//! every buffer is back, and the next call is answered as the first one was.

use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use isovec::{DynamicBatcher, Embedder, EmbeddingConfig, blocking};
use isovec_test_support::{Which, engines, mixed_texts, tiny_model};

const THREADS: u64 = 4;
const CALLS: u64 = 2500;
/// Looks at a call before it is dropped: enough for most to be answered.
const MOST_LOOKS: u64 = 400;
/// Far more than the runs of four callers take at a time, and far less than ten thousand take.
const PEAK: u64 = 2 << 20;

#[test]
fn nothing_is_kept_of_callers_who_give_up() {
    for which in engines() {
        give_up(which);
    }
}

fn give_up(which: Which) {
    let config = which
        .configure(EmbeddingConfig::default())
        .with_intra_op_threads(1)
        .with_pool_size(2)
        .with_memory_pressure_detection(false);
    let blocking = blocking::Embedder::builder(tiny_model())
        .config(config)
        .load()
        .unwrap();
    let embedder = Embedder::from(blocking.clone());
    let batcher = DynamicBatcher::new(&embedder);
    let texts = mixed_texts(16);
    let before = blocking.embed(&texts).unwrap();
    let answered: u64 = thread::scope(|scope| {
        let callers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (embedder, batcher, texts) = (&embedder, &batcher, &texts);
                scope.spawn(move || {
                    (0..CALLS)
                        .filter(|call| {
                            let texts = &texts[..1 + (call % 5) as usize];
                            let mut embedding = if call % 2 == 0 {
                                embedder.embed(texts)
                            } else {
                                batcher.embed(texts)
                            };
                            let looks = (call * 7919 + thread * 104_729) % MOST_LOOKS;
                            (0..looks).any(|_| {
                                thread::yield_now();
                                (&mut embedding)
                                    .now_or_never()
                                    .map(|done| done.unwrap())
                                    .is_some()
                            })
                        })
                        .count() as u64
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .sum()
    });
    assert!(
        answered < THREADS * CALLS,
        "{}: nobody gave up",
        which.name()
    );
    let idle = || {
        let (stats, counts) = (embedder.stats(), batcher.counts());
        let sessions = stats.engine.sessions;
        (sessions.in_use, sessions.waiting, counts.texts) == (0, 0, 0)
    };
    for _ in 0..10_000 {
        if idle() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(idle(), "{}: {:?}", which.name(), embedder.stats());
    let after = blocking.embed(&texts).unwrap();
    assert_eq!(before.get(7).unwrap(), after.get(7).unwrap());
    let pool = embedder.stats().engine.memory_pool;
    println!("{}: {answered} were answered; {pool:?}", which.name());
    // What is lent and never comes back counts.
    assert!(pool.peak_memory_bytes < PEAK, "{}: {pool:?}", which.name());
}
