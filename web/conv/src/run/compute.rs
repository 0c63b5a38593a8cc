//! The operators.

use std::ops::Range;

use isovec_engine::{EngineError, Result};
use isovec_kernels::conv::{
    Depthwise, add, average_pool, depthwise, limit, max_pool, mean_of_pixels, scale_and_shift,
    scale_channels, to_pixels, to_planes,
};
use isovec_kernels::gemm::{Buffer, Epilogue, Packed, Rows, gemm};
use isovec_kernels::parallel::Pool;
use isovec_kernels::{
    Activation, Attention, AttentionRun, Columns, Norm, NormKind, Scratch, l2_normalize, softmax,
};

use super::{Memory, too_large};
use crate::executable::{Executable, Step};
use crate::load::Loaded;
use crate::node::{Conv, Finish, HeadsOf, Node, NodeId, Op};

/// Bytes of the rows that a convolution gathers at a time, for each thread: what the second cache keeps.
const GATHERED: usize = 512 << 10;
/// The fewest rows at a time, so that the weights do not pass by too often.
const FEWEST: usize = 64;
/// Values that are worth another thread's attention.
const WORTH: usize = 1 << 14;

/// Steps of a sum; 0 where there is none.
pub(super) fn steps_of_sum(node: &Node) -> usize {
    match &node.op {
        Op::Conv(conv) => conv.steps(),
        _ => 0,
    }
}

/// Computes some units of a step's result.
pub(super) fn compute(
    executable: &Executable,
    at: usize,
    planes: &[f32],
    range: Range<usize>,
    memory: &mut Memory,
    pool: &dyn Pool,
) -> Result<()> {
    let step = &executable.steps[at];
    let place = executable.places.of[at];
    let mut out = std::mem::take(&mut memory.maps[place]);
    let mut rows = std::mem::take(&mut memory.rows);
    let each = step.node.map.len() / crate::cost::units(&step.node);
    let part = &mut out.as_mut_slice()[range.start * each..range.end * each];
    let values = Values {
        executable,
        maps: &memory.maps,
        planes,
        place,
    };
    let result = match (&step.node.op, &step.loaded) {
        (Op::Conv(conv), Some(Loaded::Product { groups, bias })) => values.product(
            step,
            conv,
            groups,
            bias.as_deref(),
            range,
            part,
            &mut rows,
            pool,
        ),
        (Op::Attention { .. }, _) => values.attention(&step.node, part, pool),
        _ => {
            over_rows(pool, range, each, part, &|range, part| {
                values.unitwise(step, range, part)
            });
            Ok(())
        }
    };
    (memory.maps[place], memory.rows) = (out, rows);
    result
}

/// What a step reads. The place of its result is empty meanwhile.
#[derive(Clone, Copy)]
struct Values<'a> {
    executable: &'a Executable,
    maps: &'a [Buffer],
    planes: &'a [f32],
    place: usize,
}

impl<'a> Values<'a> {
    fn node(&self, NodeId(node): NodeId) -> &'a Node {
        &self.executable.steps[node].node
    }

    /// All of a node's values.
    fn of(&self, node: NodeId) -> &'a [f32] {
        let len = self.node(node).map.len();
        self.maps[self.executable.places.of[node.0]]
            .as_slice()
            .get(..len)
            .unwrap_or_default()
    }

    /// Puts a node's values where they are to be changed, unless they are there.
    fn copy(&self, node: NodeId, range: Range<usize>, out: &mut [f32]) {
        if self.executable.places.of[node.0] != self.place {
            out.copy_from_slice(&self.of(node)[range]);
        }
    }

    /// A convolution as a product of rows with a matrix.
    #[allow(
        clippy::too_many_arguments,
        reason = "what a step has, and what it keeps"
    )]
    fn product(
        &self,
        step: &Step,
        conv: &Conv,
        groups: &[Packed],
        bias: Option<&[f32]>,
        range: Range<usize>,
        out: &mut [f32],
        gathered: &mut Buffer,
        pool: &dyn Pool,
    ) -> Result<()> {
        let (map, finish) = (step.node.map, step.node.finish);
        let x = self.of(conv.x);
        let (inputs, outputs) = (conv.windows.map.channels, map.channels);
        let (own, columns) = (inputs / groups.len(), outputs / groups.len());
        let pixels = range.start * map.width..range.end * map.width;
        let residual = finish.residual.map(|node| self.of(node));
        let steps = conv.steps();
        let most = GATHERED * pool.threads() / size_of::<f32>() / steps.max(1);
        let most = match conv.is_pointwise() {
            true => pixels.len(),
            false => most.max(FEWEST),
        };
        for (group, matrix) in groups.iter().enumerate() {
            let mut start = pixels.start;
            while start < pixels.end {
                let block = start..pixels.end.min(start + most);
                let a = if conv.is_pointwise() {
                    Rows {
                        values: &x[start * inputs + group * own..],
                        stride: inputs,
                    }
                } else {
                    let len = block.len() * steps;
                    gathered.grow(len).map_err(|_| too_large(len))?;
                    let gathered = &mut gathered.as_mut_slice()[..len];
                    let channels = group * own..(group + 1) * own;
                    over_rows(pool, block.clone(), steps, gathered, &|pixels, out| {
                        conv.windows.gather(x, channels.clone(), pixels, out);
                    });
                    Rows {
                        values: gathered,
                        stride: steps,
                    }
                };
                let first = group * columns;
                let epilogue = Epilogue {
                    bias: bias.map(|bias| &bias[first..first + columns]),
                    activation: finish.activation.map(Activation::function),
                    residual: residual.map(|residual| Rows {
                        values: &residual[start * outputs + first..],
                        stride: outputs,
                    }),
                    limits: finish.limits,
                };
                let out = &mut out[(start - pixels.start) * outputs + first..];
                let m = block.len();
                let computed = self.executable.f32.run([m, steps, columns], |kernel| {
                    gemm(kernel, m, a, matrix, &epilogue, out, outputs, pool)
                });
                computed.map_err(|mismatch| EngineError::Runtime {
                    engine: "portable",
                    doing: "running a program",
                    detail: mismatch.to_string(),
                })?;
                start = block.end;
            }
        }
        Ok(())
    }

    /// The attention of all pixels to each other.
    fn attention(&self, node: &Node, out: &mut [f32], pool: &dyn Pool) -> Result<()> {
        let Op::Attention {
            queries,
            keys,
            values,
            heads,
            scale,
        } = node.op
        else {
            return Ok(());
        };
        let width = node.map.channels;
        let columns = |of: HeadsOf| {
            let stride = self.node(of.x).map.channels;
            Columns::new(self.of(of.x), stride, of.first, width)
        };
        let attention = Attention {
            heads,
            kv_heads: heads,
            head_size: width / heads,
            scale,
            bias: None,
            relative: None,
            reach: None,
            causal: false,
            arithmetic: self.executable.arithmetic,
        };
        let offsets = [0, node.map.width];
        let [queries, keys, values] = [queries, keys, values].map(columns);
        let run = AttentionRun::new(attention, queries, keys, values, &offsets, out);
        let run = run.map_err(|error| EngineError::Runtime {
            engine: "portable",
            doing: "running a program",
            detail: error.to_string(),
        })?;
        let threads = pool.threads().min(run.jobs()).max(1);
        pool.run(threads, &|_| run.run(&mut Scratch::default()));
        self.finish(&node.finish, 0, out);
        Ok(())
    }

    /// Operators of which each unit is computed by itself.
    fn unitwise(&self, step: &Step, range: Range<usize>, out: &mut [f32]) {
        let node = &step.node;
        let row = node.map.width * node.map.channels;
        let values = range.start * row..range.end * row;
        match &node.op {
            Op::Input => {
                let first = range.start * node.map.width;
                to_pixels(self.planes, node.map.channels, first, out);
            }
            Op::Conv(conv) => {
                if let Some(Loaded::Depthwise { weights, bias }) = &step.loaded {
                    // Limits alone are part of the sums.
                    let mut finish = node.finish;
                    let limits = match finish.activation.is_none() && finish.residual.is_none() {
                        true => finish.limits.take(),
                        false => None,
                    };
                    let of = Depthwise {
                        windows: conv.windows,
                        weights,
                        bias,
                        limits,
                    };
                    let x = self.of(conv.x);
                    // Finished while the row is in the cache.
                    for (number, out) in out.chunks_exact_mut(row).enumerate() {
                        let at = range.start + number;
                        depthwise(&of, self.executable.arithmetic, x, at..at + 1, out);
                        self.finish(&finish, at * row, out);
                    }
                }
                return;
            }
            Op::MaxPool { x, windows } => max_pool(windows, self.of(*x), range, out),
            Op::AveragePool {
                x,
                windows,
                average,
            } => average_pool(windows, *average, self.of(*x), range, out),
            Op::Mean { x } => mean_of_pixels(self.of(*x), self.node(*x).map.width, out),
            Op::Same { x } => self.copy(*x, values.clone(), out),
            Op::Affine { x, scale, shift } => {
                self.copy(*x, values.clone(), out);
                let floats =
                    |all: &[f64]| all.iter().map(|&value| value as f32).collect::<Vec<_>>();
                scale_and_shift(out, &floats(scale), &floats(shift));
            }
            Op::Scale { x, by } => {
                self.copy(*x, values.clone(), out);
                scale_channels(out, self.of(*by));
            }
            Op::Multiply { x, by } => {
                self.copy(*x, values.clone(), out);
                for (x, by) in out.iter_mut().zip(&self.of(*by)[values.clone()]) {
                    *x *= by;
                }
            }
            Op::Norm {
                x,
                gamma,
                beta,
                epsilon,
            } => {
                self.copy(*x, values.clone(), out);
                Norm::new(NormKind::Layer, gamma, beta.as_deref(), *epsilon).apply(out);
            }
            Op::Softmax { x } => {
                self.copy(*x, values.clone(), out);
                softmax(out, node.map.channels);
            }
            Op::Attention { .. } => return,
            Op::Unit { x, least } => {
                self.copy(*x, values.clone(), out);
                l2_normalize(out, node.map.channels, *least);
            }
            Op::Planes { x } => to_planes(self.of(*x), self.node(*x).map.channels, out),
            Op::Concat { parts } => {
                let mut first = 0;
                for &part in parts {
                    let own = self.node(part).map.channels;
                    let from = &self.of(part)[range.start * node.map.width * own..];
                    let pixels = out
                        .chunks_exact_mut(node.map.channels)
                        .zip(from.chunks_exact(own));
                    for (pixel, from) in pixels {
                        pixel[first..first + own].copy_from_slice(from);
                    }
                    first += own;
                }
            }
            Op::Repeat { x, by } => {
                let (map, x) = (self.node(*x).map, self.of(*x));
                let line = map.width * map.channels;
                for (row, out) in range.zip(out.chunks_exact_mut(row)) {
                    let from = &x[row / by[0] * line..][..line];
                    let all = out.chunks_exact_mut(by[1] * map.channels);
                    for (out, pixel) in all.zip(from.chunks_exact(map.channels)) {
                        for out in out.chunks_exact_mut(map.channels) {
                            out.copy_from_slice(pixel);
                        }
                    }
                }
            }
            Op::Spread { x, by } => {
                let (map, x) = (self.node(*x).map, self.of(*x));
                let line = map.width * map.channels;
                let channels = node.map.channels;
                for (row, out) in range.zip(out.chunks_exact_mut(row)) {
                    let from = &x[row / by[0] * line..][..line];
                    let first = row % by[0] * by[1];
                    for (at, out) in out.chunks_exact_mut(channels).enumerate() {
                        let pixel = &from[at / by[1] * map.channels..][..map.channels];
                        let own = pixel[first + at % by[1]..].iter().step_by(by[0] * by[1]);
                        for (out, &value) in out.iter_mut().zip(own) {
                            *out = value;
                        }
                    }
                }
            }
        }
        self.finish(&node.finish, values.start, out);
    }

    /// What is done to a result, whose first value is the `first` of its map.
    fn finish(&self, finish: &Finish, first: usize, out: &mut [f32]) {
        if let Some(activation) = finish.activation {
            activation.apply(out);
        }
        if let Some(residual) = finish.residual {
            let len = out.len();
            add(out, &self.of(residual)[first..first + len]);
        }
        if let Some((least, most)) = finish.limits {
            limit(out, least, most);
        }
    }
}

/// Computes some units of a result, in the memory that is theirs.
type Unitwise<'a> = dyn Fn(Range<usize>, &mut [f32]) + Sync + 'a;

/// Splits the units of a result, of `each` values, between threads.
fn over_rows(pool: &dyn Pool, range: Range<usize>, each: usize, out: &mut [f32], f: &Unitwise<'_>) {
    let jobs = pool
        .threads()
        .min(out.len() / WORTH)
        .min(range.len())
        .max(1);
    if jobs == 1 {
        return f(range, out);
    }
    let units = range.len().div_ceil(jobs);
    let parts = out.chunks_mut(units * each).enumerate();
    let parts: Vec<_> = parts
        .map(|(number, part)| {
            let from = range.start + number * units;
            std::sync::Mutex::new((from..from + part.len() / each, part))
        })
        .collect();
    pool.run(parts.len(), &|number| {
        let mut part = parts[number]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (range, out) = &mut *part;
        f(range.clone(), out);
    });
}
