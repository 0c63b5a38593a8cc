//! A program compiled for the processor: its operators in order, and their packed weights.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::pause::Pause;
use isovec_engine::{EngineError, Result};
use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{ActivationBits, Choice, Clock, Int8Kernel, Kernel};

use crate::bag::{self, Work};
use crate::error::Unlowered;
use crate::gate::{self, Gate};
use crate::load::{Kernels, Matrix, Packing, Weights};
use crate::lower::Output;
use crate::node::{self, Node, NodeId, Op};
use crate::program::Program;

/// A graph, ready to run.
#[derive(Debug)]
pub struct Executable {
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) weights: Weights,
    pub(crate) f32: Choice<Kernel>,
    pub(crate) int8: Choice<Int8Kernel>,
    pub(crate) arithmetic: Arithmetic,
    /// What products with whole numbers make of activations.
    bits: ActivationBits,
    /// The longest text.
    pub(crate) positions: Option<usize>,
}

/// An operator in its place.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) node: Node,
    /// Where its matrix or table is among the weights.
    pub(crate) weight: Option<usize>,
    /// What it computes.
    pub(crate) work: Work,
    /// What says which rows it computes.
    pub(crate) gate: Option<Gate>,
    /// Nodes that nothing reads after it.
    pub(crate) dead: Vec<NodeId>,
}

/// Why a graph cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The graph has an operator that cannot be lowered.
    #[error(transparent)]
    Unlowered(#[from] Unlowered),
    /// The model is broken, its weights cannot be read, or the load was cancelled.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Executable {
    /// Reads a bundle's graph and packs its weights, one at a time.
    ///
    /// # Errors
    /// [`CompileError::Unlowered`] before any large weight is read, naming the operator that cannot be lowered;
    /// [`EngineError::Weight`] for a weight that does not match its description; [`EngineError::OverBudget`] and
    /// [`EngineError::Cancelled`] as [`Program::read`].
    pub async fn compile(
        bundle: &ModelBundle,
        arithmetic: Arithmetic,
        cancel: &Cancel,
        pause: &mut dyn Pause,
    ) -> Result<Self, CompileError> {
        let program = Program::read(bundle, cancel, pause).await?;
        pause.pause().await;
        cancel.check()?;
        let bits = match bundle.rounds_activations() {
            true => ActivationBits::Eight,
            false => ActivationBits::Wide,
        };
        let kernels = Kernels {
            f32: Kernel::select(arithmetic),
            int8: Int8Kernel::select(bits),
        };
        let mut packing = Packing::new(kernels, &program, bundle);
        program
            .read_weights(bundle, &mut packing, cancel, pause)
            .await?;
        Ok(Self::new(program, packing.finish()?, arithmetic, bits))
    }

    fn new(
        program: Program,
        weights: Weights,
        arithmetic: Arithmetic,
        bits: ActivationBits,
    ) -> Self {
        let Program {
            nodes,
            outputs,
            places,
            positions,
            ..
        } = program;
        let work = bag::work(&nodes, &places, &outputs);
        let gates = gate::gates(&nodes, &outputs);
        let mut last = vec![None; nodes.len()];
        for (at, (node, work)) in nodes.iter().zip(&work).enumerate() {
            let inputs = match work {
                Work::Own => node.op.inputs(),
                Work::None => Vec::new(),
                Work::Bag(bag) => bag.inputs().collect(),
            };
            for input in inputs {
                last[input.0] = Some(at);
            }
        }
        for output in &outputs {
            last[output.node.0] = None;
        }
        let mut dead = vec![Vec::new(); nodes.len()];
        for (node, last) in last.iter().enumerate() {
            if let Some(at) = last {
                dead[*at].push(NodeId(node));
            }
        }
        let steps = nodes.into_iter().zip(places).zip(work).zip(gates).zip(dead);
        let steps = steps.map(|((((mut node, weight), work), gate), dead)| {
            forget_weights(&mut node.op);
            Step {
                node,
                weight,
                work,
                gate,
                dead,
            }
        });
        Self {
            steps: steps.collect(),
            outputs,
            weights,
            f32: Choice::f32(arithmetic, None),
            int8: Choice::int8(bits, None),
            arithmetic,
            bits,
            positions,
        }
    }

    /// Gives it a clock. With it, it measures during normal work which kernel is the fastest on this machine. Results
    /// do not depend on it.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.f32 = Choice::f32(self.arithmetic, Some(clock));
        self.int8 = Choice::int8(self.bits, Some(clock));
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

    /// Whether some products round activations to 8 bits, as the model asks.
    pub fn rounds_activations(&self) -> bool {
        let whole = |matrix: &Matrix| matches!(matrix, Matrix::Int8(_));
        self.bits == ActivationBits::Eight && self.weights.matrices.iter().any(whole)
    }

    /// The names of the fused operators, in the order in which they run.
    pub fn operators(&self) -> Vec<&'static str> {
        let steps = self.steps.iter().filter(|step| step.work != Work::None);
        steps.map(|step| step.node.op.name()).collect()
    }

    /// The multiply-adds of a token of a text of that length, in all operators.
    pub fn cost_of_token(&self, length: usize) -> u64 {
        let steps = self.steps.iter().filter(|step| step.work != Work::None);
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
