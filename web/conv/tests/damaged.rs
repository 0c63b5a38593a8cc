//! Graphs that were damaged at random: they are refused, or they run; nothing panics.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use std::sync::Arc;

use common::tokens::Tokens;
use isovec_conv::Executable;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::{DimensionValue, TypeValue};
use isovec_engine::pause::NoTurns;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::onnx::builder::{float, int, ints};
use isovec_test_models::convolutions::{Net, bottleneck, inverted};
use isovec_test_models::rng::Rng;

/// Damaged graphs of each network.
const GRAPHS: usize = 2000;

/// Numbers that attributes, extents and constants may become.
const NUMBERS: [i64; 12] = [
    -2,
    -1,
    0,
    1,
    2,
    3,
    5,
    64,
    1 << 16,
    1 << 33,
    i64::MAX,
    i64::MIN,
];

/// Operators that a node may become.
const OPERATORS: [&str; 23] = [
    "Conv",
    "Gemm",
    "MatMul",
    "Add",
    "Mul",
    "Div",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "ReduceMean",
    "Reshape",
    "Transpose",
    "Flatten",
    "Concat",
    "Softmax",
    "LayerNormalization",
    "Shape",
    "Gather",
    "Squeeze",
    "HardSigmoid",
    "Pow",
    "Slice",
    "Sub",
];

/// A network with some of everything.
fn network() -> (Net, String) {
    let mut net = Net::new(1, [3, 19, 14]);
    let mut x = net.square("x", (8, 3), 3, 2, 1);
    x = bottleneck(&mut net, &x, 8, 4, 1);
    x = inverted(&mut net, &x, 16, 24, 16, 1);
    x = net.silu(&x);
    let pool = vec![
        ints("kernel_shape", &[2, 2]),
        ints("strides", &[2, 2]),
        int("ceil_mode", 1),
    ];
    x = net.node("MaxPool", &[&x], pool);
    x = net.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 3, 1])]);
    let gamma = net.weight(&[16], 1.0, 0.1);
    let attributes = vec![int("axis", -1), float("epsilon", 1e-6)];
    x = net.node("LayerNormalization", &[&x, &gamma], attributes);
    x = net.node("Transpose", &[&x], vec![ints("perm", &[0, 3, 1, 2])]);
    let shape = net.node("Shape", &[&x], vec![]);
    let (zero, axis, rest) = (net.int(0), net.ints(&[0]), net.ints(&[-1]));
    let batch = net.node("Gather", &[&shape, &zero], vec![]);
    let batch = net.node("Unsqueeze", &[&batch, &axis], vec![]);
    let to = net.node("Concat", &[&batch, &rest], vec![int("axis", 0)]);
    x = net.node("Reshape", &[&x, &to], vec![]);
    x = net.classifier(&x, (10, 16 * 5 * 4));
    x = net.node("Softmax", &[&x], vec![int("axis", 1)]);
    (net, x)
}

/// A row of pixels, with attention over it.
fn tokens() -> (Net, String) {
    let mut tokens = Tokens::new(3, 12);
    let x = tokens.x.clone();
    let normed = tokens.norm(&x, true);
    let joined = tokens.joined(&normed, 3, false);
    let apart = tokens.apart(&joined, 2);
    let gathered = tokens.joined(&apart, 4, true);
    let output = tokens.norm(&gathered, false);
    (tokens.net, output)
}

/// One of a list.
fn one<'a, T>(rng: &mut Rng, all: &'a mut [T]) -> Option<&'a mut T> {
    let count = all.len() as u64;
    all.get_mut(rng.below(count.max(1)) as usize)
}

fn damage(bundle: &mut ModelBundle, rng: &mut Rng) {
    let number = NUMBERS[rng.below(NUMBERS.len() as u64) as usize];
    let graph = bundle.graph.graph.as_mut().unwrap();
    let names: Vec<String> = graph
        .node
        .iter()
        .flat_map(|node| node.input.clone())
        .collect();
    let name = names[rng.below(names.len() as u64) as usize].clone();
    match rng.below(7) {
        0 | 1 => {
            let Some(node) = one(rng, &mut graph.node) else {
                return;
            };
            let Some(attribute) = one(rng, &mut node.attribute) else {
                return;
            };
            attribute.i = number;
            if let Some(entry) = one(rng, &mut attribute.ints) {
                *entry = number;
            }
        }
        2 => {
            let Some(node) = one(rng, &mut graph.node) else {
                return;
            };
            if let Some(input) = one(rng, &mut node.input) {
                *input = name;
            }
        }
        3 => {
            let Some(node) = one(rng, &mut graph.node) else {
                return;
            };
            node.input.pop();
        }
        4 => {
            let operator = OPERATORS[rng.below(OPERATORS.len() as u64) as usize];
            if let Some(node) = one(rng, &mut graph.node) {
                node.op_type = operator.into();
            }
        }
        5 => {
            let Some(tensor) = one(rng, &mut graph.initializer) else {
                return;
            };
            if rng.below(2) == 0 {
                tensor.raw_data = number
                    .to_le_bytes()
                    .repeat(tensor.raw_data.len() / 8)
                    .into();
            } else if let Some(extent) = one(rng, &mut tensor.dims) {
                *extent = number;
            }
        }
        _ => {
            let kind = graph.input[0]
                .r#type
                .as_mut()
                .and_then(|kind| kind.value.as_mut());
            if let Some(TypeValue::Tensor(tensor)) = kind
                && let Some(dim) = one(rng, &mut tensor.shape.as_mut().unwrap().dim[1..])
            {
                dim.value = Some(DimensionValue::Value(number));
            }
        }
    }
}

#[test]
fn damaged_graphs_are_refused_or_run() {
    for (net, output) in [network(), tokens()] {
        refused_or_run(net, &output);
    }
}

fn refused_or_run(mut net: Net, output: &str) {
    let whole = net.bundle(&[output]);
    let batch = net.batch(&net.pictures(1, 1));
    let (mut refused, mut ran) = (0, 0);
    let mut rng = Rng::new(2);
    for _ in 0..GRAPHS {
        let mut bundle = whole.clone();
        for _ in 0..=rng.below(3) {
            damage(&mut bundle, &mut rng);
        }
        let (cancel, mut turns) = (Cancel::new(), NoTurns);
        let compiled = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
        let Ok(executable) = pollster::block_on(compiled) else {
            refused += 1;
            continue;
        };
        // Another picture than it wants, or one that is computed to its end.
        if let Ok(mut run) = isovec_conv::Run::new(Arc::new(executable), &batch) {
            while run.step(&batch, None, &OneThread).unwrap().is_some() {}
            run.finish();
            ran += 1;
        }
    }
    assert!(
        refused > GRAPHS / 10 && ran > GRAPHS / 10,
        "{refused} refused, {ran} ran"
    );
}
