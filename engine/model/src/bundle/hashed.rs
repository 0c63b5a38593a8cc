//! Where nothing tells that a file is the same, weights are hashed at every load.

use std::fs::File;
use std::path::PathBuf;

use isovec_engine::error::Result;
use isovec_engine::weights::WeightsIdentity;

/// Hashes that are kept: none.
#[derive(Debug)]
pub(super) struct Identities;

impl Identities {
    /// None.
    pub(super) fn kept_in(_: Option<PathBuf>) -> Self {
        Self
    }

    /// Nothing is noted of a file.
    pub(super) fn opened(&self, _: &str, _: &File) {}

    /// What `hash` gives.
    pub(super) fn identity(
        &self,
        _: &[&str],
        hash: impl FnOnce() -> Result<WeightsIdentity>,
    ) -> Result<WeightsIdentity> {
        hash()
    }
}
