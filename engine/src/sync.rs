//! What the buffer pool locks and tells the time with. `tests/concurrency` compiles the pool's files around others of
//! these names, of which a scheduler orders every step.

pub(crate) use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use web_time::Instant;
