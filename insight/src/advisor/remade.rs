//! A model that is made anew for a change: how, and how it compares with the original.

use std::fmt;

use isovec::optimize::Quality;
use serde::{Deserialize, Serialize};

/// What `isovec optimize` makes of a model, by the names of its options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recipe {
    /// Products of whole numbers of 8 bits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub int8: Option<Scales>,
}

impl Recipe {
    /// Products of whole numbers of 8 bits.
    pub fn int8(scales: Scales) -> Self {
        Self { int8: Some(scales) }
    }
}

/// Where the scales of activations in int8 come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scales {
    /// From texts.
    Static,
    /// From each run.
    Dynamic,
}

/// How vectors before and after a change compare that changes them by design.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VectorQuality {
    /// Texts that were compared, each once, at most 1,000.
    pub texts: usize,
    /// Cosine of each text's two vectors, on average. `None`: they have not the same components.
    pub cosine_mean: Option<f64>,
    /// The smallest of these cosines.
    pub cosine_worst: Option<f64>,
    /// Of the ten texts nearest to each text, the share that is the same before and after. `None`: 10 texts or fewer.
    // As it comes back from JavaScript, where it is `recallAt10`.
    #[serde(alias = "recall_at10")]
    pub recall_at_10: Option<f64>,
}

impl From<&Quality> for VectorQuality {
    fn from(quality: &Quality) -> Self {
        // A value that is no number would be no JSON.
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        Self {
            texts: quality.texts,
            cosine_mean: finite(quality.cosine_mean),
            cosine_worst: finite(quality.cosine_worst),
            recall_at_10: finite(quality.recall_at_10),
        }
    }
}

/// "cosine of 0.9942 for the worst text and 0.9981 on average, recall@10 of 0.9700, on 64 texts"
impl fmt::Display for VectorQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cosine_worst, self.cosine_mean) {
            (Some(worst), Some(mean)) => write!(
                f,
                "cosine of {worst:.4} for the worst text and {mean:.4} on average"
            )?,
            _ => f.write_str("vectors that have no cosine with those before")?,
        }
        if let Some(recall) = self.recall_at_10 {
            write!(f, ", recall@10 of {recall:.4}")?;
        }
        write!(f, ", on {} texts", self.texts)
    }
}

/// Bytes of a model, weights and all files beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sizes {
    /// Of the original.
    pub before: u64,
    /// Of what was made of it.
    pub after: u64,
}

impl Sizes {
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn new(before: u64, after: u64) -> Self {
        Self { before, after }
    }
}

/// "26.1 MB instead of 91.6 MB"
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{:.1} MB instead of {:.1} MB",
            megabytes(self.after),
            megabytes(self.before)
        )
    }
}
