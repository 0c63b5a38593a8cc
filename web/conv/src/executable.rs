//! A program compiled for the processor: its operators in order, and their packed weights.

use std::sync::{Mutex, PoisonError};

use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::describe;
use isovec_engine::pause::Pause;
use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{Choice, Clock, Kernel};

use crate::error::{CompileError, Refused};
use crate::load::{self, Loaded};
use crate::lower::{Input, Lowered, Output, lower, take_bytes};
use crate::memory::Places;
use crate::node::{Node, Op, Weight};
use crate::run::Memory;

/// Values of maps for each of the picture, which are not taken from the budget: that is of the file's size, and whoever has a large
/// picture has its memory. Networks that keep a picture's extents for long take some ten.
const FOR_EACH: usize = 32;

/// Bytes of maps that are kept for the next run. Larger ones, of pages of text and the like, are asked for again: a network of many
/// sizes is loaded for several of them, and would keep the maps of each.
const SPARE: usize = 32 << 20;

/// A graph, ready to run.
#[derive(Debug)]
pub struct Executable {
    pub(crate) steps: Vec<Step>,
    pub(crate) input: Input,
    pub(crate) outputs: Vec<Output>,
    pub(crate) places: Places,
    pub(crate) f32: Choice<Kernel>,
    pub(crate) arithmetic: Arithmetic,
    /// Memory of runs that are over, for the next ones.
    spare: Mutex<Vec<Memory>>,
}

/// An operator in its place.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) node: Node,
    pub(crate) loaded: Option<Loaded>,
}

impl Executable {
    /// Reads a bundle's graph and packs its weights, one at a time.
    ///
    /// # Errors
    /// [`CompileError::Refused`] before any large weight is read, naming the operator that there is no program for;
    /// [`EngineError::Weight`](isovec_engine::EngineError::Weight) for a weight that does not match its description;
    /// [`EngineError::OverBudget`](isovec_engine::EngineError::OverBudget) for a graph that asks for more memory than a
    /// model of its size may take; [`EngineError::Cancelled`](isovec_engine::EngineError::Cancelled).
    pub async fn compile(
        bundle: &ModelBundle,
        arithmetic: Arithmetic,
        cancel: &Cancel,
        pause: &mut dyn Pause,
    ) -> Result<Self, CompileError> {
        let mut budget = Budget::for_files(describe(bundle).weights_bytes).with_cancel(cancel);
        let graph = bundle.graph.graph.iter();
        let nodes = graph.map(|graph| graph.node.len() as u64).sum();
        budget.take(Resource::Nodes, nodes, "the graph")?;
        if !has_convolution(bundle) {
            return Err(Refused::NoConvolution.into());
        }
        let known = load::lists(bundle, &mut budget).await?;
        let lowered = lower(bundle, known, &mut budget, pause).await?;
        let Lowered {
            nodes,
            input,
            outputs,
        } = lowered;
        let places = Places::find(&nodes, &outputs);
        let beyond = places
            .len()
            .saturating_sub(input.map.len().saturating_mul(FOR_EACH));
        take_bytes(&mut budget, beyond as u64, "the maps of a picture")?;
        let kernel = Kernel::select(arithmetic);
        for node in &nodes {
            let Op::Conv(conv) = &node.op else { continue };
            if let Weight::Stored(index) = conv.weight
                && let info = &bundle.weights.weights()[index]
                && !load::readable(info.dtype)
            {
                let (name, dtype) = (&info.name, info.dtype);
                let why = format!("large weights are not read from {dtype}, as {name:?} is");
                return Err(Refused::Graph(why).into());
            }
            load::take_padding(conv, node.map, kernel.panel(), &mut budget)?;
        }
        let mut steps = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            let loaded = match &mut node.op {
                Op::Conv(conv) => {
                    pause.pause().await;
                    cancel.check()?;
                    let loaded = load::load(bundle, conv, node.map, kernel).await?;
                    // What was packed is not kept twice.
                    conv.weight = Weight::Known([].into());
                    (conv.scale, conv.bias) = (None, None);
                    Some(loaded)
                }
                _ => None,
            };
            steps.push(Step { node, loaded });
        }
        Ok(Self {
            steps,
            input,
            outputs,
            places,
            f32: Choice::f32(arithmetic, None),
            arithmetic,
            spare: Mutex::default(),
        })
    }

    /// Gives it a clock. With it, it measures during normal work which kernel is the fastest on this machine. Results
    /// do not depend on it.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.f32 = Choice::f32(self.arithmetic, Some(clock));
        self
    }

    /// Bytes of the weights as they are held.
    pub fn weight_bytes(&self) -> usize {
        let loaded = self.steps.iter().filter_map(|step| step.loaded.as_ref());
        loaded.map(Loaded::bytes).sum()
    }

    /// Bytes that the maps of a run take, however many pictures it has.
    pub fn map_bytes(&self) -> usize {
        self.places.len() * size_of::<f32>()
    }

    /// The names of the fused operators, in the order in which they run.
    pub fn operators(&self) -> Vec<&'static str> {
        let nodes = self.steps.iter().map(|step| &step.node);
        nodes.map(|node| node.op.name(node.map)).collect()
    }

    /// The multiply-adds of a picture, in all operators.
    pub fn cost(&self) -> u64 {
        let nodes = self.steps.iter().map(|step| &step.node);
        nodes
            .map(|node| crate::cost::of_unit(node).saturating_mul(crate::cost::units(node) as u64))
            .sum()
    }

    /// Memory of a run that is over, or none.
    pub(crate) fn memory(&self) -> Memory {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    /// Takes the memory of a run that is over.
    pub(crate) fn keep(&self, memory: Memory) {
        if self.map_bytes() > SPARE {
            return;
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(memory);
    }
}

fn has_convolution(bundle: &ModelBundle) -> bool {
    let mut nodes = bundle.graph.graph.iter().flat_map(|graph| &graph.node);
    nodes.any(|node| node.op_type == "Conv")
}
