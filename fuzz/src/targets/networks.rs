//! Convolutional networks that are made up, node by node: what a program of `isovec-conv` gives for three pictures, against the
//! ONNX operators in double precision, and against itself: a picture alone, and a run in slices, have the same bits.
//!
//! A network that is refused is refused with the operator's name. Some attributes are wild on purpose: kernels larger than their
//! map, strides that leave nothing, groups that divide no channels.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use isovec_conv::{CompileError, Executable, Run};
use isovec_engine::cancel::Cancel;
use isovec_engine::onnx::proto::AttributeProto;
use isovec_engine::pause::NoTurns;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::onnx::builder::{float, int, ints};
use isovec_test_models::convolutions::Net;

use crate::bounds::ours;

/// The largest difference of a value, as a part of the largest, or of 1: differences of values that are near to each other are as
/// exact as those.
const NEAR: f64 = 1e-5;
const PICTURES: usize = 3;
const NODES: usize = 10;

/// Tries one input.
pub fn run(data: &[u8]) {
    let _ = tried(Unstructured::new(data));
}

/// A map that has been computed: its name, channels, rows and columns.
#[derive(Debug, Clone)]
struct Map {
    name: String,
    extents: [usize; 3],
}

fn tried(mut u: Unstructured<'_>) -> Result<()> {
    let extents = [
        u.int_in_range(1..=6)?,
        u.int_in_range(1..=9)?,
        u.int_in_range(1..=9)?,
    ];
    let mut net = Net::new(u.arbitrary()?, extents);
    let mut maps = vec![Map {
        name: "x".into(),
        extents,
    }];
    for at in 0..u.int_in_range(1..=NODES)? {
        let from = maps[u.choose_index(maps.len())?].clone();
        // A network begins with a convolution.
        let kind = match at {
            0 => 0,
            _ => u.int_in_range(0..=11)?,
        };
        let Some(made) = node(&mut u, kind, &mut net, &from, &maps)? else {
            continue;
        };
        maps.push(made);
    }
    let last = maps[maps.len() - 1].clone();
    let output = match u.arbitrary()? {
        true => classes(&mut net, &last),
        false => last.name,
    };
    check(&mut net, &output);
    Ok(())
}

/// One more node behind `from`; nothing where it would leave no map.
fn node(
    u: &mut Unstructured<'_>,
    kind: u8,
    net: &mut Net,
    from: &Map,
    maps: &[Map],
) -> Result<Option<Map>> {
    let Map { name, extents } = from;
    let channels = extents[0];
    let same = |name: String| {
        Some(Map {
            name,
            extents: *extents,
        })
    };
    Ok(match kind {
        0..=2 => {
            let window = Window::any(u)?;
            let groups = *u.choose(&[1, 1, channels, 2, 3])?;
            let outputs = match groups == channels {
                true => channels * u.int_in_range(1..=2)?,
                false => groups * u.int_in_range(1..=4)?,
            };
            let Some([rows, columns]) = window.places(extents) else {
                return Ok(None);
            };
            if !channels.is_multiple_of(groups) {
                return Ok(None);
            }
            let mut attributes = window.attributes();
            attributes.push(int("group", groups as i64));
            let shape = [
                outputs,
                channels / groups,
                window.kernel[0],
                window.kernel[1],
            ];
            Some(Map {
                name: net.conv(name, shape, u.arbitrary()?, attributes),
                extents: [outputs, rows, columns],
            })
        }
        3 => same(net.norm(name, channels)),
        4 => {
            let op = u.choose(&["Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid"])?;
            same(net.node(op, &[name], vec![]))
        }
        5 => same(match u.arbitrary()? {
            true => net.relu6(name),
            false => net.silu(name),
        }),
        6 | 7 => {
            let window = Window::any(u)?;
            let op = *u.choose(&["MaxPool", "AveragePool"])?;
            let Some([rows, columns]) = window.places(extents) else {
                return Ok(None);
            };
            let mut attributes = window.attributes();
            if op == "AveragePool" {
                attributes.push(int("count_include_pad", i64::from(u.arbitrary::<bool>()?)));
            }
            Some(Map {
                name: net.node(op, &[name], attributes),
                extents: [channels, rows, columns],
            })
        }
        8 | 9 => {
            let fit: Vec<&Map> = maps.iter().filter(|map| map.extents == *extents).collect();
            let other = u.choose(&fit)?;
            let op = u.choose(&["Add", "Mul"])?;
            same(net.node(op, &[name, &other.name], vec![]))
        }
        10 => {
            // Squeeze and excite.
            let mean = net.node("GlobalAveragePool", &[name], vec![]);
            let gate = net.conv(&mean, [channels, channels, 1, 1], true, vec![]);
            let gate = net.node("HardSigmoid", &[&gate], vec![float("alpha", 0.25)]);
            same(net.node("Mul", &[name, &gate], vec![]))
        }
        _ => {
            let fits = |map: &&Map| map.extents[1..] == extents[1..];
            let fit: Vec<&Map> = maps.iter().filter(fits).collect();
            let other = u.choose(&fit)?;
            let joined = net.node("Concat", &[name, &other.name], vec![int("axis", 1)]);
            Some(Map {
                name: joined,
                extents: [channels + other.extents[0], extents[1], extents[2]],
            })
        }
    })
}

/// The mean of a map's places, and a product behind it.
fn classes(net: &mut Net, map: &Map) -> String {
    let mean = net.node("GlobalAveragePool", &[&map.name], vec![]);
    let flat = net.node("Flatten", &[&mean], vec![int("axis", 1)]);
    net.classifier(&flat, (3, map.extents[0]))
}

/// How a window moves over a map, the rows first.
struct Window {
    kernel: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
    pads: [usize; 4],
}

impl Window {
    fn any(u: &mut Unstructured<'_>) -> Result<Self> {
        let kernel = [u.int_in_range(1..=4)?, u.int_in_range(1..=4)?];
        let mut pad = |side: usize| u.int_in_range(0..=side - 1);
        let pads = [
            pad(kernel[0])?,
            pad(kernel[1])?,
            pad(kernel[0])?,
            pad(kernel[1])?,
        ];
        Ok(Self {
            kernel,
            pads,
            strides: [u.int_in_range(1..=3)?, u.int_in_range(1..=3)?],
            dilations: [u.int_in_range(1..=2)?, u.int_in_range(1..=2)?],
        })
    }

    /// Rows and columns of the result; nothing where a window does not fit in.
    fn places(&self, extents: &[usize; 3]) -> Option<[usize; 2]> {
        let place = |axis: usize| {
            let padded = extents[1 + axis] + self.pads[axis] + self.pads[2 + axis];
            let covers = (self.kernel[axis] - 1) * self.dilations[axis] + 1;
            Some(padded.checked_sub(covers)? / self.strides[axis] + 1)
        };
        Some([place(0)?, place(1)?])
    }

    fn attributes(&self) -> Vec<AttributeProto> {
        let all = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
        vec![
            ints("kernel_shape", &all(&self.kernel)),
            ints("strides", &all(&self.strides)),
            ints("dilations", &all(&self.dilations)),
            ints("pads", &all(&self.pads)),
        ]
    }
}

/// Compares a network's program with its graph.
fn check(net: &mut Net, output: &str) {
    let bundle = net.bundle(&[output]);
    let compiled = ours(0, || {
        let (cancel, mut turns) = (Cancel::new(), NoTurns);
        let compiled = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
        pollster::block_on(compiled)
    });
    let executable = match compiled {
        Ok(executable) => Arc::new(executable),
        Err(CompileError::Refused(_)) => return,
        Err(other) => panic!("{other}"),
    };
    let values = net.pictures(1, PICTURES);
    let len = values.len() / PICTURES;
    let compute = |net: &Net, values: &[f32], budget: Option<u64>| {
        let batch = net.batch(values);
        let mut run = Run::new(Arc::clone(&executable), &batch).unwrap();
        while run.step(&batch, budget, &OneThread).unwrap().is_some() {}
        let (_, _, values) = run.finish().swap_remove(0);
        values
    };
    let together = compute(net, &values, None);
    let bits = |values: &[f32]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        bits(&compute(net, &values, Some(100))),
        bits(&together),
        "in slices"
    );
    let each = together.len() / PICTURES;
    for (picture, found) in values.chunks(len).zip(together.chunks(each)) {
        assert_eq!(bits(&compute(net, picture, None)), bits(found), "alone");
        let exact = net.exact(output, picture);
        assert_eq!(exact.len(), found.len());
        let scale = exact
            .iter()
            .fold(1.0_f64, |most, value| most.max(value.abs()));
        for (&found, exact) in found.iter().zip(&exact) {
            let apart = (f64::from(found) - exact).abs() / scale;
            assert!(apart <= NEAR, "{found}, exactly {exact}");
        }
    }
}
