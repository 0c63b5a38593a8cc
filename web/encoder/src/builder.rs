//! Builds the nodes of a program, and recognises groups of nodes that form one operator.

use isovec_engine::budget::Resource;

use crate::constant::{Constant, Kind, strides};
use crate::error::Why;
use crate::ledger::Ledger;
use crate::node::{
    Attention, Binary, Floats, Linear, Matrix, Node, NodeId, Norm, Op, Operand, Reduction, Rows,
    Source, Unary, Which,
};
use crate::recognise;
use crate::value::{Axis, Data, HeadColumns, Scores};

/// A program under construction.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) nodes: Vec<Node>,
    /// The longest text that every table reaches for.
    pub(crate) positions: Option<usize>,
    /// How large each node's whole numbers can be.
    magnitudes: Vec<f64>,
    /// What all of it may cost.
    pub(crate) ledger: Ledger,
    position: Option<NodeId>,
    length: Option<NodeId>,
}

impl Builder {
    /// For a program that may cost what the ledger allows.
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            ..Self::default()
        }
    }

    /// A node costs a part of the budget. Where nothing is left of it the ledger knows, and whoever
    /// reads the graph asks it after every operator, of which one makes few nodes.
    pub(crate) fn push(&mut self, op: Op, rows: Rows, width: usize) -> NodeId {
        let bytes = size_of::<Node>() + op.heap_bytes();
        let _ = self.ledger.take(Resource::Nodes, 1, "the program");
        let _ = self
            .ledger
            .take(Resource::Bytes, bytes as u64, "the program");
        self.magnitudes
            .push(crate::magnitude::of(&op, &self.magnitudes));
        self.nodes.push(Node { op, rows, width });
        NodeId(self.nodes.len() - 1)
    }

    /// How large a node's whole numbers can be.
    pub(crate) fn magnitude(&self, NodeId(node): NodeId) -> f64 {
        self.magnitudes[node]
    }

    /// Whether a node's numbers are surely 0 or more.
    pub(crate) fn never_negative(&self, node: NodeId) -> bool {
        match &self.node(node).op {
            Op::Position | Op::Length => true,
            Op::Map { f, .. } => match f {
                Unary::Abs | Unary::Not | Unary::IsNan | Unary::Relu | Unary::Square => true,
                Unary::Clamp { least, .. } => *least >= 0.0,
                _ => false,
            },
            Op::Zip { f, .. } => f.compares(),
            _ => false,
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The node that a value shows all of, in order.
    pub(crate) fn whole(&self, data: &Data) -> Option<NodeId> {
        let whole =
            data.offset == 0 && data.width() == self.node(data.node).width && data.is_contiguous();
        whole.then_some(data.node)
    }

    /// A node whose columns are exactly those that `data` shows, in the order of its axes.
    pub(crate) fn matrix(&mut self, data: &Data) -> NodeId {
        if let Some(node) = self.whole(data) {
            return node;
        }
        let (extents, strides): (Vec<_>, Vec<_>) = data.columns().into_iter().unzip();
        let a = Operand {
            source: Source::Node(data.node),
            offset: data.offset,
            strides,
        };
        let rows = self.node(data.node).rows;
        self.push(Op::Copy { a, extents }, rows, data.width())
    }

    /// `node` in place of `data`, of the same shape, with all of its columns in order.
    pub(crate) fn like(node: NodeId, kind: Kind, data: &Data) -> Data {
        let extents: Vec<usize> = data.columns().iter().map(|&(extent, _)| extent).collect();
        let mut strides = strides(&extents).into_iter();
        let axes = data.axes.iter().map(|axis| match *axis {
            Axis::Columns { extent, .. } => Axis::Columns {
                extent,
                stride: strides.next().unwrap_or(1),
            },
            other => other,
        });
        Data {
            node,
            kind,
            offset: 0,
            axes: axes.collect(),
        }
    }

    /// `data` with all its columns in order, copied if need be.
    pub(crate) fn in_order(&mut self, data: &Data) -> Data {
        let node = self.matrix(data);
        Self::like(node, data.kind, data)
    }

    pub(crate) fn map(&mut self, data: &Data, f: Unary, kind: Kind) -> Data {
        let x = self.matrix(data);
        let node = self.map_node(x, f);
        Self::like(node, kind, data)
    }

    fn map_node(&mut self, x: NodeId, f: Unary) -> NodeId {
        if let Unary::Affine { factor, shift } = f {
            if (factor, shift) == (1.0, 0.0) {
                return x;
            }
            if let Op::Map {
                x: inner,
                f:
                    Unary::Affine {
                        factor: a,
                        shift: b,
                    },
            } = self.node(x).op
            {
                let merged = Unary::Affine {
                    factor: a * factor,
                    shift: (f64::from(b) * f64::from(factor) + f64::from(shift)) as f32,
                };
                return self.map_node(inner, merged);
            }
        }
        let Node { rows, width, .. } = *self.node(x);
        self.push(Op::Map { x, f }, rows, width)
    }

    /// `f(a, b)` of two values that are computed, with broadcasting.
    pub(crate) fn zip(&mut self, f: Binary, a: &Data, b: &Data, kind: Kind) -> Why<Data> {
        if let Some((found, shape)) = recognise::zip(self, f, a, b) {
            return Ok(Self::like(found, kind, shape));
        }
        let axes = join(a, b)?;
        let rows = self.rows_of(&axes, &[a.node, b.node])?;
        let extents: Vec<usize> = extents(&axes);
        let node = self.push(
            Op::Zip {
                f,
                a: operand(a, &axes),
                b: operand(b, &axes),
                extents: extents.clone(),
            },
            rows,
            extents.iter().product(),
        );
        Ok(Data {
            node,
            kind,
            offset: 0,
            axes,
        })
    }

    /// `f(a, b)` where one of them is a constant (`swapped`: it is the first).
    pub(crate) fn zip_constant(
        &mut self,
        f: Binary,
        data: &Data,
        constant: &Constant,
        swapped: bool,
        kind: Kind,
    ) -> Why<Data> {
        if let Some(found) = recognise::zip_constant(self, f, data, constant, swapped)? {
            return Ok(Self::like(found, kind, data));
        }
        let (axes, a) = against(data, constant)?;
        let b = self.constant_operand(constant, &axes)?;
        let extents = extents(&axes);
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        let rows = self.rows_of(&axes, &[data.node])?;
        let width = extents.iter().product();
        let node = self.push(Op::Zip { f, a, b, extents }, rows, width);
        Ok(Data {
            node,
            kind,
            offset: 0,
            axes,
        })
    }

    /// `if c then a else b` of values that are computed or constant; one of them is computed.
    pub(crate) fn select(&mut self, parts: [Part<'_>; 3], kind: Kind) -> Why<Data> {
        let mut axes: Option<Vec<Axis>> = None;
        for part in &parts {
            if let Part::Data(data) = part {
                axes = Some(match axes {
                    None => canonical(&data.axes),
                    Some(axes) => join_axes(&axes, &data.axes)?,
                });
            }
        }
        let mut axes = axes.ok_or("nothing of it is computed")?;
        for part in &parts {
            if let Part::Constant(constant) = part {
                axes = against_axes(&axes, constant)?;
            }
        }
        let operands = parts.each_ref().map(|part| match part {
            Part::Data(data) => Ok(operand(data, &axes)),
            Part::Constant(constant) => self.constant_operand(constant, &axes),
        });
        let [c, a, b] = operands;
        let (c, a, b) = (c?, a?, b?);
        let extents = extents(&axes);
        let nodes: Vec<NodeId> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Data(data) => Some(data.node),
                Part::Constant(_) => None,
            })
            .collect();
        let rows = self.rows_of(&axes, &nodes)?;
        let width = extents.iter().product();
        let node = self.push(Op::Select { c, a, b, extents }, rows, width);
        Ok(Data {
            node,
            kind,
            offset: 0,
            axes,
        })
    }

    fn constant_operand(&self, constant: &Constant, axes: &[Axis]) -> Why<Operand> {
        let lead = axes.len() - constant.shape.len();
        let own = strides(&constant.shape);
        let strides = axes.iter().enumerate().filter_map(|(at, axis)| {
            let Axis::Columns { .. } = axis else {
                return None;
            };
            Some(match at.checked_sub(lead) {
                Some(at) if constant.shape[at] != 1 => own[at],
                _ => 0,
            })
        });
        Ok(Operand {
            source: Source::Constant(self.floats(constant)?),
            offset: 0,
            strides: strides.collect(),
        })
    }

    /// A constant in the form that the program holds.
    pub(crate) fn floats(&self, constant: &Constant) -> Why<Floats> {
        let values = constant.values.iter().map(|&value| value as f32);
        self.ledger.floats(values)
    }

    /// Rows for each token where there is an axis of tokens.
    fn rows_of(&self, axes: &[Axis], nodes: &[NodeId]) -> Why<Rows> {
        let tokens = axes.contains(&Axis::Tokens);
        if !tokens
            && nodes
                .iter()
                .any(|&node| self.node(node).rows == Rows::Tokens)
        {
            return Err("the tokens of a text have lost their axis".into());
        }
        Ok(if tokens { Rows::Tokens } else { Rows::Texts })
    }

    pub(crate) fn linear(
        &mut self,
        data: &Data,
        matrix: Matrix,
        inputs: usize,
        outputs: usize,
    ) -> Why<Data> {
        let columns = data.columns();
        let last = data.axes.last().map(|axis| axis.dim().known());
        if data.width() != inputs || last != Some(Some(inputs as i64)) || columns.len() > 1 {
            return Err(format!(
                "a product over {inputs} of {} columns in {} axes",
                data.width(),
                columns.len()
            ));
        }
        let x = self.matrix(data);
        let rows = self.node(x).rows;
        let linear = Linear {
            x,
            matrix,
            bias: None,
            activation: None,
            residual: None,
        };
        let node = self.push(Op::Linear(linear), rows, outputs);
        let mut axes = data.axes.clone();
        axes.pop();
        axes.push(Axis::columns(outputs, 1));
        Ok(Data {
            node,
            kind: Kind::Float,
            offset: 0,
            axes,
        })
    }

    pub(crate) fn norm(&mut self, data: &Data, norm: impl FnOnce(NodeId) -> Norm) -> Data {
        let x = self.matrix(data);
        let Node { rows, width, .. } = *self.node(x);
        let norm = norm(x);
        let node = self.push(Op::Norm(norm), rows, width);
        Self::like(node, Kind::Float, data)
    }

    pub(crate) fn softmax(&mut self, data: &Data, size: usize) -> Data {
        let x = self.matrix(data);
        let Node { rows, width, .. } = *self.node(x);
        let node = self.push(Op::Softmax { x, size }, rows, width);
        Self::like(node, Kind::Float, data)
    }

    /// The last axes, `size` columns together, to one column each; `axes` are those of the result.
    pub(crate) fn reduce(
        &mut self,
        data: &Data,
        f: Reduction,
        size: usize,
        axes: Vec<Axis>,
    ) -> Data {
        let x = self.matrix(data);
        let Node { rows, width, .. } = *self.node(x);
        let node = self.push(Op::Reduce { x, f, size }, rows, width / size);
        let shape = Data {
            node,
            kind: data.kind,
            offset: 0,
            axes,
        };
        Self::like(node, data.kind, &shape)
    }

    /// All tokens to one; `axes` are those of the result.
    pub(crate) fn pool(&mut self, data: &Data, f: Reduction, axes: Vec<Axis>) -> Data {
        let x = self.matrix(data);
        let width = self.node(x).width;
        let node = self.push(Op::Pool { x, f }, Rows::Texts, width);
        let shape = Data {
            node,
            kind: data.kind,
            offset: 0,
            axes,
        };
        Self::like(node, data.kind, &shape)
    }

    /// One token; `axes` are those of the result.
    pub(crate) fn take(&mut self, data: &Data, which: Which, axes: Vec<Axis>) -> Data {
        let x = self.matrix(data);
        let width = self.node(x).width;
        let node = self.push(Op::Take { x, which }, Rows::Texts, width);
        let shape = Data {
            node,
            kind: data.kind,
            offset: 0,
            axes,
        };
        Self::like(node, data.kind, &shape)
    }

    /// The node of positions; there is one.
    pub(crate) fn position(&mut self) -> NodeId {
        let known = self.position;
        let node = known.unwrap_or_else(|| self.push(Op::Position, Rows::Tokens, 1));
        *self.position.insert(node)
    }

    /// The node of lengths; there is one.
    pub(crate) fn length(&mut self) -> NodeId {
        let known = self.length;
        let node = known.unwrap_or_else(|| self.push(Op::Length, Rows::Texts, 1));
        *self.length.insert(node)
    }

    /// Tables reach no further than this.
    pub(crate) fn limit_positions(&mut self, positions: usize) {
        let known = self.positions.unwrap_or(usize::MAX);
        self.positions = Some(known.min(positions));
    }

    /// From which number a value counts up by one a token, if it does.
    pub(crate) fn counts_from(&self, data: &Data) -> Option<f64> {
        match &self.node(data.node).op {
            Op::Position => Some(0.0),
            Op::Map {
                x,
                f: Unary::Affine { factor: 1.0, shift },
            } if matches!(self.node(*x).op, Op::Position) => Some(f64::from(*shift)),
            _ => None,
        }
    }

    /// `softmax(scores) · value`, seen as `[.., heads, n, size]`.
    pub(crate) fn attention(&mut self, scores: &Scores, value: &Data) -> Why<Data> {
        if value.axes.len() > scores.rank {
            return Err("values of more axes than the scores have".into());
        }
        let stands = heads_stand(value);
        let (value, heads, value_size) = self.heads(value, false)?;
        if heads > 1 && !stands {
            return Err("heads that are not the axis before the tokens".into());
        }
        if value_size != scores.size {
            return Err(format!("heads of {value_size} and of {}", scores.size));
        }
        if heads != scores.heads {
            return Err(format!(
                "{} heads of scores and {heads} of values",
                scores.heads
            ));
        }
        let (bias, sight) = crate::bias::of(&self.ledger, scores)?;
        if let Some(bias) = &scores.bias {
            self.limit_positions(bias.positions);
        }
        let (query, key, scale) = self.unscaled(scores);
        let attention = Attention {
            query,
            key,
            value,
            heads,
            size: scores.size,
            scale: scale as f32,
            bias,
            relative: scores.relative.clone(),
            reach: sight.reach,
            causal: sight.causal,
        };
        let node = self.push(
            Op::Attention(Box::new(attention)),
            Rows::Tokens,
            heads * value_size,
        );
        let mut axes = vec![Axis::Unit; scores.rank];
        if scores.rank > 2 {
            axes[scores.rank - 3] = Axis::columns(heads, value_size);
        }
        axes[scores.rank - 2] = Axis::Tokens;
        axes[scores.rank - 1] = Axis::columns(value_size, 1);
        Ok(Data {
            node,
            kind: Kind::Float,
            offset: 0,
            axes,
        })
    }

    /// Factors that stand before the product go into its scale, which costs nothing.
    fn unscaled(&self, scores: &Scores) -> (HeadColumns, HeadColumns, f64) {
        let mut scale = scores.scale;
        let mut through = |mut columns: HeadColumns| {
            if let Op::Map {
                x,
                f: Unary::Affine { factor, shift: 0.0 },
            } = self.node(columns.node).op
            {
                scale *= f64::from(factor);
                columns.node = x;
            }
            columns
        };
        let query = through(scores.query);
        // Terms by distance take keys as they are.
        let key = match scores.relative {
            Some(_) => scores.key,
            None => through(scores.key),
        };
        (query, key, scale)
    }

    /// A value `[.., heads, n, size]` (`turned`: `[.., heads, size, n]`) as columns, the number
    /// of heads, and the columns of one.
    pub(crate) fn heads(&mut self, data: &Data, turned: bool) -> Why<(HeadColumns, usize, usize)> {
        let rank = data.axes.len();
        let wrong = || format!("axes {:?} are no heads of tokens", data.axes);
        let (tokens, size) = if turned { (1, 2) } else { (2, 1) };
        if rank < 2 || data.axes[rank - tokens] != Axis::Tokens {
            return Err(wrong());
        }
        let mut batch = data.axes[..rank - 2]
            .iter()
            .filter(|&&axis| axis != Axis::Unit);
        let head = batch.next().copied();
        if batch.next().is_some() {
            return Err(wrong());
        }
        let size = match data.axes[rank - size] {
            Axis::Unit => Some((1, 1)),
            Axis::Columns { extent, stride } => Some((extent, stride)),
            Axis::Tokens => None,
        };
        let (size, step) = size.ok_or_else(wrong)?;
        let (heads, stride) = match head {
            None => (1, size),
            Some(Axis::Columns { extent, stride }) => (extent, stride),
            Some(_) => return Err(wrong()),
        };
        if step != 1 || (heads > 1 && stride != size) {
            let data = self.in_order(data);
            return self.heads(&data, turned);
        }
        let columns = HeadColumns {
            node: data.node,
            offset: data.offset,
            stride,
        };
        Ok((columns, heads, size))
    }
}

/// Whether the axis of heads is the third from the end.
pub(crate) fn heads_stand(data: &Data) -> bool {
    let place = data.axes.len().checked_sub(3);
    matches!(place.map(|at| data.axes[at]), Some(Axis::Columns { .. }))
}

/// The most columns of a row.
pub(crate) const WIDEST: u64 = 1 << 20;

/// Refuses rows without columns, and of more than are worth computing.
pub(crate) fn within_bounds(axes: &[Axis]) -> Why<()> {
    let width = extents(axes).into_iter().try_fold(1_u64, |width, extent| {
        width.checked_mul(u64::try_from(extent).ok()?)
    });
    match width {
        Some(1..=WIDEST) => Ok(()),
        _ => Err(format!("axes {axes:?} have no columns, or too many")),
    }
}

/// One of the values of a selection.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    Data(&'a Data),
    Constant(&'a Constant),
}

impl<'a> Part<'a> {
    pub(crate) fn of(part: &'a Result<Data, Constant>) -> Self {
        match part {
            Ok(data) => Self::Data(data),
            Err(constant) => Self::Constant(constant),
        }
    }
}

/// The axes of a matrix of its own that is seen like this one.
fn canonical(axes: &[Axis]) -> Vec<Axis> {
    let extents = extents(axes);
    let mut strides = strides(&extents).into_iter();
    let own = axes.iter().map(|axis| match *axis {
        Axis::Columns { extent, .. } => Axis::Columns {
            extent,
            stride: strides.next().unwrap_or(1),
        },
        other => other,
    });
    own.collect()
}

fn extents(axes: &[Axis]) -> Vec<usize> {
    let columns = axes.iter().filter_map(|axis| match *axis {
        Axis::Columns { extent, .. } => Some(extent),
        _ => None,
    });
    columns.collect()
}

fn join(a: &Data, b: &Data) -> Why<Vec<Axis>> {
    join_axes(&a.axes, &b.axes)
}

/// The axes of what two values broadcast to.
fn join_axes(a: &[Axis], b: &[Axis]) -> Why<Vec<Axis>> {
    let rank = a.len().max(b.len());
    let at = |axes: &[Axis], axis: usize| {
        (axis + axes.len())
            .checked_sub(rank)
            .map_or(Axis::Unit, |own| axes[own])
    };
    let axes: Vec<Axis> = (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (Axis::Unit, other) | (other, Axis::Unit) => Ok(other),
            (Axis::Tokens, Axis::Tokens) => Ok(Axis::Tokens),
            (Axis::Columns { extent: x, stride }, Axis::Columns { extent: y, .. }) if x == y => {
                Ok(Axis::Columns { extent: x, stride })
            }
            _ => Err(format!("axes {a:?} and {b:?} do not broadcast")),
        })
        .collect::<Why<_>>()?;
    if axes.iter().filter(|&&axis| axis == Axis::Tokens).count() > 1 {
        return Err("a value for every pair of tokens".into());
    }
    within_bounds(&axes)?;
    Ok(canonical(&axes))
}

/// A value's columns, walked along the columns of `axes`, to which it broadcasts.
fn operand(data: &Data, axes: &[Axis]) -> Operand {
    let lead = axes.len() - data.axes.len();
    let strides = axes.iter().enumerate().filter_map(|(at, axis)| {
        let Axis::Columns { .. } = axis else {
            return None;
        };
        let own = at.checked_sub(lead).map(|own| data.axes[own]);
        Some(match own {
            Some(Axis::Columns { stride, .. }) => stride,
            _ => 0,
        })
    });
    Operand {
        source: Source::Node(data.node),
        offset: data.offset,
        strides: strides.collect(),
    }
}

fn against(data: &Data, constant: &Constant) -> Why<(Vec<Axis>, Operand)> {
    let axes = against_axes(&canonical(&data.axes), constant)?;
    let operand = operand(data, &axes);
    Ok((axes, operand))
}

/// `axes` broadcast with a constant's shape.
fn against_axes(axes: &[Axis], constant: &Constant) -> Why<Vec<Axis>> {
    let shape: Vec<Axis> = constant
        .shape
        .iter()
        .map(|&extent| Axis::columns(extent, 0))
        .collect();
    join_axes(axes, &shape)
}
