//! The stand-in for builds without a hub.

use isovec_engine::EngineError;

use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::{Fetched, Watch};

/// Says that model ids cannot be resolved here.
pub(crate) async fn fetch(id: &str, _config: &EmbeddingConfig, _watch: &Watch) -> Result<Fetched> {
    Err(EngineError::MissingFile {
        origin: id.to_owned(),
        file: "files at hand, and nothing here can download them".into(),
        hint: "In the browser the JavaScript package downloads models and hands over their bytes; natively, build \
               isovec with its feature `hub`, or give a folder (written with ./ in front)"
            .into(),
    }
    .into())
}
