//! Models that read pictures: the input that they want, and which of their outputs are features or labels.
//!
//! A vision transformer that was converted from safetensors reads squares ([`PatchGrid`]). An ONNX file has one input of
//! whole pictures, and its exporter chose the names and the number of its outputs.

mod outputs;

use std::fmt;

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::{Dim, describe_value};
use isovec_engine::error::Result;
use isovec_engine::onnx::proto::{ModelProto, ValueInfoProto};
use isovec_engine::tensor::DType;

pub use outputs::{keep_features, keep_scores};

use crate::convert::PatchGrid;
use crate::onnx::builder::value_info;

/// How a model wants a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureInput {
    /// Cut into squares: f32 `[batch, tokens, 3 * side * side]`.
    Squares(PatchGrid),
    /// Whole: f32 `[batch, 3, height, width]`, the planes of red, green and blue.
    Whole {
        /// Its height in pixels, where the graph says it.
        height: Option<usize>,
        /// Its width in pixels, where the graph says it.
        width: Option<usize>,
    },
}

impl PictureInput {
    /// How a graph wants pictures, if it reads pictures at all.
    pub fn of(model: &ModelProto) -> Option<Self> {
        if let Some(grid) = PatchGrid::of(model) {
            return Some(Self::Squares(grid));
        }
        let [input] = &model.graph.as_ref()?.input[..] else {
            return None;
        };
        let input = describe_value(input);
        match (input.dtype, input.dims.as_deref()) {
            (Some(DType::F32), Some([_, Dim::Fixed(3) | Dim::Symbolic(_), height, width])) => {
                Some(Self::Whole {
                    height: fixed(height),
                    width: fixed(width),
                })
            }
            _ => None,
        }
    }

    /// Height and width in pixels, where the graph says both.
    pub fn size(&self) -> Option<(usize, usize)> {
        match self {
            Self::Squares(grid) => Some(grid.pixels()),
            Self::Whole { height, width } => height.zip(*width),
        }
    }

    /// Whether a picture of this height and width fits.
    pub fn takes(&self, (high, wide): (usize, usize)) -> bool {
        match self {
            Self::Squares(grid) => grid.pixels() == (high, wide),
            Self::Whole { height, width } => {
                let fits = |asked: &Option<usize>, has| asked.is_none_or(|asked| asked == has);
                fits(height, high) && fits(width, wide)
            }
        }
    }
}

impl fmt::Display for PictureInput {
    /// `224 x 224`, width and height; `any` for what the graph leaves open.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (height, width) = match self {
            Self::Squares(grid) => {
                let (height, width) = grid.pixels();
                (Some(height), Some(width))
            }
            Self::Whole { height, width } => (*height, *width),
        };
        let side = |side: Option<usize>| side.map_or_else(|| "any".into(), |side| side.to_string());
        write!(f, "{} x {}", side(width), side(height))
    }
}

/// Makes a graph one of pictures of this height and width, `[batch, 3, height, width]`, where it leaves them open. Engines then
/// know every extent but the number of pictures. A graph that reads squares stays as it is.
///
/// # Errors
/// [`EngineError::UnsupportedModel`] for a graph that reads no such pictures.
pub fn fix_extents(bundle: &mut ModelBundle, (high, wide): (usize, usize)) -> Result<()> {
    let input = PictureInput::of(&bundle.graph).filter(|input| input.takes((high, wide)));
    match (input, bundle.graph.graph.as_mut()) {
        (Some(PictureInput::Squares(_)), _) => Ok(()),
        (Some(PictureInput::Whole { .. }), Some(graph)) => {
            for input in &mut graph.input {
                let batch = match describe_value(input).dims.as_deref() {
                    Some([batch, ..]) => batch.clone(),
                    _ => Dim::Symbolic("batch".into()),
                };
                let dims = [batch, Dim::Fixed(3), Dim::Fixed(high), Dim::Fixed(wide)];
                *input = value_info(&input.name, DType::F32, &dims);
            }
            // What was said of values between was said of the open extents.
            graph.value_info.clear();
            Ok(())
        }
        _ => Err(EngineError::UnsupportedModel {
            origin: bundle.origin.clone(),
            reason: format!("it reads no pictures of {wide} x {high} pixels"),
            hint: "Its preprocessor_config.json has to make the pictures that its graph was exported for".into(),
        }),
    }
}

/// What the inputs of a graph are, for a message.
pub fn inputs_text(model: &ModelProto) -> String {
    let inputs = model.graph.iter().flat_map(|graph| &graph.input);
    let text = |input: &ValueInfoProto| {
        let input = describe_value(input);
        format!("{} {}", input.name, input.dims_text())
    };
    inputs.map(text).collect::<Vec<_>>().join(", ")
}

fn fixed(dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Fixed(extent) => Some(*extent),
        Dim::Symbolic(_) => None,
    }
}
