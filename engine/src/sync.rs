//! What the buffer pool locks with. `tests/concurrency` compiles the pool's files around others of
//! these names, of which a scheduler orders every step.

pub(crate) use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::{Mutex, MutexGuard};
