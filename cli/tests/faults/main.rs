//! Every call that changes the disk fails once, or is the last before the process is killed: what can be seen afterwards is whole
//! or not there, and going on gives what an undisturbed run gives.
//!
//! The real program runs under `shim.c`. A part of all calls and faults is tried, the same part every time; `ISOVEC_FAULTS=all`
//! tries every one (some minutes).
#![cfg(target_os = "linux")]

mod cases;
mod driver;
mod hub;
mod pairs;
