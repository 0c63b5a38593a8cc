use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

/// A machine of 100 bytes with so many in use, which was looked at so often.
#[derive(Debug, Default)]
struct Fake(AtomicU64, AtomicU64);

impl Gauge for Fake {
    fn memory(&self) -> Option<Memory> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Some(Memory::new(100, 100 - self.0.load(Ordering::SeqCst)))
    }
}

fn pool(buffers: usize, bytes: u64) -> (BufferPool, Arc<Fake>) {
    let gauge = Arc::new(Fake::default());
    let limits = PoolLimits {
        buffers,
        bytes,
        pressure: Some(0.8),
    };
    (BufferPool::with_gauge(limits, gauge.clone()), gauge)
}

fn take(pool: &BufferPool, bytes: usize) -> (Tensor, bool) {
    pool.take(DType::U8, &[bytes]).unwrap()
}

#[test]
fn a_dropped_tensor_is_used_again_by_one_that_fits() {
    let (pool, _) = pool(8, 1 << 20);
    let (mut first, reused) = take(&pool, 1000);
    assert!(!reused);
    let at = first.bytes().as_ptr();
    first.bytes_mut().fill(7);
    drop(first);
    let (second, reused) = pool.take(DType::I64, &[5, 24]).unwrap();
    assert!(reused);
    assert_eq!(second.bytes().as_ptr(), at);
    assert_eq!((second.shape(), second.byte_len()), (&[5, 24][..], 960));
    // Too small a buffer and one that is far too large do not serve.
    assert!(!take(&pool, 2000).1);
    drop(second);
    assert!(!take(&pool, 10).1);
    let stats = pool.stats();
    assert_eq!((stats.requests, stats.pool_hits), (4, 1));
    assert_eq!(stats.hit_ratio(), 0.25);
    assert_eq!(stats.total_allocations, 3);
}

#[test]
fn the_buffer_that_was_unused_for_longest_goes_first() {
    let (pool, _) = pool(2, 1 << 20);
    let (a, b, c) = (take(&pool, 64).0, take(&pool, 6400).0, take(&pool, 64000).0);
    drop(a);
    drop(b);
    drop(c);
    let stats = pool.stats();
    assert_eq!((stats.current_buffers, stats.evictions), (2, 1));
    let (first, reused) = take(&pool, 64);
    assert!(!reused, "the oldest was to go");
    assert!(take(&pool, 6400).1);
    assert!(take(&pool, 64000).1);
    drop(first);
}

#[test]
fn bytes_are_limited_too_and_a_buffer_past_the_limit_is_not_kept() {
    let (pool, _) = pool(8, 1024);
    drop(take(&pool, 4096));
    assert_eq!(pool.stats().current_buffers, 0);
    let (a, b) = (take(&pool, 640).0, take(&pool, 512).0);
    drop(a);
    drop(b);
    let stats = pool.stats();
    assert_eq!(
        (stats.current_buffers, stats.current_memory_bytes),
        (1, 512)
    );
    assert_eq!(stats.evictions, 2);
    assert_eq!(stats.peak_memory_bytes, 4096);
}

#[test]
fn a_pool_of_nothing_keeps_nothing() {
    let (pool, _) = pool(0, 1 << 20);
    pool.reserve(4, 64).unwrap();
    drop(take(&pool, 64));
    let stats = pool.stats();
    assert!(!stats.enabled);
    assert_eq!((stats.current_buffers, stats.evictions), (0, 0));
    assert_eq!(stats.hit_ratio(), 0.0);
}

#[test]
fn buffers_made_ahead_are_found() {
    let (pool, _) = pool(8, 1 << 20);
    pool.reserve(2, 4096).unwrap();
    let (a, b) = (take(&pool, 4000), take(&pool, 4000));
    assert!(a.1 && b.1);
    assert!(!take(&pool, 4000).1);
}

#[test]
fn when_memory_is_short_idle_buffers_are_let_go_and_those_in_use_stay() {
    let (pool, gauge) = pool(8, 1 << 20);
    let mut held = take(&pool, 128).0;
    drop(take(&pool, 6400));
    // Later than any clock of this test: what `take` looks at by itself is before.
    let later = Instant::now() + Duration::from_secs(3600);
    gauge.0.store(85, Ordering::SeqCst);
    pool.look(later);
    assert!(pool.memory_is_short());
    assert!(!take(&pool, 6400).1);
    let stats = pool.stats();
    assert_eq!(stats.pressure_cleanups, 1);
    held.bytes_mut().fill(1);
    gauge.0.store(10, Ordering::SeqCst);
    pool.look(later + LOOK_EVERY);
    assert!(!pool.memory_is_short());
    assert!(take(&pool, 6400).1);
    assert_eq!(pool.stats().pressure_cleanups, 1);
}

#[test]
fn the_memory_is_looked_at_now_and_then() {
    let (pool, gauge) = pool(8, 1 << 20);
    let looked = || gauge.1.load(Ordering::SeqCst);
    let start = Instant::now();
    for (after, looks) in [(0, 1), (1, 1), (99, 1), (100, 2), (199, 2), (5000, 3)] {
        pool.look(start + Duration::from_millis(after));
        assert_eq!(looked(), looks, "{after} ms");
    }
}

#[test]
fn a_copy_does_not_go_to_the_pool() {
    let (pool, _) = pool(8, 1 << 20);
    let (tensor, _) = take(&pool, 64);
    drop(tensor.clone());
    assert_eq!(pool.stats().current_buffers, 0);
    drop(tensor);
    assert_eq!(pool.stats().current_buffers, 1);
}

#[test]
fn what_cannot_be_had_is_an_error() {
    let (pool, _) = pool(8, 1 << 20);
    let error = pool
        .take(DType::U8, &[isize::MAX as usize - 64])
        .unwrap_err();
    assert!(
        matches!(error, EngineError::InputTooLarge { .. }),
        "{error}"
    );
}

proptest! {
    #[test]
    fn classes_hold_what_they_are_for_and_waste_little(lines in 1usize..10_000_000) {
        let class = class(lines);
        prop_assert!(class >= lines && class * 4 <= lines * 5, "{lines}: {class}");
        prop_assert_eq!(floor_class(class), class);
        prop_assert!(floor_class(lines) <= lines);
    }

    #[test]
    fn the_books_balance_whatever_is_taken_and_given_back(
        steps in prop::collection::vec((0usize..20_000, any::<bool>()), 1..100),
    ) {
        let (pool, _) = pool(5, 40_000);
        let mut held = Vec::new();
        for (bytes, give_back) in steps {
            if give_back && !held.is_empty() {
                held.swap_remove(bytes % held.len());
            } else {
                held.push(take(&pool, bytes).0);
            }
            let stats = pool.stats();
            prop_assert!(stats.current_buffers <= 5);
            prop_assert!(stats.current_memory_bytes <= 40_000);
            prop_assert_eq!(stats.requests, stats.pool_hits + stats.total_allocations);
            let held: usize = held.iter().map(Tensor::byte_len).sum();
            prop_assert!(stats.lent_memory_bytes >= held as u64);
        }
        drop(held);
        prop_assert_eq!(pool.stats().lent_memory_bytes, 0);
    }
}
