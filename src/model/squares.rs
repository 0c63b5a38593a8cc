//! The values of pictures, cut into the squares that a model reads.

use isovec_engine::bundle::ModelBundle;
use isovec_model::convert::PatchGrid;

use super::encoded::Encoded;
use super::reader::unsupported;
use crate::error::Result;

/// How a picture's values are cut for one model, and how they were made.
#[derive(Debug)]
pub(crate) struct Squares {
    grid: PatchGrid,
    identity: String,
}

/// The grid of a model of pictures.
///
/// # Errors
/// [`EngineError::UnsupportedModel`](isovec_engine::EngineError::UnsupportedModel) for a model that reads no pictures.
pub(crate) fn grid(bundle: &ModelBundle) -> Result<PatchGrid> {
    PatchGrid::of(&bundle.graph).ok_or_else(|| {
        unsupported(
            bundle,
            "it reads no pictures that isovec cuts for it",
            "Models of pictures are read from safetensors: ViT, DeiT, DINO, CLIP, SigLIP. Load a model of texts with `Embedder`",
        )
    })
}

impl Squares {
    /// The squares of a grid; `identity` says how the values are made.
    pub(crate) fn new(grid: PatchGrid, identity: String) -> Self {
        Self { grid, identity }
    }

    /// What has to be equal of the way to a picture's values.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Height and width of the pictures that the model reads, in pixels.
    pub(crate) fn pixels(&self) -> (usize, usize) {
        self.grid.pixels()
    }

    /// Rows that a picture becomes.
    pub(crate) fn tokens(&self) -> usize {
        self.grid.tokens()
    }

    /// Cuts the values of a picture: `[3, height, width]`, row by row.
    ///
    /// # Panics
    /// Where there are more or fewer than [`pixels`](Self::pixels) has in three channels.
    pub(crate) fn cut(&self, values: &[f32]) -> Encoded {
        let rows = self.grid.tokens();
        let mut squares = vec![0.0; rows * self.grid.width()];
        self.grid.cut(values, &mut squares);
        Encoded::Patches {
            values: squares,
            rows,
        }
    }
}
