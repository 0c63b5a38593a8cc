//! Several operators of a graph that are one of ours: activations, normalisations, biases.
//!
//! Exporters write GELU, SiLU and layer normalisation as chains of elementwise operators. They are
//! recognised from their last operator, whose operands lead back to what they were made of; the
//! nodes in between fall away when nothing else reads them.

use std::f32::consts::FRAC_1_SQRT_2;

use crate::builder::Builder;
use crate::constant::{Constant, Kind, strides};
use crate::error::Why;
use crate::node::{Binary, Linear, Node, NodeId, Norm, NormKind, Op, Reduction, Source, Unary};
use crate::value::{Axis, Data};

/// The factor inside the approximation of GELU by tanh: sqrt(2/π).
const TANH_INNER: f32 = 0.797_884_6;
/// The weight of its cube.
const TANH_CUBE: f32 = 0.044_715;

/// What `f(a, b)` amounts to, and the operand whose shape it has.
pub(crate) fn zip<'d>(
    builder: &mut Builder,
    f: Binary,
    a: &'d Data,
    b: &'d Data,
) -> Option<(NodeId, &'d Data)> {
    let norm = match f {
        Binary::Div => normalisation(builder, f, a, b).map(|norm| (norm, a)),
        Binary::Mul => normalisation(builder, f, a, b)
            .map(|norm| (norm, a))
            .or_else(|| normalisation(builder, f, b, a).map(|norm| (norm, b))),
        _ => None,
    };
    norm.or_else(|| product(builder, f, a, b).map(|node| (node, a)))
}

/// What a product of whole matrices of one shape amounts to.
fn product(builder: &mut Builder, f: Binary, a: &Data, b: &Data) -> Option<NodeId> {
    if a.shape() != b.shape() {
        return None;
    }
    let (a, b) = (builder.whole(a)?, builder.whole(b)?);
    if f != Binary::Mul {
        return None;
    }
    if a == b {
        return Some(mapped(builder, a, Unary::Square));
    }
    activation(builder, a, b).or_else(|| activation(builder, b, a))
}

/// What `f(data, constant)` amounts to, if the result has the shape of `data`.
pub(crate) fn zip_constant(
    builder: &mut Builder,
    f: Binary,
    data: &Data,
    constant: &Constant,
    swapped: bool,
) -> Why<Option<NodeId>> {
    if !keeps_shape(data, constant) {
        return Ok(None);
    }
    if let Some(number) = constant.uniform()
        && let Some(unary) = with_number(f, number, swapped, data.kind)
    {
        let x = builder.matrix(data);
        return Ok(Some(affine(builder, x, unary)));
    }
    along_last(builder, f, data, constant)
}

/// What a value for each column of the last axis is added to or multiplied with.
fn along_last(
    builder: &mut Builder,
    f: Binary,
    data: &Data,
    constant: &Constant,
) -> Why<Option<NodeId>> {
    let many = constant.values.len();
    let last = data.axes.last().and_then(|axis| axis.dim().known());
    if constant.shape.last() != Some(&many) || last != Some(many as i64) {
        return Ok(None);
    }
    let Some(node) = builder.whole(data) else {
        return Ok(None);
    };
    let Node {
        ref op,
        rows,
        width,
    } = *builder.node(node);
    let op = match (f, op) {
        (Binary::Add, Op::Linear(linear))
            if linear.bias.is_none()
                && linear.activation.is_none()
                && linear.residual.is_none()
                && width == many =>
        {
            Op::Linear(Linear {
                bias: Some(builder.floats(constant)?),
                ..linear.clone()
            })
        }
        (Binary::Mul, Op::Norm(norm))
            if norm.gamma.is_none() && norm.beta.is_none() && norm.size == many =>
        {
            Op::Norm(Norm {
                gamma: Some(builder.floats(constant)?),
                ..norm.clone()
            })
        }
        (Binary::Add, Op::Norm(norm)) if norm.beta.is_none() && norm.size == many => {
            Op::Norm(Norm {
                beta: Some(builder.floats(constant)?),
                ..norm.clone()
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(builder.push(op, rows, width)))
}

/// Whether broadcasting a constant against `data` leaves the shape of `data` as it is.
fn keeps_shape(data: &Data, constant: &Constant) -> bool {
    let axes = data.axes.iter().rev();
    let fits = axes
        .zip(constant.shape.iter().rev())
        .all(|(axis, &extent)| {
            extent == 1 || matches!(axis, Axis::Columns { extent: own, .. } if *own == extent)
        });
    let own = data.axes.len();
    let more = constant.shape.len().saturating_sub(own);
    fits && constant.shape[..more].iter().all(|&extent| extent == 1) && more == 0
}

/// `f(x, number)` as a function of `x` alone.
fn with_number(f: Binary, number: f64, swapped: bool, kind: Kind) -> Option<Unary> {
    let value = number as f32;
    let affine = |factor: f64, shift: f64| Unary::Affine {
        factor: factor as f32,
        shift: shift as f32,
    };
    Some(match (f, swapped) {
        (Binary::Add, _) => affine(1.0, number),
        (Binary::Sub, false) => affine(1.0, -number),
        (Binary::Sub, true) => affine(-1.0, number),
        (Binary::Mul, _) => affine(number, 0.0),
        (Binary::Div, false) if kind == Kind::Float => affine(1.0 / number, 0.0),
        (Binary::Div, true) if number == 1.0 => Unary::Reciprocal,
        (Binary::Power, false) if number == 2.0 => Unary::Square,
        (Binary::Power, false) if number == 0.5 => Unary::Sqrt,
        (Binary::Power, false) if number == 1.0 => affine(1.0, 0.0),
        (Binary::Power, false) => Unary::Power(value),
        (Binary::Max, _) => Unary::Clamp {
            least: value,
            most: f32::INFINITY,
        },
        (Binary::Min, _) => Unary::Clamp {
            least: f32::NEG_INFINITY,
            most: value,
        },
        _ => return None,
    })
}

fn mapped(builder: &mut Builder, x: NodeId, f: Unary) -> NodeId {
    let Node { rows, width, .. } = *builder.node(x);
    builder.push(Op::Map { x, f }, rows, width)
}

fn affine(builder: &mut Builder, x: NodeId, f: Unary) -> NodeId {
    // Through `map`, which merges them.
    let whole = Data::whole(x, Kind::Float, &[Axis::Tokens], &[builder.node(x).width]);
    builder.map(&whole, f, Kind::Float).node
}

/// `f(x)` as `f` and `x`.
fn map_of(builder: &Builder, node: NodeId) -> Option<(Unary, NodeId)> {
    match builder.node(node).op {
        Op::Map { x, f } => Some((f, x)),
        _ => None,
    }
}

/// A node as `factor · x + shift` of another.
fn affine_of(builder: &Builder, node: NodeId) -> (f32, f32, NodeId) {
    match map_of(builder, node) {
        Some((Unary::Affine { factor, shift }, x)) => (factor, shift, x),
        _ => (1.0, 0.0, node),
    }
}

/// A node as `factor · x` of another.
fn scaled(builder: &Builder, node: NodeId) -> (f32, NodeId) {
    match affine_of(builder, node) {
        (factor, 0.0, x) => (factor, x),
        _ => (1.0, node),
    }
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-5 * b.abs()
}

/// `outer · gate`, where the gate is a function of the same value: GELU, SiLU and their kin.
fn activation(builder: &mut Builder, outer: NodeId, gate: NodeId) -> Option<NodeId> {
    let (mut factor, outer) = scaled(builder, outer);
    let (gate_factor, shift, inner) = affine_of(builder, gate);
    let (f, argument) = map_of(builder, inner)?;
    let found = match f {
        Unary::Sigmoid => {
            let (slope, x) = scaled(builder, argument);
            factor *= gate_factor;
            (shift == 0.0 && x == outer).then_some(Unary::Swish(slope))
        }
        // 1 + erf and 1 + tanh, times any factor.
        Unary::Erf | Unary::Tanh if gate_factor == shift => {
            factor *= 2.0 * gate_factor;
            let is_gelu = match f {
                Unary::Erf => {
                    let (slope, x) = scaled(builder, argument);
                    x == outer && near(slope, FRAC_1_SQRT_2)
                }
                _ => is_tanh_argument(builder, argument, outer),
            };
            let gelu = match f {
                Unary::Erf => Unary::Gelu,
                _ => Unary::GeluTanh,
            };
            is_gelu.then_some(gelu)
        }
        _ => None,
    }?;
    let node = mapped(builder, outer, found);
    Some(affine(builder, node, Unary::Affine { factor, shift: 0.0 }))
}

/// Whether a node is `sqrt(2/π) (x + 0.044715 x³)`.
fn is_tanh_argument(builder: &Builder, node: NodeId, x: NodeId) -> bool {
    let (slope, sum) = scaled(builder, node);
    let Some((f, a, b)) = plain(builder, sum) else {
        return false;
    };
    let either = |is: &dyn Fn(NodeId, NodeId) -> bool| is(a, b) || is(b, a);
    match f {
        Binary::Add => {
            near(slope, TANH_INNER)
                && either(&|first, second| {
                    let (weight, cube) = scaled(builder, second);
                    first == x && near(weight, TANH_CUBE) && is_cube(builder, cube, x)
                })
        }
        // x (1 + 0.044715 x²), the slope on any part of it.
        Binary::Mul => either(&|first, second| {
            let (outer, value) = scaled(builder, first);
            let (weight, shift, square) = affine_of(builder, second);
            value == x
                && near(slope * outer * shift, TANH_INNER)
                && near(slope * outer * weight, TANH_INNER * TANH_CUBE)
                && map_of(builder, square) == Some((Unary::Square, x))
        }),
        _ => false,
    }
}

fn is_cube(builder: &Builder, node: NodeId, x: NodeId) -> bool {
    match &builder.node(node).op {
        Op::Map { x: of, f } => *of == x && *f == Unary::Power(3.0),
        _ => match plain(builder, node) {
            Some((Binary::Mul, a, b)) => {
                let is = |square: NodeId, other: NodeId| {
                    other == x && map_of(builder, square) == Some((Unary::Square, x))
                };
                is(a, b) || is(b, a)
            }
            _ => false,
        },
    }
}

/// A function of two whole matrices of the shape of its result.
fn plain(builder: &Builder, node: NodeId) -> Option<(Binary, NodeId, NodeId)> {
    let result = builder.node(node);
    let (f, a, b) = result.op.plain()?;
    let is_whole = |operand: NodeId| {
        let operand = builder.node(operand);
        operand.rows == result.rows && operand.width == result.width
    };
    (is_whole(a) && is_whole(b)).then_some((f, a, b))
}

/// `centred / sqrt(mean(centred²) + epsilon)`, or the product with the reciprocal of the root.
fn normalisation(builder: &mut Builder, f: Binary, centred: &Data, over: &Data) -> Option<NodeId> {
    let (a, mut root) = (builder.whole(centred)?, builder.whole(over)?);
    if f == Binary::Mul {
        let (Unary::Reciprocal, of) = map_of(builder, root)? else {
            return None;
        };
        root = of;
    }
    let (Unary::Sqrt, sum) = map_of(builder, root)? else {
        return None;
    };
    let (factor, epsilon, variance) = affine_of(builder, sum);
    let (size, square) = mean_of(builder, variance)?;
    let (Unary::Square, own) = map_of(builder, square)? else {
        return None;
    };
    if factor != 1.0 || own != a || !is_for_groups(centred, over, size) {
        return None;
    }
    let (kind, x) = match less_its_mean(builder, a, size) {
        Some(x) => (NormKind::Layer, x),
        None => (NormKind::RootMeanSquare, a),
    };
    let Node { rows, width, .. } = *builder.node(x);
    let norm = Norm {
        x,
        residual: None,
        kind,
        size,
        epsilon,
        gamma: None,
        beta: None,
    };
    Some(builder.push(Op::Norm(norm), rows, width))
}

/// Whether `over` has one number for each group of `size` columns of `x`: its axes are those of
/// `x`, the last ones of extent 1.
fn is_for_groups(x: &Data, over: &Data, size: usize) -> bool {
    let mut group = 1;
    let mut axes = x.axes.iter().zip(&over.axes).rev();
    let fits = axes.all(|(own, other)| match (own, other) {
        (Axis::Columns { extent, .. }, Axis::Unit) if group < size => {
            group *= extent;
            true
        }
        (Axis::Columns { extent, .. }, Axis::Columns { extent: other, .. }) => {
            group == size && extent == other
        }
        (own, other) => own == other,
    });
    x.axes.len() == over.axes.len() && fits && group == size
}

fn mean_of(builder: &Builder, node: NodeId) -> Option<(usize, NodeId)> {
    match builder.node(node).op {
        Op::Reduce {
            x,
            f: Reduction::Mean,
            size,
        } => Some((size, x)),
        _ => None,
    }
}

/// `x`, if a node is `x - mean(x)` over groups of `size` columns.
fn less_its_mean(builder: &Builder, node: NodeId, size: usize) -> Option<NodeId> {
    let Op::Zip {
        f: Binary::Sub,
        a,
        b,
        extents,
    } = &builder.node(node).op
    else {
        return None;
    };
    let (Source::Node(x), Source::Node(mean)) = (&a.source, &b.source) else {
        return None;
    };
    // All of `x`, and each mean for its group: its columns are walked by the extents before it.
    let group = (0..=extents.len()).find(|&at| extents[at..].iter().product::<usize>() == size)?;
    let mut means = strides(&extents[..group]);
    means.resize(extents.len(), 0);
    let is_plain = a.offset == 0
        && b.offset == 0
        && a.strides == strides(extents)
        && b.strides == means
        && builder.node(*x).width == builder.node(node).width
        && builder.node(*x).rows == builder.node(node).rows;
    (is_plain && mean_of(builder, *mean) == Some((size, *x))).then_some(*x)
}
