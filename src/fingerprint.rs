//! What made a set of vectors, and whether two sets may be compared.

pub use isovec_engine::fingerprint::{Difference, Doubt, Fingerprint, Precision};

pub use crate::embeddings::PrecisionDifference;
