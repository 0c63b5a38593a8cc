//! Identifies the model that made a set of vectors, and decides whether two sets may be compared.

pub use isovec_engine::fingerprint::{Difference, Doubt, Fingerprint, Precision};

pub use crate::embeddings::PrecisionDifference;
