//! Small networks of every known family with seeded weights: against the graph in double precision, and with the same bits in
//! any batch and on any number of threads.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::Checked;
use isovec_model::onnx::builder::{float, int, ints};
use isovec_test_models::convolutions::{Net, bottleneck, inverted};

#[test]
fn resnet() {
    let mut net = Net::new(1, [3, 45, 37]);
    let mut x = net.square("x", (16, 3), 7, 2, 1);
    x = net.norm(&x, 16);
    x = net.relu(&x);
    let pool = vec![
        ints("kernel_shape", &[3, 3]),
        ints("strides", &[2, 2]),
        ints("pads", &[1; 4]),
    ];
    x = net.node("MaxPool", &[&x], pool);
    x = bottleneck(&mut net, &x, 16, 8, 1);
    x = bottleneck(&mut net, &x, 32, 8, 1);
    x = bottleneck(&mut net, &x, 32, 12, 2);
    x = net.node("GlobalAveragePool", &[&x], vec![]);
    x = net.node("Flatten", &[&x], vec![int("axis", 1)]);
    x = net.classifier(&x, (20, 48));
    let wanted = "input conv max_pool linear conv linear linear linear conv linear linear conv linear conv mean linear";
    assert_eq!(net.check(&[&x]).join(" "), wanted);
}

#[test]
fn mobilenet_v2() {
    let mut net = Net::new(2, [3, 32, 24]);
    let mut x = net.square("x", (16, 3), 3, 2, 1);
    x = net.norm(&x, 16);
    x = net.relu6(&x);
    for (inputs, inner, outputs, stride) in [
        (16, 16, 8, 1),
        (8, 48, 12, 2),
        (12, 72, 12, 1),
        (12, 72, 20, 2),
    ] {
        x = inverted(&mut net, &x, inputs, inner, outputs, stride);
    }
    x = net.square(&x, (64, 20), 1, 1, 1);
    x = net.norm(&x, 64);
    x = net.relu6(&x);
    x = net.node(
        "ReduceMean",
        &[&x],
        vec![ints("axes", &[2, 3]), int("keepdims", 0)],
    );
    x = net.node("Dropout", &[&x], vec![]);
    x = net.classifier(&x, (30, 64));
    let inverted = "linear depthwise linear ";
    let wanted = format!(
        "input conv depthwise linear {}linear mean linear",
        inverted.repeat(3)
    );
    assert_eq!(net.check(&[&x]).join(" "), wanted);
}

/// Squeeze and excite (<https://arxiv.org/abs/1709.01507>), with these two activations.
fn squeeze(
    net: &mut Net,
    x: &str,
    channels: usize,
    inner: usize,
    between: &str,
    gate: (&str, Option<f32>),
) -> String {
    let mut y = net.node("GlobalAveragePool", &[x], vec![]);
    y = net.conv(&y, [inner, channels, 1, 1], true, vec![]);
    y = match between {
        "Silu" => net.silu(&y),
        other => net.node(other, &[&y], vec![]),
    };
    y = net.conv(&y, [channels, inner, 1, 1], true, vec![]);
    let attributes = gate.1.map(|alpha| float("alpha", alpha));
    y = net.node(gate.0, &[&y], attributes.into_iter().collect());
    net.node("Mul", &[&y, x], vec![])
}

#[test]
fn mobilenet_v3() {
    let mut net = Net::new(3, [3, 40, 40]);
    let mut x = net.square("x", (16, 3), 3, 2, 1);
    x = net.norm(&x, 16);
    x = net.node("HardSwish", &[&x], vec![]);
    // As exporters write it where the operator set has no HardSwish.
    for (inner, side) in [(24, 3), (40, 5)] {
        let before = x.clone();
        x = net.square(&x, (inner, 16), 1, 1, 1);
        x = net.norm(&x, inner);
        let gate = net.node("HardSigmoid", &[&x], vec![float("alpha", 1.0 / 6.0)]);
        x = net.node("Mul", &[&x, &gate], vec![]);
        x = net.square(&x, (inner, inner), side, 1, inner);
        x = net.norm(&x, inner);
        let (three, none, six) = (net.number(3.0), net.number(0.0), net.number(6.0));
        let more = net.node("Add", &[&x, &three], vec![]);
        let more = net.node("Clip", &[&more, &none, &six], vec![]);
        x = net.node("Mul", &[&x, &more], vec![]);
        x = net.node("Div", &[&x, &six], vec![]);
        x = squeeze(
            &mut net,
            &x,
            inner,
            8,
            "Relu",
            ("HardSigmoid", Some(1.0 / 6.0)),
        );
        x = net.square(&x, (16, inner), 1, 1, 1);
        x = net.norm(&x, 16);
        x = net.node("Add", &[&x, &before], vec![]);
    }
    x = net.node("GlobalAveragePool", &[&x], vec![]);
    x = net.node("Flatten", &[&x], vec![]);
    x = net.classifier(&x, (32, 16));
    x = net.node("HardSwish", &[&x], vec![]);
    x = net.classifier(&x, (10, 32));
    let block = "linear depthwise mean linear linear scale linear ";
    let wanted = format!("input conv {}mean linear linear", block.repeat(2));
    assert_eq!(net.check(&[&x]).join(" "), wanted);
}

#[test]
fn efficientnet() {
    let mut net = Net::new(4, [3, 36, 44]);
    let mut x = net.square("x", (24, 3), 3, 2, 1);
    x = net.norm(&x, 24);
    x = net.silu(&x);
    for (inner, side, stride) in [(24, 3, 1), (48, 5, 2), (48, 5, 1)] {
        x = net.square(&x, (inner, 24), 1, 1, 1);
        x = net.norm(&x, inner);
        x = net.silu(&x);
        x = net.square(&x, (inner, inner), side, stride, inner);
        x = net.norm(&x, inner);
        x = net.silu(&x);
        x = squeeze(&mut net, &x, inner, 6, "Silu", ("Sigmoid", None));
        x = net.square(&x, (24, inner), 1, 1, 1);
        x = net.norm(&x, 24);
    }
    x = net.node("GlobalAveragePool", &[&x], vec![]);
    x = net.node("Flatten", &[&x], vec![]);
    x = net.classifier(&x, (10, 24));
    x = net.node("Softmax", &[&x], vec![int("axis", 1)]);
    let block = "linear depthwise mean linear linear scale linear ";
    let wanted = format!("input conv {}mean linear softmax", block.repeat(3));
    assert_eq!(net.check(&[&x]).join(" "), wanted);
}

/// `x / 2 * (1 + erf(x / sqrt(2)))`, as exporters write it.
fn gelu(net: &mut Net, x: &str) -> String {
    let (root, one, half) = (
        net.number(std::f32::consts::SQRT_2),
        net.number(1.0),
        net.number(0.5),
    );
    let y = net.node("Div", &[x, &root], vec![]);
    let y = net.node("Erf", &[&y], vec![]);
    let y = net.node("Add", &[&y, &one], vec![]);
    let y = net.node("Mul", &[x, &y], vec![]);
    net.node("Mul", &[&y, &half], vec![])
}

#[test]
fn convnext() {
    let mut net = Net::new(5, [3, 40, 32]);
    let channels = 24;
    let (inside, outside) = (ints("perm", &[0, 2, 3, 1]), ints("perm", &[0, 3, 1, 2]));
    let layer_norm = |net: &mut Net, x: &str| {
        let gamma = net.weight(&[channels], 1.0, 0.1);
        let beta = net.weight(&[channels], 0.0, 0.1);
        let attributes = vec![int("axis", -1), float("epsilon", 1e-6)];
        net.node("LayerNormalization", &[x, &gamma, &beta], attributes)
    };
    let mut x = net.conv(
        "x",
        [channels, 3, 4, 4],
        true,
        vec![ints("strides", &[4, 4])],
    );
    x = net.node("Transpose", &[&x], vec![inside.clone()]);
    x = layer_norm(&mut net, &x);
    x = net.node("Transpose", &[&x], vec![outside.clone()]);
    for block in 0..2 {
        let before = x.clone();
        x = net.square(&x, (channels, channels), 7, 1, channels);
        x = net.node("Transpose", &[&x], vec![inside.clone()]);
        x = layer_norm(&mut net, &x);
        for (inputs, outputs) in [(channels, 96), (96, channels)] {
            let weight = net.weight(&[inputs, outputs], 0.0, (1.0 / inputs as f64).sqrt());
            let bias = net.weight(&[outputs], 0.0, 0.1);
            x = net.node("MatMul", &[&x, &weight], vec![]);
            x = net.node("Add", &[&bias, &x], vec![]);
            if outputs == 96 {
                x = match block {
                    0 => gelu(&mut net, &x),
                    _ => net.node("Gelu", &[&x], vec![]),
                };
            }
        }
        x = net.node("Transpose", &[&x], vec![outside.clone()]);
        let scale = net.weight(&[channels, 1, 1], 0.3, 0.1);
        x = net.node("Mul", &[&scale, &x], vec![]);
        x = net.node("Add", &[&x, &before], vec![]);
    }
    x = net.node("GlobalAveragePool", &[&x], vec![]);
    x = net.node("Flatten", &[&x], vec![]);
    x = layer_norm(&mut net, &x);
    x = net.classifier(&x, (10, channels));
    let block = "depthwise norm linear linear ";
    let wanted = format!("input conv norm {}mean norm linear", block.repeat(2));
    assert_eq!(net.check(&[&x]).join(" "), wanted);
}
