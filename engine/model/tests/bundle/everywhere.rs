//! Wherever an ONNX file can hold a tensor: none that reaches an engine says that its data is elsewhere.
//!
//! The places are found by walking the format's own schema from the model down, and what was read is searched byte by
//! byte, so that neither knows where our reader looks.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::error::EngineError;
use isovec_engine::onnx::proto::TensorProto;
use isovec_engine::onnx::proto::{DATA_LOCATION_EXTERNAL, DataType, StringStringEntryProto};
use isovec_model::bundle::{self, BundleOptions};
use prost::Message;
use prost::encoding::encode_varint;

use crate::support::{assert_error, encode, linear};

/// Fields of `onnx.proto` (IR version 13) that hold messages on the way to a tensor: in what, the number, of what.
const SCHEMA: &[(&str, u8, &str)] = &[
    ("ModelProto", 7, "GraphProto"),
    ("ModelProto", 20, "TrainingInfoProto"),
    ("ModelProto", 25, "FunctionProto"),
    ("TrainingInfoProto", 1, "GraphProto"),
    ("TrainingInfoProto", 2, "GraphProto"),
    ("FunctionProto", 7, "NodeProto"),
    ("FunctionProto", 11, "AttributeProto"),
    ("GraphProto", 1, "NodeProto"),
    ("GraphProto", 5, "TensorProto"),
    ("GraphProto", 15, "SparseTensorProto"),
    ("NodeProto", 5, "AttributeProto"),
    ("AttributeProto", 5, "TensorProto"),
    ("AttributeProto", 6, "GraphProto"),
    ("AttributeProto", 10, "TensorProto"),
    ("AttributeProto", 11, "GraphProto"),
    ("AttributeProto", 22, "SparseTensorProto"),
    ("AttributeProto", 23, "SparseTensorProto"),
    ("SparseTensorProto", 1, "TensorProto"),
    ("SparseTensorProto", 2, "TensorProto"),
];

/// Every way from the model to a tensor that goes into no kind of message more than twice.
fn ways() -> Vec<Vec<(u8, &'static str)>> {
    fn walk(from: &str, way: &mut Vec<(u8, &'static str)>, all: &mut Vec<Vec<(u8, &'static str)>>) {
        for &(_, tag, to) in SCHEMA.iter().filter(|(message, ..)| *message == from) {
            if way.iter().filter(|(_, message)| *message == to).count() >= 2 {
                continue;
            }
            way.push((tag, to));
            match to {
                "TensorProto" => all.push(way.clone()),
                _ => walk(to, way, all),
            }
            way.pop();
        }
    }
    let mut all = Vec::new();
    walk("ModelProto", &mut Vec::new(), &mut all);
    all
}

fn field(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(u64::from(tag) << 3 | 2, &mut bytes);
    encode_varint(body.len() as u64, &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

/// A model's file with a tensor at that place. A message that stands twice in a file is merged.
fn with_tensor(way: &[(u8, &'static str)], tensor: &TensorProto) -> Bytes {
    let mut message = tensor.encode_to_vec();
    for (at, &(tag, kind)) in way.iter().enumerate().rev() {
        message = field(tag, &message);
        // What the message around it needs to be one.
        let around = at.checked_sub(1).map_or("ModelProto", |at| way[at].1);
        let _ = kind;
        match around {
            "NodeProto" => {
                message.extend(field(2, format!("extra.{at}").as_bytes()));
                message.extend(field(4, b"Constant"));
            }
            "AttributeProto" => message.extend(field(1, b"value")),
            "FunctionProto" => {
                message.extend(field(1, b"Local"));
                message.extend(field(10, b"local"));
            }
            _ => {}
        }
    }
    let mut file = encode(&linear()).to_vec();
    file.extend(message);
    file.into()
}

const DATA: [u8; 16] = *b"\xab0123456789abcd\xcd";

fn external(location: &str) -> TensorProto {
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: key.into(),
        value: value.into(),
    };
    TensorProto {
        name: "extra".into(),
        dims: vec![4],
        data_type: DataType::Float as i32,
        data_location: DATA_LOCATION_EXTERNAL,
        external_data: vec![entry("location", location), entry("length", "16")],
        ..TensorProto::default()
    }
}

fn load(file: Bytes) -> Result<ModelBundle, EngineError> {
    let files = [
        ("model.onnx", file),
        ("beside.bin", Bytes::from_static(&DATA)),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes));
    bundle::from_bytes("test", BTreeMap::from(files), &BundleOptions::default())
}

fn holds(bundle: &ModelBundle, bytes: &[u8]) -> bool {
    let graph = bundle.graph.encode_to_vec();
    graph.windows(bytes.len()).any(|window| window == bytes)
}

/// Training is nothing that an engine is handed.
fn is_dropped(way: &[(u8, &str)]) -> bool {
    way.iter().any(|(_, kind)| *kind == "TrainingInfoProto")
}

#[test]
fn no_tensor_that_reaches_an_engine_is_elsewhere() {
    let ways = ways();
    assert!(ways.len() > 100, "{}", ways.len());
    for way in ways {
        let bundle = load(with_tensor(&way, &external("beside.bin"))).unwrap();
        assert!(!holds(&bundle, b"beside.bin"), "{way:?}");
        assert_eq!(holds(&bundle, &DATA), !is_dropped(&way), "{way:?}");
    }
}

#[test]
fn no_tensor_leads_outside_the_bundle() {
    for way in ways() {
        for location in ["../outside.bin", "/outside.bin"] {
            let result = load(with_tensor(&way, &external(location)));
            match is_dropped(&way) {
                false => assert_error(result, "OutsideBundle", &["outside.bin"]),
                true => assert!(!holds(&result.unwrap(), b"outside.bin"), "{way:?}"),
            }
        }
    }
}

#[test]
fn what_is_left_over_of_a_place_elsewhere_reaches_no_engine() {
    for way in ways() {
        let left_over = TensorProto {
            data_location: 0,
            raw_data: Bytes::from_static(&DATA),
            ..external("../outside.bin")
        };
        let bundle = load(with_tensor(&way, &left_over)).unwrap();
        assert!(!holds(&bundle, b"outside.bin"), "{way:?}");
        assert_eq!(holds(&bundle, &DATA), !is_dropped(&way), "{way:?}");
    }
}
