//! What a change of a model does to the vectors of the user's texts.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;

use super::measure::spread;
use super::observe::observe;
use super::purpose;
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::{Output, complete};

/// Texts whose vectors say how much a change matters: the model runs on them once for each change.
const WEIGHED: usize = 96;

/// Some of the texts, and the original's vectors of them.
pub(super) struct Compared<'a> {
    config: &'a EmbeddingConfig,
    texts: Vec<String>,
    original: Vec<Vec<f32>>,
    cancel: &'a Cancel,
}

impl<'a> Compared<'a> {
    /// With a model.
    pub(super) async fn with(
        bundle: &ModelBundle,
        config: &'a EmbeddingConfig,
        texts: &[String],
        cancel: &'a Cancel,
    ) -> Result<Self> {
        let texts = spread(texts.to_vec(), WEIGHED);
        let original = vectors(bundle.clone(), config, &texts, cancel).await?;
        Ok(Self {
            config,
            texts,
            original,
            cancel,
        })
    }

    /// The mean squared change of the vectors that another model gives.
    pub(super) async fn change(&self, other: ModelBundle) -> Result<f64> {
        let found = vectors(other, self.config, &self.texts, self.cancel).await?;
        let each = self.original.iter().zip(&found).map(|(a, b)| change(a, b));
        Ok(each.sum::<f64>() / self.original.len().max(1) as f64)
    }
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
