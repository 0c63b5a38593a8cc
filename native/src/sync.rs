//! The locks of the pool of slots. `tests/concurrency` compiles the pool's file with replacements of these names, and
//! a scheduler orders every step.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
