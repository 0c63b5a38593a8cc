//! Reading ONNX: where each tensor ends up, and in which form.

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::{Dim, describe};
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, DataType, GraphProto, TensorProto,
};
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::{ints, value_info};
use isovec_model::onnx::read_model;

use crate::support::{FEATURES, batch, encode, floats, graph, linear, load, model, node, weights};

/// Names of the initializers that stayed in the graph.
fn inline(bundle: &ModelBundle) -> Vec<&str> {
    let graph = bundle.graph.graph.as_ref().unwrap();
    graph
        .initializer
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect()
}

#[test]
fn large_initializers_leave_the_graph_and_small_ones_stay() {
    let bundle = load(encode(&linear())).unwrap();
    assert_eq!(inline(&bundle), ["bias"]);
    let weights = weights(&bundle);
    let (dtype, shape, bytes) = &weights["weight"];
    assert_eq!(
        (*dtype, &shape[..]),
        (DType::F32, &[FEATURES.0, FEATURES.1][..])
    );
    assert_eq!(*bytes, floats("weight", &[16, 32]).raw_data);
    assert_eq!(weights.len(), 1);
}

#[test]
fn weights_are_slices_of_the_file() {
    let file = encode(&linear());
    let (_, weights) = read_model("test", file.clone(), &|_| None).unwrap();
    let bytes = pollster::block_on(weights.read(0)).unwrap();
    assert!(file.as_ptr_range().contains(&bytes.as_ptr()));
}

#[test]
fn small_tensors_do_not_hold_the_file() {
    let file = encode(&linear());
    let (model, _) = read_model("test", file.clone(), &|_| None).unwrap();
    let bias = &model.graph.unwrap().initializer[0].raw_data;
    assert!(!file.as_ptr_range().contains(&bias.as_ptr()));
}

#[test]
fn typed_lists_become_little_endian_bytes() {
    fn lists(data_type: DataType, tensor: TensorProto, expected: &[u8]) {
        let mut all = linear();
        graph(&mut all).initializer.push(TensorProto {
            name: "listed".into(),
            data_type: data_type as i32,
            ..tensor
        });
        let bundle = load(encode(&all)).unwrap();
        let graph = bundle.graph.graph.as_ref().unwrap();
        let listed = graph
            .initializer
            .iter()
            .find(|tensor| tensor.name == "listed")
            .unwrap();
        assert_eq!(listed.raw_data, expected, "{data_type:?}");
        assert!(listed.int32_data.is_empty() && listed.float_data.is_empty());
    }
    let ints = |dims: &[i64], values: &[i32]| TensorProto {
        dims: dims.to_vec(),
        int32_data: values.to_vec(),
        ..TensorProto::default()
    };
    lists(
        DataType::Int32,
        ints(&[2], &[-1, 2]),
        &[255, 255, 255, 255, 2, 0, 0, 0],
    );
    lists(DataType::Int16, ints(&[2], &[-2, 2]), &[254, 255, 2, 0]);
    lists(DataType::Uint16, ints(&[1], &[65535]), &[255, 255]);
    lists(DataType::Int8, ints(&[2], &[-1, 127]), &[255, 127]);
    lists(DataType::Uint8, ints(&[2], &[0, 255]), &[0, 255]);
    lists(DataType::Bool, ints(&[2], &[0, 1]), &[0, 1]);
    // 1.0 in both 16-bit formats, by their bits.
    lists(DataType::Float16, ints(&[1], &[0x3c00]), &[0x00, 0x3c]);
    lists(DataType::Bfloat16, ints(&[1], &[0x3f80]), &[0x80, 0x3f]);
    // Three elements of 4 bits take two bytes.
    lists(DataType::Int4, ints(&[3], &[0x21, 0x03]), &[0x21, 0x03]);
    let floats = TensorProto {
        dims: vec![],
        float_data: vec![1.0],
        ..TensorProto::default()
    };
    lists(DataType::Float, floats, &1f32.to_le_bytes());
    let longs = TensorProto {
        dims: vec![1],
        int64_data: vec![-5],
        ..TensorProto::default()
    };
    lists(DataType::Int64, longs, &(-5i64).to_le_bytes());
    let doubles = TensorProto {
        dims: vec![1],
        double_data: vec![0.5],
        ..TensorProto::default()
    };
    lists(DataType::Double, doubles, &0.5f64.to_le_bytes());
    let unsigned = TensorProto {
        dims: vec![1],
        uint64_data: vec![7],
        ..TensorProto::default()
    };
    lists(DataType::Uint32, unsigned.clone(), &7u32.to_le_bytes());
    lists(DataType::Uint64, unsigned, &7u64.to_le_bytes());
    let empty = TensorProto {
        dims: vec![0, 3],
        ..TensorProto::default()
    };
    lists(DataType::Float, empty, &[]);
}

#[test]
fn a_large_list_becomes_a_weight() {
    let mut listed = linear();
    let weight = &mut graph(&mut listed).initializer[0];
    weight.float_data = bytemuck::pod_collect_to_vec(&weight.raw_data);
    weight.raw_data = Bytes::new();
    let bundle = load(encode(&listed)).unwrap();
    assert_eq!(
        weights(&bundle)["weight"].2,
        floats("weight", &[16, 32]).raw_data
    );
    assert_eq!(bundle.identity, load(encode(&linear())).unwrap().identity);
}

#[test]
fn types_that_engines_do_not_carry_stay_in_the_graph() {
    let mut all = linear();
    graph(&mut all).initializer.push(TensorProto {
        name: "mask".into(),
        data_type: DataType::Bool as i32,
        dims: vec![2048],
        raw_data: vec![1; 2048].into(),
        ..TensorProto::default()
    });
    let bundle = load(encode(&all)).unwrap();
    assert_eq!(inline(&bundle), ["bias", "mask"]);
}

#[test]
fn large_constant_nodes_become_weights() {
    let mut all = linear();
    let weight = graph(&mut all).initializer.remove(0);
    let mut constant = node("Constant", &[], "weight");
    constant.attribute.push(AttributeProto {
        name: "value".into(),
        r#type: AttributeType::Tensor as i32,
        t: Some(TensorProto {
            name: "unrelated".into(),
            ..weight
        }),
        ..AttributeProto::default()
    });
    let mut small = node("Constant", &[], "ignored");
    small.attribute.push(ints("value_ints", &[1, 2]));
    graph(&mut all).node.splice(0..0, [constant, small]);
    let bundle = load(encode(&all)).unwrap();
    assert_eq!(weights(&bundle).keys().collect::<Vec<_>>(), ["weight"]);
    let operators = describe(&bundle).operators;
    assert_eq!(operators["Constant"], 1, "the small one stays");
}

#[test]
fn an_initializer_that_is_listed_as_an_input_is_not_asked_for() {
    let mut old = linear();
    old.ir_version = 3;
    let dims = [Dim::Fixed(16), Dim::Fixed(32)];
    graph(&mut old)
        .input
        .push(value_info("weight", DType::F32, &dims));
    let bundle = load(encode(&old)).unwrap();
    let inputs = describe(&bundle).inputs;
    assert_eq!(
        inputs
            .iter()
            .map(|input| input.name.as_str())
            .collect::<Vec<_>>(),
        ["x"]
    );
    assert!(weights(&bundle).contains_key("weight"));
}

#[test]
fn subgraphs_keep_their_tensors_and_see_outer_values() {
    let branch = |name: &str| GraphProto {
        name: name.into(),
        initializer: vec![floats("inner", &[300])],
        node: vec![node("Add", &["inner", "x"], &format!("{name}.sum"))],
        output: vec![value_info(&format!("{name}.sum"), DType::F32, &[batch()])],
        ..GraphProto::default()
    };
    let mut conditional = node("If", &["which"], "y");
    for name in ["then_branch", "else_branch"] {
        conditional.attribute.push(AttributeProto {
            name: name.into(),
            r#type: AttributeType::Graph as i32,
            g: Some(branch(name)),
            ..AttributeProto::default()
        });
    }
    let bundle = load(encode(&model(GraphProto {
        input: vec![
            value_info("x", DType::F32, &[batch()]),
            value_info("which", DType::U8, &[]),
        ],
        node: vec![conditional],
        output: vec![value_info("y", DType::F32, &[batch()])],
        ..GraphProto::default()
    })));
    let bundle = bundle.unwrap();
    assert!(bundle.weights.weights().is_empty());
    let operators = describe(&bundle).operators;
    assert_eq!((operators["If"], operators["Add"]), (1, 2));
}

#[test]
fn identity_is_that_of_the_tensors_and_not_of_the_file() {
    let plain = load(encode(&linear())).unwrap();
    let mut renamed = linear();
    renamed.producer_name = "somebody else".into();
    graph(&mut renamed).initializer.reverse();
    assert_eq!(load(encode(&renamed)).unwrap().identity, plain.identity);
    let mut changed = linear();
    let bias = &mut graph(&mut changed).initializer[1];
    bias.raw_data = bias.raw_data.iter().map(|byte| byte ^ 1).collect();
    assert_ne!(load(encode(&changed)).unwrap().identity, plain.identity);
}

#[test]
fn a_description_says_what_the_model_takes_gives_and_is_made_of() {
    let mut all = linear();
    graph(&mut all).input.push(value_info(
        "flag",
        DType::I64,
        &[Dim::Symbolic(String::new())],
    ));
    graph(&mut all).initializer.push(TensorProto {
        name: "axes".into(),
        data_type: DataType::Int64 as i32,
        dims: vec![1],
        int64_data: vec![1],
        ..TensorProto::default()
    });
    let description = describe(&load(encode(&all)).unwrap());
    assert_eq!(description.inputs[0].dims_text(), "[batch, 16]");
    assert_eq!(description.inputs[0].dtype, Some(DType::F32));
    assert_eq!(description.inputs[1].dims_text(), "[flag.0]");
    assert_eq!(description.outputs[0].dims_text(), "[batch, 32]");
    assert_eq!(
        (description.opset, description.producer.as_str()),
        (17, "tests 1")
    );
    assert_eq!(description.weights_bytes, 16 * 32 * 4 + 32 * 4 + 8);
    assert_eq!(description.parameters, 16 * 32 + 32);
    assert_eq!(
        description
            .operators
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect::<Vec<_>>(),
        [("Add", 1), ("MatMul", 1)]
    );
}
