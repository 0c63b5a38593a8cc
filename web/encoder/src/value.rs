//! What is known about a value of the ONNX graph while the graph is read.
//!
//! A graph is read for one text of `n` tokens without padding, so its first extent is 1 and its
//! mask is all ones: masks, shapes and positions become known values and need no operator at run
//! time. What is left are matrices: a row for each token, or one for the text. Reshapes,
//! transposes, splits and slices are other ways to look at such a matrix, and cost nothing.

use std::sync::Arc;

use crate::constant::{Constant, Kind};
use crate::dim::Dim;
use crate::error::Why;
use crate::ledger::{Ledger, Numbers};
use crate::node::{NodeId, Relative, Side};

/// The most extents of a list of them: more than any value has axes, or a graph puts together.
pub(crate) const MOST_DIMS: usize = 1 << 10;

/// A value of the graph.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Known now.
    Constant(Arc<Constant>),
    /// A large weight, which is read when all is known of what it is for.
    Weight(Weight),
    /// Whole numbers that are extents: a scalar or a list.
    Dims { dims: Vec<Dim>, scalar: bool },
    /// The same number everywhere.
    Uniform {
        kind: Kind,
        value: f64,
        shape: Vec<Dim>,
    },
    /// Depends on the offset between two tokens alone.
    Offsets(Offsets),
    /// Numbers that nothing may depend on: indices into what is the same everywhere.
    Unknown { kind: Kind, shape: Vec<Dim> },
    /// Computed at run time.
    Data(Data),
    /// Tokens cut into heads, times a matrix for each head.
    ByHead(Arc<ByHead>),
    /// Terms of scores by the content of one token of a pair and the distance of both.
    ByDistance(ByDistance),
    /// Products of queries and keys, before the softmax.
    Scores(Scores),
    /// Scores after the softmax.
    Probabilities(Scores),
}

/// A large weight, or rows of it, as a matrix of two axes or a table of any rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// Its index in the source.
    pub(crate) index: usize,
    /// Its extents as the graph sees them now.
    pub(crate) shape: Vec<usize>,
    /// The first row (of axis 0, before transposing) that is taken.
    pub(crate) first_row: usize,
    /// Whether its two axes are swapped.
    pub(crate) transposed: bool,
    /// Whether it is stored as whole numbers, whatever it was cast to.
    pub(crate) whole: bool,
    /// Whole numbers that stand for floats: a scale, one for all or one for each entry of an axis
    /// (of the stored tensor).
    pub(crate) scale: Option<(Arc<Constant>, usize)>,
    pub(crate) kind: Kind,
}

/// `values[lead][key - query + positions - 1]`, seen as `[lead.., n, n]`.
#[derive(Debug, Clone)]
pub(crate) struct Offsets {
    pub(crate) kind: Kind,
    /// Extents before the two of tokens.
    pub(crate) lead: Vec<usize>,
    /// Row-major over `lead`, then the offsets from `1 - positions` to `positions - 1`.
    pub(crate) values: Arc<Numbers>,
    /// Tokens that the values reach for.
    pub(crate) positions: usize,
}

/// One axis of a matrix as the graph sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Of extent 1.
    Unit,
    /// The tokens of the text.
    Tokens,
    /// Some of the matrix's columns.
    Columns { extent: usize, stride: usize },
}

/// As messages say it.
impl std::fmt::Debug for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unit => f.write_str("1"),
            Self::Tokens => f.write_str("tokens"),
            Self::Columns { extent, stride: 1 } => write!(f, "{extent}"),
            Self::Columns { extent, stride } => write!(f, "{extent} (stride {stride})"),
        }
    }
}

/// A matrix that is computed at run time, as the graph sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Data {
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
    /// The first column.
    pub(crate) offset: usize,
    pub(crate) axes: Vec<Axis>,
}

/// Columns of a matrix, cut into heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadColumns {
    /// What holds them.
    pub node: NodeId,
    /// The first column of the first head.
    pub offset: usize,
    /// Columns from one head to the next.
    pub stride: usize,
}

/// `scale · query · key^T + bias` for each head, seen as `[.., heads, n, n]`.
#[derive(Debug, Clone)]
pub(crate) struct Scores {
    pub(crate) query: HeadColumns,
    pub(crate) key: HeadColumns,
    pub(crate) heads: usize,
    /// Columns of a head of queries and keys.
    pub(crate) size: usize,
    pub(crate) scale: f64,
    /// Added; its `lead` broadcasts to the heads.
    pub(crate) bias: Option<Offsets>,
    /// Added, each with its own factor.
    pub(crate) relative: Option<Box<Relative>>,
    /// All axes, `heads` first, leading ones of extent 1 included.
    pub(crate) rank: usize,
}

/// Products of tokens with a matrix for each head, of which a later operator may pick columns.
#[derive(Debug, Clone)]
pub(crate) struct ByHead {
    /// `[…, heads, n, size]`.
    pub(crate) tokens: Data,
    /// `[heads, size, columns]`.
    pub(crate) matrices: Value,
    /// The matrices as a table.
    pub(crate) side: Side,
    pub(crate) columns: usize,
}

/// For each pair of tokens the product of one of them with the column of their offset, seen as `[1, heads, n, n]`.
#[derive(Debug, Clone)]
pub(crate) struct ByDistance {
    /// Where the tokens are that are multiplied.
    pub(crate) of: HeadColumns,
    pub(crate) heads: usize,
    /// Columns of a head.
    pub(crate) size: usize,
    /// Whether they are the second of a pair and not the first.
    pub(crate) of_keys: bool,
    pub(crate) side: Side,
    pub(crate) columns: usize,
    /// By the place of the other token less that of the one that is multiplied.
    pub(crate) by_offset: Arc<[u32]>,
}

impl Axis {
    pub(crate) fn columns(extent: usize, stride: usize) -> Self {
        match extent {
            1 => Self::Unit,
            _ => Self::Columns { extent, stride },
        }
    }

    pub(crate) fn dim(self) -> Dim {
        match self {
            Self::Unit => Dim::ONE,
            Self::Tokens => Dim::TOKENS,
            Self::Columns { extent, .. } => Dim::new(extent as i64),
        }
    }
}

impl Data {
    /// All of a matrix, its columns in row-major order over `extents`, after `lead` axes.
    pub(crate) fn whole(node: NodeId, kind: Kind, lead: &[Axis], extents: &[usize]) -> Self {
        let strides = crate::constant::strides(extents);
        let columns = extents.iter().zip(strides);
        let columns = columns.map(|(&extent, stride)| Axis::columns(extent, stride));
        Self {
            node,
            kind,
            offset: 0,
            axes: lead.iter().copied().chain(columns).collect(),
        }
    }

    pub(crate) fn shape(&self) -> Vec<Dim> {
        self.axes.iter().map(|axis| axis.dim()).collect()
    }

    /// The axis of the tokens.
    pub(crate) fn token_axis(&self) -> Option<usize> {
        self.axes.iter().position(|&axis| axis == Axis::Tokens)
    }

    /// Extents and strides of the columns, in the order in which the graph sees them.
    pub(crate) fn columns(&self) -> Vec<(usize, usize)> {
        let axes = self.axes.iter();
        axes.filter_map(|axis| match *axis {
            Axis::Columns { extent, stride } => Some((extent, stride)),
            _ => None,
        })
        .collect()
    }

    /// How many columns it shows.
    pub(crate) fn width(&self) -> usize {
        self.columns().iter().map(|(extent, _)| extent).product()
    }

    /// Whether the columns shown are one run, in order.
    pub(crate) fn is_contiguous(&self) -> bool {
        let columns = self.columns();
        let extents: Vec<usize> = columns.iter().map(|&(extent, _)| extent).collect();
        let strides = crate::constant::strides(&extents);
        columns
            .iter()
            .zip(strides)
            .all(|(&(_, s), wanted)| s == wanted)
    }
}

impl Offsets {
    pub(crate) fn shape(&self) -> Vec<Dim> {
        let lead = self.lead.iter().map(|&extent| Dim::new(extent as i64));
        lead.chain([Dim::TOKENS, Dim::TOKENS]).collect()
    }

    /// Offsets there are values for.
    pub(crate) fn span(&self) -> usize {
        2 * self.positions - 1
    }

    pub(crate) fn map(&self, ledger: &Ledger, kind: Kind, f: impl Fn(f64) -> f64) -> Why<Self> {
        let values = self.values.iter().map(|&v| kind.round(f(v)));
        Ok(Self {
            kind,
            values: ledger.numbers(self.values.len(), values)?,
            ..self.clone()
        })
    }
}

impl Scores {
    pub(crate) fn shape(&self) -> Vec<Dim> {
        let mut shape = vec![Dim::ONE; self.rank];
        shape[self.rank - 2..].fill(Dim::TOKENS);
        if self.rank > 2 {
            shape[self.rank - 3] = Dim::new(self.heads as i64);
        }
        shape
    }
}

impl Value {
    pub(crate) fn constant(constant: Constant) -> Self {
        Self::Constant(Arc::new(constant))
    }

    pub(crate) fn shape(&self) -> Vec<Dim> {
        let fixed = |shape: &[usize]| shape.iter().map(|&e| Dim::new(e as i64)).collect();
        match self {
            Self::Constant(constant) => fixed(&constant.shape),
            Self::Weight(weight) => fixed(&weight.shape),
            Self::Dims { scalar: true, .. } => Vec::new(),
            Self::Dims { dims, .. } => fixed(&[dims.len()]),
            Self::Uniform { shape, .. } | Self::Unknown { shape, .. } => shape.clone(),
            Self::Offsets(offsets) => offsets.shape(),
            Self::Data(data) => data.shape(),
            Self::ByHead(products) => {
                let mut shape = products.tokens.shape();
                shape[3] = Dim::new(products.columns as i64);
                shape
            }
            Self::ByDistance(terms) => {
                vec![
                    Dim::ONE,
                    Dim::new(terms.heads as i64),
                    Dim::TOKENS,
                    Dim::TOKENS,
                ]
            }
            Self::Scores(scores) | Self::Probabilities(scores) => scores.shape(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Constant(constant) => constant.kind,
            Self::Weight(weight) => weight.kind,
            Self::Dims { .. } => Kind::Whole,
            Self::Uniform { kind, .. } | Self::Unknown { kind, .. } => *kind,
            Self::Offsets(offsets) => offsets.kind,
            Self::Data(data) => data.kind,
            Self::ByHead(_) | Self::ByDistance(_) | Self::Scores(_) | Self::Probabilities(_) => {
                Kind::Float
            }
        }
    }

    /// What it is, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Constant(_) => "a constant",
            Self::Weight(_) => "a weight",
            Self::Dims { .. } => "extents",
            Self::Uniform { .. } => "a mask",
            Self::Unknown { .. } => "indices for masks",
            Self::Offsets(_) => "values for pairs of tokens",
            Self::Data(_) => "hidden states",
            Self::ByHead(_) => "products by head",
            Self::ByDistance(_) | Self::Scores(_) => "attention scores",
            Self::Probabilities(_) => "attention probabilities",
        }
    }

    /// As a list of extents, if it is one.
    pub(crate) fn as_dims(&self) -> Option<Vec<Dim>> {
        match self {
            Self::Dims { dims, .. } => Some(dims.clone()),
            Self::Constant(constant)
                if constant.kind == Kind::Whole
                    && constant.shape.len() <= 1
                    && constant.values.len() <= MOST_DIMS =>
            {
                let values = constant.values.iter();
                Some(values.map(|&value| Dim::new(value as i64)).collect())
            }
            Self::Uniform {
                kind: Kind::Whole,
                value,
                shape,
            } if shape.len() <= 1 => {
                let length = shape.first().map_or(Some(1), |dim| dim.known())?;
                let length = usize::try_from(length)
                    .ok()
                    .filter(|&length| length <= 16)?;
                Some(vec![Dim::new(*value as i64); length])
            }
            _ => None,
        }
    }

    /// The one number that it is everywhere.
    pub(crate) fn uniform(&self) -> Option<f64> {
        match self {
            Self::Constant(constant) => constant.uniform(),
            Self::Uniform { value, .. } => Some(*value),
            Self::Dims { dims, .. } => {
                let (first, rest) = dims.split_first()?;
                let same = rest.iter().all(|dim| dim == first);
                first.known().filter(|_| same).map(|known| known as f64)
            }
            _ => None,
        }
    }
}
