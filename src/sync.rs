//! What the batcher locks, waits and tells the time with. `tests/concurrency` compiles the
//! batcher's files around others of these names, of which a scheduler orders every step.

pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use futures_timer::Delay;
pub(crate) use futures_util::task::AtomicWaker;
pub(crate) use web_time::Instant;
