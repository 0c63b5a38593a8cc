//! The values of pictures as the input of one model.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_model::convert::PatchGrid;
use isovec_model::pictures::{PictureInput, inputs_text};

use super::encoded::Encoded;
use crate::error::Result;

/// Pixels of a whole picture that count as one position: a square of 16 is a token of most vision transformers. A batch of whole
/// pictures then holds as many as one of theirs.
const PIXELS_OF_A_POSITION: usize = 16 * 16;

/// What one model makes of a picture's values, and how they were made.
#[derive(Debug)]
pub(crate) struct Frame {
    cut: Cut,
    identity: String,
}

#[derive(Debug)]
enum Cut {
    Squares(PatchGrid),
    /// Not at all. Its height and width.
    Whole(usize, usize),
}

impl Frame {
    /// The frame of a model for pictures of this height and width; `identity` says how their values are made.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`] for a model that reads no such pictures.
    pub(crate) fn new(
        bundle: &ModelBundle,
        (height, width): (usize, usize),
        identity: String,
    ) -> Result<Self> {
        let cut = match input(bundle)? {
            PictureInput::Squares(grid) => Cut::Squares(grid),
            PictureInput::Whole { .. } => Cut::Whole(height, width),
        };
        Ok(Self { cut, identity })
    }

    /// What has to be equal of the way to a picture's values.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Height and width of the pictures that the model reads, in pixels.
    pub(crate) fn pixels(&self) -> (usize, usize) {
        match self.cut {
            Cut::Squares(grid) => grid.pixels(),
            Cut::Whole(height, width) => (height, width),
        }
    }

    /// Positions that a picture takes.
    pub(crate) fn positions(&self) -> usize {
        match self.cut {
            Cut::Squares(grid) => grid.tokens(),
            Cut::Whole(height, width) => (height * width / PIXELS_OF_A_POSITION).max(1),
        }
    }

    /// Makes the input of a picture's values: `[3, height, width]`, row by row.
    ///
    /// # Panics
    /// Where there are more or fewer than [`pixels`](Self::pixels) has in three channels.
    pub(crate) fn encode(&self, values: Vec<f32>) -> Encoded {
        let values = match self.cut {
            Cut::Squares(grid) => {
                let mut squares = vec![0.0; grid.tokens() * grid.width()];
                grid.cut(&values, &mut squares);
                squares
            }
            Cut::Whole(height, width) => {
                assert_eq!(values.len(), 3 * height * width, "a picture's values");
                values
            }
        };
        Encoded::Picture {
            values,
            positions: self.positions(),
        }
    }
}

/// How a model wants pictures.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] for a model that reads none.
pub(crate) fn input(bundle: &ModelBundle) -> Result<PictureInput> {
    PictureInput::of(&bundle.graph).ok_or_else(|| {
        EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason: format!(
                "it reads no pictures: its inputs are {}, and not one of [batch, 3, height, width]",
                inputs_text(&bundle.graph)
            ),
            hint: "Models of pictures are read from safetensors (ViT, DeiT, DINO, CLIP, SigLIP) and from ONNX files with one such input. Load a model of texts with `Embedder` or `Classifier`".into(),
        }
        .into()
    })
}
