//! The locks and the clock of the batcher. `tests/concurrency` compiles the batcher's files with replacements of
//! these names, and a scheduler orders every step.

pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use futures_timer::Delay;
pub(crate) use futures_util::task::AtomicWaker;
pub(crate) use web_time::Instant;
