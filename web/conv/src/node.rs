//! The operators of a program: each makes one map, of one picture.

use std::sync::Arc;

use isovec_kernels::Activation;
use isovec_kernels::conv::{Average, Map, Window, Windows};

/// An operator's place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) usize);

/// An operator, and what is done to its result before anything reads it.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) finish: Finish,
    /// The extents of the result.
    pub(crate) map: Map,
}

/// `activation(x) + residual` within limits, each part only where it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Finish {
    pub(crate) activation: Option<Activation>,
    pub(crate) residual: Option<NodeId>,
    pub(crate) limits: Option<(f32, f32)>,
}

impl Finish {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a node computes.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// The picture.
    Input,
    /// A convolution or a product.
    Conv(Box<Conv>),
    /// The largest value of each window.
    MaxPool { x: NodeId, windows: Windows },
    /// The mean of each window.
    AveragePool {
        x: NodeId,
        windows: Windows,
        average: Average,
    },
    /// The mean of all pixels.
    Mean { x: NodeId },
    /// What it reads; also with other extents.
    Same { x: NodeId },
    /// `x * scale + shift` by channel.
    Affine {
        x: NodeId,
        scale: Vec<f64>,
        shift: Vec<f64>,
    },
    /// Every pixel times a number for each channel, which the picture gives.
    Scale { x: NodeId, by: NodeId },
    /// Element by element.
    Multiply { x: NodeId, by: NodeId },
    /// A layer normalisation of each pixel.
    Norm {
        x: NodeId,
        gamma: Vec<f32>,
        beta: Option<Vec<f32>>,
        epsilon: f32,
    },
    /// The softmax of each pixel.
    Softmax { x: NodeId },
    /// Attention of a row of pixels, whose channels are heads one after another.
    Attention {
        queries: HeadsOf,
        keys: HeadsOf,
        values: HeadsOf,
        heads: usize,
        /// What products of queries and keys are multiplied by.
        scale: f32,
    },
    /// Each pixel divided by its length, or by `least` where it is shorter.
    Unit { x: NodeId, least: f32 },
    /// The values channel by channel: the order of the graph.
    Planes { x: NodeId },
    /// The channels of several maps side by side.
    Concat { parts: Vec<NodeId> },
    /// Every pixel so many times, by rows and by columns.
    Repeat { x: NodeId, by: [usize; 2] },
    /// Every pixel becomes so many, by rows and by columns: a channel of the result has the numbers of its pixels beside each
    /// other among the channels of `x`, row by row.
    Spread { x: NodeId, by: [usize; 2] },
}

/// Channels of a map that are heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadsOf {
    pub(crate) x: NodeId,
    /// The first of them.
    pub(crate) first: usize,
}

/// A convolution; a product of pixels with a matrix is one of 1 x 1.
#[derive(Debug, Clone)]
pub(crate) struct Conv {
    pub(crate) x: NodeId,
    pub(crate) windows: Windows,
    pub(crate) groups: usize,
    pub(crate) weight: Weight,
    pub(crate) layout: Layout,
    /// What the weights of each channel of the result are multiplied by.
    pub(crate) scale: Option<Vec<f64>>,
    pub(crate) bias: Option<Vec<f64>>,
}

/// Where a weight's numbers are.
#[derive(Debug, Clone)]
pub(crate) enum Weight {
    /// Among the bundle's weights.
    Stored(usize),
    /// Known already, as the graph has them.
    Known(Arc<[f32]>),
}

/// How a weight's numbers follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `[channels of the result, channels of a group, rows, columns]`.
    Kernels,
    /// `[channels of the result, channels]`.
    Columns,
    /// `[channels, channels of the result]`.
    Rows,
}

impl Conv {
    /// Whether each channel is computed from itself alone.
    pub(crate) fn is_depthwise(&self, map: Map) -> bool {
        let channels = self.windows.map.channels;
        self.groups > 1 && self.groups == channels && map.channels == channels
    }

    /// Whether its rows are the pixels themselves.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.windows.window == Window::ONE
    }

    /// Steps of a sum.
    pub(crate) fn steps(&self) -> usize {
        self.windows.window.taps() * self.windows.map.channels / self.groups
    }
}

impl Op {
    /// Its name, for profiles.
    pub(crate) fn name(&self, map: Map) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Conv(conv) if conv.is_depthwise(map) => "depthwise",
            Self::Conv(conv) if conv.is_pointwise() => "linear",
            Self::Conv(_) => "conv",
            Self::MaxPool { .. } => "max_pool",
            Self::AveragePool { .. } => "average_pool",
            Self::Mean { .. } => "mean",
            Self::Same { .. } => "map",
            Self::Affine { .. } => "affine",
            Self::Scale { .. } => "scale",
            Self::Multiply { .. } => "multiply",
            Self::Norm { .. } => "norm",
            Self::Softmax { .. } => "softmax",
            Self::Attention { .. } => "attention",
            Self::Unit { .. } => "unit",
            Self::Planes { .. } => "planes",
            Self::Concat { .. } => "concat",
            Self::Repeat { .. } => "repeat",
            Self::Spread { .. } => "spread",
        }
    }

    /// Calls `f` with everything that it reads, its finish not counted.
    pub(crate) fn each_input(&mut self, mut f: impl FnMut(&mut NodeId)) {
        match self {
            Self::Input => {}
            Self::Conv(conv) => f(&mut conv.x),
            Self::MaxPool { x, .. }
            | Self::AveragePool { x, .. }
            | Self::Mean { x }
            | Self::Same { x }
            | Self::Affine { x, .. }
            | Self::Norm { x, .. }
            | Self::Softmax { x }
            | Self::Unit { x, .. }
            | Self::Planes { x }
            | Self::Repeat { x, .. }
            | Self::Spread { x, .. } => f(x),
            Self::Scale { x, by } | Self::Multiply { x, by } => {
                f(x);
                f(by);
            }
            Self::Attention {
                queries,
                keys,
                values,
                ..
            } => [queries, keys, values]
                .map(|of| &mut of.x)
                .into_iter()
                .for_each(f),
            Self::Concat { parts } => parts.iter_mut().for_each(f),
        }
    }

    /// The operand that it may change in place.
    pub(crate) fn in_place(&self) -> Option<NodeId> {
        match self {
            Self::Same { x }
            | Self::Affine { x, .. }
            | Self::Scale { x, .. }
            | Self::Multiply { x, .. }
            | Self::Norm { x, .. }
            | Self::Softmax { x }
            | Self::Unit { x, .. } => Some(*x),
            _ => None,
        }
    }
}

impl Node {
    /// Everything that it reads.
    pub(crate) fn inputs(&self) -> Vec<NodeId> {
        let mut inputs = Vec::new();
        self.op.clone().each_input(|input| inputs.push(*input));
        inputs.extend(self.finish.residual);
        inputs
    }
}
