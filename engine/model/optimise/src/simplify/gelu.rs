//! A GELU that is spread over operators (D. Hendrycks, K. Gimpel, 2016, <https://arxiv.org/abs/1606.08415>): `x / 2 · (1 + erf(x / √2))`, and
//! its approximation `x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 x³)))`.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use isovec_engine::onnx::proto::NodeProto;
use isovec_model::onnx::builder::string;

use super::net::Net;
use super::opset::raise;

/// The operator set that has it.
const SET: i64 = 20;

/// How far a constant may be from the exact one, for one: exporters write 1.4142 as well.
const NEAR: f32 = 1e-4;

pub(super) fn run(net: &mut Net<'_>, reason: &mut String) -> usize {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        let found = match net.operator(at) {
            "Erf" => exact(net, at).map(|of| (of, "none")),
            "Tanh" => approximate(net, at).map(|of| (of, "tanh")),
            _ => None,
        };
        let Some((of, which)) = found else {
            continue;
        };
        let Some(last) = tail(net, at, &of) else {
            continue;
        };
        if let Err(why) = raise(net, SET) {
            *reason = why;
            return changes;
        }
        let old = &net.nodes()[last];
        let node = NodeProto {
            op_type: "Gelu".into(),
            name: old.name.clone(),
            input: vec![of],
            output: old.output.clone(),
            attribute: vec![string("approximate", which)],
            ..NodeProto::default()
        };
        net.put(last, node);
        changes += 1;
    }
    changes
}

fn near(value: f32, wanted: f32) -> bool {
    (value / wanted - 1.0).abs() <= NEAR
}

/// The `x` of `erf(x / √2)`.
fn exact(net: &Net<'_>, at: usize) -> Option<String> {
    let inside = net.maker(&net.nodes()[at].input[0])?;
    let node = &net.nodes()[inside];
    match net.operator(inside) {
        "Div" if near(net.float(&node.input[1])?, SQRT_2) => Some(node.input[0].clone()),
        "Mul" => {
            let (of, factor) = net.with_float(inside, "Mul")?;
            near(factor, FRAC_1_SQRT_2).then_some(of)
        }
        _ => None,
    }
}

/// The `x` of `tanh(√(2 / π) · (x + 0.044715 x³))`.
fn approximate(net: &Net<'_>, at: usize) -> Option<String> {
    let inside = net.maker(&net.nodes()[at].input[0])?;
    let (sum, factor) = net.with_float(inside, "Mul")?;
    let sum = net.made_by(&sum, "Add")?;
    let [a, b] = net.nodes()[sum].input.as_slice() else {
        return None;
    };
    let root = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    let cubic = |of: &str, cube: &str| {
        let (cube, factor) = net.with_float(net.maker(cube)?, "Mul")?;
        (near(factor, 0.044_715) && cubed(net, &cube)? == of).then_some(())
    };
    let of = match (cubic(a, b), cubic(b, a)) {
        (Some(()), _) => a,
        (_, Some(())) => b,
        _ => return None,
    };
    near(factor, root).then(|| of.clone())
}

/// The value whose cube this is.
fn cubed(net: &Net<'_>, value: &str) -> Option<String> {
    let at = net.maker(value)?;
    let [a, b] = net.nodes()[at].input.as_slice() else {
        return None;
    };
    match net.operator(at) {
        "Pow" if net.float(b) == Some(3.0) => Some(a.clone()),
        "Mul" => {
            let square = |square: &str, of: &str| {
                let made = net.made_by(square, "Mul")?;
                (net.nodes()[made].input == [of, of]).then(|| of.to_owned())
            };
            square(a, b).or_else(|| square(b, a))
        }
        _ => None,
    }
}

/// The last node of `x / 2 · (1 + t)`, where `t` is what this node makes.
fn tail(net: &Net<'_>, at: usize, of: &str) -> Option<usize> {
    let one_more = net.only_reader(&net.nodes()[at].output[0])?;
    let (_, one) = net.with_float(one_more, "Add")?;
    let sum = &net.nodes()[one_more].output[0];
    let product = net.only_reader(sum).filter(|_| one == 1.0)?;
    if net.operator(product) != "Mul" {
        return None;
    }
    let node = &net.nodes()[product];
    // (1 + t) / 2, and then times x.
    if let Some((_, 0.5)) = net.with_float(product, "Mul") {
        let last = net.only_reader(&node.output[0])?;
        let both = &net.nodes()[last].input;
        let times = net.operator(last) == "Mul" && both.iter().any(|input| input == of);
        return times.then_some(last);
    }
    let other = node.input.iter().find(|input| *input != sum)?;
    // x · (1 + t), and then a half of it.
    if other == of {
        let last = net.only_reader(&node.output[0])?;
        let half = net
            .with_float(last, "Mul")
            .is_some_and(|(_, half)| half == 0.5);
        let halved = net.operator(last) == "Div"
            && net.nodes()[last].input[0] == node.output[0]
            && net.float(&net.nodes()[last].input[1]) == Some(2.0);
        return (half || halved).then_some(last);
    }
    // x / 2, and then times (1 + t).
    let (half_of, half) = net.with_float(net.maker(other)?, "Mul")?;
    (half_of == of && half == 0.5).then_some(product)
}
