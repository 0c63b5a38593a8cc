//! Bounds on the numbers of a node. Integers are f32 while a program runs, which is exact up to 2^24. A graph whose
//! integers may exceed this is not lowered.

use crate::node::{Binary, Op, Operand, Reduction, Source, Table, Unary};

/// Whole numbers up to this are exact in f32.
pub(crate) const EXACT: u32 = 1 << 24;
/// The largest id that is taken, which leaves room for sums of it and a constant.
pub(crate) const LARGEST_ID: u32 = 1 << 23;
/// The most tokens of a text: positions, lengths and sums of flags stay exact.
pub(crate) const LONGEST: usize = 1 << 20;

/// The largest absolute value of a node's numbers, of whole numbers alone; infinity where nothing
/// is known. `known` are those of the nodes before it.
pub(crate) fn of(op: &Op, known: &[f64]) -> f64 {
    let most = |values: &[f32]| {
        let values = values.iter().map(|&value| f64::from(value).abs());
        values.fold(0.0, f64::max)
    };
    let operand = |operand: &Operand| match &operand.source {
        Source::Node(node) => known[node.0],
        Source::Constant(values) => most(values),
    };
    let reduced = |x: f64, f: Reduction, many: usize| match f {
        Reduction::Sum => x * many as f64,
        Reduction::Mean | Reduction::Max | Reduction::Min => x,
        Reduction::Product => libm::pow(x.max(1.0), many as f64),
        Reduction::L2 | Reduction::SumOfSquares => f64::INFINITY,
    };
    match op {
        Op::Input(_) => f64::from(LARGEST_ID),
        Op::Position | Op::Length => LONGEST as f64,
        Op::Gather { table, .. } => match table {
            Table::Constant(values) => most(values),
            // Of 8 bits: others are not read.
            Table::Weight(_) => 255.0,
        },
        Op::Map { x, f } => unary(*f, known[x.0]),
        Op::Zip { f, a, b, .. } => binary(*f, operand(a), operand(b)),
        Op::Select { a, b, .. } => operand(a).max(operand(b)),
        Op::Copy { a, .. } => operand(a),
        Op::Concat { parts, .. } => parts.iter().map(|(x, _)| known[x.0]).fold(0.0, f64::max),
        Op::Reduce { x, f, size } => reduced(known[x.0], *f, *size),
        Op::Pool { x, f } => reduced(known[x.0], *f, LONGEST),
        Op::WeightedSum { x, weights } => known[x.0] * known[weights.0] * LONGEST as f64,
        Op::Take { x, .. } => known[x.0],
        Op::CumSum { x, .. } => known[x.0] * LONGEST as f64,
        Op::Values(_) | Op::Linear(_) | Op::Norm(_) | Op::Attention(_) | Op::Softmax { .. } => {
            f64::INFINITY
        }
    }
}

fn unary(f: Unary, x: f64) -> f64 {
    match f {
        Unary::Affine { factor, shift } => {
            // 0 times what is not known is 0.
            let product = match factor {
                0.0 => 0.0,
                _ => f64::from(factor).abs() * x,
            };
            product + f64::from(shift).abs()
        }
        Unary::Abs | Unary::Ceil | Unary::Floor | Unary::Relu => x,
        Unary::Not | Unary::IsNan | Unary::Sign => 1.0,
        Unary::Square => x * x,
        Unary::Clamp { least, most } => {
            let bounds = [least, most].map(|bound| f64::from(bound).abs());
            let finite = bounds.into_iter().filter(|bound| bound.is_finite());
            finite.fold(x, f64::max)
        }
        _ => f64::INFINITY,
    }
}

fn binary(f: Binary, a: f64, b: f64) -> f64 {
    match f {
        f if f.compares() => 1.0,
        Binary::Add | Binary::Sub => a + b,
        Binary::Mul => a * b,
        Binary::Max | Binary::Min | Binary::Modulo | Binary::Remainder => a.max(b),
        Binary::DivWhole => a,
        _ => f64::INFINITY,
    }
}
