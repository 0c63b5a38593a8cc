//! What a graph may cost while it is read, and whole numbers that do not fit their type: both are
//! refused by name, and never end the process.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod budget;
mod counting;
mod sketch;
mod whole;
