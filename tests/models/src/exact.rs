//! ONNX operators in double precision, in plain loops, from the definitions
//! (<https://onnx.ai/onnx/operators/>); nothing of the program's.

use std::collections::BTreeMap;

use isovec_engine::onnx::proto::{AttributeProto, DataType, GraphProto, NodeProto};

/// A tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its extents.
    pub shape: Vec<usize>,
    /// All of its values.
    pub values: Vec<f64>,
}

impl Array {
    /// A tensor of these numbers.
    pub fn of(shape: &[usize], values: &[f32]) -> Self {
        Self {
            shape: shape.to_vec(),
            values: values.iter().map(|&value| f64::from(value)).collect(),
        }
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            shape: self.shape.clone(),
            values: self.values.iter().map(|&value| f(value)).collect(),
        }
    }

    /// The value at coordinates, of which those of an axis of one element count as 0.
    fn at(&self, coordinates: &[usize]) -> f64 {
        let skipped = coordinates.len() - self.shape.len();
        let own = self.shape.iter().zip(&coordinates[skipped..]);
        let place = own.fold(0, |place, (&extent, &at)| {
            place * extent + if extent == 1 { 0 } else { at }
        });
        self.values[place]
    }

    /// `f` of every coordinate of a shape.
    fn build(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Self {
        let mut values = Vec::new();
        for place in 0..shape.iter().product() {
            let mut rest: usize = place;
            let mut coordinates = vec![0; shape.len()];
            for axis in (0..shape.len()).rev() {
                coordinates[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            values.push(f(&coordinates));
        }
        Self {
            shape: shape.to_vec(),
            values,
        }
    }

    fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let rank = self.shape.len().max(other.shape.len());
        let extent = |array: &Self, axis: usize| {
            let own = (axis + array.shape.len()).checked_sub(rank);
            own.map_or(1, |own| array.shape[own])
        };
        let shape: Vec<usize> = (0..rank)
            .map(|axis| extent(self, axis).max(extent(other, axis)))
            .collect();
        Self::build(&shape, |at| f(self.at(at), other.at(at)))
    }
}

/// A node with its inputs.
struct Call<'a> {
    node: &'a NodeProto,
    inputs: Vec<Option<&'a Array>>,
}

impl Call<'_> {
    fn input(&self, at: usize) -> &Array {
        self.inputs[at].expect("an input that the operator needs")
    }

    fn optional(&self, at: usize) -> Option<&Array> {
        self.inputs.get(at).copied().flatten()
    }

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node
            .attribute
            .iter()
            .find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name)
            .map_or(default, |attribute| attribute.i)
    }

    fn float(&self, name: &str, default: f32) -> f64 {
        f64::from(
            self.attribute(name)
                .map_or(default, |attribute| attribute.f),
        )
    }

    fn ints(&self, name: &str, default: &[i64]) -> Vec<i64> {
        self.attribute(name)
            .map_or(default.to_vec(), |attribute| attribute.ints.clone())
    }

    /// Axes, as an attribute or an input.
    fn axes(&self, rank: usize) -> Vec<usize> {
        let axes = match self.optional(1) {
            Some(axes) => axes.values.iter().map(|&axis| axis as i64).collect(),
            None => self.ints("axes", &[]),
        };
        let axes = axes.into_iter();
        axes.map(|axis| if axis < 0 { axis + rank as i64 } else { axis } as usize)
            .collect()
    }
}

/// Computes all of a graph's nodes.
pub fn evaluate(graph: &GraphProto, values: &mut BTreeMap<String, Array>) {
    for tensor in &graph.initializer {
        let shape: Vec<usize> = tensor.dims.iter().map(|&extent| extent as usize).collect();
        let numbers = if tensor.data_type == DataType::Int64 as i32 {
            tensor
                .raw_data
                .as_chunks()
                .0
                .iter()
                .map(|&b| i64::from_le_bytes(b) as f64)
                .collect()
        } else {
            tensor
                .raw_data
                .as_chunks()
                .0
                .iter()
                .map(|&b| f64::from(f32::from_le_bytes(b)))
                .collect()
        };
        let array = Array {
            shape,
            values: numbers,
        };
        values.insert(tensor.name.clone(), array);
    }
    for node in &graph.node {
        let call = Call {
            node,
            inputs: node.input.iter().map(|name| values.get(name)).collect(),
        };
        let value = operator(&call);
        values.insert(node.output[0].clone(), value);
    }
}

fn operator(call: &Call<'_>) -> Array {
    match &*call.node.op_type {
        "Conv" => conv(call),
        "MaxPool" => pool(call, |seen, _| {
            seen.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(x))
        }),
        "AveragePool" => {
            let all = call.int("count_include_pad", 0) == 1;
            pool(call, |seen, taps| {
                seen.iter().sum::<f64>() / if all { taps } else { seen.len() } as f64
            })
        }
        "GlobalAveragePool" => reduce(call.input(0), &[2, 3], true, |seen| {
            seen.iter().sum::<f64>() / seen.len() as f64
        }),
        "ReduceMean" => {
            let x = call.input(0);
            reduce(
                x,
                &call.axes(x.shape.len()),
                call.int("keepdims", 1) == 1,
                |seen| seen.iter().sum::<f64>() / seen.len() as f64,
            )
        }
        "ReduceSum" => {
            let x = call.input(0);
            reduce(
                x,
                &call.axes(x.shape.len()),
                call.int("keepdims", 1) == 1,
                |seen| seen.iter().sum(),
            )
        }
        "BatchNormalization" => {
            let x = call.input(0);
            let epsilon = call.float("epsilon", 1e-5);
            Array::build(&x.shape, |at| {
                let own = |input: usize| call.input(input).values[at[1]];
                (x.at(at) - own(3)) / (own(4) + epsilon).sqrt() * own(1) + own(2)
            })
        }
        "LayerNormalization" => {
            let x = call.input(0);
            let last = x.shape.len() - 1;
            let mean = |x: &Array| {
                reduce(x, &[last], true, |seen| {
                    seen.iter().sum::<f64>() / seen.len() as f64
                })
            };
            let centred = x.zip(&mean(x), |x, mean| x - mean);
            let variance = mean(&centred.map(|x| x * x));
            let epsilon = call.float("epsilon", 1e-5);
            let unit = centred.zip(&variance, |x, variance| x / (variance + epsilon).sqrt());
            let scaled = unit.zip(call.input(1), |x, by| x * by);
            call.optional(2).map_or(scaled.clone(), |shift| {
                scaled.zip(shift, |x, shift| x + shift)
            })
        }
        "Gemm" => {
            let (a, b) = (call.input(0), call.input(1));
            let turned = call.int("transB", 0) == 1;
            let (k, n) = if turned {
                (b.shape[1], b.shape[0])
            } else {
                (b.shape[0], b.shape[1])
            };
            let (alpha, beta) = (call.float("alpha", 1.0), call.float("beta", 1.0));
            Array::build(&[a.shape[0], n], |at| {
                let sum: f64 = (0..k)
                    .map(|step| {
                        a.at(&[at[0], step])
                            * if turned {
                                b.at(&[at[1], step])
                            } else {
                                b.at(&[step, at[1]])
                            }
                    })
                    .sum();
                alpha * sum + call.optional(2).map_or(0.0, |c| beta * c.at(at))
            })
        }
        "MatMul" => {
            let (a, b) = (call.input(0), call.input(1));
            let mut shape = a.shape.clone();
            let last = shape.len() - 1;
            let [.., steps, columns] = b.shape[..] else {
                panic!("a product with {:?}", b.shape);
            };
            shape[last] = columns;
            // A matrix for all, or one for each of the axes before.
            let own = b.shape.len() - 2;
            Array::build(&shape, |at| {
                (0..steps)
                    .map(|step| {
                        let mut left = at.to_vec();
                        left[last] = step;
                        let right = [&at[..own], &[step, at[last]]].concat();
                        a.at(&left) * b.at(&right)
                    })
                    .sum()
            })
        }
        "Softmax" => {
            let x = call.input(0);
            let last = x.shape.len() - 1;
            let e = x.map(libm::exp);
            let sum = reduce(&e, &[last], true, |seen| seen.iter().sum());
            e.zip(&sum, |e, sum| e / sum)
        }
        "Add" => call.input(0).zip(call.input(1), |a, b| a + b),
        "Sub" => call.input(0).zip(call.input(1), |a, b| a - b),
        "Mul" => call.input(0).zip(call.input(1), |a, b| a * b),
        "Div" if call.input(0).shape.is_empty() => {
            call.input(0).zip(call.input(1), |a, b| (a / b).trunc())
        }
        "Div" => call.input(0).zip(call.input(1), |a, b| a / b),
        "Pow" => call.input(0).zip(call.input(1), libm::pow),
        "Max" => call.input(0).zip(call.input(1), f64::max),
        "Min" => call.input(0).zip(call.input(1), f64::min),
        "Abs" => call.input(0).map(f64::abs),
        "Neg" => call.input(0).map(|x| -x),
        "Sqrt" => call.input(0).map(f64::sqrt),
        "Exp" => call.input(0).map(libm::exp),
        "Erf" => call.input(0).map(libm::erf),
        "Tanh" => call.input(0).map(libm::tanh),
        "Relu" => call.input(0).map(|x| x.max(0.0)),
        "Sigmoid" => call.input(0).map(|x| 1.0 / (1.0 + libm::exp(-x))),
        "HardSigmoid" => {
            let (alpha, beta) = (call.float("alpha", 0.2), call.float("beta", 0.5));
            call.input(0).map(|x| (alpha * x + beta).clamp(0.0, 1.0))
        }
        "HardSwish" => call.input(0).map(|x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        "Gelu"
            if call
                .attribute("approximate")
                .is_some_and(|how| how.s == b"tanh") =>
        {
            let root = (2.0 / std::f64::consts::PI).sqrt();
            let bent = |x: f64| libm::tanh(root * (x + 0.044715 * x * x * x));
            call.input(0).map(|x| x * 0.5 * (1.0 + bent(x)))
        }
        "Gelu" => call
            .input(0)
            .map(|x| x * 0.5 * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))),
        "Clip" => {
            let bound = |name: &str, at: usize, default: f32| match call.optional(at) {
                Some(bound) => bound.values[0],
                None => call.float(name, default),
            };
            let (least, most) = (
                bound("min", 1, f32::NEG_INFINITY),
                bound("max", 2, f32::INFINITY),
            );
            call.input(0).map(|x| x.max(least).min(most))
        }
        "Concat" => concat(call),
        "ConvTranspose" => conv_transpose(call),
        "Resize" => nearest(call),
        "Transpose" => {
            let (x, order) = (call.input(0), call.ints("perm", &[]));
            let shape: Vec<usize> = order.iter().map(|&axis| x.shape[axis as usize]).collect();
            Array::build(&shape, |at| {
                let mut from = vec![0; at.len()];
                for (&axis, &at) in order.iter().zip(at) {
                    from[axis as usize] = at;
                }
                x.at(&from)
            })
        }
        "Identity" | "Dropout" | "Cast" => call.input(0).clone(),
        "Flatten" => {
            let x = call.input(0);
            Array {
                shape: vec![x.shape[0], x.values.len() / x.shape[0]],
                values: x.values.clone(),
            }
        }
        "Squeeze" => {
            let x = call.input(0);
            let axes = call.axes(x.shape.len());
            let left = x
                .shape
                .iter()
                .enumerate()
                .filter(|(axis, _)| !axes.contains(axis));
            Array {
                shape: left.map(|(_, &extent)| extent).collect(),
                values: x.values.clone(),
            }
        }
        "Unsqueeze" => {
            let x = call.input(0);
            let count = match call.optional(1) {
                Some(axes) => axes.values.len(),
                None => call.ints("axes", &[]).len(),
            };
            let axes = call.axes(x.shape.len() + count);
            let mut shape = x.shape.clone();
            for axis in axes {
                shape.insert(axis, 1);
            }
            Array {
                shape,
                values: x.values.clone(),
            }
        }
        "Reshape" => {
            let (x, wanted) = (call.input(0), call.input(1));
            let kept = wanted.values.iter().enumerate();
            let kept: Vec<f64> = kept
                .map(|(at, &extent)| {
                    if extent == 0.0 {
                        x.shape[at] as f64
                    } else {
                        extent
                    }
                })
                .collect();
            let known: f64 = kept.iter().filter(|&&extent| extent > 0.0).product();
            let rest = x.values.len() as f64 / known;
            Array {
                shape: kept
                    .iter()
                    .map(|&extent| if extent < 0.0 { rest } else { extent } as usize)
                    .collect(),
                values: x.values.clone(),
            }
        }
        "Shape" => {
            let shape = &call.input(0).shape;
            Array {
                shape: vec![shape.len()],
                values: shape.iter().map(|&extent| extent as f64).collect(),
            }
        }
        "Gather" => {
            // Entries of the first axis.
            let (x, places) = (call.input(0), call.input(1));
            let (count, inner) = (x.shape[0], x.values.len() / x.shape[0]);
            let taken = places.values.iter().flat_map(|&at| {
                let at = if at < 0.0 { at + count as f64 } else { at } as usize;
                x.values[at * inner..][..inner].to_vec()
            });
            Array {
                shape: [&places.shape[..], &x.shape[1..]].concat(),
                values: taken.collect(),
            }
        }
        "Slice" => {
            // Of the first axis.
            let x = call.input(0);
            let (start, end) = (
                call.input(1).values[0] as usize,
                call.input(2).values[0] as usize,
            );
            let inner = x.values.len() / x.shape[0];
            Array {
                shape: [&[end - start], &x.shape[1..]].concat(),
                values: x.values[start * inner..end * inner].to_vec(),
            }
        }
        other => panic!("{other} has no reference"),
    }
}

/// Pads at the start and extents of the result, by axis.
fn geometry(call: &Call<'_>, extents: [usize; 2], kernel: [usize; 2]) -> ([i64; 2], [usize; 2]) {
    let strides = call.ints("strides", &[1, 1]);
    let dilations = call.ints("dilations", &[1, 1]);
    let pads = call.ints("pads", &[0; 4]);
    let auto = call
        .attribute("auto_pad")
        .map(|attribute| attribute.s.clone())
        .unwrap_or_default();
    let (mut before, mut out) = ([0; 2], [0; 2]);
    for axis in 0..2 {
        let span = (kernel[axis] as i64 - 1) * dilations[axis] + 1;
        let extent = extents[axis] as i64;
        let (first, last) = match &auto[..] {
            b"SAME_UPPER" | b"SAME_LOWER" => {
                let places = (extent + strides[axis] - 1) / strides[axis];
                let all = ((places - 1) * strides[axis] + span - extent).max(0);
                let upper = (all / 2, all - all / 2);
                if auto == b"SAME_UPPER" {
                    upper
                } else {
                    (upper.1, upper.0)
                }
            }
            _ => (pads[axis], pads[axis + 2]),
        };
        let room = extent + first + last - span;
        let mut places = room / strides[axis] + 1;
        if call.int("ceil_mode", 0) == 1
            && room % strides[axis] != 0
            && places * strides[axis] < extent + first
        {
            places += 1;
        }
        (before[axis], out[axis]) = (first, places as usize);
    }
    (before, out)
}

/// The coordinate in the map of a tap.
fn tap(
    call: &Call<'_>,
    axis: usize,
    place: usize,
    tap: usize,
    before: i64,
    extent: usize,
) -> Option<usize> {
    let (strides, dilations) = (
        call.ints("strides", &[1, 1]),
        call.ints("dilations", &[1, 1]),
    );
    let at = place as i64 * strides[axis] + tap as i64 * dilations[axis] - before;
    (0..extent as i64).contains(&at).then_some(at as usize)
}

fn conv(call: &Call<'_>) -> Array {
    let (x, weight) = (call.input(0), call.input(1));
    let kernel = [weight.shape[2], weight.shape[3]];
    let (before, out) = geometry(call, [x.shape[2], x.shape[3]], kernel);
    let groups = call.int("group", 1) as usize;
    let each = weight.shape[0] / groups;
    Array::build(&[x.shape[0], weight.shape[0], out[0], out[1]], |at| {
        let mut sum = call.optional(2).map_or(0.0, |bias| bias.values[at[1]]);
        for input in 0..weight.shape[1] {
            for row in 0..kernel[0] {
                for column in 0..kernel[1] {
                    let y = tap(call, 0, at[2], row, before[0], x.shape[2]);
                    let z = tap(call, 1, at[3], column, before[1], x.shape[3]);
                    if let (Some(y), Some(z)) = (y, z) {
                        let channel = at[1] / each * weight.shape[1] + input;
                        sum +=
                            x.at(&[at[0], channel, y, z]) * weight.at(&[at[1], input, row, column]);
                    }
                }
            }
        }
        sum
    })
}

/// Every pixel adds its kernel to the result, from where its window begins.
fn conv_transpose(call: &Call<'_>) -> Array {
    let (x, weight) = (call.input(0), call.input(1));
    let kernel = [weight.shape[2], weight.shape[3]];
    let strides = call.ints("strides", &[1, 1]);
    let stride = [strides[0] as usize, strides[1] as usize];
    let out = [0, 1].map(|axis| (x.shape[2 + axis] - 1) * stride[axis] + kernel[axis]);
    let shape = [x.shape[0], weight.shape[1], out[0], out[1]];
    let mut sums = Array::build(&shape, |at| {
        call.optional(2).map_or(0.0, |bias| bias.values[at[1]])
    });
    for image in 0..x.shape[0] {
        for (input, output) in (0..x.shape[1]).flat_map(|a| (0..shape[1]).map(move |b| (a, b))) {
            for (y, z) in (0..x.shape[2]).flat_map(|a| (0..x.shape[3]).map(move |b| (a, b))) {
                let value = x.at(&[image, input, y, z]);
                for row in 0..kernel[0] {
                    for column in 0..kernel[1] {
                        let at = ((image * shape[1] + output) * shape[2] + y * stride[0] + row)
                            * shape[3];
                        sums.values[at + z * stride[1] + column] +=
                            value * weight.at(&[input, output, row, column]);
                    }
                }
            }
        }
    }
    sums
}

/// The pixel that is nearest, where both ends are half a pixel from the first and the last pixel's centre, or where they are
/// that pixel.
fn nearest(call: &Call<'_>) -> Array {
    let x = call.input(0);
    let scales = match call.optional(2) {
        Some(scales) => scales.values.clone(),
        None => {
            let sizes = &call.input(3).values;
            sizes
                .iter()
                .zip(&x.shape)
                .map(|(size, &extent)| size / extent as f64)
                .collect()
        }
    };
    let asymmetric = call
        .attribute("coordinate_transformation_mode")
        .is_some_and(|mode| mode.s == b"asymmetric");
    let extents = x.shape.iter().zip(&scales);
    let shape: Vec<usize> = extents
        .map(|(&extent, scale)| (extent as f64 * scale) as usize)
        .collect();
    Array::build(&shape, |at| {
        let places = at.iter().zip(&scales).zip(&x.shape);
        let own: Vec<usize> = places
            .map(|((&at, scale), &extent)| {
                let place = match asymmetric {
                    true => (at as f64 / scale).floor(),
                    // Half a pixel between two is the lower one's.
                    false => ((at as f64 + 0.5) / scale - 1.0).ceil(),
                };
                (place.max(0.0) as usize).min(extent - 1)
            })
            .collect();
        x.at(&own)
    })
}

fn pool(call: &Call<'_>, f: impl Fn(&[f64], usize) -> f64) -> Array {
    let x = call.input(0);
    let kernel = call.ints("kernel_shape", &[]);
    let kernel = [kernel[0] as usize, kernel[1] as usize];
    let (before, out) = geometry(call, [x.shape[2], x.shape[3]], kernel);
    Array::build(&[x.shape[0], x.shape[1], out[0], out[1]], |at| {
        let mut seen = Vec::new();
        for row in 0..kernel[0] {
            for column in 0..kernel[1] {
                let y = tap(call, 0, at[2], row, before[0], x.shape[2]);
                let z = tap(call, 1, at[3], column, before[1], x.shape[3]);
                if let (Some(y), Some(z)) = (y, z) {
                    seen.push(x.at(&[at[0], at[1], y, z]));
                }
            }
        }
        f(&seen, kernel[0] * kernel[1])
    })
}

fn reduce(x: &Array, axes: &[usize], keep: bool, f: impl Fn(&[f64]) -> f64) -> Array {
    let kept: Vec<usize> = (0..x.shape.len())
        .map(|axis| {
            if axes.contains(&axis) {
                1
            } else {
                x.shape[axis]
            }
        })
        .collect();
    let inner: Vec<usize> = axes.iter().map(|&axis| x.shape[axis]).collect();
    let mut reduced = Array::build(&kept, |at| {
        let mut seen = Vec::new();
        Array::build(&inner, |within| {
            let mut from = at.to_vec();
            for (&axis, &at) in axes.iter().zip(within) {
                from[axis] = at;
            }
            seen.push(x.at(&from));
            0.0
        });
        f(&seen)
    });
    if !keep {
        let left = (0..x.shape.len()).filter(|axis| !axes.contains(axis));
        reduced.shape = left.map(|axis| x.shape[axis]).collect();
    }
    reduced
}

fn concat(call: &Call<'_>) -> Array {
    let axis = call.int("axis", 0) as usize;
    let mut shape = call.input(0).shape.clone();
    let parts = (0..call.inputs.len()).map(|at| call.input(at));
    shape[axis] = parts.clone().map(|part| part.shape[axis]).sum();
    Array::build(&shape, |at| {
        let mut own = at.to_vec();
        for part in parts.clone() {
            if own[axis] < part.shape[axis] {
                return part.at(&own);
            }
            own[axis] -= part.shape[axis];
        }
        unreachable!("the parts are as long as the whole");
    })
}
