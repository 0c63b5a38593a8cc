//! What each node in int8 changes alone: the vectors that the model gives with that node alone in int8.

use isovec_engine::bundle::ModelBundle;

use super::OptimizeOptions;
use super::samples::Samples;
use super::vectors::Compared;
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::Output;

/// Texts or pictures that each node is looked at with: the model is loaded and runs on them once for each.
const LOOKED_AT: usize = 32;

/// The original's vectors, to compare those with one node in int8 with, where that is asked for.
pub(super) async fn original<'a>(
    bundle: &ModelBundle,
    config: &'a EmbeddingConfig,
    options: &'a OptimizeOptions,
    output: Output,
) -> Result<Option<Compared<'a>>> {
    if !options.each_node {
        return Ok(None);
    }
    let wrong =
        "there is no text to look at each node with; give texts like those that will be embedded";
    let samples = Samples::calibrating(options, output, wrong)?.spread(LOOKED_AT);
    let compared = Compared::with(bundle, config, &samples, &options.watch.cancel).await?;
    Ok(Some(compared))
}
