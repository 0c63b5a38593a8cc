//! Computes what depends on constants alone, and stores equal constants once.

use std::collections::HashMap;

use isovec_engine::onnx::proto::{NodeProto, TensorProto};

use super::evaluate::{evaluate, order, reshaped, unsqueezed};
use super::net::{Constant, Net};
use super::value::{Numbers, Value};
use crate::error::Result;
use crate::source::Form;

/// Bytes that a constant may take which is made of smaller ones.
const SMALL: usize = 1024;

pub(super) async fn run(net: &mut Net<'_>) -> Result<usize> {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        let made = match net.operator(at) {
            "" | "Constant" => None,
            _ => match moved(net, at) {
                Some(weight) => Some(weight),
                None => computed(net, at).await?,
            },
        };
        changes += usize::from(made.is_some_and(|held| net.settle(at, held)));
    }
    Ok(changes + join_equal(net))
}

/// Makes constants that are nodes known to all passes, and says how many there are. Those that are outputs stay nodes.
pub(super) fn settle_stated(net: &mut Net<'_>) -> usize {
    let mut count = 0;
    for at in 0..net.nodes().len() {
        let stated = match net.operator(at) {
            "Constant" => stated(&net.nodes()[at]),
            _ => None,
        };
        count +=
            usize::from(stated.is_some_and(|held| net.settle(at, Constant::Small(Box::new(held)))));
    }
    net.drop_dead();
    count
}

/// The tensor that a `Constant` is.
fn stated(node: &NodeProto) -> Option<TensorProto> {
    let [attribute] = node.attribute.as_slice() else {
        return None;
    };
    let numbers = match attribute.name.as_str() {
        "value" => return attribute.t.clone(),
        "value_float" => (vec![], Numbers::F32(vec![attribute.f])),
        "value_int" => (vec![], Numbers::I64(vec![attribute.i])),
        "value_floats" => (
            vec![attribute.floats.len()],
            Numbers::F32(attribute.floats.clone()),
        ),
        "value_ints" => (
            vec![attribute.ints.len()],
            Numbers::I64(attribute.ints.clone()),
        ),
        _ => return None,
    };
    let (shape, numbers) = numbers;
    Some(Value { shape, numbers }.tensor(""))
}

/// A weight that a node gives in other extents, or with its axes in another order. A weight that others read as well stays: there
/// would be two of it.
fn moved(net: &Net<'_>, at: usize) -> Option<Constant> {
    let node = &net.nodes()[at];
    let name = node.input.first()?;
    let Constant::Weight {
        dtype,
        shape,
        form: Form::Same(weight),
    } = net.constant(name)?
    else {
        return None;
    };
    net.only_reader(name)?;
    let (dtype, weight) = (*dtype, *weight);
    let same = |shape: Vec<usize>| Constant::Weight {
        dtype,
        shape,
        form: Form::Same(weight),
    };
    match node.op_type.as_str() {
        "Identity" => Some(same(shape.clone())),
        "Reshape" => {
            let asked = net.value(node.input.get(1)?)?.ints()?;
            Some(same(reshaped(node, shape, &asked)?))
        }
        "Unsqueeze" => Some(same(unsqueezed(shape, &net.asked(node, "axes", 1)?)?)),
        "Transpose" => {
            let order = order(node.ints("perm"), shape.len())?;
            Some(Constant::Weight {
                dtype,
                shape: order.iter().map(|&axis| shape[axis]).collect(),
                form: Form::Turned {
                    weight,
                    order: order.into(),
                },
            })
        }
        _ => None,
    }
}

/// What a node computes of constants, where it is no larger than those that go with it.
async fn computed(net: &Net<'_>, at: usize) -> Result<Option<Constant>> {
    let node = &net.nodes()[at];
    let constant = |name: &String| name.is_empty() || net.constant(name).is_some();
    let any = node.input.iter().any(|name| !name.is_empty());
    if !any || !node.input.iter().all(constant) {
        return Ok(None);
    }
    let mut inputs = Vec::with_capacity(node.input.len());
    for name in &node.input {
        inputs.push(match name.is_empty() {
            true => None,
            false => match net.read(name).await? {
                Some(value) => Some(value),
                None => return Ok(None),
            },
        });
    }
    // What others read as well stays, and is saved by nobody.
    let alone = node.input.iter().zip(&inputs);
    let alone = alone.filter(|(name, _)| net.only_reader(name).is_some());
    let given = alone.filter_map(|(_, value)| Some(value.as_ref()?.numbers.bytes()));
    let given: usize = given.sum();
    let made = evaluate(node, &inputs).filter(|value| value.numbers.bytes() <= given.max(SMALL));
    Ok(made.as_ref().map(Net::held))
}

/// Stores equal constants of the graph once.
fn join_equal(net: &mut Net<'_>) -> usize {
    let mut first = HashMap::new();
    let mut same = Vec::new();
    for (name, held) in net.constants() {
        let Constant::Small(tensor) = held else {
            continue;
        };
        // Texts are no bytes.
        if tensor.raw_data.is_empty() || net.is_pinned(name) {
            continue;
        }
        let known = (
            tensor.data_type,
            tensor.dims.clone(),
            tensor.raw_data.clone(),
        );
        match first.get(&known) {
            None => {
                first.insert(known, name.to_owned());
            }
            Some(other) => same.push((name.to_owned(), String::clone(other))),
        }
    }
    for (name, other) in &same {
        net.replace(name, other);
    }
    same.len()
}
