//! Columns, heads, channels and layers that a model can do without: its vectors of the user's texts or pictures say which.

use isovec_engine::bundle::ModelBundle;
use isovec_model::precision::widened;
use isovec_optimize::pruning::{Pruned, Pruning, Unit};

use super::observe::moments;
use super::report::Speed;
use super::samples::Samples;
use super::vectors::Compared;
use super::{OptimizeOptions, Step};
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::Output;

/// The model without a share of its bytes, what became of each region of it, and the multiplications that it made before.
pub(super) async fn make(
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
    share: f64,
    output: Output,
) -> Result<(ModelBundle, Vec<Pruned>, usize)> {
    let cancel = &options.watch.cancel;
    // Matrices in 16 bits are taken as well.
    let bundle = &widened(bundle);
    let mut pruning = Pruning::of(bundle)?;
    let wrong = "there is no text to prune with; give texts like those that will be embedded, or pictures for a model that reads pictures";
    let samples = Samples::calibrating(options, output, wrong)?;
    for sweep in pruning.sweeps() {
        let moments = moments(bundle, &sweep, config, &samples, cancel).await?;
        pruning.rank(&sweep, &moments, cancel).await?;
    }
    let compared = Compared::with(bundle, config, &samples, cancel).await?;
    let mut changes = Vec::with_capacity(pruning.parts());
    for part in 0..pruning.parts() {
        changes.push(match pruning.alone(part).await? {
            Some(other) => compared.change(other).await?,
            None => 0.0,
        });
    }
    pruning.weigh(&changes)?;
    pruning.share(share)?;
    for sweep in pruning.rest() {
        let moments = moments(bundle, &sweep, config, &samples, cancel).await?;
        pruning.settle(&sweep, &moments).await?;
    }
    let multiplications = pruning.multiplications();
    let (made, pruned) = pruning.finish().await?;
    Ok((made, pruned, multiplications))
}

/// What the report says of it. With the time of both models, whether the loss made it faster.
pub(super) fn step(pruned: &[Pruned], multiplications: usize, speed: Option<&Speed>) -> Step {
    if pruned.is_empty() {
        return Step::left_out("pruning", "no share of the bytes to be taken out was given");
    }
    let told = |unit: Unit, name: &str| {
        let some = pruned
            .iter()
            .filter(|part| part.unit == unit && part.kept > 0);
        let (all, kept) = some.fold((0, 0), |(all, kept), part| {
            (all + part.units, kept + part.kept)
        });
        (all > kept).then(|| format!("{} of {all} {name}", all - kept))
    };
    let gone = pruned.iter().filter(|part| part.kept == 0).count();
    let layers = (gone > 0).then(|| format!("{gone} of {} layers", pruned.len()));
    let parts = [
        told(Unit::Columns, "columns"),
        told(Unit::Heads, "heads of attention"),
        told(Unit::Channels, "channels"),
        layers,
    ];
    let bytes: usize = pruned.iter().map(|part| part.bytes).sum();
    let mut detail = format!(
        "{} are gone, {:.2} MB of weights",
        parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
        bytes as f64 / 1e6
    );
    let fewer: usize = pruned.iter().map(|part| part.multiplications).sum();
    if multiplications > 0 {
        let share = 100.0 * fewer as f64 / multiplications as f64;
        detail += &format!(" and {share:.1} % of the multiplications with weights");
    }
    match speed {
        // Every turn was faster.
        Some(speed) if speed.between.0 > 1.0 => {}
        Some(_) => detail += "; not faster in every turn, so no speed can be promised",
        None => {}
    }
    Step::done("pruning", detail)
}
