//! Matrices in few bits: what the model computes of the user's texts says how they are rounded.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_model::precision::widened;
use isovec_optimize::int4::{AVERAGE, FewBits, Matrix};
use isovec_optimize::int8::check;

use super::measure::spread;
use super::observe::{OBSERVED, moments};
use super::samples::Samples;
use super::vectors::Compared;
use super::{OptimizeOptions, Step};
use crate::config::EmbeddingConfig;
use crate::error::Result;

/// The model with matrices in few bits, and what became of each.
pub(super) async fn make(
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    options: &OptimizeOptions,
) -> Result<(ModelBundle, Vec<Matrix>)> {
    let cancel = &options.watch.cancel;
    check(bundle)?;
    // Matrices in 16 bits are taken as well.
    let bundle = &widened(bundle);
    let average = options.bits.unwrap_or(f64::from(AVERAGE));
    let mut bits = FewBits::of(bundle, average, cancel).await?;
    let texts = options.calibrating();
    if !texts.is_empty() {
        let samples = Samples::Texts(spread(texts.to_vec(), OBSERVED));
        let changes = changes(&bits, bundle, config, &samples, cancel).await?;
        bits.weigh(&changes)?;
        for sweep in bits.sweeps() {
            let moments = moments(bundle, &sweep, config, &samples, cancel).await?;
            bits.settle(sweep, moments, cancel).await?;
        }
    }
    Ok(bits.finish(cancel).await?)
}

/// The mean squared change of the vectors of some of the texts, one for each part that alone is in 4 bits.
async fn changes(
    bits: &FewBits<'_>,
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    samples: &Samples,
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let compared = Compared::with(bundle, config, samples, cancel).await?;
    let mut changes = Vec::with_capacity(bits.parts());
    for part in 0..bits.parts() {
        changes.push(compared.change(bits.alone(part).await?).await?);
    }
    Ok(changes)
}

/// What the report says of it.
pub(super) fn step(matrices: &[Matrix]) -> Step {
    if matrices.is_empty() {
        return Step::left_out("int4", "no matrices in 4 bits were asked for");
    }
    let few: Vec<&Matrix> = matrices
        .iter()
        .filter(|matrix| !matrix.parts.is_empty())
        .collect();
    let values: usize = few.iter().map(|matrix| matrix.values).sum();
    let bits = few
        .iter()
        .map(|matrix| matrix.values as f64 * matrix.bits().unwrap_or(0.0));
    let seen = few.iter().filter(|matrix| matrix.for_texts).count();
    let rounded = match seen {
        0 => "without texts to calibrate with, so each value goes to the nearest one".to_owned(),
        _ => format!("{seen} of them rounded for the texts"),
    };
    Step::done(
        "int4",
        format!(
            "{} of {} matrices and tables, {:.2} bits a value on average and a quarter for the scales, {rounded}",
            few.len(),
            matrices.len(),
            bits.sum::<f64>() / values.max(1) as f64
        ),
    )
}
