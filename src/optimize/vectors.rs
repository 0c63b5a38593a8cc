//! What a change of a model does to the vectors of the user's texts or pictures.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::RunOutput;
use isovec_optimize::int8::Alone;

use super::observe::observe;
#[cfg(feature = "image")]
use super::pictures;
use super::purpose;
use super::samples::Samples;
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::{Output, complete};

/// Texts or pictures whose vectors say how much a change matters: the model runs on them once for each change.
const WEIGHED: usize = 96;

/// Some of the texts or pictures, and the original's vectors of them.
pub(super) struct Compared<'a> {
    config: &'a EmbeddingConfig,
    samples: Samples,
    original: Vec<Vec<f32>>,
    cancel: &'a Cancel,
}

impl<'a> Compared<'a> {
    /// With a model.
    pub(super) async fn with(
        bundle: &ModelBundle,
        config: &'a EmbeddingConfig,
        samples: &Samples,
        cancel: &'a Cancel,
    ) -> Result<Self> {
        let samples = samples.spread(WEIGHED);
        let original = vectors(bundle.clone(), config, &samples, cancel).await?;
        Ok(Self {
            config,
            samples,
            original,
            cancel,
        })
    }

    /// The mean squared change of the vectors that another model gives.
    pub(super) async fn change(&self, other: ModelBundle) -> Result<f64> {
        let each = self.changes(other).await?;
        Ok(each.iter().sum::<f64>() / each.len().max(1) as f64)
    }

    /// The cosines of the vectors that another model gives.
    pub(super) async fn alone(&self, other: ModelBundle) -> Result<Option<Alone>> {
        let each = self.changes(other).await?.into_iter();
        let cosines: Vec<f64> = each.map(|change| 1.0 - change / 2.0).collect();
        Ok(Alone::of(&cosines))
    }

    async fn changes(&self, other: ModelBundle) -> Result<Vec<f64>> {
        let found = vectors(other, self.config, &self.samples, self.cancel).await?;
        let each = self.original.iter().zip(&found);
        Ok(each.map(|(a, b)| change(a, b)).collect())
    }
}

/// The vectors that a model gives of texts or pictures, one at a time.
async fn vectors(
    bundle: ModelBundle,
    config: &EmbeddingConfig,
    samples: &Samples,
    cancel: &Cancel,
) -> Result<Vec<Vec<f32>>> {
    let mut plain = config.clone();
    plain.model.dtype = None;
    let mut found = Vec::new();
    let seen = |run: &RunOutput| {
        let mut values = Vec::new();
        for output in &run.outputs {
            values.extend_from_slice(output.tensor.as_slice::<f32>()?);
        }
        found.push(values);
        Ok(())
    };
    match samples {
        Samples::Texts(texts) => {
            let whole = complete(bundle.clone(), &plain, purpose(Output::Vectors), cancel).await?;
            observe(&bundle, &whole.bundle, 0, config, texts, cancel, seen).await?;
        }
        #[cfg(feature = "image")]
        Samples::Pictures(pictures, output) => {
            let asked = pictures::purpose(*output);
            let whole = complete(bundle, &plain, asked, cancel).await?;
            pictures::observe(&whole.bundle, Clone::clone, config, pictures, cancel, seen).await?;
        }
    }
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
