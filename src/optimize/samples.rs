//! What a model is observed with.

use isovec_optimize::OptimizeError;

use super::OptimizeOptions;
use super::measure::spread;
use super::observe::OBSERVED;
#[cfg(feature = "image")]
use super::pictures::{CALIBRATE, some};
use crate::error::Result;
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
    /// Those that a model is calibrated with.
    ///
    /// # Errors
    /// `Optimize` where there are none; `wrong` says what they are needed for. Those of too few pictures.
    pub(super) fn calibrating(
        options: &OptimizeOptions,
        output: Output,
        wrong: &str,
    ) -> Result<Self> {
        #[cfg(feature = "image")]
        if options.has_pictures() {
            let pictures = some(options.calibrating_pictures(), CALIBRATE)?;
            return Ok(Self::Pictures(pictures, output));
        }
        #[cfg(not(feature = "image"))]
        let _ = output;
        let texts = options.calibrating();
        if texts.is_empty() {
            return Err(OptimizeError::Texts(wrong.into()).into());
        }
        Ok(Self::Texts(spread(texts.to_vec(), OBSERVED)))
    }

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
