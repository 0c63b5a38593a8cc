//! Every call that changes the disk fails once, or is the last before the process is killed: afterwards every visible
//! file is complete or missing, and continuing gives the result of an undisturbed run.
//!
//! The real program runs under `shim.c`. A part of all calls and faults is tried, the same part every time; `ISOVEC_FAULTS=all`
//! tries every one (some minutes).
#![cfg(target_os = "linux")]

mod cases;
mod driver;
mod hub;
mod pairs;
