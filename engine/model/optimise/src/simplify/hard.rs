//! A hard sigmoid that is spread over operators, alone or in a hard swish: `clip(x + 3, 0, 6) / 6`
//! (A. Howard et al., 2019, <https://arxiv.org/abs/1905.02244>). `HardSigmoid` with a slope of 1/6 says the same. A hard swish stays a
//! product, `x · HardSigmoid(x)`: ONNX Runtime joins that with what stands before it, and has no kernel for `HardSwish`.

use isovec_engine::onnx::proto::NodeProto;
use isovec_model::onnx::builder::float;

use super::net::Net;

pub(super) fn run(net: &mut Net<'_>) -> usize {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        let Some(of) = clipped(net, at) else {
            continue;
        };
        let clip = net.nodes()[at].output[0].clone();
        let Some(reader) = net.only_reader(&clip) else {
            continue;
        };
        if sixth(net, reader).is_some_and(|value| value == clip) {
            let output = net.nodes()[reader].output[0].clone();
            net.put(reader, hard_sigmoid(&of, &output));
            changes += 1;
            continue;
        }
        let node = &net.nodes()[reader];
        let product = net.operator(reader) == "Mul" && node.input.contains(&of);
        let Some(last) = net.only_reader(&node.output[0]).filter(|_| product) else {
            continue;
        };
        let product = node.output[0].clone();
        if sixth(net, last).is_some_and(|value| value == product) {
            let gate = net.fresh(&clip);
            let mut times = net.nodes()[reader].clone();
            times.output.clone_from(&net.nodes()[last].output);
            times.input = vec![of.clone(), gate.clone()];
            net.put(reader, hard_sigmoid(&of, &gate));
            net.put(last, times);
            changes += 1;
        }
    }
    changes
}

fn hard_sigmoid(of: &str, output: &str) -> NodeProto {
    NodeProto {
        op_type: "HardSigmoid".into(),
        name: format!("{output}.hard"),
        input: vec![of.to_owned()],
        output: vec![output.to_owned()],
        attribute: vec![float("alpha", 1.0 / 6.0), float("beta", 0.5)],
        ..NodeProto::default()
    }
}

/// The `x` of `clip(x + 3, 0, 6)`.
fn clipped(net: &Net<'_>, at: usize) -> Option<String> {
    if net.operator(at) != "Clip" {
        return None;
    }
    let node = &net.nodes()[at];
    let end = |name: &str, input: usize| match node.float(name) {
        Some(end) => Some(end),
        None => net.float(node.input.get(input)?),
    };
    let ends = (end("min", 1)?, end("max", 2)?);
    let (of, three) = net.with_float(net.maker(&node.input[0])?, "Add")?;
    (ends == (0.0, 6.0) && three == 3.0).then_some(of)
}

/// The value of which a node takes a sixth.
fn sixth(net: &Net<'_>, at: usize) -> Option<String> {
    let node = &net.nodes()[at];
    match net.operator(at) {
        "Div" if net.float(&node.input[1]) == Some(6.0) => Some(node.input[0].clone()),
        "Mul" => {
            let (of, factor) = net.with_float(at, "Mul")?;
            ((factor * 6.0 - 1.0).abs() < 1e-6).then_some(of)
        }
        _ => None,
    }
}
