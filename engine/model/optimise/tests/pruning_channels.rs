//! Pruning of channels between convolutions: which can go, what goes with them, and that twins make up for each other, by an oracle at f64.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::collections::BTreeMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::GraphProto;
use isovec_model::onnx::builder::{int, ints};
use isovec_model::precision::floats;
use isovec_optimize::int4::Moments;
use isovec_optimize::pruning::{Pruned, Pruning, Sweep, Unit};
use isovec_test_models::convolutions::{Net, bottleneck, mobilenet_v2, resnet_50};
use isovec_test_models::exact::{Array, evaluate};
use pollster::block_on;

const PICTURE: [usize; 3] = [3, 6, 7];

fn graph(bundle: &ModelBundle) -> &GraphProto {
    bundle.graph.graph.as_ref().unwrap()
}

/// All values of a graph for a picture, at f64.
fn values(bundle: &ModelBundle, seed: usize) -> BTreeMap<String, Array> {
    let count: usize = PICTURE.iter().product();
    let pixel = |at: usize| ((at * (seed + 3)) as f32 * 0.37 + 0.1).sin() * 1.5;
    let pixels: Vec<f32> = (0..count).map(pixel).collect();
    let mut values = BTreeMap::new();
    let shape = [&[1], &PICTURE[..]].concat();
    values.insert("x".to_owned(), Array::of(&shape, &pixels));
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        let weight = block_on(floats(&bundle.weights, index)).unwrap();
        values.insert(info.name.clone(), Array::of(&info.shape, &weight));
    }
    evaluate(graph(bundle), &mut values);
    values
}

/// What the model gives of some pictures.
fn given(bundle: &ModelBundle) -> Vec<f64> {
    let output = &graph(bundle).output[0].name;
    (0..6)
        .flat_map(|seed| values(bundle, seed)[output].values.clone())
        .collect()
}

/// The rows of the inputs of a sweep: the channels of each pixel.
fn observed(bundle: &ModelBundle, sweep: &Sweep) -> Vec<Moments> {
    let mut all: Vec<Moments> = sweep
        .inputs()
        .map(|(_, width)| Moments::new(width))
        .collect();
    for seed in 0..6 {
        let values = values(bundle, seed);
        for ((name, width), moments) in sweep.inputs().zip(&mut all) {
            let value = &values[name];
            assert_eq!(value.shape[1], width);
            let pixels = value.values.len() / width;
            let rows = (0..pixels).flat_map(|pixel| (0..width).map(move |at| at * pixels + pixel));
            let rows: Vec<f32> = rows.map(|place| value.values[place] as f32).collect();
            moments.add(&rows).unwrap();
        }
    }
    all
}

fn pruned(bundle: &ModelBundle, share: f64) -> isovec_optimize::Result<(ModelBundle, Vec<Pruned>)> {
    let mut pruning = Pruning::of(bundle)?;
    for sweep in pruning.sweeps() {
        block_on(pruning.rank(&sweep, &observed(bundle, &sweep), &Cancel::new()))?;
    }
    let original = given(bundle);
    let mut changes = Vec::new();
    for part in 0..pruning.parts() {
        changes.push(match block_on(pruning.alone(part))? {
            None => 0.0,
            Some(other) => apart(&original, &given(&other)).powi(2),
        });
    }
    pruning.weigh(&changes)?;
    pruning.share(share)?;
    for sweep in pruning.rest() {
        block_on(pruning.settle(&sweep, &observed(bundle, &sweep)))?;
    }
    block_on(pruning.finish())
}

/// The length of the difference, for one of the first.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square =
        |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let far = square(&mut a.iter().zip(b).map(|(a, b)| a - b));
    (far / square(&mut a.iter().copied())).sqrt()
}

fn found(bundle: &ModelBundle) -> Vec<(Unit, usize)> {
    let found = Pruning::of(bundle).map(|pruning| pruning.found());
    found
        .unwrap_or_default()
        .iter()
        .map(|part| (part.unit, part.units))
        .collect()
}

/// Gives the second half of the outputs of weights what the first half has.
fn twins(net: &mut Net, weights: &[usize]) {
    for &at in weights {
        let (_, _, values) = &mut net.weights[at];
        let half = values.len() / 2;
        values.copy_within(..half, half);
    }
}

fn shapes(bundle: &ModelBundle) -> Vec<Vec<usize>> {
    let weights = bundle
        .weights
        .weights()
        .iter()
        .map(|info| info.shape.clone());
    let small = graph(bundle).initializer.iter();
    let small = small.map(|tensor| tensor.dims.iter().map(|&extent| extent as usize).collect());
    weights.chain(small).collect()
}

#[test]
fn channels_between_two_convolutions_go_with_all_that_belongs_to_them() {
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (64, 3), 3, 1, 1);
    let bias = net.weight(&[64], 0.0, 0.2);
    net.graph().node.last_mut().unwrap().input.push(bias);
    let x = net.norm(&x, 64);
    let by = net.numbers(&[64, 1, 1], &[1.5; 64]);
    let x = net.node("Mul", &[&by, &x], vec![]);
    let x = net.relu(&x);
    // It has a kernel of more than one pixel, and pads.
    let x = net.square(&x, (8, 64), 3, 2, 1);
    let x = net.node("GlobalAveragePool", &[&x], vec![]);
    let x = net.node("Flatten", &[&x], vec![]);
    let y = net.classifier(&x, (5, 8));
    // Kernel, bias and the four of the normalisation.
    twins(&mut net, &[0, 1, 2, 3, 4, 5]);
    let bundle = net.bundle(&[&y]);
    // The second convolution's own channels share its kernel.
    assert_eq!(found(&bundle), [(Unit::Channels, 64)]);
    let (made, told) = pruned(&bundle, 0.4).unwrap();
    assert_eq!(told[0].kept, 32, "{told:?}");
    let far = apart(&given(&bundle), &given(&made));
    assert!(far < 0.02, "{far}");
    let shapes = shapes(&made);
    for shape in [
        vec![32, 3, 3, 3],
        vec![8, 32, 3, 3],
        vec![32, 1, 1],
        vec![32],
    ] {
        assert!(shapes.contains(&shape), "{shape:?} of {shapes:?}");
    }
    assert!(
        shapes.iter().all(|shape| !shape.contains(&64)),
        "{shapes:?}"
    );
    assert_ne!(made.identity, bundle.identity);
    assert_eq!(made.identity, pruned(&bundle, 0.4).unwrap().0.identity);
    // Without twins it costs something, and less than leaving the others as they are.
    net.weights[0]
        .2
        .iter_mut()
        .enumerate()
        .for_each(|(at, value)| *value += (at as f32).sin() * 0.3);
    let other = net.bundle(&[&y]);
    let far = apart(&given(&other), &given(&pruned(&other, 0.4).unwrap().0));
    assert!(far > 0.04, "{far}");
}

/// Two pairs of convolutions: one on many pixels with small kernels, one on few pixels with large ones.
fn early_and_late() -> ModelBundle {
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (8, 3), 3, 1, 1);
    let x = net.relu(&x);
    let x = net.square(&x, (12, 8), 1, 1, 1);
    let pool = vec![
        ints("kernel_shape", &[2, 3]),
        ints("strides", &[2, 3]),
        int("ceil_mode", 1),
    ];
    let x = net.node("MaxPool", &[&x], pool);
    let x = net.node("Add", &[&x, &x], vec![]);
    let x = net.square(&x, (40, 12), 3, 2, 1);
    let x = net.relu(&x);
    let x = net.square(&x, (8, 40), 1, 1, 1);
    let x = net.node("GlobalAveragePool", &[&x], vec![]);
    let x = net.node("Flatten", &[&x], vec![]);
    let y = net.classifier(&x, (5, 8));
    net.bundle(&[&y])
}

#[test]
fn a_share_of_the_multiplications_goes_as_well() {
    let bundle = early_and_late();
    let pruning = Pruning::of(&bundle).unwrap();
    // 6 x 7 pixels, 3 x 3 behind the pool and 2 x 2 behind the stride of 2.
    let of = [8 * (3 * 9 + 12) * 42, 40 * (12 * 9 + 8) * 4];
    let found = pruning.found();
    assert_eq!(
        found
            .iter()
            .map(|part| part.multiplications)
            .collect::<Vec<_>>(),
        of
    );
    let all = of.iter().sum::<usize>() + 5 * 8;
    assert_eq!(pruning.multiplications(), all);
    for share in [0.1, 0.3, 0.5] {
        let (made, told) = pruned(&bundle, share).unwrap();
        let gone: usize = told.iter().map(|part| part.multiplications).sum();
        assert!(gone as f64 >= share * all as f64, "{told:?}");
        let bytes = |bundle: &ModelBundle| -> usize {
            shapes(bundle)
                .iter()
                .map(|shape| shape.iter().product::<usize>())
                .sum()
        };
        assert!(
            bytes(&made) as f64 <= (1.0 - share) * bytes(&bundle) as f64,
            "{told:?}"
        );
        let left = Pruning::of(&made).unwrap().multiplications();
        assert_eq!(left + gone, all);
    }
    // What a run cannot be known of before is pruned by its bytes.
    let mut unknown = early_and_late();
    let graph = unknown.graph.graph.as_mut().unwrap();
    let sum = graph
        .node
        .iter_mut()
        .find(|node| node.op_type == "Add")
        .unwrap();
    sum.op_type = "Resize".into();
    let pruning = Pruning::of(&unknown).unwrap();
    assert_eq!(pruning.multiplications(), 0);
    assert!(pruning.found().iter().all(|part| part.multiplications == 0));
}

#[test]
fn kernels_of_one_channel_and_what_weighs_channels_lose_them_too() {
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (8, 3), 1, 1, 1);
    // 8 to 48 channels, a kernel for each, squeeze and excite, and back to 8.
    let x = net.square(&x, (48, 8), 1, 1, 1);
    let x = net.norm(&x, 48);
    let x = net.relu6(&x);
    let x = net.square(&x, (48, 48), 3, 1, 48);
    let x = net.norm(&x, 48);
    let x = net.silu(&x);
    let mut gate = net.node("GlobalAveragePool", &[&x], vec![]);
    gate = net.conv(&gate, [4, 48, 1, 1], true, vec![]);
    gate = net.relu(&gate);
    gate = net.conv(&gate, [48, 4, 1, 1], true, vec![]);
    gate = net.node("HardSigmoid", &[&gate], vec![]);
    let x = net.node("Mul", &[&x, &gate], vec![]);
    let y = net.square(&x, (8, 48), 1, 1, 1);
    let bundle = net.bundle(&[&y]);
    assert_eq!(found(&bundle), [(Unit::Channels, 48)]);
    let (made, told) = pruned(&bundle, 0.2).unwrap();
    let kept = told[0].kept;
    assert!(kept < 48, "{told:?}");
    let shapes = shapes(&made);
    for shape in [
        vec![kept, 8, 1, 1],
        vec![kept, 1, 3, 3],
        vec![4, kept, 1, 1],
        vec![kept, 4, 1, 1],
        vec![8, kept, 1, 1],
    ] {
        assert!(shapes.contains(&shape), "{shape:?} of {shapes:?}");
    }
    let alone = graph(&made)
        .node
        .iter()
        .filter_map(|node| node.int("group"))
        .filter(|&group| group > 1);
    assert_eq!(alone.collect::<Vec<_>>(), [kept as i64]);
    assert!(given(&made).iter().all(|value| value.is_finite()));
}

#[test]
fn what_is_read_in_other_ways_stays() {
    // A sum carries them past the layer; an output has them; they are laid beside others; a position has its own number; all pixels are
    // read by a product; a group reads some of them.
    type Behind = fn(&mut Net, &str) -> String;
    let behind: [(&str, Behind); 6] = [
        ("a sum with the input", |net, x| {
            net.node("Add", &[x, "x"], vec![])
        }),
        ("two readers", |net, x| {
            let one = net.conv(x, [3, 3, 1, 1], false, vec![]);
            let two = net.conv(x, [3, 3, 1, 1], false, vec![]);
            net.node("Add", &[&one, &two], vec![])
        }),
        ("beside others", |net, x| {
            let both = net.node("Concat", &[x, x], vec![int("axis", 1)]);
            net.conv(&both, [3, 6, 1, 1], false, vec![])
        }),
        ("a number for each column", |net, x| {
            let each = net.numbers(&[7], &[0.5; 7]);
            let x = net.node("Mul", &[x, &each], vec![]);
            net.conv(&x, [3, 3, 1, 1], false, vec![])
        }),
        ("all pixels", |net, x| {
            let x = net.node("Flatten", &[x], vec![]);
            net.classifier(&x, (5, 126))
        }),
        ("another order", |net, x| {
            let x = net.node("Transpose", &[x], vec![ints("perm", &[0, 1, 3, 2])]);
            net.conv(&x, [3, 3, 1, 1], false, vec![])
        }),
    ];
    for (name, behind) in behind {
        let mut net = Net::new(7, PICTURE);
        let x = net.square("x", (3, 3), 1, 1, 1);
        let y = behind(&mut net, &x);
        let bundle = net.bundle(&[&y]);
        assert_eq!(found(&bundle), [], "{name}");
    }
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (4, 3), 1, 1, 1);
    let seen = net.relu(&x);
    let y = net.square(&seen, (4, 4), 1, 1, 1);
    assert_eq!(found(&net.bundle(&[&y, &seen])), [], "an output");
    assert_eq!(found(&net.bundle(&[&y])).len(), 1);
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (4, 3), 1, 1, 1);
    let y = net.square(&x, (4, 4), 1, 1, 2);
    assert_eq!(found(&net.bundle(&[&y])), [], "groups of two");
}

#[test]
fn networks_have_the_channels_inside_of_their_blocks() {
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (64, 3), 3, 1, 1);
    let y = bottleneck(&mut net, &x, 64, 16, 1);
    assert_eq!(found(&net.bundle(&[&y])), [(Unit::Channels, 16)]);
    let mut net = Net::new(7, PICTURE);
    let x = net.square("x", (16, 3), 3, 1, 1);
    let y = net.square(&x, (16, 16), 1, 1, 1);
    assert_eq!(found(&net.bundle(&[&y])), [(Unit::Channels, 16)]);
    // Multiplications as fvcore counts those of torchvision's networks.
    for (name, (mut net, y), wanted, multiplications) in [
        ("ResNet-50", resnet_50(), 16, 4_089_184_256),
        ("MobileNetV2", mobilenet_v2(), 17, 300_774_272),
    ] {
        let bundle = net.bundle(&[&y]);
        let pruning = Pruning::of(&bundle).unwrap();
        assert_eq!(pruning.multiplications(), multiplications, "{name}");
        let inside: usize = pruning.found().iter().map(|part| part.bytes).sum();
        let all: usize = bundle
            .weights
            .weights()
            .iter()
            .map(|info| info.byte_len())
            .sum();
        println!("{name}: {} of {all} bytes, {:?}", inside, pruning.found());
        assert!(pruning.found().len() >= wanted, "{name}");
        assert!(inside * 2 > all, "{name}");
    }
}
