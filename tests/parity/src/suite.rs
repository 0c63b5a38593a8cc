//! The suite for every engine on every target.

use std::fmt;

use isovec::Embedder;

use crate::deviation::{BOUNDS, Deviation};
use crate::reference::Reference;

/// How many texts of mixed lengths go into one batch when looking for neighbours' influence.
const MIXED_BATCH: usize = 32;

/// The figures of one run of the suite, each the worst text.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// All texts in one call, against the float64 reference.
    pub reference: Deviation,
    /// A text alone, against the same text in a batch of 32 mixed lengths.
    pub batch: Deviation,
    /// The same call again: the largest component difference.
    pub again: Deviation,
}

impl Report {
    /// The promises that do not hold, in words; empty when all do.
    pub fn broken(&self) -> Vec<String> {
        self.broken_within(&BOUNDS)
    }

    /// The same where the reference may be further away, as it is for 16-bit arithmetic. What else is in a batch may
    /// show no more there than elsewhere.
    pub fn broken_within(&self, bounds: &Deviation) -> Vec<String> {
        [
            ("reference", self.reference, bounds),
            ("batch invariance", self.batch, &BOUNDS),
            ("second run", self.again, &BOUNDS),
        ]
        .into_iter()
        .filter(|(_, deviation, bounds)| !deviation.within(bounds))
        .map(|(name, deviation, bounds)| format!("{name}: {deviation}, allowed {bounds}"))
        .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reference: {}; batch: {}; again: {}",
            self.reference, self.batch, self.again
        )
    }
}

/// Runs the suite. `embedder` must be set to put at least 32 texts into a batch, or the batch
/// figure would compare a text with itself.
///
/// # Errors
/// What the embedder could not do.
///
/// # Panics
/// When the embedder's dimension is not the reference's.
pub async fn run(embedder: &Embedder, reference: &Reference) -> Result<Report, isovec::Error> {
    let all = embedder.embed(&reference.texts).await?;
    assert_eq!(all.dim(), reference.dim, "the embedder is of another model");
    let against = Deviation::between(
        all.iter(),
        (0..reference.texts.len()).map(|row| reference.vector(row)),
    );

    let again = embedder.embed(&reference.texts).await?;
    let first: Vec<f64> = all.as_slice().iter().copied().map(f64::from).collect();
    let again = Deviation::between(again.iter(), first.chunks(reference.dim));

    // Every `stride`-th text, so that the batch holds short, middling and truncated ones.
    let stride = reference.texts.len().div_ceil(MIXED_BATCH).max(1);
    let mixed: Vec<&String> = reference.texts.iter().rev().step_by(stride).collect();
    let together = embedder.embed(&mixed).await?;
    let mut alone = Vec::with_capacity(mixed.len() * reference.dim);
    for text in &mixed {
        alone.extend(embedder.embed_one(text).await?.into_iter().map(f64::from));
    }
    let batch = Deviation::between(together.iter(), alone.chunks(reference.dim));
    Ok(Report {
        reference: against,
        batch,
        again,
    })
}
