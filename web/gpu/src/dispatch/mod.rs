//! Turns a program into dispatches: it decides which results are written to memory, which kernel computes each of
//! them, and where they lie.

mod halves;
mod merge;
mod slots;
pub(crate) mod written;

use std::collections::{HashMap, HashSet};

use isovec_encoder::Program;
use isovec_encoder::program::{Node, NodeId, Op, Output, Rows};

use crate::batch::Given;
use crate::constants::{Constants, Region, Regions};
use crate::kernels::{Items, Kernel, Reads, attention, linear, row};
use crate::limits::Limits;

pub(crate) use merge::Part;
pub(crate) use slots::Slot;

/// A model as dispatches.
#[derive(Debug)]
pub(crate) struct Dispatches {
    /// In the order in which they run.
    pub(crate) steps: Vec<Step>,
    /// Memory that results take turns in.
    pub(crate) slots: Vec<Slot>,
    /// Matrices that products want, side by side.
    pub(crate) products: Vec<Product>,
    /// Small numbers of the model.
    pub(crate) constants: Vec<f32>,
    /// The caller's tensors that kernels read, in the order of the batch's words.
    pub(crate) inputs: Vec<Given>,
    /// The graph's outputs, and where they are.
    pub(crate) outputs: Vec<(Output, usize)>,
    /// For every table, the smallest number of rows that ids of an input may point to.
    pub(crate) ids: Vec<(String, usize)>,
    /// The longest text.
    pub(crate) positions: Option<usize>,
}

/// A dispatch.
#[derive(Debug)]
pub(crate) struct Step {
    /// What is computed, in profiles.
    pub(crate) name: &'static str,
    /// From how many rows on which kernel runs.
    pub(crate) kernels: Vec<(usize, Kernel)>,
    pub(crate) constants: Region,
    /// What the kernel reads, in its order.
    pub(crate) reads: Vec<Read>,
    /// The slot that it writes.
    pub(crate) slot: usize,
    pub(crate) rows: Rows,
    /// Multiply-adds of a row, or what takes about as long; those of attention are times the length
    /// of the text.
    pub(crate) cost: u64,
    /// Whether they are.
    pub(crate) quadratic: bool,
    /// Steps of a product's sums, or columns of a head.
    pub(crate) inner: usize,
    /// Columns of the result.
    pub(crate) width: usize,
    /// Bytes of a row of it.
    pub(crate) row_bytes: usize,
}

/// What a kernel reads beside the batch and the constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Slot(usize),
    /// A product's matrix.
    Product(usize),
    /// A part of a table, by the table's place among the program's.
    Table {
        place: usize,
        part: usize,
    },
    /// Nothing is read: something has to be bound.
    Nothing,
}

/// A product's weight: matrices of the program, side by side.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) parts: Vec<Part>,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

/// A program with merged products.
pub(crate) struct Merged {
    pub(crate) nodes: Vec<Node>,
    /// By the node of a product.
    pub(crate) parts: HashMap<NodeId, Vec<Part>>,
    /// Results that are held as f16.
    pub(crate) halves: HashSet<NodeId>,
}

impl Merged {
    /// How a result that is written lies in memory.
    pub(crate) fn items(&self, id: NodeId) -> Items {
        match self.halves.contains(&id) {
            true => Items::F16,
            false => Items::F32,
        }
    }

    /// Bytes of a row of a result.
    pub(crate) fn row_bytes(&self, id: NodeId) -> usize {
        self.nodes[id.0].width * self.items(id).bytes()
    }
}

/// The form of the program's weights, which a kernel has to know.
pub(crate) trait Weights {
    /// Whether a product's matrix is held as f16.
    fn half(&self, parts: &[Part]) -> bool;
    /// How a table is held.
    fn table(&self, place: usize) -> &TableForm;
}

/// How a table is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableForm {
    pub(crate) stored: TableStored,
    /// Rows of each of its parts but the last, which may have fewer.
    pub(crate) part_rows: usize,
    pub(crate) rows: usize,
    pub(crate) width: usize,
}

/// The numbers of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableStored {
    F32,
    /// Two to a word.
    F16,
    /// Four to a word; the rows' scales behind them.
    I8,
}

impl TableForm {
    pub(crate) fn parts(&self) -> usize {
        self.rows.div_ceil(self.part_rows.max(1)).max(1)
    }
}

/// Makes dispatches of a program.
///
/// # Errors
/// In words, when the device's limits do not allow a kernel.
pub(crate) fn compile(
    program: &Program,
    weights: &dyn Weights,
    limits: &Limits,
) -> Result<Dispatches, String> {
    let mut merged = merge::merge(program);
    let outputs: Vec<NodeId> = program.outputs.iter().map(|output| output.node).collect();
    let mut written = written::written(&merged.nodes, &outputs);
    let mut inputs = Vec::new();
    let mut ids = Vec::new();
    // A kernel that needs more than the device has is split, by writing one of its parts down.
    let kernels = loop {
        inputs.clear();
        ids.clear();
        if limits.half {
            merged.halves = halves::halves(&merged.nodes, &written, &outputs);
        }
        let mut kernels = Vec::new();
        let mut split = None;
        for (at, node) in merged.nodes.iter().enumerate() {
            let id = NodeId(at);
            if !written.contains(&id) {
                continue;
            }
            let mut constants = Constants::default();
            let made = match &node.op {
                Op::Linear(op) => {
                    let parts = &merged.parts[&id];
                    let kernel =
                        linear::kernel(&merged, id, op, parts, weights, &mut constants, limits);
                    Ok(kernel)
                }
                Op::Attention(op) => {
                    attention::kernel(&merged, id, op, weights, &mut constants, limits)
                }
                _ => row::Writer {
                    program,
                    merged: &merged,
                    written: &written,
                    weights,
                    limits,
                    constants: &mut constants,
                    inputs: &mut inputs,
                    ids: &mut ids,
                }
                .kernel(id),
            };
            match made {
                Ok(kernel) => kernels.push((id, kernel, constants)),
                Err(row::TooLarge::Split(inner)) => {
                    split = Some(inner);
                    break;
                }
                Err(row::TooLarge::Refused(why)) => return Err(why),
            }
        }
        match split {
            Some(inner) => {
                written.insert(inner);
            }
            None => break kernels,
        }
    };
    let reads = kernels.iter().map(|(id, made, _)| (*id, &made.reads[..]));
    let placed = slots::place(&merged, &reads.collect::<Vec<_>>(), &outputs);
    let mut regions = Regions::default();
    let mut products = Vec::new();
    let mut steps = Vec::new();
    for ((id, made, constants), slot) in kernels.into_iter().zip(&placed.of_steps) {
        let node = &merged.nodes[id.0];
        let reads = made.reads.into_iter().map(|read| match read {
            Reads::Node(node) => Read::Slot(placed.of_nodes[&node]),
            Reads::Table { place, part } => Read::Table { place, part },
            Reads::Product => {
                let parts = merged.parts[&id].clone();
                let (k, n) = (made.inner, node.width);
                products.push(Product { parts, k, n });
                Read::Product(products.len() - 1)
            }
            Reads::Nothing => Read::Nothing,
        });
        steps.push(Step {
            name: made.name,
            reads: reads.collect(),
            kernels: made.kernels,
            constants: regions.add(constants),
            slot: *slot,
            rows: node.rows,
            cost: made.cost,
            quadratic: matches!(node.op, Op::Attention(_)),
            inner: made.inner,
            width: node.width,
            row_bytes: merged.row_bytes(id),
        });
    }
    let outputs = program.outputs.iter();
    let outputs = outputs.map(|output| (output.clone(), placed.of_nodes[&output.node]));
    Ok(Dispatches {
        outputs: outputs.collect(),
        steps,
        slots: placed.slots,
        products,
        constants: regions.values,
        inputs,
        ids,
        positions: program.positions,
    })
}
