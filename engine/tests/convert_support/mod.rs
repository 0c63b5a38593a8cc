//! What the conversion's tests stand on: tiny seeded models, an independent implementation of
//! every family at f64, and a way to run a converted graph.

#![allow(dead_code, unreachable_pub)] // Each test file and the generator use a part.

pub mod checkpoint;
pub mod models;
pub mod reference;
pub mod rng;
pub mod run;
pub mod tiny;
