//! A program: the operators that a graph is lowered to, in order, before any large weight is read.

use isovec_engine::Result;
use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::maybe_send::MaybeSend;
use isovec_engine::pause::Pause;
use isovec_engine::tensor::DType;

use crate::error::Unlowered;
use crate::executable::CompileError;
use crate::fuse::fuse;
use crate::ledger::Ledger;
use crate::load::{self, Needed, StoredMatrix, StoredTable};
use crate::lower::{Lowered, lower};

pub use crate::lower::Output;
pub use crate::node::{
    Attention, Binary, Floats, Linear, Matrix, Node, NodeId, Norm, NormKind, Op, Operand,
    Reduction, Relative, Rows, Side, Source, Table, Unary, Which,
};
pub use crate::value::{HeadColumns, Weight};

/// For how many tokens values for pairs of tokens are made, where the model does not say how long
/// its texts may be.
const DEFAULT_POSITIONS: usize = 8192;

/// A program: operators in order, and the weights that they need.
#[derive(Debug, Clone)]
pub struct Program {
    /// Each reads only those before it.
    pub nodes: Vec<Node>,
    /// The graph's outputs, in its order.
    pub outputs: Vec<Output>,
    /// The longest text that every table reaches for.
    pub positions: Option<usize>,
    /// Where each node's matrix or table is among those of its kind.
    pub places: Vec<Option<usize>>,
    pub(crate) needed: Needed,
}

/// Takes the weights of a program, in the order of the bundle.
pub trait TakeWeights: MaybeSend {
    /// The matrix at a place, which is gone when this returns.
    ///
    /// # Errors
    /// Whatever ends the reading.
    fn matrix(&mut self, place: usize, matrix: &StoredMatrix<'_>) -> Result<()>;

    /// The table at a place.
    ///
    /// # Errors
    /// Whatever ends the reading.
    fn table(&mut self, place: usize, table: StoredTable) -> Result<()>;

    /// Whether a matrix costs no more where its bytes are those of the transposed one.
    fn takes_turned(&self) -> bool {
        false
    }
}

impl Program {
    /// Lowers a bundle's graph without reading its large weights. Other work gets a turn every few operators.
    ///
    /// # Errors
    /// [`CompileError::Unlowered`], naming the operator that cannot be lowered;
    /// [`EngineError::OverBudget`](isovec_engine::EngineError::OverBudget) for a graph that asks for more than a
    /// model of its size may cost; [`EngineError::Weight`](isovec_engine::EngineError::Weight) for a weight that
    /// cannot be read; [`EngineError::Cancelled`](isovec_engine::EngineError::Cancelled), looked at before every
    /// operator.
    pub async fn read(
        bundle: &ModelBundle,
        cancel: &Cancel,
        pause: &mut dyn Pause,
    ) -> Result<Self, CompileError> {
        let ledger = Ledger::new(Budget::for_files(size(bundle)).with_cancel(cancel));
        let known = load::small(bundle, &ledger).await?;
        let mut lowered = lower(bundle, known, longest(bundle), &ledger, pause).await?;
        fuse(&mut lowered);
        let Lowered {
            mut builder,
            outputs,
        } = lowered;
        let mut needed = Needed::default();
        let places = builder.nodes.iter_mut().map(|node| match &mut node.op {
            Op::Linear(linear) => Some(needed.matrix(&linear.matrix)),
            Op::Gather { table, .. } => Some(needed.table(table)),
            Op::Attention(attention) => {
                let relative = attention.relative.iter_mut();
                for side in relative.flat_map(|own| own.queries.iter_mut().chain(&mut own.keys)) {
                    side.place = needed.table(&side.table);
                }
                None
            }
            _ => None,
        });
        let places = places.collect();
        let copied = needed.copied().saturating_mul(size_of::<f32>() as u64);
        if ledger
            .take(Resource::Bytes, copied, "matrices that the graph makes")
            .is_err()
            && let Some(error) = ledger.refused()
        {
            return Err(error.clone().into());
        }
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            if needed.of(index) && !load::readable(info.dtype) {
                let (name, dtype) = (&info.name, info.dtype);
                let why = format!("large weights are not read from {dtype}, as {name:?} is");
                return Err(Unlowered::Graph(why).into());
            }
        }
        Ok(Self {
            nodes: builder.nodes,
            outputs,
            positions: builder.positions,
            places,
            needed,
        })
    }

    /// The number of matrices, and of tables.
    pub fn weights(&self) -> (usize, usize) {
        (self.needed.matrices.len(), self.needed.tables.len())
    }

    /// The type in which a matrix comes: f16 or f32.
    pub fn matrix_dtype(&self, bundle: &ModelBundle, place: usize) -> DType {
        match self.needed.matrices.get(place) {
            Some(Matrix::Weight(weight)) if weight.scale.is_none() => {
                match bundle.weights.weights()[weight.index].dtype {
                    DType::F16 => DType::F16,
                    _ => DType::F32,
                }
            }
            _ => DType::F32,
        }
    }

    /// The type in which a table comes (f32, f16, or i8 with a scale for every row), and its rows
    /// and columns.
    pub fn table(&self, bundle: &ModelBundle, place: usize) -> (DType, usize, usize) {
        match &self.needed.tables[place] {
            Table::Weight(weight) => {
                let info = &bundle.weights.weights()[weight.index];
                load::table_form(info, weight)
            }
            Table::Constant(values) => {
                let mut readers = self.places.iter().zip(&self.nodes);
                let width = readers.find_map(|(own, node)| match &node.op {
                    Op::Gather { .. } if *own == Some(place) => Some(node.width.max(1)),
                    Op::Attention(attention) => {
                        let reads = attention.sides().any(|side| side.place == place);
                        let relative = attention.relative.as_ref().filter(|_| reads)?;
                        Some(attention.size * relative.columns)
                    }
                    _ => None,
                });
                let width = width.unwrap_or(1);
                (DType::F32, values.len() / width, width)
            }
        }
    }

    /// Passes on all weights, each once, however many nodes need it.
    ///
    /// # Errors
    /// [`EngineError::Weight`](isovec_engine::EngineError::Weight) for a weight that does not match its description,
    /// `Cancelled`, and the errors of `taker`.
    pub async fn read_weights(
        &self,
        bundle: &ModelBundle,
        taker: &mut dyn TakeWeights,
        cancel: &Cancel,
        pause: &mut dyn Pause,
    ) -> Result<()> {
        load::read_all(bundle, &self.needed, taker, cancel, pause).await
    }
}

/// The approximate bytes of a model: its weights and its graph.
fn size(bundle: &ModelBundle) -> u64 {
    let weights = bundle.weights.weights().iter();
    let weights = weights.map(|weight| weight.byte_len() as u64);
    let graph = bundle.graph.graph.iter();
    let tensors = graph.clone().flat_map(|graph| &graph.initializer);
    let tensors = tensors.map(|tensor| tensor.raw_data.len() as u64);
    let nodes = graph.flat_map(|graph| &graph.node).map(|node| {
        let names = node.input.iter().chain(&node.output).map(String::len);
        let attributes = node.attribute.iter().map(|attribute| {
            let tensor = attribute
                .t
                .as_ref()
                .map_or(0, |tensor| tensor.raw_data.len());
            attribute.name.len() + attribute.s.len() + attribute.ints.len() + tensor
        });
        let own = node.name.len() + node.op_type.len();
        (own + names.sum::<usize>() + attributes.sum::<usize>()) as u64
    });
    let all = weights.chain(tensors).chain(nodes);
    all.fold(0, u64::saturating_add)
}

/// The longest text that the model's configuration speaks of.
fn longest(bundle: &ModelBundle) -> usize {
    let description = isovec_engine::description::describe(bundle);
    let fixed = description
        .inputs
        .iter()
        .find_map(|input| match input.dims.as_deref() {
            Some([_, Dim::Fixed(length)]) => Some(*length),
            _ => None,
        });
    fixed.unwrap_or(DEFAULT_POSITIONS)
}
