//! The choice of files for callers that are not Rust.

use isovec_engine::error::Result;
use isovec_hub::choice;

use crate::convert::family;

/// [`isovec_hub::choice::next_told`] for what this crate can load: safetensors are chosen where [`family`] knows their
/// architecture.
///
/// # Errors
/// As [`isovec_hub::choice::next_told`].
pub fn next_told(known: &str) -> Result<String> {
    choice::next_told(known, |origin, config| family(origin, config).map(drop))
}
