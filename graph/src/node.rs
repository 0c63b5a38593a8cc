//! The operators of a program. All of them give a matrix of f32: a row for each token of all the
//! texts of a batch, one text after another, or a row for each text.

use std::collections::HashMap;
use std::sync::Arc;

use crate::value::{HeadColumns, Weight};

/// A node's place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

/// What a row of a matrix stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Tokens,
    Texts,
}

/// An operator and the extent of its result.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) rows: Rows,
    pub(crate) width: usize,
}

/// Small numbers of the program itself.
pub(crate) type Floats = Arc<[f32]>;

/// Columns of a matrix or a constant, walked along the columns of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    pub(crate) source: Source,
    pub(crate) offset: usize,
    /// One for each of the result's extents; 0 repeats.
    pub(crate) strides: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Node(NodeId),
    Constant(Floats),
}

/// What a product's weight is, as the loader has to make it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Matrix {
    Weight(Weight),
    /// `[rows, columns]`, row-major.
    Constant {
        values: Floats,
        rows: usize,
    },
}

/// Rows that are looked up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Table {
    Weight(Weight),
    Constant(Floats),
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A number for each token, which the caller gives.
    Input(String),
    /// The token's place in its text, from 0.
    Position,
    /// How many tokens the text has.
    Length,
    /// `table[ids[row]]`.
    Gather {
        table: Table,
        ids: NodeId,
    },
    /// `activation(x · matrix + bias) + residual`.
    Linear(Linear),
    /// `norm(x + residual) · gamma + beta` along groups of `size` columns.
    Norm(Norm),
    Attention(Box<Attention>),
    /// Each column by itself.
    Map {
        x: NodeId,
        f: Unary,
    },
    /// Two columns each; the result's columns have these extents.
    Zip {
        f: Binary,
        a: Operand,
        b: Operand,
        extents: Vec<usize>,
    },
    /// `if c then a else b`.
    Select {
        c: Operand,
        a: Operand,
        b: Operand,
        extents: Vec<usize>,
    },
    /// The columns in another order, repeated, or fewer of them.
    Copy {
        a: Operand,
        extents: Vec<usize>,
    },
    /// For each of `outer`, the parts one after another, each its number of columns.
    Concat {
        outer: usize,
        parts: Vec<(NodeId, usize)>,
    },
    /// Each group of `size` columns to one.
    Reduce {
        x: NodeId,
        f: Reduction,
        size: usize,
    },
    /// Each group of `size` columns: exponentials over their sum.
    Softmax {
        x: NodeId,
        size: usize,
    },
    /// All tokens of a text to one row.
    Pool {
        x: NodeId,
        f: Reduction,
    },
    /// The sum of a text's tokens, each times its weight.
    WeightedSum {
        x: NodeId,
        weights: NodeId,
    },
    /// One token of a text.
    Take {
        x: NodeId,
        which: Which,
    },
    /// Sums along a text's tokens.
    CumSum {
        x: NodeId,
        reverse: bool,
        exclusive: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) x: NodeId,
    pub(crate) matrix: Matrix,
    pub(crate) bias: Option<Floats>,
    pub(crate) activation: Option<Unary>,
    pub(crate) residual: Option<NodeId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub(crate) x: NodeId,
    pub(crate) residual: Option<NodeId>,
    pub(crate) kind: NormKind,
    pub(crate) size: usize,
    pub(crate) epsilon: f32,
    pub(crate) gamma: Option<Floats>,
    pub(crate) beta: Option<Floats>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormKind {
    /// `(x - mean) / sqrt(variance + epsilon)`.
    Layer,
    /// `x / sqrt(mean of squares + epsilon)`.
    RootMeanSquare,
}

#[derive(Debug, Clone)]
pub(crate) struct Attention {
    pub(crate) query: HeadColumns,
    pub(crate) key: HeadColumns,
    pub(crate) value: HeadColumns,
    pub(crate) heads: usize,
    pub(crate) size: usize,
    pub(crate) scale: f32,
    /// `[heads, 2 · positions - 1]`, by key minus query.
    pub(crate) bias: Option<Floats>,
    /// Tokens further apart do not see each other.
    pub(crate) reach: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unary {
    /// `factor · x + shift`.
    Affine {
        factor: f32,
        shift: f32,
    },
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    /// `x Φ(x)`.
    Gelu,
    /// `x / 2 (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))`.
    GeluTanh,
    IsNan,
    Log,
    Not,
    /// `x^exponent`.
    Power(f32),
    /// `x sigmoid(factor · x)`: SiLU at 1, a GELU at 1.702.
    Swish(f32),
    Reciprocal,
    Relu,
    Sigmoid,
    Sign,
    Sin,
    Sqrt,
    Square,
    Tanh,
    /// Not less than, not more than.
    Clamp {
        least: f32,
        most: f32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    And,
    Div,
    /// The quotient of whole numbers, cut towards zero.
    DivWhole,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Max,
    Min,
    /// What a division leaves, with the sign of the divisor.
    Modulo,
    Mul,
    Or,
    Power,
    /// What a division leaves, with the sign of the dividend.
    Remainder,
    Sub,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    /// The root of the sum of squares.
    L2,
    SumOfSquares,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Counted from the first.
    FromFirst(usize),
    /// Counted from the last, which is 0.
    FromLast(usize),
}

impl Binary {
    /// Whether the result is true or false.
    pub(crate) fn compares(self) -> bool {
        matches!(
            self,
            Self::And
                | Self::Or
                | Self::Equal
                | Self::Greater
                | Self::GreaterOrEqual
                | Self::Less
                | Self::LessOrEqual
        )
    }

    /// On numbers of double precision; the caller rounds.
    pub(crate) fn apply(self, a: f64, b: f64) -> f64 {
        let flag = |truth: bool| f64::from(u8::from(truth));
        match self {
            Self::Add => a + b,
            Self::And => flag(a != 0.0 && b != 0.0),
            Self::Div => a / b,
            Self::DivWhole => (a / b).trunc(),
            Self::Equal => flag(a == b),
            Self::Greater => flag(a > b),
            Self::GreaterOrEqual => flag(a >= b),
            Self::Less => flag(a < b),
            Self::LessOrEqual => flag(a <= b),
            Self::Max => a.max(b),
            Self::Min => a.min(b),
            Self::Modulo => {
                let rest = a % b;
                let turned = rest != 0.0 && (rest < 0.0) != (b < 0.0);
                if turned { rest + b } else { rest }
            }
            Self::Mul => a * b,
            Self::Or => flag(a != 0.0 || b != 0.0),
            Self::Power => libm::pow(a, b),
            Self::Remainder => a % b,
            Self::Sub => a - b,
        }
    }
}

impl Op {
    /// The two nodes of a function of two, if it takes both of them as they are: all their columns
    /// in order, whatever may be between their rows.
    pub(crate) fn plain(&self) -> Option<(Binary, NodeId, NodeId)> {
        let Self::Zip { f, a, b, extents } = self else {
            return None;
        };
        let own = crate::constant::strides(extents);
        let node = |operand: &Operand| match operand.source {
            Source::Node(node) if operand.offset == 0 && operand.strides == own => Some(node),
            _ => None,
        };
        Some((*f, node(a)?, node(b)?))
    }

    /// The nodes that it reads.
    pub(crate) fn inputs(&self) -> Vec<NodeId> {
        let mut inputs = Vec::new();
        // One list of them, for reading and for renaming.
        self.clone().visit(&mut |node| inputs.push(*node));
        inputs
    }

    /// Its inputs by their new names; those without one keep theirs.
    pub(crate) fn rename(&mut self, names: &HashMap<NodeId, NodeId>) {
        self.visit(&mut |node| {
            if let Some(&new) = names.get(node) {
                *node = new;
            }
        });
    }

    fn visit(&mut self, f: &mut dyn FnMut(&mut NodeId)) {
        let mut all = |operands: [Option<&mut Operand>; 3]| {
            for operand in operands.into_iter().flatten() {
                if let Source::Node(node) = &mut operand.source {
                    f(node);
                }
            }
        };
        match self {
            Self::Input(_) | Self::Position | Self::Length => {}
            Self::Zip { a, b, .. } => all([Some(a), Some(b), None]),
            Self::Select { c, a, b, .. } => all([Some(c), Some(a), Some(b)]),
            Self::Copy { a, .. } => all([Some(a), None, None]),
            Self::Gather { ids, .. } => f(ids),
            Self::Linear(linear) => {
                f(&mut linear.x);
                linear.residual.iter_mut().for_each(f);
            }
            Self::Norm(norm) => {
                f(&mut norm.x);
                norm.residual.iter_mut().for_each(f);
            }
            Self::Attention(attention) => {
                f(&mut attention.query.node);
                f(&mut attention.key.node);
                f(&mut attention.value.node);
            }
            Self::Map { x, .. }
            | Self::Reduce { x, .. }
            | Self::Softmax { x, .. }
            | Self::Pool { x, .. }
            | Self::Take { x, .. }
            | Self::CumSum { x, .. } => f(x),
            Self::Concat { parts, .. } => parts.iter_mut().for_each(|(node, _)| f(node)),
            Self::WeightedSum { x, weights } => {
                f(x);
                f(weights);
            }
        }
    }

    /// The operator's name in profiles.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Input(_) | Self::Position | Self::Length => "input",
            Self::Gather { .. } => "gather",
            Self::Linear(_) => "linear",
            Self::Norm(_) => "norm",
            Self::Attention(_) => "attention",
            Self::Map { .. } => "map",
            Self::Zip { .. } | Self::Select { .. } => "zip",
            Self::Copy { .. } | Self::Concat { .. } => "copy",
            Self::Reduce { .. } | Self::Softmax { .. } => "reduce",
            Self::Pool { .. } | Self::WeightedSum { .. } | Self::Take { .. } => "pool",
            Self::CumSum { .. } => "sum",
        }
    }
}
