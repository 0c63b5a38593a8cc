//! The operators.

use std::ops::Range;

use isovec_engine::{EngineError, Result};
use isovec_kernels::gemm::{Epilogue, Rows as Strided, gemm, gemm_int8};
use isovec_kernels::parallel::Pool;
use isovec_kernels::{
    self as kernels, Attention as Heads, AttentionRun, Columns, Index, KernelError, Norm as Normal,
    NormKind as Normed, OffsetBias, Scratch, Table, embed, reduce, softmax, sum_rows,
};

use super::gated::Chosen;
use super::quantised::Quantised;
use super::zip::{Walk, copy, select, zip};
use super::{Run, activation, map, over_rows};
use crate::bag::{Bag, Lookup, Work};
use crate::executable::{Executable, Step};
use crate::load::Matrix;
use crate::node::{
    Attention, Linear, NodeId, Norm, NormKind, Op, Operand, Reduction, Rows, Source, Which,
};
use crate::value::HeadColumns;

impl Run {
    /// Computes rows of a step's result, in `self.out`.
    pub(super) fn compute(
        &mut self,
        executable: &Executable,
        step: &Step,
        range: Range<usize>,
        pool: &dyn Pool,
    ) -> Result<()> {
        let mut out = std::mem::take(&mut self.out);
        let mut scratch = std::mem::take(&mut self.scratch);
        let width = step.node.width;
        let part = &mut out[range.start * width..range.end * width];
        if let Work::Bag(bag) = &step.work {
            let tokens = self.texts.offsets();
            let values = (tokens[range.end] - tokens[range.start]) * width;
            let sum = |range, part: &mut [f32]| self.bag(executable, bag, range, part);
            let result = over_rows(pool, range, (width, values), part, &sum);
            (self.out, self.scratch) = (out, scratch);
            return result;
        }
        let values = part.len();
        let result = match &step.node.op {
            Op::Linear(linear) => {
                let mut kept = (
                    std::mem::take(&mut self.quantised),
                    std::mem::take(&mut self.chosen),
                );
                let result = self.linear(executable, step, linear, range, part, pool, &mut kept);
                (self.quantised, self.chosen) = kept;
                result
            }
            Op::Attention(attention) => {
                self.attention(executable, attention, range, part, pool, &mut scratch)
            }
            op => over_rows(pool, range, (width, values), part, &|range, part| {
                self.rowwise(executable, step, op, range, part)
            }),
        };
        (self.out, self.scratch) = (out, scratch);
        result
    }

    /// All of a node's values. They are there: nodes are computed in order, and kept until their
    /// last reader has run.
    pub(super) fn value(&self, NodeId(node): NodeId) -> &[f32] {
        self.values[node].as_deref().unwrap_or_default()
    }

    pub(super) fn width(&self, NodeId(node): NodeId) -> usize {
        self.executable.steps[node].node.width
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "what a step has, and what it keeps"
    )]
    fn linear(
        &self,
        executable: &Executable,
        step: &Step,
        linear: &Linear,
        range: Range<usize>,
        out: &mut [f32],
        pool: &dyn Pool,
        (quantised, chosen): &mut (Quantised, Chosen),
    ) -> Result<()> {
        let matrix = &executable.weights.matrices[step.weight.unwrap_or_default()];
        let rows = |node: NodeId| {
            let stride = self.width(node);
            Strided {
                values: &self.value(node)[range.start * stride..],
                stride,
            }
        };
        let epilogue = Epilogue {
            bias: linear.bias.as_deref(),
            activation: linear.activation.and_then(activation),
            residual: linear.residual.map(rows),
            limits: None,
        };
        let (x, width, k) = (rows(linear.x), step.node.width, matrix.k());
        let gate = step.gate.filter(|_| chosen.rows.len() < range.len());
        if gate.is_some() {
            chosen.gather(x, k);
            chosen.out.resize(chosen.rows.len() * width, 0.0);
        }
        let (m, x, into) = match gate {
            None => (range.len(), x, &mut *out),
            Some(_) => {
                let values = &chosen.x;
                let x = Strided { values, stride: k };
                (chosen.rows.len(), x, &mut chosen.out[..])
            }
        };
        let product = match matrix {
            _ if m == 0 => Ok(()),
            Matrix::F32(matrix) => executable.f32.run([m, k, width], |kernel| {
                gemm(kernel, m, x, matrix, &epilogue, into, width, pool)
            }),
            Matrix::Int8(matrix) => {
                let x = match gate {
                    None => quantised.take(linear.x, range, x, matrix, pool),
                    Some(_) => {
                        let taken = chosen.quantised.quantise(m, x, matrix, pool);
                        taken.map(|()| &chosen.quantised)
                    }
                };
                x.and_then(|x| {
                    executable.int8.run([m, k, width], |kernel| {
                        gemm_int8(kernel, x, matrix, &epilogue, into, width, pool)
                    })
                })
            }
        };
        if let Some(gate) = gate {
            chosen.scatter(width, gate, out);
        }
        product.map_err(|mismatch| broken(mismatch.to_string()))
    }

    fn attention(
        &self,
        executable: &Executable,
        attention: &Attention,
        range: Range<usize>,
        out: &mut [f32],
        pool: &dyn Pool,
        scratch: &mut Vec<Scratch>,
    ) -> Result<()> {
        // The range is whole texts.
        let all = self.texts.offsets();
        let first = all.partition_point(|&offset| offset < range.start);
        let last = all.partition_point(|&offset| offset < range.end);
        let offsets: Vec<usize> = all[first..=last]
            .iter()
            .map(|&at| at - range.start)
            .collect();
        let columns = |columns: HeadColumns| {
            let stride = self.width(columns.node);
            let values = &self.value(columns.node)[range.start * stride..range.end * stride];
            Columns::new(
                values,
                stride,
                columns.offset,
                attention.heads * attention.size,
            )
        };
        let relative = attention.relative.as_deref();
        let sides = relative.map(|relative| {
            [&relative.queries, &relative.keys].map(|side| {
                let side = side.as_ref()?;
                let width = attention.size * relative.columns;
                Some(executable.weights.tables[side.place].floats(width))
            })
        });
        let heads = Heads {
            heads: attention.heads,
            kv_heads: attention.heads,
            head_size: attention.size,
            scale: attention.scale,
            bias: attention.bias.as_deref().map(|values| OffsetBias {
                values,
                positions: (values.len() / attention.heads).div_ceil(2),
            }),
            relative: relative.zip(sides.as_ref()).map(|(relative, sides)| {
                let [queries, keys] = sides.each_ref().map(Option::as_deref);
                isovec_kernels::Relative {
                    queries,
                    keys,
                    columns: relative.columns,
                    by_offset: &relative.by_offset,
                }
            }),
            reach: attention.reach,
            causal: attention.causal,
            arithmetic: executable.arithmetic,
        };
        let mut run = AttentionRun::new(
            heads,
            columns(attention.query),
            columns(attention.key),
            columns(attention.value),
            &offsets,
            out,
        )
        .map_err(|error| EngineError::InvalidInput {
            name: "batch".into(),
            detail: error.to_string(),
        })?;
        if let Some(seen) = self.texts.seen() {
            run = run.seeing(&seen[first..last]);
        }
        let threads = pool.threads().min(run.jobs()).max(1);
        scratch.resize_with(scratch.len().max(threads), Scratch::default);
        let scratch: Vec<_> = scratch.iter_mut().map(std::sync::Mutex::new).collect();
        pool.run(threads, &|number| {
            let mut scratch = scratch[number]
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            run.run(&mut scratch);
        });
        Ok(())
    }

    /// Sums of the rows that a text's tokens have in a table.
    fn bag(
        &self,
        executable: &Executable,
        bag: &Bag,
        texts: Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        let width = out.len() / texts.len().max(1);
        let table = executable.weights.tables[bag.rows.table].table(width);
        let mut ids = Vec::new();
        let mut factors = Vec::new();
        for (text, out) in texts.zip(out.chunks_exact_mut(width)) {
            let numbers =
                |Lookup { ids, .. }: Lookup| self.tokens(ids, text).iter().map(|&id| id as i64);
            if let Some(lookup) = bag.factors {
                ids.clear();
                ids.extend(numbers(lookup));
                factors.resize(ids.len(), 0.0);
                let table = executable.weights.tables[lookup.table].table(1);
                look_up(table, &ids, &mut factors)?;
            }
            ids.clear();
            ids.extend(numbers(bag.rows));
            let factors = bag.factors.map(|_| &factors[..]);
            sum_rows(table, &ids, factors, out).map_err(|error| unknown_id(&error))?;
            if bag.mean {
                let count = ids.len() as f32;
                out.iter_mut().for_each(|out| *out /= count);
            }
        }
        Ok(())
    }

    /// Operators of which each row is computed by itself.
    fn rowwise(
        &self,
        executable: &Executable,
        step: &Step,
        op: &Op,
        range: Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        let width = step.node.width;
        let own = |node: NodeId| {
            let width = self.width(node);
            &self.value(node)[range.start * width..range.end * width]
        };
        match op {
            Op::Input(_)
            | Op::Values(_)
            | Op::Position
            | Op::Length
            | Op::Linear(_)
            | Op::Attention(_) => {
                return Err(broken(format!("{} is not computed row by row", op.name())));
            }
            Op::Gather { ids, .. } => {
                let table = &executable.weights.tables[step.weight.unwrap_or_default()];
                let ids: Vec<i64> = own(*ids).iter().map(|&id| id as i64).collect();
                look_up(table.table(width), &ids, out)?;
            }
            Op::Norm(norm) => normalise(norm, norm.residual.map(own), out),
            Op::Map { f, .. } => map::apply(*f, out),
            Op::Softmax { size, .. } => softmax(out, *size),
            Op::Zip { f, a, b, extents } => {
                for (row, out) in range.zip(out.chunks_exact_mut(width)) {
                    let walks = [a, b].map(|operand| self.walk(operand, step.node.rows, row));
                    zip(*f, extents, walks[0], walks[1], out);
                }
            }
            Op::Select { c, a, b, extents } => {
                for (row, out) in range.zip(out.chunks_exact_mut(width)) {
                    let walks = [c, a, b].map(|operand| self.walk(operand, step.node.rows, row));
                    select(extents, walks, out);
                }
            }
            Op::Copy { a, extents } => {
                for (row, out) in range.zip(out.chunks_exact_mut(width)) {
                    copy(extents, self.walk(a, step.node.rows, row), out);
                }
            }
            Op::Concat { outer, parts } => {
                for (row, out) in range.zip(out.chunks_exact_mut(width)) {
                    for (group, out) in out.chunks_exact_mut(width / outer).enumerate() {
                        let mut at = 0;
                        for &(node, size) in parts {
                            let from = row * self.width(node) + group * size;
                            let values = &self.value(node)[from..from + size];
                            out[at..at + size].copy_from_slice(values);
                            at += size;
                        }
                    }
                }
            }
            Op::Reduce { x, f, size } => {
                for (out, group) in out.iter_mut().zip(own(*x).chunks_exact(*size)) {
                    *out = reduced(*f, group);
                }
            }
            Op::Pool { x, f } => {
                for (text, out) in range.zip(out.chunks_exact_mut(width)) {
                    pool_tokens(*f, self.tokens(*x, text), out);
                }
            }
            Op::WeightedSum { x, weights } => {
                for (text, out) in range.zip(out.chunks_exact_mut(width)) {
                    out.fill(0.0);
                    let tokens = self.tokens(*x, text).chunks_exact(width);
                    for (token, weight) in tokens.zip(self.tokens(*weights, text)) {
                        for (out, x) in out.iter_mut().zip(token) {
                            *out += weight * x;
                        }
                    }
                }
            }
            Op::Take { x, which } => {
                for (text, out) in range.zip(out.chunks_exact_mut(width)) {
                    let mut tokens = self.tokens(*x, text).chunks_exact(width);
                    let token = match which {
                        Which::FromFirst(at) => tokens.nth(*at),
                        Which::FromLast(at) => tokens.nth_back(*at),
                    };
                    let token = token.ok_or_else(|| EngineError::InvalidInput {
                        name: "batch".into(),
                        detail: format!("row {text} is shorter than the model expects"),
                    })?;
                    out.copy_from_slice(token);
                }
            }
            Op::CumSum {
                x,
                reverse,
                exclusive,
            } => {
                // The range may be a part of a text: sums begin with the text's first token.
                for (row, out) in range.zip(out.chunks_exact_mut(width)) {
                    let text = self.texts.row(Rows::Texts, Rows::Tokens, row);
                    let at = row - self.texts.offsets()[text];
                    let tokens: Vec<&[f32]> = self.tokens(*x, text).chunks_exact(width).collect();
                    let until = match (reverse, exclusive) {
                        (false, false) => 0..at + 1,
                        (false, true) => 0..at,
                        (true, false) => at..tokens.len(),
                        (true, true) => at + 1..tokens.len(),
                    };
                    out.fill(0.0);
                    for token in &tokens[until] {
                        for (out, x) in out.iter_mut().zip(*token) {
                            *out += x;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// An operand's columns for a row of a result.
    fn walk<'a>(&'a self, operand: &'a Operand, result: Rows, row: usize) -> Walk<'a> {
        let values = match &operand.source {
            Source::Constant(values) => values,
            Source::Node(node) => {
                let own = &self.executable.steps[node.0].node;
                let row = self.texts.row(own.rows, result, row);
                &self.value(*node)[row * own.width..(row + 1) * own.width]
            }
        };
        Walk {
            values: &values[operand.offset..],
            strides: &operand.strides,
        }
    }

    /// All tokens of a text.
    fn tokens(&self, node: NodeId, text: usize) -> &[f32] {
        let width = self.width(node);
        let ends = &self.texts.offsets()[text..text + 2];
        &self.value(node)[ends[0] * width..ends[1] * width]
    }
}

/// The rows of a table at these ids.
fn look_up(table: Table<'_>, ids: &[i64], out: &mut [f32]) -> Result<()> {
    let index = Index::Ids(ids);
    let lookups = [kernels::Lookup { table, index }];
    embed(&lookups, &[0, ids.len()], 0..ids.len(), None, out).map_err(|error| unknown_id(&error))
}

fn unknown_id(error: &KernelError) -> EngineError {
    EngineError::InvalidInput {
        name: "ids".into(),
        detail: error.to_string(),
    }
}

/// An operator that does not fit its operands: a fault of this compiler's, not of the caller's.
fn broken(detail: String) -> EngineError {
    EngineError::Runtime {
        engine: "portable",
        doing: "running an operator",
        detail,
    }
}

fn normalise(norm: &Norm, residual: Option<&[f32]>, x: &mut [f32]) {
    let ones;
    let gamma = match &norm.gamma {
        Some(gamma) => &**gamma,
        None => {
            ones = vec![1.0; norm.size];
            &ones[..]
        }
    };
    let kind = match norm.kind {
        NormKind::Layer => Normed::Layer,
        NormKind::RootMeanSquare => Normed::RootMeanSquare,
    };
    let normal = Normal::new(kind, gamma, norm.beta.as_deref(), norm.epsilon);
    match residual {
        Some(residual) => normal.add_apply(x, residual),
        None => normal.apply(x),
    }
}

fn reduced(f: Reduction, group: &[f32]) -> f32 {
    match f {
        Reduction::Sum => reduce::sum(group, |x| x),
        Reduction::Mean => reduce::sum(group, |x| x) / group.len() as f32,
        Reduction::Max => reduce::max(group),
        Reduction::Min => -group
            .iter()
            .fold(f32::NEG_INFINITY, |most, &x| reduce::larger(most, -x)),
        Reduction::Product => group.iter().product(),
        Reduction::L2 => reduce::sum(group, |x| x * x).sqrt(),
        Reduction::SumOfSquares => reduce::sum(group, |x| x * x),
    }
}

/// Tokens `[n, width]` to one row, each column by itself, in order.
fn pool_tokens(f: Reduction, tokens: &[f32], out: &mut [f32]) {
    let width = out.len();
    let mut rows = tokens.chunks_exact(width);
    let count = rows.len() as f32;
    let fold =
        |out: &mut [f32], rows: std::slice::ChunksExact<'_, f32>, f: &dyn Fn(f32, f32) -> f32| {
            for row in rows {
                for (out, x) in out.iter_mut().zip(row) {
                    *out = f(*out, *x);
                }
            }
        };
    match f {
        Reduction::Max | Reduction::Min => {
            out.copy_from_slice(rows.next().unwrap_or(&[]));
            // A NaN that was seen is kept, and one that is new is taken.
            let pick = |old: f32, new: f32| match f {
                _ if old.is_nan() => old,
                Reduction::Max if old > new => old,
                Reduction::Min if old < new => old,
                _ => new,
            };
            fold(out, rows, &pick);
        }
        Reduction::Sum | Reduction::Mean => {
            out.fill(0.0);
            for row in rows {
                for (out, x) in out.iter_mut().zip(row) {
                    *out += x;
                }
            }
            if f == Reduction::Mean {
                out.iter_mut().for_each(|out| *out /= count);
            }
        }
        Reduction::Product => {
            out.fill(1.0);
            fold(out, rows, &|product, x| product * x);
        }
        Reduction::L2 | Reduction::SumOfSquares => {
            out.fill(0.0);
            fold(out, rows, &|sum, x| sum + x * x);
            if f == Reduction::L2 {
                out.iter_mut().for_each(|out| *out = out.sqrt());
            }
        }
    }
}
