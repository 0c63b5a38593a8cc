//! What a model is observed with.

use super::measure::spread;
#[cfg(feature = "image")]
use crate::model::Output;
#[cfg(feature = "image")]
use crate::pictures::Picture;

/// Texts or pictures.
#[derive(Clone)]
pub(super) enum Samples {
    Texts(Vec<String>),
    /// And what the model gives of them.
    #[cfg(feature = "image")]
    Pictures(Vec<Picture>, Output),
}

impl Samples {
    /// Some of them, evenly from all.
    pub(super) fn spread(&self, most: usize) -> Self {
        match self {
            Self::Texts(texts) => Self::Texts(spread(texts.clone(), most)),
            #[cfg(feature = "image")]
            Self::Pictures(pictures, output) => {
                Self::Pictures(spread(pictures.clone(), most), *output)
            }
        }
    }
}
