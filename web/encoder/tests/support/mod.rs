//! The seeded models of the conversion's tests, and what they should give.

#![allow(dead_code, unreachable_pub)] // The conversion's tests use the rest.

pub mod bundles;
#[path = "../../../../engine/tests/convert_support/checkpoint.rs"]
pub mod checkpoint;
#[path = "../../../../engine/tests/convert_support/models.rs"]
pub mod models;
#[path = "../../../../engine/tests/convert_support/reference.rs"]
pub mod reference;
#[path = "../../../../engine/tests/convert_support/rng.rs"]
pub mod rng;
pub mod texts;
