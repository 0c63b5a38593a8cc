//! The locks and the clock of the buffer pool. `tests/concurrency` compiles the pool's files with replacements of
//! these names, and a scheduler orders every step.

pub(crate) use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use web_time::Instant;
