//! The operators of a program. All of them give a matrix of f32: a row for each token of all the
//! texts of a batch, one text after another, or a row for each text.

use std::collections::HashMap;
use std::sync::Arc;

use crate::value::{HeadColumns, Weight};

/// A node's place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// The meaning of a row of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// A token of any of the texts.
    Tokens,
    /// A text.
    Texts,
}

/// An operator and the extent of its result.
#[derive(Debug, Clone)]
pub struct Node {
    /// The operator.
    pub op: Op,
    /// The meaning of the result's rows.
    pub rows: Rows,
    /// Columns of the result.
    pub width: usize,
}

/// Small numbers of the program itself.
pub type Floats = Arc<[f32]>;

/// Columns of a matrix or a constant, walked along the columns of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// The matrix with the columns.
    pub source: Source,
    /// The first column.
    pub offset: usize,
    /// One for each of the result's extents; 0 repeats.
    pub strides: Vec<usize>,
}

/// The source of an operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The row of a node's result that belongs to the row that is computed.
    Node(NodeId),
    /// The same for every row.
    Constant(Floats),
}

/// The weight of a product, in the form that the loader has to make.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrix {
    /// One of the bundle's.
    Weight(Weight),
    /// `[rows, columns]`, row-major.
    Constant {
        /// All of them.
        values: Floats,
        /// The number of rows.
        rows: usize,
    },
}

/// Rows that are looked up.
#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    /// One of the bundle's.
    Weight(Weight),
    /// Row after row.
    Constant(Floats),
}

/// The operator of a node.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "operands are named as in the formulas")]
pub enum Op {
    /// A whole number for each token, which the caller gives.
    Input(String),
    /// As many numbers for each token as the node is wide, which the caller gives.
    Values(String),
    /// The token's place in its text, from 0.
    Position,
    /// How many tokens the text has.
    Length,
    /// `table[ids[row]]`.
    Gather { table: Table, ids: NodeId },
    /// `activation(x · matrix + bias) + residual`.
    Linear(Linear),
    /// `norm(x + residual) · gamma + beta` along groups of `size` columns.
    Norm(Norm),
    /// For each head and query, the values' mean, weighted by the softmax of
    /// `scale · query · key + bias`.
    Attention(Box<Attention>),
    /// Each column by itself.
    Map { x: NodeId, f: Unary },
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
    Copy { a: Operand, extents: Vec<usize> },
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
    Softmax { x: NodeId, size: usize },
    /// All tokens of a text to one row.
    Pool { x: NodeId, f: Reduction },
    /// The sum of a text's tokens, each times its weight.
    WeightedSum { x: NodeId, weights: NodeId },
    /// One token of a text.
    Take { x: NodeId, which: Which },
    /// Sums along a text's tokens.
    CumSum {
        x: NodeId,
        reverse: bool,
        exclusive: bool,
    },
}

/// A product with a weight, and the operations that are fused into it.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[rows, k]`.
    pub x: NodeId,
    /// `[k, width]`.
    pub matrix: Matrix,
    /// `[width]`.
    pub bias: Option<Floats>,
    /// Applied after the bias; one that needs no parameter.
    pub activation: Option<Unary>,
    /// Added last: `[rows, width]`.
    pub residual: Option<NodeId>,
}

/// A normalisation of groups of columns.
#[derive(Debug, Clone)]
pub struct Norm {
    /// The input.
    pub x: NodeId,
    /// Added to it first, of the same extents.
    pub residual: Option<NodeId>,
    /// The formula.
    pub kind: NormKind,
    /// Columns of a group.
    pub size: usize,
    /// Added under the root.
    pub epsilon: f32,
    /// `[size]`, multiplied with.
    pub gamma: Option<Floats>,
    /// `[size]`, added last.
    pub beta: Option<Floats>,
}

/// The formula of a normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// `(x - mean) / sqrt(variance + epsilon)`.
    Layer,
    /// `x / sqrt(mean of squares + epsilon)`.
    RootMeanSquare,
}

/// Attention of each text's tokens to one another. Its result has the heads one after another.
#[derive(Debug, Clone)]
pub struct Attention {
    /// Where the queries are.
    pub query: HeadColumns,
    /// Where the keys are.
    pub key: HeadColumns,
    /// Where the values are.
    pub value: HeadColumns,
    /// The number of heads.
    pub heads: usize,
    /// Columns of a head.
    pub size: usize,
    /// The factor of the products.
    pub scale: f32,
    /// `[heads, 2 · positions - 1]`, by key minus query.
    pub bias: Option<Floats>,
    /// Terms by the content of one token and the distance of both.
    pub relative: Option<Box<Relative>>,
    /// Tokens further apart do not see each other.
    pub reach: Option<usize>,
    /// Whether a token sees none after it.
    pub causal: bool,
}

/// What is added to the score of a pair: a column for its offset, times its query or its key.
#[derive(Debug, Clone)]
pub struct Relative {
    /// The product with the scaled query.
    pub queries: Option<Side>,
    /// The product with the key.
    pub keys: Option<Side>,
    /// The number of columns.
    pub columns: usize,
    /// The column of each offset, of the other token from the one that is multiplied, from `1 - positions` to `positions - 1`.
    pub by_offset: Arc<[u32]>,
}

/// The columns that queries or keys meet.
#[derive(Debug, Clone)]
pub struct Side {
    /// `[heads, size · columns]`; a row is `[size, columns]`.
    pub table: Table,
    /// Its place among the program's tables.
    pub place: usize,
}

impl Attention {
    /// The tables of queries and of keys.
    pub fn sides(&self) -> impl Iterator<Item = &Side> {
        let relative = self.relative.iter();
        relative.flat_map(|relative| relative.queries.iter().chain(&relative.keys))
    }
}

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "named as ONNX names them")]
pub enum Unary {
    /// `factor · x + shift`.
    Affine {
        factor: f32,
        shift: f32,
    },
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
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

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as ONNX names them")]
pub enum Binary {
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
    /// The remainder of a division, with the sign of the divisor.
    Modulo,
    Mul,
    Or,
    Power,
    /// The remainder of a division, with the sign of the dividend.
    Remainder,
    Sub,
}

/// Many numbers to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as ONNX names them")]
pub enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    Product,
    /// The root of the sum of squares.
    L2,
    SumOfSquares,
}

/// A token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Counted from the first.
    FromFirst(usize),
    /// Counted from the last, which is 0.
    FromLast(usize),
}

/// How often each node is read; those that are shown count once more for each time.
pub(crate) fn readers(nodes: &[Node], shown: impl Iterator<Item = NodeId>) -> Vec<usize> {
    let mut readers = vec![0; nodes.len()];
    let read = nodes.iter().flat_map(|node| node.op.inputs());
    for NodeId(node) in read.chain(shown) {
        readers[node] += 1;
    }
    readers
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

    /// Bytes that it takes beside itself; its numbers are counted where they are made.
    pub(crate) fn heap_bytes(&self) -> usize {
        let strides = |operand: &Operand| operand.strides.len();
        let words = match self {
            Self::Zip { a, b, extents, .. } => strides(a) + strides(b) + extents.len(),
            Self::Select { c, a, b, extents } => {
                [c, a, b].into_iter().map(strides).sum::<usize>() + extents.len()
            }
            Self::Copy { a, extents } => strides(a) + extents.len(),
            Self::Concat { parts, .. } => 2 * parts.len(),
            Self::Attention(attention) => size_of_val(&**attention) / size_of::<usize>(),
            _ => 0,
        };
        words * size_of::<usize>()
    }

    /// The nodes that it reads.
    pub fn inputs(&self) -> Vec<NodeId> {
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
            Self::Input(_) | Self::Values(_) | Self::Position | Self::Length => {}
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
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input(_) | Self::Values(_) | Self::Position | Self::Length => "input",
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
