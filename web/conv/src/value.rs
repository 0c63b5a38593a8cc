//! What the names of a graph stand for while it is read.

use std::sync::Arc;

use isovec_engine::budget::{Budget, Resource};
use isovec_engine::onnx::proto::{DataType, TensorProto};
use isovec_kernels::conv::Map;

use crate::error::Why;
use crate::lower::attention::{Heads, Scores};
use crate::node::NodeId;

/// A value of the graph.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Computed for every picture.
    Data(Data),
    /// Known.
    Numbers(Arc<Numbers>),
    /// A large weight, which has not been read.
    Weight { index: usize, shape: Vec<usize> },
    /// Extents of a shape: a list, or one of them.
    Extents { all: Vec<Extent>, scalar: bool },
    /// A step of the way to a layer normalisation, which only that reads.
    Moment { of: Data, moment: Moment },
    /// Tokens cut into heads, which only attention reads.
    Heads(Heads),
    /// Products of queries and keys.
    Scores(Box<Scores>),
    /// A step of the way to a vector's length, which only a normalisation reads.
    Length { of: Data, step: Step },
}

/// A step towards the normalisation of a pixel's channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    Mean,
    /// The value less the mean.
    Centred,
    /// The squares of that.
    Squares,
    /// Their mean, and a number more.
    Variance(f32),
    /// The root of the mean and the number.
    Deviation(f32),
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Squares,
    Sum,
    /// The length, or a number where it is less.
    AtLeast(f32),
}

/// A node's result as the graph sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) node: NodeId,
    /// In the graph's order. An axis of one element, other than the batch, is [`Axis::One`].
    pub(crate) axes: Vec<Axis>,
}

/// An axis of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    Batch,
    Row,
    Column,
    Channel,
    One,
}

impl Axis {
    /// Its extent in a map; `None` for the batch.
    pub(crate) fn extent(self, map: Map) -> Option<usize> {
        match self {
            Self::Batch => None,
            Self::Row => Some(map.height),
            Self::Column => Some(map.width),
            Self::Channel => Some(map.channels),
            Self::One => Some(1),
        }
    }

    /// The same axis, named [`Axis::One`] where it has one element.
    pub(crate) fn plain(self, map: Map) -> Self {
        match self.extent(map) {
            Some(1) => Self::One,
            _ => self,
        }
    }
}

/// The order of the graph's pictures.
pub(crate) const PLANAR: [Axis; 4] = [Axis::Batch, Axis::Channel, Axis::Row, Axis::Column];

/// An extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many.
    Known(i64),
    /// The number of pictures.
    Batch,
}

/// A known tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
    /// Whether they are whole numbers.
    pub(crate) whole: bool,
}

impl Numbers {
    /// The one that there is.
    pub(crate) fn one(&self) -> Option<f64> {
        match self.values[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// A tensor of the graph.
    pub(crate) fn of_tensor(tensor: &TensorProto, budget: &mut Budget) -> Why<Self> {
        let data_type = DataType::try_from(tensor.data_type)
            .map_err(|_| format!("element type {} is unknown", tensor.data_type))?;
        let shape = tensor.dims.iter().map(|&extent| usize::try_from(extent));
        let shape = shape.collect::<Result<Vec<_>, _>>();
        let shape = shape.map_err(|_| format!("extents {:?}", tensor.dims))?;
        Self::of_bytes(data_type, &shape, &tensor.raw_data, budget)
    }

    /// Numbers from their little-endian bytes. They are entered in the budget before memory is taken.
    pub(crate) fn of_bytes(
        data_type: DataType,
        shape: &[usize],
        bytes: &[u8],
        budget: &mut Budget,
    ) -> Why<Self> {
        fn all<const N: usize>(
            bytes: &[u8],
            budget: &mut Budget,
            f: impl Fn([u8; N]) -> f64,
        ) -> Why<Vec<f64>> {
            let chunks = bytes.as_chunks().0;
            let count = chunks.len() as u64;
            budget.take(Resource::Elements, count, "constants of the graph")?;
            let size = size_of::<f64>() as u64;
            budget.take(Resource::Bytes, count * size, "constants of the graph")?;
            Ok(chunks.iter().map(|&chunk| f(chunk)).collect())
        }
        let whole = matches!(data_type, DataType::Int64 | DataType::Int32);
        let values = match data_type {
            DataType::Float => all(bytes, budget, |b| f64::from(f32::from_le_bytes(b))),
            DataType::Double => all(bytes, budget, f64::from_le_bytes),
            DataType::Float16 => all(bytes, budget, |b| half::f16::from_le_bytes(b).to_f64()),
            DataType::Int64 => all(bytes, budget, |b| i64::from_le_bytes(b) as f64),
            DataType::Int32 => all(bytes, budget, |b| f64::from(i32::from_le_bytes(b))),
            other => return Err(format!("{other:?} is not computed with").into()),
        }?;
        let count = shape
            .iter()
            .try_fold(1_usize, |n, &extent| n.checked_mul(extent));
        if count != Some(values.len()) {
            let count = values.len();
            return Err(format!("shape {shape:?} does not hold {count} values").into());
        }
        Ok(Self {
            shape: shape.to_vec(),
            values,
            whole,
        })
    }
}

impl Value {
    /// In words.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Data(_) => "a computed value",
            Self::Numbers(_) => "a constant",
            Self::Weight { .. } => "a weight",
            Self::Extents { .. } => "a shape",
            Self::Moment { .. } => "a step of a normalisation",
            Self::Heads(_) => "heads of attention",
            Self::Scores(_) => "scores of attention",
            Self::Length { .. } => "a vector's length",
        }
    }

    /// A list of extents.
    pub(crate) fn extents(&self) -> Option<Vec<Extent>> {
        match self {
            Self::Extents { all, .. } => Some(all.clone()),
            Self::Numbers(numbers) if numbers.whole && numbers.shape.len() <= 1 => {
                let known = numbers.values.iter();
                Some(known.map(|&value| Extent::Known(value as i64)).collect())
            }
            _ => None,
        }
    }

    /// Whether it has no axes.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Extents { scalar, .. } => *scalar,
            Self::Numbers(numbers) => numbers.shape.is_empty(),
            _ => false,
        }
    }
}
