//! A page keeps no weights in f16 or int8: they are made again at every load.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::fingerprint::Precision;

use crate::config::EmbeddingConfig;
use crate::error::Result;

/// Where small forms would be kept. There is no such place, and so no value of this type: what would use one is compiled
/// for nobody.
#[derive(Debug, Clone)]
pub(crate) enum Keep {}

impl Keep {
    /// `None`.
    pub(crate) fn in_cache(_: &EmbeddingConfig) -> Option<Self> {
        None
    }
}

/// A small form that was kept; there is none.
pub(crate) enum Kept {}

impl Kept {
    pub(crate) fn new(keep: Keep, _: &ModelBundle, _: Precision) -> Self {
        match keep {}
    }

    pub(crate) fn place(&self) -> &'static str {
        match *self {}
    }

    pub(crate) fn read(&self, _: &ModelBundle) -> Option<ModelBundle> {
        match *self {}
    }

    pub(crate) async fn write(&self, _: &ModelBundle) -> Result<Option<ModelBundle>> {
        match *self {}
    }
}
