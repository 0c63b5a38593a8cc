//! Extents that a `Reshape` reads off the value which it reshapes: a zero says the same
//! (<https://onnx.ai/onnx/operators/onnx__Reshape.html>).

use super::net::Net;
use super::value::Value;

pub(super) fn run(net: &mut Net<'_>) -> usize {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        let asked = match net.operator(at) {
            "Reshape" if net.nodes()[at].int("allowzero").unwrap_or(0) == 0 => asked(net, at),
            _ => None,
        };
        if let Some(asked) = asked {
            let name = net.nodes()[at].input[1].clone();
            let name = net.hold(&name, Net::held(&Value::row(asked)));
            net.reads(at, 1, &name);
            changes += 1;
        }
    }
    changes
}

/// The extents that the node asks for, where each is a constant or its input's own in the same place.
fn asked(net: &Net<'_>, at: usize) -> Option<Vec<i64>> {
    let node = &net.nodes()[at];
    let [value, shape] = node.input.as_slice() else {
        return None;
    };
    let mut asked = Vec::new();
    let joined = net.made_by(uncast(net, shape), "Concat")?;
    for part in &net.nodes()[joined].input {
        if let Some(numbers) = net.value(part) {
            asked.extend(numbers.ints()?);
            continue;
        }
        let (of, places) = read_off(net, uncast(net, part))?;
        if of != value || places.start != asked.len() {
            return None;
        }
        asked.extend(places.map(|_| 0));
    }
    Some(asked)
}

/// The value before it was given another type: extents fit into all whole numbers that shapes are computed in.
fn uncast<'n>(net: &'n Net<'_>, value: &'n str) -> &'n str {
    match net.made_by(value, "Cast") {
        Some(at) => uncast(net, &net.nodes()[at].input[0]),
        None => value,
    }
}

/// The value whose extents a value holds in one row, and which of them.
fn read_off<'n>(net: &'n Net<'_>, value: &'n str) -> Option<(&'n str, std::ops::Range<usize>)> {
    let at = net.maker(value)?;
    let node = &net.nodes()[at];
    match net.operator(at) {
        "Unsqueeze" if net.asked(node, "axes", 1)? == [0] => {
            let gather = net.made_by(uncast(net, &node.input[0]), "Gather")?;
            chosen(net, gather, &[])
        }
        "Gather" => chosen(net, at, &[1]),
        "Slice" => {
            let bound = |input: usize| match net.value(node.input.get(input)?)?.ints()?.as_slice() {
                [one] => usize::try_from(*one).ok(),
                _ => None,
            };
            let unset = |input: usize| node.input.get(input).is_none_or(String::is_empty);
            // The only axis, and every extent.
            let plain = (unset(3) || bound(3) == Some(0)) && (unset(4) || bound(4) == Some(1));
            let (start, end) = (bound(1)?, bound(2)?);
            let of = extents_of(net, &node.input[0])?;
            // Past the last extent there is none, whatever the end says.
            let inside = end == 1 || net.rank(of).is_some_and(|rank| end <= rank);
            (plain && start < end && inside).then_some((of, start..end))
        }
        _ => None,
    }
}

/// What a `Gather` with a constant index of this shape takes of extents.
fn chosen<'n>(
    net: &'n Net<'_>,
    at: usize,
    shape: &[usize],
) -> Option<(&'n str, std::ops::Range<usize>)> {
    let node = &net.nodes()[at];
    let index = net.value(node.input.get(1)?)?;
    let (&[place], true) = (index.ints()?.as_slice(), index.shape == shape) else {
        return None;
    };
    let place = usize::try_from(place).ok()?;
    let of = extents_of(net, &node.input[0])?;
    Some((of, place..place + 1))
}

/// The value that a `Shape` gives the extents of.
fn extents_of<'n>(net: &'n Net<'_>, value: &'n str) -> Option<&'n str> {
    let at = net.made_by(uncast(net, value), "Shape")?;
    let node = &net.nodes()[at];
    let whole = node.int("start").unwrap_or(0) == 0 && node.int("end").is_none();
    whole.then(|| node.input[0].as_str())
}
