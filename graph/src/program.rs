//! A program: operators in order, and the weights that they read.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::Dim;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend};
use isovec_engine::weights::Sink as _;
use isovec_engine::{EngineError, Result};
use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{Choice, Clock, Int8Kernel, Kernel};

use crate::error::Unlowered;
use crate::fuse::fuse;
use crate::load::{self, Kernels, TableReader, Wanted, Weights};
use crate::lower::{Lowered, Output, lower};
use crate::node::{self, Node, NodeId, Op};

/// For how many tokens values for pairs of tokens are made, where the model does not say how long
/// its texts may be.
const DEFAULT_POSITIONS: usize = 8192;

/// A graph, ready to run.
#[derive(Debug)]
pub struct Program {
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) weights: Weights,
    pub(crate) f32: Choice<Kernel>,
    pub(crate) int8: Choice<Int8Kernel>,
    pub(crate) arithmetic: Arithmetic,
    /// The longest text.
    pub(crate) positions: Option<usize>,
}

/// An operator in its place.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) node: Node,
    /// Where its matrix or table is among the weights.
    pub(crate) weight: Option<usize>,
    /// Nodes that nothing reads after it.
    pub(crate) dead: Vec<NodeId>,
}

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The graph has something that a program cannot say.
    #[error(transparent)]
    Unlowered(#[from] Unlowered),
    /// The model is broken, its weights cannot be read, or the caller gave up.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Gives others a turn while a program is made.
pub trait Pause: MaybeSend {
    /// Called between two weights.
    fn pause(&mut self) -> BoxFuture<'_, ()>;
}

impl Program {
    /// Reads a bundle's graph and packs its weights, one at a time.
    ///
    /// # Errors
    /// [`CompileError::Unlowered`] before any large weight is read, naming the operator that has
    /// no place in a program; [`EngineError::Weight`] for a weight that is not what it was
    /// announced as; [`EngineError::Cancelled`].
    pub async fn compile(
        bundle: &ModelBundle,
        arithmetic: Arithmetic,
        cancel: &Cancel,
        pause: &mut dyn Pause,
    ) -> Result<Self, CompileError> {
        let known = load::small(bundle).await?;
        let mut lowered = lower(bundle, &known, longest(bundle))?;
        fuse(&mut lowered);
        pause.pause().await;
        cancel.check()?;
        let kernels = Kernels {
            f32: Kernel::select(arithmetic),
            int8: Int8Kernel::select(),
        };
        let mut wanted = Wanted::default();
        let places: Vec<Option<usize>> = lowered
            .builder
            .nodes
            .iter()
            .map(|node| match &node.op {
                Op::Linear(linear) => Some(wanted.matrix(&linear.matrix)),
                Op::Gather { table, .. } => Some(wanted.table(table)),
                _ => None,
            })
            .collect();
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            if wanted.of(index) && !load::readable(info.dtype) {
                let (name, dtype) = (&info.name, info.dtype);
                let why = format!("large weights are not read from {dtype}, as {name:?} is");
                return Err(Unlowered::Graph(why).into());
            }
        }
        let weights = read_weights(bundle, kernels, &wanted, cancel, pause).await?;
        Ok(Self::new(lowered, places, weights, arithmetic))
    }

    fn new(
        lowered: Lowered,
        places: Vec<Option<usize>>,
        weights: Weights,
        arithmetic: Arithmetic,
    ) -> Self {
        let Lowered { builder, outputs } = lowered;
        let mut last = vec![None; builder.nodes.len()];
        for (at, node) in builder.nodes.iter().enumerate() {
            for input in node.op.inputs() {
                last[input.0] = Some(at);
            }
        }
        for output in &outputs {
            last[output.node.0] = None;
        }
        let mut dead = vec![Vec::new(); builder.nodes.len()];
        for (node, last) in last.iter().enumerate() {
            if let Some(at) = last {
                dead[*at].push(NodeId(node));
            }
        }
        let steps = builder.nodes.into_iter().zip(places).zip(dead);
        let steps = steps.map(|((mut node, weight), dead)| {
            forget_weights(&mut node.op);
            Step { node, weight, dead }
        });
        Self {
            steps: steps.collect(),
            outputs,
            weights,
            f32: Choice::f32(arithmetic, None),
            int8: Choice::int8(None),
            arithmetic,
            positions: builder.positions,
        }
    }

    /// Gives it a clock, by which it finds out while it works which of the kernels that might suit
    /// the machine is the fastest. Results do not depend on it.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.f32 = Choice::f32(self.arithmetic, Some(clock));
        self.int8 = Choice::int8(Some(clock));
        self
    }

    /// Bytes of the weights as they are held.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// The most tokens of a text, where the model has tables for so many only.
    pub fn max_tokens(&self) -> Option<usize> {
        self.positions
    }

    /// The operators' names in the order in which they run: what fusion made of the graph.
    pub fn operators(&self) -> Vec<&'static str> {
        self.steps.iter().map(|step| step.node.op.name()).collect()
    }

    /// The multiply-adds of a token of a text of that length, in all operators.
    pub fn cost_of_token(&self, length: usize) -> u64 {
        let steps = self.steps.iter();
        steps.map(|step| crate::run::cost(step, self, length)).sum()
    }
}

/// Constants that were packed are not kept twice.
fn forget_weights(op: &mut Op) {
    let nothing: node::Floats = Arc::from([]);
    match op {
        Op::Linear(linear) => {
            linear.matrix = node::Matrix::Constant {
                values: nothing,
                rows: 0,
            };
        }
        Op::Gather { table, .. } => *table = node::Table::Constant(nothing),
        _ => {}
    }
}

async fn read_weights(
    bundle: &ModelBundle,
    kernels: Kernels,
    wanted: &Wanted,
    cancel: &Cancel,
    pause: &mut dyn Pause,
) -> Result<Weights, CompileError> {
    let mut matrices: Vec<_> = wanted.matrices.iter().map(|_| None).collect();
    let mut tables: Vec<_> = wanted.tables.iter().map(|_| None).collect();
    for (place, matrix) in wanted.matrices.iter().enumerate() {
        if let node::Matrix::Constant { values, rows } = matrix {
            matrices[place] = Some(load::pack_constant(kernels, values, *rows)?);
        }
    }
    for (place, table) in wanted.tables.iter().enumerate() {
        if let node::Table::Constant(values) = table {
            tables[place] = Some(load::Rows::F32(values.to_vec()));
        }
    }
    // In the source's order, each once, whatever it is for.
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        if !wanted.of(index) {
            continue;
        }
        let mut readers = wanted
            .tables_of(index)
            .map(|(place, weight)| Ok((place, TableReader::new(info, weight)?)))
            .collect::<Result<Vec<_>>>()?;
        if wanted.matrices_of(index).next().is_some() {
            let bytes = load::read(bundle, index).await?;
            for (place, weight) in wanted.matrices_of(index) {
                matrices[place] = Some(load::pack(kernels, info, weight, &bytes)?);
            }
            for (_, reader) in &mut readers {
                reader.take(&bytes)?;
            }
        } else {
            load::read_pieces(bundle, index, &mut readers).await?;
        }
        for (place, reader) in readers {
            tables[place] = Some(reader.finish()?);
        }
        pause.pause().await;
        cancel.check()?;
    }
    let missing = || Unlowered::Graph("a weight that nothing holds".into());
    let all = |found: Option<_>| found.ok_or_else(missing);
    Ok(Weights {
        matrices: matrices.into_iter().map(all).collect::<Result<_, _>>()?,
        tables: tables
            .into_iter()
            .map(|found| found.ok_or_else(missing))
            .collect::<Result<_, _>>()?,
    })
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
