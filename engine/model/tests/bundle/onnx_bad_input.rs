//! ONNX files that are not intact: every one is refused with its reason.

use bytes::Bytes;
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, DataType, GraphProto, ModelProto, OperatorSetIdProto,
};
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::value_info;

use crate::support::{assert_error, encode, floats, graph, linear, load, model, node};

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let whole = encode(&linear());
    assert!(load(whole.clone()).is_ok());
    for length in 0..whole.len() {
        assert_error(
            load(whole.slice(..length)),
            "InvalidModel",
            &["test/model.onnx"],
        );
    }
}

#[test]
fn files_that_are_not_onnx_are_named() {
    let safetensors = b"\x08\0\0\0\0\0\0\0{}      ";
    for (bytes, part) in [
        (&b""[..], "empty"),
        (b"<html>404</html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (b"{\"a\": 1}", "JSON"),
        (b"GGUF\x03\0\0\0", "GGUF"),
        (safetensors, "safetensors"),
        (&[0xff; 64], "not ONNX"),
        (b"\x0a\x00", "not usable"),
    ] {
        let result = load(Bytes::from_static(bytes));
        if part == "not usable" {
            assert_error(result, "InvalidModel", &[]);
        } else {
            assert_error(result, "InvalidModel", &[part]);
        }
    }
}

/// Applies a change to an intact model and expects it to be refused.
#[track_caller]
fn refused(change: impl FnOnce(&mut ModelProto), parts: &[&str]) {
    let mut changed = linear();
    change(&mut changed);
    assert_error(load(encode(&changed)), "InvalidModel", parts);
}

#[test]
fn models_without_their_parts_are_refused() {
    refused(|model| model.ir_version = 0, &["IR version 0"]);
    refused(|model| model.ir_version = -4, &["IR version -4"]);
    refused(|model| model.graph = None, &["no graph"]);
    refused(
        |model| model.opset_import.clear(),
        &["operator set \"\"", "MatMul"],
    );
    refused(|model| model.opset_import[0].version = 0, &["version 0"]);
    refused(
        |model| {
            model.opset_import.push(OperatorSetIdProto {
                domain: "ai.onnx".into(),
                version: 18,
            });
        },
        &["twice"],
    );
    refused(|model| graph(model).node.clear(), &["no node"]);
    refused(|model| graph(model).output.clear(), &["no output"]);
    refused(
        |model| graph(model).node[0].op_type.clear(),
        &["no operator"],
    );
    refused(
        |model| graph(model).node[1].domain = "com.example".into(),
        &["com.example", "Add"],
    );
}

#[test]
fn graphs_whose_values_do_not_hang_together_are_refused() {
    refused(|model| graph(model).input.clear(), &["reads \"x\""]);
    refused(
        |model| graph(model).node.reverse(),
        &["nothing before it computes"],
    );
    refused(
        |model| graph(model).node[1].input[0] = "nowhere".into(),
        &["\"nowhere\"", "Add"],
    );
    refused(
        |model| graph(model).output[0].name = "z".into(),
        &["\"z\"", "output"],
    );
    refused(
        |model| graph(model).node[1].output[0] = "x".into(),
        &["two values named \"x\""],
    );
    refused(
        |model| graph(model).node[1].output[0] = "weight".into(),
        &["two values named \"weight\""],
    );
    refused(
        |model| {
            let input = graph(model).input[0].clone();
            graph(model).input.push(input);
        },
        &["two values named \"x\""],
    );
    refused(
        |model| {
            let output = graph(model).output[0].clone();
            graph(model).output.push(output);
        },
        &["two outputs named \"y\""],
    );
    refused(
        |model| {
            let tensor = graph(model).initializer[0].clone();
            graph(model).initializer.push(tensor);
        },
        &["two initializers named \"weight\""],
    );
    refused(
        |model| graph(model).initializer[0].name.clear(),
        &["initializer", "no name"],
    );
    refused(
        |model| graph(model).input[0].name.clear(),
        &["input", "no name"],
    );
}

#[test]
fn tensors_that_contradict_themselves_are_refused() {
    refused(
        |model| graph(model).initializer[0].dims[0] = 17,
        &["weight", "2176", "2048"],
    );
    refused(
        |model| graph(model).initializer[0].dims[0] = -1,
        &["weight", "[-1, 32]"],
    );
    refused(
        |model| graph(model).initializer[0].dims = vec![1 << 40, 1 << 40],
        &["weight", "no memory"],
    );
    refused(
        |model| graph(model).initializer[0].dims = vec![i64::MAX],
        &["weight", "no memory"],
    );
    refused(
        |model| graph(model).initializer[0].dims = vec![1 << 40],
        &["weight", "takes 4398046511104"],
    );
    refused(
        |model| graph(model).initializer[0].data_type = 0,
        &["weight", "element type"],
    );
    refused(
        |model| graph(model).initializer[0].data_type = 99,
        &["weight", "99"],
    );
    refused(
        |model| graph(model).initializer[0].data_location = 7,
        &["weight", "location 7"],
    );
    refused(
        |model| graph(model).initializer[0].float_data = vec![1.0],
        &["weight", "more than once"],
    );
    refused(
        |model| {
            let bias = &mut graph(model).initializer[1];
            bias.raw_data = Bytes::new();
            bias.int64_data = vec![0; 32];
        },
        &["bias", "list of another type"],
    );
    refused(
        |model| {
            let bias = &mut graph(model).initializer[1];
            bias.data_type = DataType::Int8 as i32;
            bias.raw_data = Bytes::new();
            bias.int32_data = vec![200; 32];
        },
        &["bias", "200 does not fit"],
    );
}

#[test]
fn tensors_inside_attributes_are_measured_too() {
    let wrong = |place: &dyn Fn(&mut AttributeProto)| {
        let mut constant = node("Constant", &[], "hidden");
        let mut attribute = AttributeProto {
            name: "value".into(),
            r#type: AttributeType::Tensor as i32,
            ..AttributeProto::default()
        };
        place(&mut attribute);
        constant.attribute.push(attribute);
        let mut all = linear();
        graph(&mut all).node.insert(0, constant);
        assert_error(
            load(encode(&all)),
            "InvalidModel",
            &["takes 12 bytes, not 8"],
        );
    };
    let mut tensor = floats("", &[2]);
    tensor.dims = vec![3];
    wrong(&|attribute| attribute.t = Some(tensor.clone()));
    wrong(&|attribute| attribute.tensors = vec![tensor.clone()]);
    let mut named = tensor.clone();
    named.name = "named".into();
    wrong(&|attribute| {
        attribute.g = Some(GraphProto {
            initializer: vec![named.clone()],
            ..GraphProto::default()
        });
    });
}

#[test]
fn graphs_nested_without_end_are_refused() {
    let mut inner = GraphProto {
        node: vec![node("Identity", &["x"], "innermost")],
        output: vec![value_info("innermost", DType::F32, &[Dim::Fixed(1)])],
        ..GraphProto::default()
    };
    for level in 0..200 {
        let output = format!("level.{level}");
        let mut wrapper = node("If", &["x"], &output);
        wrapper.attribute.push(AttributeProto {
            name: "then_branch".into(),
            r#type: AttributeType::Graph as i32,
            g: Some(inner),
            ..AttributeProto::default()
        });
        inner = GraphProto {
            node: vec![wrapper],
            output: vec![value_info(&output, DType::F32, &[Dim::Fixed(1)])],
            ..GraphProto::default()
        };
    }
    inner.input = vec![value_info("x", DType::F32, &[Dim::Fixed(1)])];
    assert_error(load(encode(&model(inner))), "InvalidModel", &["recursion"]);
}
