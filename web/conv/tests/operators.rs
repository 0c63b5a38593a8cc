//! Every operator in small graphs against the graph in double precision, with odd extents, and the graphs that are refused.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use common::tokens::{TOKENS, Tokens};
use common::{Checked, bits, run};
use isovec_conv::{CompileError, Refused};
use isovec_engine::EngineError;
use isovec_engine::onnx::proto::{AttributeProto, DataType};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_kernels::parallel::OneThread;
use isovec_model::onnx::builder::{float, int, ints, string};
use isovec_test_models::convolutions::Net;

/// A net whose picture went through a convolution with so many channels.
fn net(seed: u64, channels: usize) -> (Net, String) {
    let mut net = Net::new(seed, [3, 13, 9]);
    let x = net.conv("x", [channels, 3, 2, 2], true, vec![]);
    (net, x)
}

#[test]
fn convolutions_of_all_kinds() {
    type Case = (usize, [usize; 4], Vec<AttributeProto>);
    let cases: [Case; 10] = [
        // Even kernels, pads that differ on every side, strides that differ.
        (
            5,
            [7, 5, 2, 4],
            vec![ints("pads", &[0, 1, 2, 3]), ints("strides", &[1, 3])],
        ),
        (
            5,
            [7, 5, 3, 3],
            vec![ints("pads", &[2, 0, 1, 1]), ints("strides", &[2, 1])],
        ),
        (5, [7, 5, 1, 1], vec![ints("pads", &[1, 0, 0, 2])]),
        (5, [7, 5, 1, 1], vec![ints("strides", &[3, 2])]),
        (
            5,
            [7, 5, 3, 2],
            vec![ints("dilations", &[2, 3]), ints("pads", &[2, 1, 2, 1])],
        ),
        (
            5,
            [7, 5, 3, 4],
            vec![string("auto_pad", "SAME_UPPER"), ints("strides", &[2, 2])],
        ),
        (5, [7, 5, 4, 3], vec![string("auto_pad", "SAME_LOWER")]),
        // Groups: some, depthwise with two results for each channel.
        (
            6,
            [8, 3, 3, 3],
            vec![int("group", 2), ints("pads", &[1; 4])],
        ),
        (6, [8, 3, 1, 1], vec![int("group", 2)]),
        (
            6,
            [12, 1, 3, 3],
            vec![int("group", 6), string("auto_pad", "VALID")],
        ),
    ];
    for (seed, (channels, shape, attributes)) in cases.into_iter().enumerate() {
        for bias in [false, true] {
            let (mut net, x) = net(seed as u64, channels);
            let y = net.conv(&x, shape, bias, attributes.clone());
            net.check(&[&y]);
        }
    }
}

#[test]
fn depthwise_convolutions() {
    for (seed, channels) in [3, 8, 17, 40].into_iter().enumerate() {
        let (mut net, x) = net(seed as u64, channels);
        let attributes = vec![
            int("group", channels as i64),
            ints("pads", &[1, 2, 0, 1]),
            ints("dilations", &[1, 2]),
        ];
        let y = net.conv(&x, [channels, 1, 3, 3], true, attributes);
        let y = net.node("Tanh", &[&y], vec![]);
        assert_eq!(net.check(&[&y])[2], "depthwise");
        // The extents differ, so that is no sum.
        let z = net.node("Add", &[&y, &x], vec![]);
        assert!(refusal(&mut net, &[&z]).contains("different extents"));
    }
}

#[test]
fn pools() {
    let kernel = |rows: i64, columns: i64| ints("kernel_shape", &[rows, columns]);
    for (op, attributes) in [
        (
            "MaxPool",
            vec![
                kernel(3, 2),
                ints("strides", &[2, 3]),
                ints("pads", &[1, 0, 2, 1]),
            ],
        ),
        (
            "MaxPool",
            vec![kernel(3, 3), ints("strides", &[2, 2]), int("ceil_mode", 1)],
        ),
        (
            "MaxPool",
            vec![
                kernel(2, 2),
                ints("strides", &[3, 3]),
                ints("pads", &[1, 1, 1, 1]),
                int("ceil_mode", 1),
            ],
        ),
        ("MaxPool", vec![kernel(2, 2), ints("dilations", &[3, 2])]),
        (
            "AveragePool",
            vec![
                kernel(3, 2),
                ints("strides", &[2, 1]),
                ints("pads", &[1, 1, 0, 1]),
            ],
        ),
        (
            "AveragePool",
            vec![
                kernel(3, 3),
                ints("pads", &[1; 4]),
                int("count_include_pad", 1),
            ],
        ),
    ] {
        let (mut net, x) = net(20, 6);
        let y = net.node(op, &[&x], attributes);
        net.check(&[&y]);
    }
}

/// Functions of one element, alone and as the finish of a convolution.
#[test]
fn activations() {
    let functions: [(&str, Vec<AttributeProto>); 12] = [
        ("Relu", vec![]),
        ("Sigmoid", vec![]),
        ("Tanh", vec![]),
        ("Erf", vec![]),
        ("Exp", vec![]),
        ("HardSwish", vec![]),
        ("HardSigmoid", vec![]),
        ("HardSigmoid", vec![float("alpha", 0.3), float("beta", 0.1)]),
        ("Gelu", vec![]),
        ("Neg", vec![]),
        ("Clip", vec![float("min", -0.5), float("max", 0.25)]),
        ("Clip", vec![float("max", 0.25)]),
    ];
    for (op, attributes) in functions {
        let (mut net, x) = net(21, 6);
        // Whether the convolution's own result is an output as well.
        let y = net.node(op, &[&x], attributes.clone());
        assert_eq!(net.check(&[&y])[1], "conv");
        net.check(&[&y, &x]);
        let z = net.node("Tanh", &[&y], vec![]);
        net.check(&[&z, &y]);
    }
}

/// What is fused where nothing else reads the parts stays apart where something does.
#[test]
fn parts_of_an_activation_that_are_read_elsewhere() {
    let silu = |net: &mut Net, x: &str| {
        let gate = net.node("Sigmoid", &[x], vec![]);
        (net.node("Mul", &[&gate, x], vec![]), gate)
    };
    let (mut silus, x) = net(22, 6);
    let (y, gate) = silu(&mut silus, &x);
    assert_eq!(silus.check(&[&y]), ["input", "conv", "planes"]);
    silus.check(&[&y, &gate]);
    silus.check(&[&y, &x]);

    let (mut gelus, x) = net(23, 6);
    let (root, one, half) = (
        gelus.number(0.707_106_77),
        gelus.number(1.0),
        gelus.number(0.5),
    );
    let halved = gelus.node("Mul", &[&half, &x], vec![]);
    let y = gelus.node("Mul", &[&x, &root], vec![]);
    let erf = gelus.node("Erf", &[&y], vec![]);
    let more = gelus.node("Add", &[&one, &erf], vec![]);
    let y = gelus.node("Mul", &[&more, &halved], vec![]);
    assert_eq!(gelus.check(&[&y]), ["input", "conv", "planes"]);
    for other in [&erf, &more, &halved, &x] {
        gelus.check(&[&y, other]);
    }

    // Other factors are no activation.
    let (mut net, x) = net(24, 6);
    let (third, one, half) = (net.number(0.3), net.number(1.0), net.number(0.5));
    let y = net.node("Mul", &[&x, &third], vec![]);
    let y = net.node("Erf", &[&y], vec![]);
    let y = net.node("Add", &[&y, &one], vec![]);
    let y = net.node("Mul", &[&x, &y], vec![]);
    let y = net.node("Mul", &[&y, &half], vec![]);
    assert!(net.check(&[&y]).contains(&"multiply"));
}

#[test]
fn sums_and_products() {
    let (mut net, x) = net(25, 6);
    let y = net.conv(&x, [6, 6, 1, 1], false, vec![]);
    let sum = net.node("Add", &[&x, &y], vec![]);
    let product = net.node("Mul", &[&x, &sum], vec![]);
    let twice = net.node("Add", &[&product, &product], vec![]);
    let limited = net.relu(&twice);
    // A residual after limits is added apart.
    let late = net.node("Add", &[&limited, &x], vec![]);
    net.check(&[&sum, &product, &twice, &limited, &late]);
    net.check(&[&late]);
}

#[test]
fn constants_by_channel_and_alone() {
    let (mut net, x) = net(26, 6);
    let by_channel = net.weight(&[6, 1, 1], 1.0, 0.3);
    let with_batch = net.weight(&[1, 6, 1, 1], 0.5, 0.3);
    let one = net.number(0.7);
    // Folded into the convolution, one after another.
    let mut y = net.node("Mul", &[&x, &by_channel], vec![]);
    y = net.node("Add", &[&with_batch, &y], vec![]);
    y = net.node("Div", &[&y, &by_channel], vec![]);
    y = net.node("Sub", &[&one, &y], vec![]);
    assert_eq!(net.check(&[&y]), ["input", "conv", "planes"]);
    let picture = net.node("Sub", &["x", &one], vec![]);
    let square = net.norm(&picture, 3);
    let least = net.node("Min", &[&square, &one], vec![]);
    let bound = net.number(-0.2);
    let both = net.node("Max", &[&least, &bound], vec![]);
    net.check(&[&picture, &y]);
    net.check(&[&both, &least, &y]);
}

#[test]
fn channels_side_by_side() {
    let (mut net, x) = net(27, 6);
    let y = net.conv(&x, [5, 6, 1, 1], true, vec![]);
    let z = net.node("Concat", &[&x, &y, &x], vec![int("axis", 1)]);
    let z = net.norm(&z, 17);
    let z = net.relu(&z);
    let z = net.conv(&z, [4, 17, 3, 3], true, vec![]);
    net.check(&[&z]);
}

#[test]
fn maps_become_larger_by_whole_factors() {
    let nearest = |from: &str, nearest: &str| {
        vec![
            string("coordinate_transformation_mode", from),
            string("nearest_mode", nearest),
        ]
    };
    let ways = [
        nearest("asymmetric", "floor"),
        nearest("half_pixel", "round_prefer_floor"),
        nearest("pytorch_half_pixel", "round_prefer_ceil"),
        vec![],
    ];
    for (way, attributes) in ways.into_iter().enumerate() {
        for by in [[2.0, 2.0], [1.0, 3.0], [4.0, 1.0], [1.0, 1.0], [5.0, 8.0]] {
            let (mut net, x) = net(60 + way as u64, 6);
            let scales = net.numbers(&[4], &[1.0, 1.0, by[0], by[1]]);
            let y = net.node("Resize", &[&x, "", &scales], attributes.clone());
            let y = net.conv(&y, [5, 6, 3, 3], true, vec![ints("pads", &[1; 4])]);
            let y = net.relu(&y);
            assert!(net.check(&[&y]).contains(&"repeat"));
        }
    }
    // By the extents of the result, and added to what it was made of.
    let (mut net, x) = net(64, 6);
    let y = net.conv(
        &x,
        [6, 6, 1, 1],
        true,
        vec![string("auto_pad", "SAME_UPPER"), ints("strides", &[2, 2])],
    );
    let shape = net.node("Shape", &[&x], vec![]);
    let (zero, one, rest) = (net.ints(&[0]), net.ints(&[1]), net.ints(&[6, 12, 8]));
    let batch = net.node("Slice", &[&shape, &zero, &one], vec![]);
    let sizes = net.node("Concat", &[&batch, &rest], vec![int("axis", 0)]);
    let y = net.node("Resize", &[&y, "", "", &sizes], vec![]);
    let y = net.node("Add", &[&x, &y], vec![]);
    net.check(&[&y]);
}

#[test]
fn transposed_convolutions_whose_windows_lie_side_by_side() {
    for (seed, (channels, kernel)) in [(5, [2, 2]), (1, [2, 3]), (9, [1, 4]), (3, [1, 1])]
        .into_iter()
        .enumerate()
    {
        for bias in [false, true] {
            let (mut net, x) = net(70 + seed as u64, 7);
            let [rows, columns] = kernel;
            let weight = net.weight(&[7, channels, rows, columns], 0.0, 0.3);
            let bias = bias.then(|| net.weight(&[channels], 0.0, 0.2));
            let inputs: Vec<&str> = [&*x, &*weight].into_iter().chain(bias.as_deref()).collect();
            let strides = [rows as i64, columns as i64];
            let y = net.node("ConvTranspose", &inputs, vec![ints("strides", &strides)]);
            let y = net.norm(&y, channels);
            let y = net.node("Sigmoid", &[&y], vec![]);
            assert!(net.check(&[&y]).contains(&"spread"));
        }
    }
}

/// Pictures that are flattened keep the graph's order.
#[test]
fn rows_of_all_pixels() {
    let (mut net, x) = net(28, 6);
    let pool = vec![ints("kernel_shape", &[4, 4]), ints("strides", &[4, 4])];
    let x = net.node("AveragePool", &[&x], pool);
    let flat = net.node("Flatten", &[&x], vec![]);
    let y = net.classifier(&flat, (5, 36));
    let weight = net.weight(&[5, 4], 0.0, 1.0);
    let bias = net.number(0.3);
    let attributes = vec![float("alpha", 0.5), float("beta", 2.0)];
    let z = net.node("Gemm", &[&y, &weight, &bias], attributes);
    let last = net.node("Transpose", &[&x], vec![ints("perm", &[0, 2, 3, 1])]);
    let own = net.node("Flatten", &[&last], vec![]);
    net.check(&[&flat, &y, &z, &last, &own]);
}

/// `x.view(x.size(0), -1)` and others, as exporters write them.
#[test]
fn shapes_are_computed_while_the_graph_is_read() {
    let (mut net, x) = net(29, 6);
    let x = net.node("GlobalAveragePool", &[&x], vec![]);
    let (zero, axis, rest) = (net.int(0), net.ints(&[0]), net.ints(&[-1]));
    let shape = net.node("Shape", &[&x], vec![]);
    let batch = net.node("Gather", &[&shape, &zero], vec![]);
    let batch = net.node("Unsqueeze", &[&batch, &axis], vec![]);
    let to = net.node("Concat", &[&batch, &rest], vec![int("axis", 0)]);
    let to = net.node("Cast", &[&to], vec![int("to", DataType::Int64 as i64)]);
    let y = net.node("Reshape", &[&x, &to], vec![]);
    let (one, two) = (net.ints(&[1]), net.ints(&[2]));
    let channels = net.node("Slice", &[&shape, &one, &two], vec![]);
    let to = net.node("Concat", &[&rest, &channels], vec![int("axis", 0)]);
    let z = net.node("Reshape", &[&x, &to], vec![]);
    let both = net.ints(&[2, 3]);
    let wide = net.node("Unsqueeze", &[&z, &both], vec![]);
    let narrow = net.node("Squeeze", &[&wide, &both], vec![]);
    let kept = net.ints(&[0, 6, 1, -1]);
    let again = net.node("Reshape", &[&wide, &kept], vec![]);
    let sum = net.node("Add", &[&wide, &again], vec![]);
    net.check(&[&y, &z, &narrow, &sum]);
}

#[test]
fn vectors_of_length_one() {
    let (mut net, x) = net(30, 6);
    let x = net.node("GlobalAveragePool", &[&x], vec![]);
    let x = net.node("Flatten", &[&x], vec![]);
    let axis = net.ints(&[1]);
    let square = net.node("Mul", &[&x, &x], vec![]);
    let sum = net.node("ReduceSum", &[&square, &axis], vec![int("keepdims", 1)]);
    let root = net.node("Sqrt", &[&sum], vec![]);
    let least = net.number(1e-12);
    let length = net.node("Max", &[&root, &least], vec![]);
    let y = net.node("Div", &[&x, &length], vec![]);
    let operators = net.check(&[&y]);
    assert_eq!(operators, ["input", "conv", "mean", "unit"]);
    assert!(refusal(&mut net, &[&length]).contains("not computed"));
}

/// The phrase of a refusal, which is no other error.
fn refusal(net: &mut Net, outputs: &[&str]) -> String {
    match net.compile(outputs) {
        Err(CompileError::Refused(refused)) => refused.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn what_has_no_program_is_refused_by_name() {
    let cases: [(&str, Vec<AttributeProto>, &str); 11] = [
        ("LRN", vec![], "operator LRN"),
        (
            "MaxPool",
            vec![ints("kernel_shape", &[3])],
            "a kernel of [3]",
        ),
        (
            "MaxPool",
            vec![ints("kernel_shape", &[30, 2])],
            "larger than its map",
        ),
        (
            "AveragePool",
            vec![ints("kernel_shape", &[2, 2]), int("ceil_mode", 1)],
            "ceil_mode",
        ),
        (
            "MaxPool",
            vec![ints("kernel_shape", &[2, 2]), ints("pads", &[2; 4])],
            "outside its map",
        ),
        (
            "MaxPool",
            vec![ints("kernel_shape", &[2, 2]), ints("pads", &[-1; 4])],
            "pads",
        ),
        (
            "MaxPool",
            vec![ints("kernel_shape", &[2, 2]), ints("strides", &[0, 1])],
            "strides",
        ),
        ("Softmax", vec![int("axis", 1)], "not over the channels"),
        (
            "Transpose",
            vec![ints("perm", &[1, 0, 2, 3])],
            "moves its axes",
        ),
        (
            "ReduceMean",
            vec![ints("axes", &[1])],
            "other axes than rows and columns",
        ),
        (
            "Cast",
            vec![int("to", DataType::Float16 as i64)],
            "another type",
        ),
    ];
    for (op, attributes, phrase) in cases {
        let (mut net, x) = net(31, 6);
        let y = net.node(op, &[&x], attributes);
        let said = refusal(&mut net, &[&y]);
        assert!(said.contains(phrase) && said.contains(op), "{said}");
    }
    // Other ways to become larger.
    for (attributes, scales, phrase) in [
        (
            vec![string("mode", "linear")],
            [1.0, 1.0, 2.0, 2.0],
            "linear",
        ),
        (vec![], [1.0, 1.0, 1.5, 2.0], "1.5"),
        (vec![], [1.0, 2.0, 2.0, 2.0], "scales"),
        (vec![], [1.0, 1.0, 0.5, 1.0], "scales"),
        (
            vec![string("coordinate_transformation_mode", "align_corners")],
            [1.0, 1.0, 2.0, 2.0],
            "align_corners",
        ),
        (
            vec![string("nearest_mode", "floor")],
            [1.0, 1.0, 2.0, 2.0],
            "floor",
        ),
    ] {
        let (mut net, x) = net(35, 6);
        let scales = net.numbers(&[4], &scales);
        let y = net.node("Resize", &[&x, "", &scales], attributes);
        let said = refusal(&mut net, &[&y]);
        assert!(said.contains(phrase) && said.contains("Resize"), "{said}");
    }
    let (mut one, x) = net(37, 6);
    let sizes = one.ints(&[1, 6, 24, 16]);
    let y = one.node("Resize", &[&x, "", "", &sizes], vec![]);
    assert!(refusal(&mut one, &[&y]).contains("begin with the batch"));
    for attributes in [
        vec![],
        vec![ints("strides", &[2, 1])],
        vec![ints("strides", &[2, 2]), ints("pads", &[1, 0, 0, 0])],
        vec![ints("strides", &[2, 2]), ints("output_padding", &[1, 1])],
        vec![ints("strides", &[2, 2]), ints("output_shape", &[25, 17])],
        vec![ints("strides", &[2, 2]), int("group", 2)],
        vec![ints("strides", &[2, 2]), ints("dilations", &[2, 2])],
    ] {
        let (mut net, x) = net(36, 6);
        let weight = net.weight(&[6, 4, 2, 2], 0.0, 0.3);
        let y = net.node("ConvTranspose", &[&x, &weight], attributes);
        assert!(refusal(&mut net, &[&y]).contains("side by side"));
    }
    // Weights that do not fit.
    for (shape, groups) in [
        ([6, 5, 1, 1], 1),
        ([6, 2, 1, 1], 4),
        ([6, 6, 1, 1], 0),
        ([5, 3, 1, 1], 2),
    ] {
        let (mut net, x) = net(32, 6);
        let y = net.conv(&x, shape, false, vec![int("group", groups)]);
        assert!(refusal(&mut net, &[&y]).contains("groups for 6 channels"));
    }
    // Reshapes and constants that are no renaming of axes, and no number for each channel.
    let (mut reshaped, x) = net(33, 6);
    let shape = reshaped.ints(&[0, 3, 2, -1]);
    let y = reshaped.node("Reshape", &[&x, &shape], vec![]);
    assert!(refusal(&mut reshaped, &[&y]).contains("a shape of"));
    let (mut by_row, x) = net(34, 6);
    let constant = by_row.weight(&[12, 1], 0.0, 1.0);
    let y = by_row.node("Add", &[&x, &constant], vec![]);
    assert!(refusal(&mut by_row, &[&y]).contains("no number for each channel"));
}

#[test]
fn graphs_that_are_not_of_pictures_are_refused() {
    use isovec_engine::onnx::proto::{DimensionValue, TypeValue};
    let with_input = |f: &dyn Fn(&mut isovec_engine::onnx::proto::TensorType)| {
        let (mut net, x) = net(35, 6);
        let kind = net.graph().input[0].r#type.as_mut().unwrap();
        let Some(TypeValue::Tensor(tensor)) = &mut kind.value else {
            panic!("the input is a tensor");
        };
        f(tensor);
        refusal(&mut net, &[&x])
    };
    let open = with_input(&|tensor| {
        tensor.shape.as_mut().unwrap().dim[2].value = Some(DimensionValue::Param("height".into()));
    });
    let huge = with_input(&|tensor| {
        tensor.shape.as_mut().unwrap().dim[2].value = Some(DimensionValue::Value(1 << 40));
    });
    let half = with_input(&|tensor| tensor.elem_type = DataType::Float16 as i32);
    let flat = with_input(&|tensor| {
        tensor.shape.as_mut().unwrap().dim.pop();
    });
    for said in [open, huge, half, flat] {
        assert!(
            said.contains("is not [batch, channels, rows, columns]"),
            "{said}"
        );
    }
    let (mut two, x) = net(36, 6);
    let mut again = two.graph().input[0].clone();
    again.name = "y".into();
    two.graph().input.push(again);
    assert!(refusal(&mut two, &[&x]).contains("one input"));
    let mut none = Net::new(37, [3, 13, 9]);
    let y = none.relu("x");
    assert!(refusal(&mut none, &[&y]).contains("no convolution"));
    // What is refused is refused by type.
    let error = none.compile(&[&y]).unwrap_err();
    assert!(matches!(
        error,
        CompileError::Refused(Refused::NoConvolution)
    ));
}

/// A few bytes may not ask for gigabytes.
#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let mut net = Net::new(38, [3, 13, 9]);
    let y = net.conv(
        "x",
        [3, 3, 1, 1],
        false,
        vec![ints("pads", &[2000, 2000, 2000, 2000])],
    );
    let error = net.compile(&[&y]).unwrap_err();
    let CompileError::Engine(EngineError::OverBudget { .. }) = error else {
        panic!("{error:?}");
    };
    // What a large picture takes is no sign of a damaged file, and is asked for when one comes.
    let mut large = Net::new(40, [3, 4000, 2000]);
    let y = large.conv("x", [8, 3, 1, 1], false, vec![]);
    large.compile(&[&y]).unwrap();
    let mut huge = Net::new(39, [3, 13, 9]);
    let y = huge.conv("x", [3, 3, 1, 1], false, vec![ints("pads", &[60000; 4])]);
    assert!(refusal(&mut huge, &[&y]).contains("its result is"));
}

#[test]
fn batches_that_do_not_fit_are_refused() {
    let (mut net, x) = net(40, 6);
    let executable = net.compile(&[&x]).unwrap();
    let refused = |batch: &isovec_engine::engine::Batch| {
        isovec_conv::Run::new(executable.clone(), batch)
            .unwrap_err()
            .to_string()
    };
    let mut batch = net.batch(&net.pictures(1, 2));
    batch.inputs[0] = NamedTensor::new(
        "x",
        Tensor::from_slice(&[2, 3, 9, 13], &net.pictures(1, 2)).unwrap(),
    );
    assert!(refused(&batch).contains("is no [batch, 3, 13, 9]"));
    batch.inputs[0] = NamedTensor::new(
        "x",
        Tensor::from_slice(&[1, 3, 13, 9], &[0_i64; 351]).unwrap(),
    );
    assert!(refused(&batch).contains("of f32"));
    batch.inputs.clear();
    assert!(refused(&batch).contains("is missing"));
    // A run ends with the batch that it began with.
    let batch = net.batch(&net.pictures(1, 2));
    let mut run = isovec_conv::Run::new(executable.clone(), &batch).unwrap();
    let other = net.batch(&net.pictures(1, 1));
    while run
        .step(&batch, None, &OneThread)
        .unwrap()
        .is_some_and(|step| step.operator != "planes")
    {}
    assert!(run.step(&other, None, &OneThread).is_err());
}

/// Runs of different batches, one after another and at once, do not meet in the memory that they pass on.
#[test]
fn memory_is_passed_on_between_runs() {
    let (mut net, x) = net(41, 6);
    let y = net.square(&x, (6, 6), 3, 1, 1);
    let executable = net.compile(&[&y]).unwrap();
    let (first, second) = (
        net.batch(&net.pictures(1, 2)),
        net.batch(&net.pictures(2, 1)),
    );
    let alone =
        [&first, &second].map(|batch| run(&executable, batch, None, &OneThread).remove(0).2);
    let mut runs =
        [&first, &second].map(|batch| isovec_conv::Run::new(executable.clone(), batch).unwrap());
    let mut left = true;
    while left {
        left = false;
        for (run, batch) in runs.iter_mut().zip([&first, &second]) {
            left |= run.step(batch, Some(500), &OneThread).unwrap().is_some();
        }
    }
    for (run, alone) in runs.into_iter().zip(alone) {
        assert_eq!(bits(&run.finish()[0].2), bits(&alone));
    }
}

#[test]
fn attention_of_a_row_of_pixels() {
    for (seed, heads, kind) in [(1, 4, 0), (2, 1, 1), (3, 3, 2), (4, 2, 0)] {
        let mut tokens = Tokens::new(seed, 12);
        let x = tokens.x.clone();
        let normed = tokens.norm(&x, kind == 1);
        let context = match kind {
            0 => tokens.joined(&normed, heads, false),
            1 => tokens.joined(&normed, heads, true),
            _ => tokens.apart(&normed, heads),
        };
        let own = tokens.linear(&context, [12, 12]);
        let sum = tokens.net.node("Add", &[&x, &own], vec![]);
        let last = tokens.linear(&sum, [12, 5]);
        let operators = tokens.net.check(&[&last]);
        let count = |name: &str| operators.iter().filter(|own| **own == name).count();
        assert_eq!((count("attention"), count("norm")), (1, 1), "{operators:?}");
        assert_eq!(count("affine"), 0, "{operators:?}");
    }
}

#[test]
fn constants_get_other_extents() {
    let (mut net, x) = net(9, 6);
    let bias = net.weight(&[6], 0.0, 1.0);
    for (wanted, squeezed) in [([1, 6, 1, 1], false), ([0, -1, 1, 1], true)] {
        let shape = net.ints(&wanted);
        let bias = match squeezed {
            // The first extent stays: it is 1 by then.
            true => {
                let first = net.ints(&[1, -1]);
                net.node("Reshape", &[&bias, &first], vec![])
            }
            false => bias.clone(),
        };
        let bias = net.node("Reshape", &[&bias, &shape], vec![]);
        let y = net.node("Add", &[&x, &bias], vec![]);
        net.check(&[&y]);
    }
    for wrong in [&[5_i64][..], &[-1, -1], &[4, -1], &[1, 6, 2]] {
        let shape = net.ints(wrong);
        let bias = net.node("Reshape", &[&bias, &shape], vec![]);
        let y = net.node("Add", &[&x, &bias], vec![]);
        let error = net.compile(&[&y]).unwrap_err();
        assert!(error.to_string().contains("a shape of"), "{error}");
    }
}

#[test]
fn what_is_no_attention_is_refused() {
    let refused = |change: &dyn Fn(&mut Tokens) -> String| {
        let mut tokens = Tokens::new(5, 12);
        let output = change(&mut tokens);
        let error = tokens.net.compile(&[&output]).unwrap_err();
        assert!(matches!(error, CompileError::Refused(_)), "{error:?}");
        error.to_string()
    };
    let cut = |tokens: &mut Tokens, order: &[i64]| {
        let x = tokens.x.clone();
        let shape = tokens.net.ints(&[0, TOKENS as i64, 3, 4]);
        let cut = tokens.net.node("Reshape", &[&x, &shape], vec![]);
        tokens
            .net
            .node("Transpose", &[&cut], vec![ints("perm", order)])
    };
    // Heads that something else reads, scores without a softmax, keys that are not turned, a softmax over queries.
    let read = refused(&|tokens| {
        let heads = cut(tokens, &[0, 2, 1, 3]);
        tokens.net.node("Relu", &[&heads], vec![])
    });
    assert!(read.contains("no step of attention"), "{read}");
    let plain = refused(&|tokens| {
        let (q, k) = (cut(tokens, &[0, 2, 1, 3]), cut(tokens, &[0, 2, 3, 1]));
        let scores = tokens.net.node("MatMul", &[&q, &k], vec![]);
        tokens.net.node("MatMul", &[&scores, &q], vec![])
    });
    assert!(plain.contains("softmax of scores"), "{plain}");
    let turned = refused(&|tokens| {
        let (q, k) = (cut(tokens, &[0, 2, 1, 3]), cut(tokens, &[0, 2, 1, 3]));
        tokens.net.node("MatMul", &[&q, &k], vec![])
    });
    assert!(turned.contains("queries times keys"), "{turned}");
    let over = refused(&|tokens| {
        let (q, k) = (cut(tokens, &[0, 2, 1, 3]), cut(tokens, &[0, 2, 3, 1]));
        let scores = tokens.net.node("MatMul", &[&q, &k], vec![]);
        tokens.net.node("Softmax", &[&scores], vec![int("axis", 2)])
    });
    assert!(over.contains("another axis than the keys"), "{over}");
    // Heads are given back as channels in one order alone.
    let mixed = refused(&|tokens| {
        let heads = cut(tokens, &[0, 2, 1, 3]);
        let shape = tokens.net.ints(&[0, TOKENS as i64, 12]);
        tokens.net.node("Reshape", &[&heads, &shape], vec![])
    });
    assert!(mixed.contains("of heads"), "{mixed}");
    // A normalisation of which a step is something else.
    let step = refused(&|tokens| {
        let x = tokens.x.clone();
        let mean = tokens
            .net
            .node("ReduceMean", &[&x], vec![ints("axes", &[-1])]);
        let centred = tokens.net.node("Sub", &[&x, &mean], vec![]);
        tokens.net.node("Relu", &[&centred], vec![])
    });
    assert!(step.contains("no step of a normalisation"), "{step}");
}
