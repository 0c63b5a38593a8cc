//! One run of a program over the texts of a batch.

mod batch;
mod compute;
mod gated;
mod map;
mod quantised;
mod zip;

use std::ops::Range;
use std::sync::Arc;

use isovec_engine::Result;
use isovec_engine::engine::Batch;
use isovec_engine::profile::Stepped;
use isovec_kernels::parallel::Pool;

pub use batch::Texts;
pub(crate) use map::activation;

use crate::bag::Work;
use crate::executable::{Executable, Step};
use crate::node::{Node, NodeId, Op, Rows};

/// A run: the texts' tokens one after another, and the results so far.
#[derive(Debug)]
pub struct Run {
    executable: Arc<Executable>,
    texts: Texts,
    /// By node, while something still reads it.
    values: Vec<Option<Vec<f32>>>,
    /// Memory of what nothing reads any more.
    spare: Vec<Vec<f32>>,
    /// The step under way, the rows of it that are done, and their place.
    at: usize,
    done: usize,
    out: Vec<f32>,
    scratch: Vec<isovec_kernels::Scratch>,
    quantised: quantised::Quantised,
    chosen: gated::Chosen,
}

impl Run {
    /// A run of a batch: tensors `[rows, length]` of whole numbers, or `[rows, length, width]` of floats, by the graph's
    /// names. Each row is as long as [`Texts::of`] finds it.
    ///
    /// # Errors
    /// [`InvalidInput`](isovec_engine::EngineError::InvalidInput) for a row without tokens, a mask with a hole, an
    /// invalid id, and a row that is longer than the model's tables.
    pub fn new(executable: Arc<Executable>, batch: &Batch) -> Result<Self> {
        let texts = Texts::of(batch, executable.positions)?;
        let mut values: Vec<Option<Vec<f32>>> = executable.steps.iter().map(|_| None).collect();
        for (step, value) in executable.steps.iter().zip(&mut values) {
            *value = match &step.node.op {
                Op::Input(name) => Some(texts.input(batch, name)?),
                Op::Values(name) => Some(texts.values(batch, name, step.node.width)?),
                Op::Position => Some(texts.positions()),
                Op::Length => Some(texts.lengths()),
                _ => None,
            };
        }
        Ok(Self {
            texts,
            values,
            spare: Vec::new(),
            at: 0,
            done: 0,
            out: Vec::new(),
            scratch: Vec::new(),
            quantised: quantised::Quantised::default(),
            chosen: gated::Chosen::default(),
            executable,
        })
    }

    /// Computes the next rows of the next operator, about `budget` multiply-adds of it (`None`:
    /// all of it); `None` when there is nothing left to do.
    ///
    /// # Errors
    /// [`InvalidInput`](isovec_engine::EngineError::InvalidInput) for an id that is not in its table.
    pub fn step(&mut self, budget: Option<u64>, pool: &dyn Pool) -> Result<Option<Stepped>> {
        let executable = Arc::clone(&self.executable);
        // What the caller gave is there already, and some nodes are their reader's work.
        let is_done = |at: usize, value: &Option<Vec<f32>>| {
            value.is_some() || executable.steps[at].work == Work::None
        };
        while (self.values.get(self.at)).is_some_and(|value| is_done(self.at, value)) {
            self.finish_step(&executable);
        }
        let Some(step) = executable.steps.get(self.at) else {
            return Ok(None);
        };
        let rows = self.rows(&step.node);
        if self.done == 0 {
            self.out = self.place(step, rows);
        }
        let each = cost(step, &executable, self.texts.longest().unwrap_or(1)).max(1);
        let most = budget.map_or(rows, |budget| (budget / each).max(1) as usize);
        let range = self.done..rows.min(self.texts.until(step, self.done, most));
        let computed = self.choose(step, &range);
        let report = Stepped {
            operator: step.node.op.name(),
            inner: inner(step, &executable),
            width: step.node.width,
            rows: range.len(),
            multiply_adds: each * computed as u64,
            bytes: (range.len() * step.node.width * size_of::<f32>()) as u64,
        };
        self.compute(&executable, step, range.clone(), pool)?;
        self.done = range.end;
        if self.done == rows {
            self.values[self.at] = Some(std::mem::take(&mut self.out));
            self.finish_step(&executable);
        }
        Ok(Some(report))
    }

    /// The outputs, in the graph's order: name, extents of a row, and the rows.
    pub fn finish(mut self) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        let all = &self.executable.outputs;
        let outputs = all.iter().enumerate().map(|(at, output)| {
            let again = all[at + 1..].iter().any(|other| other.node == output.node);
            let values = &mut self.values[output.node.0];
            let values = if again { values.clone() } else { values.take() };
            let values = values.unwrap_or_default();
            match output.of_tokens {
                false => (output.name.clone(), output.extents.clone(), values),
                true => {
                    let width = output.extents.iter().product();
                    let extents = [&[self.texts.length()], &output.extents[..]].concat();
                    (
                        output.name.clone(),
                        extents,
                        self.texts.padded(&values, width),
                    )
                }
            }
        });
        outputs.collect()
    }

    /// Texts of the batch.
    pub fn texts(&self) -> usize {
        self.texts.count()
    }

    fn finish_step(&mut self, executable: &Executable) {
        for &NodeId(dead) in &executable.steps[self.at].dead {
            self.spare.extend(self.values[dead].take());
        }
        self.at += 1;
        self.done = 0;
    }

    fn rows(&self, node: &Node) -> usize {
        match node.rows {
            Rows::Tokens => self.texts.tokens(),
            Rows::Texts => self.texts.count(),
        }
    }

    /// Memory for a result: its operand's, where that is computed in place, else one that is
    /// free, else new. Results are written whole, so it may hold anything.
    fn place(&mut self, step: &Step, rows: usize) -> Vec<f32> {
        let len = rows * step.node.width;
        if let Some(NodeId(x)) = in_place(&step.node.op).filter(|x| step.dead.contains(x))
            && let Some(values) = self.values[x].take_if(|values| values.len() == len)
        {
            return values;
        }
        // The smallest that is large enough, else the largest.
        let best = (0..self.spare.len()).min_by_key(|&at| {
            let capacity = self.spare[at].capacity();
            (capacity < len, capacity.abs_diff(len))
        });
        let mut values = best.map_or_else(Vec::new, |at| self.spare.swap_remove(at));
        values.resize(len, 0.0);
        if let Some(NodeId(x)) = in_place(&step.node.op)
            && let Some(x) = &self.values[x]
        {
            values.copy_from_slice(x);
        }
        values
    }
}

/// The operand that an operator changes in place.
fn in_place(op: &Op) -> Option<NodeId> {
    match op {
        Op::Map { x, .. } | Op::Softmax { x, .. } => Some(*x),
        Op::Norm(norm) => Some(norm.x),
        _ => None,
    }
}

/// Multiply-adds of a row of a step's result, or what takes about as long.
pub(crate) fn cost(step: &Step, executable: &Executable, longest: usize) -> u64 {
    crate::cost::of_row(&step.node, inner(step, executable), longest)
}

fn inner(step: &Step, executable: &Executable) -> usize {
    match (&step.node.op, step.weight) {
        (Op::Linear(_), Some(place)) => executable.weights.matrices[place].k(),
        (Op::Attention(attention), _) => attention.size,
        _ => 0,
    }
}

/// Computes some rows of a result, in the memory that is theirs.
type Rowwise<'a> = dyn Fn(Range<usize>, &mut [f32]) -> Result<()> + Sync + 'a;

/// Splits the rows of a result between threads. They are made of about so many values.
fn over_rows(
    pool: &dyn Pool,
    range: Range<usize>,
    (width, values): (usize, usize),
    out: &mut [f32],
    f: &Rowwise<'_>,
) -> Result<()> {
    /// Values that are worth another thread's attention.
    const WORTH: usize = 1 << 14;
    let jobs = pool.threads().min(values / WORTH).max(1);
    if jobs == 1 || width == 0 {
        return f(range, out);
    }
    let each = range.len().div_ceil(jobs).max(1);
    let parts: Vec<_> = out
        .chunks_mut(each * width)
        .enumerate()
        .map(|(number, part)| {
            let from = range.start + number * each;
            std::sync::Mutex::new(Some((from..from + part.len() / width, part, Ok(()))))
        })
        .collect();
    pool.run(parts.len(), &|number| {
        let mut part = parts[number]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((rows, out, result)) = part.as_mut() {
            *result = f(rows.clone(), out);
        }
    });
    for part in parts {
        let part = part
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        part.map_or(Ok(()), |(_, _, result)| result)?;
    }
    Ok(())
}
