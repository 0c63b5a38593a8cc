//! Matrices in few bits: what the model computes of the user's texts says how they are rounded.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_model::precision::widened;
use isovec_optimize::int4::{AVERAGE, FewBits, Matrix, Moments};
use isovec_optimize::int8::check;

use super::measure::spread;
use super::observe::observe;
use super::{OptimizeOptions, Step, purpose};
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::{Output, complete};

/// Texts that are observed, taken evenly from all of them: more change little, and take their time.
const OBSERVED: usize = 2000;

/// Texts whose vectors say how much each matrix matters: the model runs on them once for each matrix.
const WEIGHED: usize = 96;

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
        let texts = spread(texts.to_vec(), OBSERVED);
        let changes = changes(&bits, bundle, config, &texts, cancel).await?;
        bits.weigh(&changes)?;
        for pass in bits.passes() {
            let mut moments: Vec<Moments> = pass
                .inputs()
                .map(|(_, width)| Moments::new(width))
                .collect();
            let (probe, bytes) = (pass.probe(bundle), pass.bytes_per_token());
            observe(bundle, &probe, bytes, config, &texts, cancel, |run| {
                for ((name, _), moments) in pass.inputs().zip(&mut moments) {
                    let values = run.output(name).and_then(|values| values.as_slice().ok());
                    moments.add(values.unwrap_or_default())?;
                }
                Ok(())
            })
            .await?;
            bits.settle(pass, moments, cancel).await?;
        }
    }
    Ok(bits.finish(cancel).await?)
}

/// The mean squared change of the vectors of some of the texts, one for each part that alone is in 4 bits.
async fn changes(
    bits: &FewBits<'_>,
    bundle: &ModelBundle,
    config: &EmbeddingConfig,
    texts: &[String],
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let texts = spread(texts.to_vec(), WEIGHED);
    let original = vectors(bundle.clone(), config, &texts, cancel).await?;
    let mut changes = Vec::with_capacity(bits.parts());
    for part in 0..bits.parts() {
        let found = vectors(bits.alone(part).await?, config, &texts, cancel).await?;
        let each = original.iter().zip(&found).map(|(a, b)| change(a, b));
        changes.push(each.sum::<f64>() / original.len().max(1) as f64);
    }
    Ok(changes)
}

/// The vectors that a model gives of texts, one at a time.
async fn vectors(
    bundle: ModelBundle,
    config: &EmbeddingConfig,
    texts: &[String],
    cancel: &Cancel,
) -> Result<Vec<Vec<f32>>> {
    let mut plain = config.clone();
    plain.model.dtype = None;
    let prepared = complete(bundle.clone(), &plain, purpose(Output::Vectors), cancel).await?;
    let mut found = Vec::with_capacity(texts.len());
    observe(&bundle, &prepared.bundle, 0, config, texts, cancel, |run| {
        let mut values = Vec::new();
        for output in &run.outputs {
            values.extend_from_slice(output.tensor.as_slice::<f32>()?);
        }
        found.push(values);
        Ok(())
    })
    .await?;
    Ok(found)
}

/// The squared difference of two vectors of length 1 in their directions: twice what the cosine is below 1.
fn change(a: &[f32], b: &[f32]) -> f64 {
    let square = |values: &[f32]| {
        let squares = values.iter().map(|&value| f64::from(value).powi(2));
        squares.sum::<f64>().max(f64::MIN_POSITIVE)
    };
    let (by_a, by_b) = (square(a).sqrt().recip(), square(b).sqrt().recip());
    let each = a.iter().zip(b);
    each.map(|(&a, &b)| (f64::from(a) * by_a - f64::from(b) * by_b).powi(2))
        .sum()
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
