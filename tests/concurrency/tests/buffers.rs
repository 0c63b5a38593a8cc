//! The buffer pool: a buffer is in one place at a time, and the pool keeps within its limits.
//!
//! What it finds when it is broken on purpose: a limit of bytes that is not kept, and a pool that is
//! cleared for want of memory and goes on counting what it had.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use common::in_many_orders;
use isovec_concurrency::buffers::{BufferPool, Gauge, Memory, PoolLimits};
use isovec_concurrency::tensor::DType;
use isovec_engine::config::MemoryConfig;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const BUFFERS: usize = 2;
/// Less than two of the largest.
const BYTES: u64 = 512;

/// A machine whose memory is short now and then, until it has settled.
#[derive(Debug, Default)]
struct Unsteady {
    settled: AtomicBool,
}

impl Gauge for Unsteady {
    fn memory(&self) -> Option<Memory> {
        let unsteady = !self.settled.load(SeqCst);
        unsteady.then(|| Memory::new(100, thread_rng().gen_range(0..100)))
    }
}

#[test]
fn a_buffer_is_one_holders_at_a_time_and_the_pool_keeps_its_limits() {
    in_many_orders(|| {
        let mut memory = MemoryConfig::default();
        memory.max_pool_size = Some(BUFFERS);
        memory.max_pool_memory = Some(BYTES);
        let gauge = Arc::new(Unsteady::default());
        let pool = BufferPool::with_gauge(PoolLimits::of(&memory), Arc::clone(&gauge) as _);
        let holders: Vec<_> = (1..=3u8)
            .map(|holder| {
                let pool = pool.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        let length = thread_rng().gen_range(200..400);
                        let (mut tensor, _) = pool.take(DType::U8, &[length]).unwrap();
                        tensor.bytes_mut().fill(holder);
                        thread::yield_now();
                        assert!(tensor.bytes().iter().all(|&byte| byte == holder));
                        let stats = pool.stats();
                        assert!(stats.current_buffers <= BUFFERS, "{stats:?}");
                        assert!(stats.current_memory_bytes <= BYTES, "{stats:?}");
                    }
                })
            })
            .collect();
        for holder in holders {
            holder.join().unwrap();
        }
        let stats = pool.stats();
        assert_eq!(stats.requests, 9);
        assert_eq!(stats.pool_hits + stats.total_allocations, 9);
        assert!(stats.current_buffers <= BUFFERS, "{stats:?}");
        assert!(stats.current_memory_bytes <= BYTES, "{stats:?}");
        // What it says it has is what it has.
        gauge.settled.store(true, SeqCst);
        let taken: Vec<_> = (0..stats.current_buffers)
            .map(|_| pool.take(DType::U8, &[200]).unwrap())
            .collect();
        assert!(taken.iter().all(|(_, reused)| *reused), "{stats:?}");
    });
}
