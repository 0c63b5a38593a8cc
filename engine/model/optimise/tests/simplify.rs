//! Passes over graphs: what each finds, what it leaves, and that what is left computes the same, by an oracle at f64.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::collections::BTreeMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, GraphProto, NodeProto, OperatorSetIdProto, TensorProto,
};
use isovec_model::onnx::builder::{float, int, ints};
use isovec_model::onnx::write_model;
use isovec_model::precision::floats;
use isovec_optimize::simplify::{Level, Pass, Passed, simplify};
use isovec_test_models::convolutions::{Net, bottleneck, mobilenet_v2};
use isovec_test_models::exact::{Array, evaluate};

const PICTURE: [usize; 3] = [3, 4, 5];

fn simplified(bundle: &ModelBundle, passes: &[Pass]) -> (ModelBundle, Vec<Passed>) {
    pollster::block_on(simplify(bundle, passes, &Cancel::new())).unwrap()
}

fn graph(bundle: &ModelBundle) -> &GraphProto {
    bundle.graph.graph.as_ref().unwrap()
}

/// The operators of a graph, in their order.
fn operators(bundle: &ModelBundle) -> String {
    let names = graph(bundle).node.iter().map(|node| node.op_type.as_str());
    names.collect::<Vec<_>>().join(" ")
}

/// What a graph gives of a picture, at f64.
fn given(bundle: &ModelBundle, picture: &[usize; 3]) -> Vec<f64> {
    let count: usize = picture.iter().product();
    let pixels: Vec<f32> = (0..count)
        .map(|at| (at as f32 * 0.37 + 0.1).sin() * 2.5)
        .collect();
    let mut values = BTreeMap::new();
    values.insert(
        "x".to_owned(),
        Array::of(&[&[1], &picture[..]].concat(), &pixels),
    );
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        let weight = pollster::block_on(floats(&bundle.weights, index)).unwrap();
        values.insert(info.name.clone(), Array::of(&info.shape, &weight));
    }
    evaluate(graph(bundle), &mut values);
    let outputs = graph(bundle).output.iter();
    outputs
        .flat_map(|output| values[&output.name].values.clone())
        .collect()
}

/// Simplifies a net, and holds what it gives to what it gave, to some parts of the largest value.
fn alike(
    net: &mut Net,
    outputs: &[&str],
    passes: &[Pass],
    within: f64,
) -> (ModelBundle, Vec<Passed>) {
    let bundle = net.bundle(outputs);
    let (made, told) = simplified(&bundle, passes);
    let (before, after) = (given(&bundle, &net.picture), given(&made, &net.picture));
    assert_eq!(before.len(), after.len());
    let largest = before
        .iter()
        .fold(0.0, |most: f64, value| most.max(value.abs()));
    assert!(largest > 1e-3, "a test has to give something");
    for (before, after) in before.iter().zip(&after) {
        assert!(
            (before - after).abs() <= within * largest,
            "{before} became {after}"
        );
    }
    // A second time nothing is left to do, and the same bytes come of the same model.
    let (again, nothing) = simplified(&made, passes);
    assert!(
        nothing.iter().all(|passed| passed.changes == 0),
        "{nothing:?}"
    );
    assert_eq!(again.identity, made.identity);
    let twice = simplified(&bundle, passes).0;
    let bytes = |bundle: &ModelBundle| pollster::block_on(write_model(bundle)).unwrap();
    assert_eq!(bytes(&made), bytes(&twice));
    (made, told)
}

fn net() -> Net {
    Net::new(5, PICTURE)
}

/// The rounding of f32 in a kernel or two.
const ROUNDED: f64 = 1e-6;

/// A constant as exporters write it: a node.
fn stated(net: &mut Net, tensor: &str) -> String {
    let at = net
        .graph()
        .initializer
        .iter()
        .position(|held| held.name == tensor)
        .unwrap();
    let held = net.graph().initializer.remove(at);
    net.graph().node.push(NodeProto {
        op_type: "Constant".into(),
        output: vec![tensor.to_owned()],
        attribute: vec![AttributeProto {
            name: "value".into(),
            r#type: AttributeType::Tensor as i32,
            t: Some(TensorProto {
                name: String::new(),
                ..held
            }),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    });
    tensor.to_owned()
}

#[test]
fn what_depends_on_constants_alone_is_computed() {
    let mut net = net();
    let two = net.number(2.0);
    let two = stated(&mut net, &two);
    let three = net.numbers(&[3], &[1.0, -3.0, 0.5]);
    let product = net.node("Mul", &[&three, &two], vec![]);
    let axes = net.ints(&[1, 2]);
    let wide = net.node("Unsqueeze", &[&product, &axes], vec![]);
    let y = net.node("Add", &["x", &wide], vec![]);
    // The same number once more.
    let other = net.number(-0.5);
    let again = net.node("Add", &[&y, &other], vec![]);
    let same = net.numbers(&[], &[-0.5]);
    let y = net.node("Mul", &[&again, &same], vec![]);
    let bundle = net.bundle(&[&y]);
    // The oracle knows no constants that are nodes.
    let (made, told) = simplified(&bundle, &[Pass::Constants]);
    assert_eq!(operators(&made), "Add Add Mul");
    assert_eq!((told[0].changes, told[0].nodes), (4, 3));
    let held: Vec<_> = graph(&made).initializer.iter().collect();
    assert_eq!(held.len(), 2, "{held:?}");
    let row = held.iter().find(|tensor| tensor.dims == [3, 1, 1]).unwrap();
    let numbers: Vec<u8> = [2.0f32, -6.0, 1.0]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    assert_eq!(row.raw_data.as_ref(), numbers);
    assert_ne!(made.identity, bundle.identity);
    let (_, nothing) = simplified(&made, &[Pass::Constants]);
    assert_eq!(nothing[0].changes, 0);
}

#[test]
fn shapes_are_computed_as_every_engine_computes_them() {
    let mut net = net();
    // [3, 4, 5] by way of a range, a slice, a condition and a division.
    let (zero, six, one) = (net.int(0), net.int(6), net.int(1));
    let range = net.node("Range", &[&zero, &six, &one], vec![]);
    let (start, end, axis) = (net.ints(&[-3]), net.ints(&[1 << 40]), net.ints(&[0]));
    let tail = net.node("Slice", &[&range, &start, &end, &axis], vec![]);
    let (seven, two) = (net.int(7), net.int(2));
    let half = net.node("Div", &[&seven, &two], vec![]);
    let least = net.node("Greater", &[&half, &tail], vec![]);
    let asked = net.node("Where", &[&least, &half, &tail], vec![]);
    let first = net.ints(&[1]);
    let asked = net.node("Concat", &[&first, &asked], vec![int("axis", 0)]);
    let y = net.node("Reshape", &["x", &asked], vec![]);
    let bundle = net.bundle(&[&y]);
    let (made, _) = simplified(&bundle, &[Pass::Constants]);
    assert_eq!(operators(&made), "Reshape");
    let bytes: Vec<u8> = [1i64, 3, 4, 5]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    assert_eq!(graph(&made).initializer[0].raw_data.as_ref(), bytes);
}

#[test]
fn what_an_engine_refuses_and_what_grows_is_left_to_it() {
    let mut net = net();
    let (one, zero) = (net.int(1), net.int(0));
    let broken = net.node("Div", &[&one, &zero], vec![]);
    let most = net.int(i64::MAX);
    let over = net.node("Add", &[&most, &one], vec![]);
    let many = net.ints(&[100, 100]);
    let grown = net.node("ConstantOfShape", &[&many], vec![]);
    let bundle = net.bundle(&[&broken, &over, &grown]);
    let (made, told) = simplified(&bundle, &Pass::ALL);
    assert_eq!(operators(&made), "Div Add ConstantOfShape");
    assert!(told.iter().all(|passed| passed.changes == 0), "{told:?}");
    assert_eq!(made.identity, bundle.identity);
}

#[test]
fn weights_take_other_extents_and_orders_without_a_second_copy() {
    let mut net = net();
    let turned = net.weight(&[20, 15], 0.0, 0.4);
    let turned = net.node("Transpose", &[&turned], vec![ints("perm", &[1, 0])]);
    let flat = net.weight(&[400], 0.0, 0.4);
    let asked = net.ints(&[20, 20]);
    let flat = net.node("Reshape", &[&flat, &asked], vec![]);
    // Read twice: it stays as it is.
    let shared = net.weight(&[300], 0.0, 0.4);
    let asked = net.ints(&[20, 15]);
    let one = net.node("Reshape", &[&shared, &asked], vec![]);
    let asked = net.ints(&[15, 20]);
    let two = net.node("Reshape", &[&shared, &asked], vec![]);
    let asked = net.ints(&[4, 15]);
    let mut y = net.node("Reshape", &["x", &asked], vec![]);
    for by in [&turned, &flat, &one, &two] {
        y = net.node("MatMul", &[&y, by], vec![]);
    }
    let (made, _) = alike(&mut net, &[&y], &[Pass::Constants], 0.0);
    assert_eq!(
        operators(&made),
        "Reshape Reshape Reshape MatMul MatMul MatMul MatMul"
    );
    let mut shapes: Vec<_> = made
        .weights
        .weights()
        .iter()
        .map(|info| info.shape.clone())
        .collect();
    shapes.sort();
    assert_eq!(shapes, [vec![15, 20], vec![20, 20], vec![300]]);
}

/// `x` with its extents read off itself: `[places.., rest..]`, each place by the way of its number.
fn by_shape(net: &mut Net, of: &str, x: &str, places: &[i64], rest: &[i64]) -> String {
    let shape = net.node("Shape", &[of], vec![]);
    let mut parts = Vec::new();
    for (way, &place) in places.iter().enumerate() {
        parts.push(match way % 3 {
            0 => {
                let index = net.int(place);
                let one = net.node("Gather", &[&shape, &index], vec![int("axis", 0)]);
                let axes = net.ints(&[0]);
                net.node("Unsqueeze", &[&one, &axes], vec![])
            }
            1 => {
                let index = net.ints(&[place]);
                net.node("Gather", &[&shape, &index], vec![int("axis", 0)])
            }
            _ => {
                let (start, end) = (net.ints(&[place]), net.ints(&[place + 1]));
                net.node("Slice", &[&shape, &start, &end], vec![])
            }
        });
    }
    if !rest.is_empty() {
        parts.push(net.ints(rest));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let asked = net.node("Concat", &parts, vec![int("axis", 0)]);
    net.node("Reshape", &[x, &asked], vec![])
}

#[test]
fn extents_that_a_reshape_reads_off_its_input_are_written_down() {
    let mut net = net();
    let y = by_shape(&mut net, "x", "x", &[0, 1, 2], &[5, 1]);
    let (made, told) = alike(&mut net, &[&y], &[Pass::Shapes], 0.0);
    assert_eq!(operators(&made), "Reshape");
    assert_eq!((told[0].changes, told[0].nodes), (1, 6));
    let bytes: Vec<u8> = [0i64, 0, 0, 5, 1]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    assert_eq!(graph(&made).initializer[0].raw_data.as_ref(), bytes);
}

#[test]
fn a_slice_of_extents_past_the_last_one_has_no_more_of_them() {
    for (end, changes) in [(4, 1), (9, 0)] {
        let mut net = net();
        let shape = net.node("Shape", &["x"], vec![]);
        let (start, end) = (net.ints(&[0]), net.ints(&[end]));
        let some = net.node("Slice", &[&shape, &start, &end], vec![]);
        let asked = net.node("Concat", &[&some], vec![int("axis", 0)]);
        let y = net.node("Reshape", &["x", &asked], vec![]);
        let bundle = net.bundle(&[&y]);
        assert_eq!(simplified(&bundle, &[Pass::Shapes]).1[0].changes, changes);
    }
}

#[test]
fn extents_of_another_place_or_another_value_are_not() {
    let mut net = net();
    let turned = net.node("Transpose", &["x"], vec![ints("perm", &[0, 3, 1, 2])]);
    let one = by_shape(&mut net, "x", "x", &[0, 2], &[-1]);
    let two = by_shape(&mut net, &turned, "x", &[0, 1], &[-1]);
    let (_, told) = alike(&mut net, &[&one, &two], &[Pass::Shapes], 0.0);
    assert_eq!(told[0].changes, 0);
}

#[test]
fn what_changes_nothing_goes() {
    let mut net = net();
    let mut y = net.node("Identity", &["x"], vec![]);
    y = net.node("Transpose", &[&y], vec![ints("perm", &[0, 1, 2, 3])]);
    y = net.node("Cast", &[&y], vec![int("to", 1)]);
    let one = net.number(1.0);
    y = net.node("Mul", &[&one, &y], vec![]);
    y = net.node("Div", &[&y, &one], vec![]);
    let zero = net.number(0.0);
    y = net.node("Sub", &[&y, &zero], vec![]);
    y = net.node("Concat", &[&y], vec![int("axis", 1)]);
    y = net.node("Dropout", &[&y], vec![]);
    let axes = net.ints(&[2]);
    y = net.node("Unsqueeze", &[&y, &axes], vec![]);
    y = net.node("Squeeze", &[&y, &axes], vec![]);
    let asked = net.ints(&[0, 60]);
    y = net.node("Reshape", &[&y, &asked], vec![]);
    let asked = net.ints(&[6, 10]);
    y = net.node("Reshape", &[&y, &asked], vec![]);
    y = net.relu(&y);
    // An output keeps its name.
    let last = net.node("Identity", &[&y], vec![]);
    let (made, _) = alike(&mut net, &[&last], &[Pass::Identities], 0.0);
    assert_eq!(operators(&made), "Reshape Relu");
    assert_eq!(graph(&made).output[0].name, last);
}

#[test]
fn what_may_change_something_stays() {
    let mut net = net();
    // A number with axes may spread the other value.
    let one = net.numbers(&[1], &[1.0]);
    let a = net.node("Mul", &["x", &one], vec![]);
    // The sum of a negative zero and zero is another zero.
    let zero = net.number(0.0);
    let b = net.node("Add", &["x", &zero], vec![]);
    let half = net.number(1.5);
    let c = net.node("Div", &[&half, "x"], vec![]);
    // A zero takes an extent of the value before.
    let asked = net.ints(&[12, 5]);
    let d = net.node("Reshape", &["x", &asked], vec![]);
    let asked = net.ints(&[0, 1, 5]);
    let d = net.node("Reshape", &[&d, &asked], vec![]);
    // The input is an output as well.
    let e = net.node("Identity", &["x"], vec![]);
    let (_, told) = alike(&mut net, &[&a, &b, &c, &d, &e], &[Pass::Identities], 0.0);
    assert_eq!(told[0].changes, 0);
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let mut net = net();
    let one = net.node("Relu", &["x"], vec![]);
    let two = net.node("Relu", &["x"], vec![]);
    let a = net.node("Clip", &[&one], vec![float("max", 1.0), float("min", 0.5)]);
    let b = net.node("Clip", &[&two], vec![float("min", 0.5), float("max", 1.0)]);
    let c = net.node("Clip", &[&two], vec![float("min", 0.5), float("max", 0.75)]);
    let sum = net.node("Add", &[&a, &b], vec![]);
    let y = net.node("Add", &[&sum, &c], vec![]);
    let (made, told) = alike(&mut net, &[&y], &[Pass::Duplicates], 0.0);
    assert_eq!(operators(&made), "Relu Clip Clip Add Add");
    assert_eq!((told[0].changes, told[0].nodes), (2, 2));
    // Outputs are two values, and what is random is another one each time.
    let mut net = Net::new(5, PICTURE);
    let one = net.node("Relu", &["x"], vec![]);
    let two = net.node("Relu", &["x"], vec![]);
    let noise = net.node("RandomNormalLike", &["x"], vec![]);
    let other = net.node("RandomNormalLike", &["x"], vec![]);
    let bundle = net.bundle(&[&one, &two, &noise, &other]);
    assert_eq!(simplified(&bundle, &[Pass::Duplicates]).1[0].changes, 0);
}

/// A layer normalisation of the last axis in operators; `axis` is how it is named, `square` which operator squares.
fn spread_norm(net: &mut Net, x: &str, axis: i64, square: &str) -> String {
    let axes = || vec![ints("axes", &[axis]), int("keepdims", 1)];
    let mean = net.node("ReduceMean", &[x], axes());
    let centred = net.node("Sub", &[x, &mean], vec![]);
    let squared = match square {
        "Pow" => {
            let two = net.number(2.0);
            net.node("Pow", &[&centred, &two], vec![])
        }
        _ => net.node("Mul", &[&centred, &centred], vec![]),
    };
    let variance = net.node("ReduceMean", &[&squared], axes());
    let epsilon = net.number(1e-3);
    let variance = net.node("Add", &[&variance, &epsilon], vec![]);
    let root = net.node("Sqrt", &[&variance], vec![]);
    let unit = net.node("Div", &[&centred, &root], vec![]);
    let width = net.picture[2];
    let (scale, shift) = (
        net.weight(&[width], 1.0, 0.3),
        net.weight(&[width], 0.5, 0.3),
    );
    let scaled = net.node("Mul", &[&scale, &unit], vec![]);
    net.node("Add", &[&scaled, &shift], vec![])
}

#[test]
fn layer_norms_are_joined_and_the_operator_set_is_raised_for_them() {
    for (axis, square) in [(-1, "Pow"), (3, "Mul")] {
        let mut net = net();
        net.opset = 11;
        let x = net.relu("x");
        let y = spread_norm(&mut net, &x, axis, square);
        let bundle = net.bundle(&[&y]);
        let (made, told) = simplified(&bundle, &[Pass::LayerNorms]);
        assert_eq!(operators(&made), "Relu LayerNormalization");
        assert_eq!(
            (told[0].changes, told[0].nodes, told[0].reason.as_str()),
            (1, 8, "")
        );
        assert_eq!(made.graph.opset_import[0].version, 17);
        let (before, after) = (given(&bundle, &PICTURE), given(&made, &PICTURE));
        for (before, after) in before.iter().zip(&after) {
            assert!((before - after).abs() < 1e-9, "{before} became {after}");
        }
    }
}

#[test]
fn what_is_no_layer_norm_stays() {
    // Another axis; an axis of which nothing says that it is the last; a second use inside.
    let mut net = net();
    net.opset = 17;
    let one = spread_norm(&mut net, "x", 2, "Pow");
    let unknown = net.node("Strange", &["x"], vec![]);
    let two = spread_norm(&mut net, &unknown, 3, "Pow");
    let three = spread_norm(&mut net, "x", -1, "Pow");
    let inside = net.graph().node.len() - 2;
    let inside = net.graph().node[inside].output[0].clone();
    let bundle = net.bundle(&[&one, &two, &three, &inside]);
    assert_eq!(simplified(&bundle, &[Pass::LayerNorms]).1[0].changes, 0);
}

#[test]
fn a_node_of_which_the_newer_meaning_is_not_known_keeps_a_pass_and_is_named() {
    let mut net = net();
    net.opset = 12;
    let y = net.node("Softmax", &["x"], vec![int("axis", 1)]);
    let y = spread_norm(&mut net, &y, -1, "Pow");
    let bundle = net.bundle(&[&y]);
    let (made, told) = simplified(&bundle, &Pass::ALL);
    assert!(told[4].reason.contains("Softmax"), "{told:?}");
    assert!(
        told[4]
            .reason
            .contains("operator set 17 is needed, the model has 12"),
        "{told:?}"
    );
    assert_eq!(
        (told[4].changes, made.graph.opset_import[0].version),
        (0, 12)
    );
    // Of the last axis it means the same.
    net.graph().node[0].attribute = vec![int("axis", 3)];
    let bundle = net.bundle(&[&y]);
    let (made, told) = simplified(&bundle, &Pass::ALL);
    assert_eq!(
        (told[4].changes, made.graph.opset_import[0].version),
        (1, 17)
    );
    net.opset = 9;
    let told = simplified(&net.bundle(&[&y]), &Pass::ALL).1;
    assert_eq!(told[4].reason, "operator set 17 is needed, the model has 9");
}

#[test]
fn a_newer_operator_set_is_given_axes_and_parts_as_it_wants_them() {
    let mut net = net();
    net.opset = 11;
    let x = net.relu("x");
    let half = net.number(0.5);
    let root = net.number(std::f32::consts::SQRT_2);
    let inner = net.node("Div", &[&x, &root], vec![]);
    let erf = net.node("Erf", &[&inner], vec![]);
    let one = net.number(1.0);
    let sum = net.node("Add", &[&erf, &one], vec![]);
    let product = net.node("Mul", &[&x, &sum], vec![]);
    let bent = net.node("Mul", &[&product, &half], vec![]);
    let keep = || vec![ints("axes", &[1]), int("keepdims", 0)];
    let mean = net.node("ReduceMean", &[&bent], keep());
    let sum = net.node("ReduceSum", &[&mean], keep());
    let y = net.node("Unsqueeze", &[&sum], vec![ints("axes", &[0, 3])]);
    let (made, _) = alike(&mut net, &[&y], &[Pass::Gelus], 1e-6);
    assert_eq!(operators(&made), "Relu Gelu ReduceMean ReduceSum Unsqueeze");
    assert_eq!(
        (made.graph.opset_import[0].version, made.graph.ir_version),
        (20, 9)
    );
    for node in &graph(&made).node[2..] {
        assert!(
            node.input.len() == 2 && node.ints("axes").is_none(),
            "{node:?}"
        );
    }
    // Halves of an axis are counted, parts of it are an input.
    let mut net = Net::new(5, PICTURE);
    net.opset = 12;
    let parts = [("a", "b"), ("c", "d")].map(|(one, two)| [one, two].map(str::to_owned));
    for (outputs, sizes) in parts.iter().zip([None, Some([1, 3])]) {
        let mut attributes = vec![int("axis", 2)];
        attributes.extend(sizes.map(|sizes| ints("split", &sizes)));
        net.graph().node.push(NodeProto {
            op_type: "Split".into(),
            input: vec!["x".into()],
            output: outputs.to_vec(),
            attribute: attributes,
            ..NodeProto::default()
        });
    }
    let y = spread_norm(&mut net, "x", -1, "Pow");
    let y = gelu(&mut net, &y, 0);
    let bundle = net.bundle(&[&y, "a", "b", "c", "d"]);
    let made = simplified(&bundle, &[Pass::Gelus]).0;
    let splits: Vec<_> = graph(&made)
        .node
        .iter()
        .filter(|node| node.op_type == "Split")
        .collect();
    assert_eq!(
        (splits[0].input.len(), splits[0].int("num_outputs")),
        (1, Some(2))
    );
    assert_eq!(
        (splits[1].input.len(), splits[1].int("num_outputs")),
        (2, None)
    );
    assert!(splits[1].ints("split").is_none());
}

/// A GELU in operators, in one of the ways that exporters write it.
fn gelu(net: &mut Net, x: &str, way: usize) -> String {
    let (half, one) = (net.number(0.5), net.number(1.0));
    let bent = if way == 4 {
        let three = net.number(3.0);
        let cube = net.node("Pow", &[x, &three], vec![]);
        tanh_of(net, x, &cube)
    } else if way == 5 {
        let square = net.node("Mul", &[x, x], vec![]);
        let cube = net.node("Mul", &[x, &square], vec![]);
        tanh_of(net, x, &cube)
    } else if way == 3 {
        let root = net.number(std::f32::consts::FRAC_1_SQRT_2);
        let inner = net.node("Mul", &[&root, x], vec![]);
        net.node("Erf", &[&inner], vec![])
    } else {
        // As some exporters write the root of 2.
        #[allow(clippy::approx_constant)]
        let root = net.number(1.4142);
        let inner = net.node("Div", &[x, &root], vec![]);
        net.node("Erf", &[&inner], vec![])
    };
    let sum = net.node("Add", &[&one, &bent], vec![]);
    match way {
        1 => {
            let halved = net.node("Mul", &[x, &half], vec![]);
            net.node("Mul", &[&halved, &sum], vec![])
        }
        2 => {
            let halved = net.node("Mul", &[&sum, &half], vec![]);
            net.node("Mul", &[x, &halved], vec![])
        }
        _ => {
            let product = net.node("Mul", &[x, &sum], vec![]);
            let two = net.number(2.0);
            match way {
                3 => net.node("Div", &[&product, &two], vec![]),
                _ => net.node("Mul", &[&half, &product], vec![]),
            }
        }
    }
}

fn tanh_of(net: &mut Net, x: &str, cube: &str) -> String {
    let (small, root) = (net.number(0.044_715), net.number(0.797_884_6));
    let cube = net.node("Mul", &[cube, &small], vec![]);
    let sum = net.node("Add", &[x, &cube], vec![]);
    let inner = net.node("Mul", &[&sum, &root], vec![]);
    net.node("Tanh", &[&inner], vec![])
}

#[test]
fn gelus_are_joined_however_they_are_written() {
    for way in 0..6 {
        let mut net = net();
        let x = net.node("Neg", &["x"], vec![]);
        let y = gelu(&mut net, &x, way);
        // 1.4142 is a little less than the root.
        let (made, told) = alike(&mut net, &[&y], &[Pass::Gelus], 1e-5);
        assert_eq!(operators(&made), "Neg Gelu", "way {way}");
        assert_eq!(told[0].changes, 1);
        let how = graph(&made).node[1].text("approximate");
        assert_eq!(how, Some(if way > 3 { "tanh" } else { "none" }));
    }
    // A half of more axes than the value has gives it more.
    let mut net = Net::new(5, PICTURE);
    let x = net.node("Flatten", &["x"], vec![]);
    let root = net.number(std::f32::consts::SQRT_2);
    let inner = net.node("Div", &[&x, &root], vec![]);
    let erf = net.node("Erf", &[&inner], vec![]);
    let one = net.number(1.0);
    let sum = net.node("Add", &[&erf, &one], vec![]);
    let product = net.node("Mul", &[&x, &sum], vec![]);
    let half = net.numbers(&[1, 1, 1], &[0.5]);
    let y = net.node("Mul", &[&product, &half], vec![]);
    let (_, told) = alike(&mut net, &[&y], &[Pass::Gelus], 0.0);
    assert_eq!(told[0].changes, 0);
    // A half that is none.
    let mut net = Net::new(5, PICTURE);
    let x = net.node("Neg", &["x"], vec![]);
    let y = gelu(&mut net, &x, 0);
    let mut other = net.bundle(&[&y]);
    let held = &mut other.graph.graph.as_mut().unwrap().initializer;
    let half = held
        .iter_mut()
        .find(|tensor| tensor.raw_data[..] == 0.5f32.to_le_bytes());
    half.unwrap().raw_data = 0.25f32.to_le_bytes().to_vec().into();
    assert_eq!(simplified(&other, &[Pass::Gelus]).1[0].changes, 0);
}

#[test]
fn hard_swishes_and_hard_sigmoids_are_joined() {
    for (way, ends) in [(0, 6.0), (1, 6.0), (2, 6.0), (0, 5.0)] {
        let mut net = net();
        let x = net.node("Neg", &["x"], vec![]);
        let three = net.number(3.0);
        let sum = net.node("Add", &[&x, &three], vec![]);
        let (least, most) = (net.number(0.0), net.number(ends));
        let gate = net.node("Clip", &[&sum, &least, &most], vec![]);
        let (six, sixth) = (net.number(6.0), net.number(1.0 / 6.0));
        let y = match way {
            0 => {
                let product = net.node("Mul", &[&x, &gate], vec![]);
                net.node("Div", &[&product, &six], vec![])
            }
            1 => {
                let gate = net.node("Mul", &[&gate, &sixth], vec![]);
                net.node("Mul", &[&gate, &x], vec![])
            }
            _ => net.node("Div", &[&gate, &six], vec![]),
        };
        let (made, told) = alike(&mut net, &[&y], &[Pass::HardSwishes], ROUNDED);
        let wanted = match (way, ends < 6.0) {
            (_, true) => "Neg Add Clip Mul Div",
            (2, _) => "Neg HardSigmoid",
            _ => "Neg HardSigmoid Mul",
        };
        assert_eq!(operators(&made), wanted);
        assert_eq!(told[0].changes, usize::from(ends == 6.0));
    }
}

/// A convolution with one thing behind it.
fn followed(groups: usize, bias: bool, behind: impl Fn(&mut Net, &str) -> String) -> (Net, String) {
    let mut net = net();
    let mut x = net.square("x", (6, 3), 1, 1, 1);
    // Enough outputs for a kernel that is stored beside the graph.
    x = net.square(&x, (48, 6), 3, 1, groups);
    if bias {
        let bias = net.weight(&[48], 0.0, 0.2);
        net.graph().node.last_mut().unwrap().input.push(bias);
    }
    let y = behind(&mut net, &x);
    (net, y)
}

fn each(net: &mut Net, shape: &[usize]) -> String {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|at| 0.5 + at as f32 * 0.03).collect();
    net.numbers(shape, &values)
}

#[test]
fn what_goes_channel_by_channel_becomes_a_part_of_a_convolution() {
    type Behind = fn(&mut Net, &str) -> String;
    let behind: [(&str, Behind); 7] = [
        ("a batch normalisation", |net, x| net.norm(x, 48)),
        ("a factor", |net, x| {
            let by = each(net, &[48, 1, 1]);
            net.node("Mul", &[&by, x], vec![])
        }),
        ("a divisor", |net, x| {
            let by = each(net, &[1, 48, 1, 1]);
            net.node("Div", &[x, &by], vec![])
        }),
        ("a summand", |net, x| {
            let by = each(net, &[48, 1, 1]);
            net.node("Add", &[x, &by], vec![])
        }),
        ("a number less", |net, x| {
            let by = net.number(0.7);
            net.node("Sub", &[x, &by], vec![])
        }),
        ("several, one after another", |net, x| {
            let by = net.numbers(&[1], &[1.25]);
            let x = net.node("Mul", &[x, &by], vec![]);
            let x = net.norm(&x, 48);
            let by = each(net, &[48, 1, 1]);
            let x = net.node("Add", &[&by, &x], vec![]);
            net.node("Mul", &[&x, &by], vec![])
        }),
        ("and the next convolution's", |net, x| {
            let x = net.norm(x, 48);
            let x = net.square(&x, (2, 48), 1, 1, 1);
            net.norm(&x, 2)
        }),
    ];
    for (groups, bias) in [(1, false), (1, true), (3, false)] {
        for (name, behind) in &behind {
            let (mut net, y) = followed(groups, bias, behind);
            let (made, told) = alike(&mut net, &[&y], &[Pass::Convolutions], ROUNDED);
            assert!(
                operators(&made).split(' ').all(|name| name == "Conv"),
                "{name}: {told:?}"
            );
        }
    }
}

#[test]
fn a_small_kernel_and_one_that_goes_the_other_way_are_taken_as_well() {
    let mut net = net();
    let weight = net.weight(&[3, 4, 2, 2], 0.0, 0.4);
    let x = net.node(
        "ConvTranspose",
        &["x", &weight],
        vec![ints("strides", &[2, 2])],
    );
    let y = net.norm(&x, 4);
    let (made, _) = alike(&mut net, &[&y], &[Pass::Convolutions], ROUNDED);
    assert_eq!(operators(&made), "ConvTranspose");
    let mut net = Net::new(5, PICTURE);
    let x = net.square("x", (2, 3), 1, 1, 1);
    let y = net.norm(&x, 2);
    let (made, _) = alike(&mut net, &[&y], &[Pass::Convolutions], ROUNDED);
    assert_eq!(
        (operators(&made).as_str(), made.weights.weights().len()),
        ("Conv", 0)
    );
}

#[test]
fn a_factor_before_a_convolution_becomes_a_part_of_it() {
    for summand in [None, Some(-0.75)] {
        let mut net = net();
        let x = net.relu("x");
        let by = net.number(-1.5);
        let mut y = net.node("Mul", &[&x, &by], vec![]);
        if let Some(summand) = summand {
            let by = net.number(summand);
            y = net.node("Add", &[&by, &y], vec![]);
        }
        // It pads: what is added is not added there.
        let y = net.square(&y, (40, 3), 3, 1, 1);
        let (made, told) = alike(&mut net, &[&y], &[Pass::Convolutions], ROUNDED);
        let wanted = if summand.is_some() {
            "Relu Add Conv"
        } else {
            "Relu Conv"
        };
        assert_eq!((operators(&made).as_str(), told[0].changes), (wanted, 1));
    }
}

#[test]
fn what_a_convolution_cannot_take_stays() {
    type Behind = fn(&mut Net, &str) -> String;
    let behind: [(&str, Behind); 6] = [
        ("one number for each column", |net, x| {
            let by = net.numbers(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
            net.node("Mul", &[x, &by], vec![])
        }),
        ("a value that others read", |net, x| {
            let other = net.relu(x);
            let by = net.number(2.0);
            let y = net.node("Mul", &[x, &by], vec![]);
            net.node("Add", &[&y, &other], vec![])
        }),
        ("the other side of a quotient", |net, x| {
            let by = net.number(2.0);
            net.node("Div", &[&by, x], vec![])
        }),
        ("the other side of a difference", |net, x| {
            let by = net.number(2.0);
            net.node("Sub", &[&by, x], vec![])
        }),
        ("a division by zero", |net, x| {
            let by = net.number(0.0);
            let y = net.node("Div", &[x, &by], vec![]);
            let (least, most) = (net.number(-1.0), net.number(1.0));
            net.node("Clip", &[&y, &least, &most], vec![])
        }),
        ("a factor of zero", |net, x| {
            let by = net.number(0.0);
            let y = net.node("Neg", &[x], vec![]);
            let y = net.node("Mul", &[&y, &by], vec![]);
            let y = net.square(&y, (2, 48), 1, 1, 1);
            let one = net.number(1.0);
            let y = net.relu(&y);
            net.node("Add", &[&y, &one], vec![])
        }),
    ];
    for (name, behind) in behind {
        let (mut net, y) = followed(1, true, behind);
        let (_, told) = alike(&mut net, &[&y], &[Pass::Convolutions], 0.0);
        assert_eq!(told[0].changes, 0, "{name}");
    }
    // A kernel that two convolutions share.
    let (mut net, y) = followed(1, false, |net, x| {
        let kernel = net.graph().node.last().unwrap().input[1].clone();
        let before = net.graph().node.last().unwrap().input[0].clone();
        let other = net.node("Conv", &[&before, &kernel], vec![ints("pads", &[1; 4])]);
        let x = net.norm(x, 48);
        net.node("Add", &[&x, &other], vec![])
    });
    let (_, told) = alike(&mut net, &[&y], &[Pass::Convolutions], 0.0);
    assert_eq!(told[0].changes, 0);
}

#[test]
fn transpositions_that_meet_are_one_or_none() {
    let (to, back) = ([0, 2, 3, 1], [0, 3, 1, 2]);
    let mut net = net();
    let turn = |net: &mut Net, x: &str, order: &[i64]| {
        net.node("Transpose", &[x], vec![ints("perm", order)])
    };
    // Past what goes value by value.
    let y = turn(&mut net, "x", &to);
    let y = net.relu(&y);
    let half = net.number(0.5);
    let y = net.node("Add", &[&y, &half], vec![]);
    let y = turn(&mut net, &y, &back);
    // A sum of two that are turned alike, and turned back.
    let other = net.node("Neg", &[&y], vec![]);
    let (a, b) = (turn(&mut net, &y, &to), turn(&mut net, &other, &to));
    let (a, b) = (
        net.node("Exp", &[&a], vec![]),
        net.node("Exp", &[&b], vec![]),
    );
    let sum = net.node("Sub", &[&a, &b], vec![]);
    let y = turn(&mut net, &sum, &back);
    let y = turn(&mut net, &y, &[0, 3, 2, 1]);
    let (made, _) = alike(&mut net, &[&y], &[Pass::Layout], 0.0);
    let count = operators(&made)
        .split(' ')
        .filter(|name| *name == "Transpose")
        .count();
    println!("{}", operators(&made));
    assert!(count <= 3, "{}", operators(&made));
    // Alone each stays where it is, and so does one with another reader.
    let mut net = Net::new(5, PICTURE);
    let y = turn(&mut net, "x", &to);
    let y = net.relu(&y);
    let other = net.node("Exp", &[&y], vec![]);
    let back = turn(&mut net, &y, &back);
    let (_, told) = alike(&mut net, &[&back, &other], &[Pass::Layout], 0.0);
    assert_eq!(told[0].changes, 0);
}

#[test]
fn what_a_graph_inside_of_a_node_reads_keeps_its_name() {
    let mut net = net();
    let one = net.node("Relu", &["x"], vec![]);
    let two = net.node("Relu", &["x"], vec![]);
    let inside = GraphProto {
        node: vec![NodeProto {
            op_type: "Neg".into(),
            input: vec![two.clone()],
            output: vec!["inside".into()],
            ..NodeProto::default()
        }],
        ..GraphProto::default()
    };
    let branch = AttributeProto {
        name: "then_branch".into(),
        r#type: AttributeType::Graph as i32,
        g: Some(inside),
        ..AttributeProto::default()
    };
    let y = net.node("If", &[&one], vec![branch]);
    let bundle = net.bundle(&[&y]);
    let (made, told) = simplified(&bundle, &Pass::ALL);
    assert!(told.iter().all(|passed| passed.changes == 0), "{told:?}");
    assert!(
        graph(&made)
            .node
            .iter()
            .any(|node| node.output == [two.clone()])
    );
}

#[test]
fn operators_of_others_are_left_alone() {
    let mut net = net();
    let y = net.node("Identity", &["x"], vec![]);
    net.graph().node[0].domain = "somebody.else".into();
    let mut bundle = net.bundle(&[&y]);
    bundle.graph.opset_import.push(OperatorSetIdProto {
        domain: "somebody.else".into(),
        version: 1,
    });
    assert!(
        simplified(&bundle, &Pass::ALL)
            .1
            .iter()
            .all(|passed| passed.changes == 0)
    );
}

#[test]
fn whole_networks_lose_their_norms_and_compute_the_same() {
    let mut small = Net::new(5, [3, 6, 6]);
    let x = small.square("x", (64, 3), 3, 1, 1);
    let y = bottleneck(&mut small, &x, 64, 16, 1);
    let (made, _) = alike(
        &mut small,
        &[&y],
        &Level::All.passes().collect::<Vec<_>>(),
        1e-5,
    );
    assert!(!operators(&made).contains("BatchNormalization"));
    let (mut net, y) = mobilenet_v2();
    let bundle = net.bundle(&[&y]);
    let (made, told) = simplified(&bundle, &Level::Extended.passes().collect::<Vec<_>>());
    assert!(!operators(&made).contains("BatchNormalization"));
    let last = told.last().unwrap();
    assert_eq!((last.pass, last.changes), (Pass::Convolutions, 52));
    let steps = isovec_optimize::history::history(&made.graph).unwrap();
    assert_eq!(steps.original, bundle.identity.0);
    assert_eq!(steps.steps.len(), 1);
    assert!(steps.steps[0].contains("convolutions"), "{steps:?}");
}

#[test]
fn cancelling_ends_it() {
    let cancel = Cancel::new();
    cancel.cancel();
    let bundle = net().bundle(&["x"]);
    let error = pollster::block_on(simplify(&bundle, &Pass::ALL, &cancel)).unwrap_err();
    assert_eq!(error.kind(), "Cancelled");
}

/// A number below another, of a seed that goes on.
fn below(state: &mut u64, limit: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % limit
}

/// One of the values of `[1, channels, 4, 5]` so far, and what a random node or a few make of it.
fn grown(net: &mut Net, values: &[(String, usize)], state: &mut u64) -> (String, usize) {
    let (x, channels) = values[below(state, values.len())].clone();
    let number = (below(state, 7) as f32 - 3.0) * 0.5;
    let y = match below(state, 21) {
        0 => net.node("Identity", &[&x], vec![]),
        1 => net.relu(&x),
        2 | 3 => {
            let by = net.number(number);
            let (a, b) = if below(state, 2) == 0 {
                (&x, &by)
            } else {
                (&by, &x)
            };
            net.node(["Add", "Mul", "Sub"][below(state, 3)], &[a, b], vec![])
        }
        4 => {
            let others: Vec<&(String, usize)> =
                values.iter().filter(|value| value.1 == channels).collect();
            let other = others[below(state, others.len())].0.clone();
            net.node(
                ["Add", "Mul", "Sub"][below(state, 3)],
                &[&x, &other],
                vec![],
            )
        }
        5 => {
            let (to, back) = ([0, 2, 3, 1], [0, 3, 1, 2]);
            let mut y = net.node("Transpose", &[&x], vec![ints("perm", &to)]);
            for _ in 0..below(state, 3) {
                y = net.node(["Neg", "Tanh"][below(state, 2)], &[&y], vec![]);
            }
            net.node("Transpose", &[&y], vec![ints("perm", &back)])
        }
        6 => {
            let y = spread_norm(net, &x, -1, ["Pow", "Mul"][below(state, 2)]);
            return (y, channels);
        }
        7 => gelu(net, &x, below(state, 6)),
        8 | 9 => {
            let three = net.number(3.0);
            let sum = net.node("Add", &[&x, &three], vec![]);
            let (least, most) = (net.number(0.0), net.number(6.0));
            let gate = net.node("Clip", &[&sum, &least, &most], vec![]);
            let product = net.node("Mul", &[&x, &gate], vec![]);
            let six = net.number(6.0);
            net.node("Div", &[&product, &six], vec![])
        }
        10..13 => {
            let outputs = [1, 3, 40][below(state, 3)];
            let y = net.square(&x, (outputs, channels), 3, 1, 1);
            return (y, outputs);
        }
        13..16 => net.norm(&x, channels),
        16 => {
            let each = net.weight(&[channels, 1, 1], 1.0, 0.3);
            net.node(["Add", "Mul"][below(state, 2)], &[&x, &each], vec![])
        }
        19 => {
            let same = [0, 1].map(|_| net.node("Abs", &[&x], vec![]));
            net.node("Add", &[&same[0], &same[1]], vec![])
        }
        17 => by_shape(net, &x, &x, &[0, 1], &[4, 5]),
        18 => {
            let (a, b) = (net.number(number), net.number(0.25));
            let sum = net.node("Add", &[&a, &b], vec![]);
            net.node("Mul", &[&sum, &x], vec![])
        }
        _ => {
            let asked = net.ints(&[1, channels as i64, 20]);
            let y = net.node("Reshape", &[&x, &asked], vec![]);
            let asked = net.ints(&[1, channels as i64, 4, 5]);
            net.node("Reshape", &[&y, &asked], vec![])
        }
    };
    (y, channels)
}

#[test]
fn random_graphs_compute_the_same_at_every_level() {
    let mut changes = BTreeMap::new();
    for seed in 0..300u64 {
        let mut state = seed * 7919 + 1;
        let mut net = Net::new(seed, PICTURE);
        net.opset = [13, 17, 20][below(&mut state, 3)];
        let mut values = vec![("x".to_owned(), 3)];
        for _ in 0..4 + below(&mut state, 14) {
            let made = grown(&mut net, &values, &mut state);
            values.push(made);
        }
        let mut outputs = vec![values[values.len() - 1].0.clone()];
        // Now and then one in the middle as well.
        if below(&mut state, 3) == 0 {
            outputs.push(values[1 + below(&mut state, values.len() - 1)].0.clone());
        }
        outputs.dedup();
        let names: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let bundle = net.bundle(&names);
        let before = given(&bundle, &PICTURE);
        let largest = before
            .iter()
            .fold(1.0, |most: f64, value| most.max(value.abs()));
        // A sum that overflows in an exponential says nothing.
        if !largest.is_finite() {
            continue;
        }
        for level in [Level::Basic, Level::Extended, Level::All] {
            let passes: Vec<Pass> = level.passes().collect();
            let (made, told) = simplified(&bundle, &passes);
            for passed in told {
                *changes.entry(passed.pass.name()).or_insert(0) += passed.changes;
            }
            let after = given(&made, &PICTURE);
            // 1.4142 and the roundings of kernels add up where values are multiplied with each other.
            let within = if level == Level::Basic { 0.0 } else { 2e-4 };
            for (before, after) in before.iter().zip(&after) {
                let same = (before - after).abs() <= within * largest;
                assert!(
                    same || before.is_nan() && after.is_nan(),
                    "seed {seed}, {level}: {before} became {after}"
                );
            }
            let names: Vec<&String> = graph(&made)
                .output
                .iter()
                .map(|output| &output.name)
                .collect();
            assert_eq!(names, outputs.iter().collect::<Vec<_>>());
        }
    }
    println!("{changes:?}");
    assert_eq!(changes.len(), Pass::ALL.len());
    assert!(changes.values().all(|&count| count > 0), "{changes:?}");
}
