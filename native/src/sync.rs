//! What the pool of slots locks and waits with. `tests/concurrency` compiles the pool's file around
//! others of these names, of which a scheduler orders every step.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
