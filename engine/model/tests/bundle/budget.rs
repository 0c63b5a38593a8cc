//! The demands of a hostile file are refused before they are spent; the error names the budget.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use isovec_engine::Result;
use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::content::{ByteSource, Content};
use isovec_engine::onnx::proto::{
    AttributeProto, DATA_LOCATION_EXTERNAL, DataType, GraphProto, StringStringEntryProto,
    TensorProto,
};
use isovec_model::bundle::{self, BundleOptions};
use prost::Message;

use crate::support::{assert_error, encode, graph, linear, load, node};

/// A file of zeros that a page keeps: every part that is asked for is a copy.
#[derive(Debug)]
struct Zeros(usize);

impl ByteSource for Zeros {
    fn size(&self) -> usize {
        self.0
    }

    fn read(&self, _from: usize, into: &mut [u8]) -> io::Result<()> {
        into.fill(0);
        Ok(())
    }
}

const MIB: usize = 1 << 20;

fn elsewhere(name: String) -> TensorProto {
    TensorProto {
        name,
        dims: vec![MIB as i64],
        data_type: DataType::Uint8 as i32,
        data_location: DATA_LOCATION_EXTERNAL,
        external_data: vec![StringStringEntryProto {
            key: "location".into(),
            value: "data".into(),
        }],
        ..TensorProto::default()
    }
}

fn load_with_data(model: &Bytes, budget: &mut Budget) -> Result<ModelBundle> {
    let files = BTreeMap::from([
        ("model.onnx".to_owned(), model.clone().into()),
        ("data".to_owned(), Content::elsewhere(Zeros(MIB))),
    ]);
    bundle::from_contents_within("test", files, &BundleOptions::default(), budget)
}

#[test]
fn many_tensors_in_one_place_are_not_all_copied() {
    let with = |count: usize| {
        let mut constant = node("Constant", &[], "many");
        constant.attribute.push(AttributeProto {
            name: "value".into(),
            tensors: (0..count).map(|_| elsewhere(String::new())).collect(),
            ..AttributeProto::default()
        });
        let mut model = linear();
        graph(&mut model).node.push(constant);
        encode(&model)
    };
    load_with_data(&with(10), &mut Budget::for_files(0)).unwrap();
    let result = load_with_data(&with(1000), &mut Budget::for_files(0));
    assert_error(
        result,
        "OverBudget",
        &["external data of tensor many", "bytes of memory"],
    );
}

#[test]
fn many_weights_in_one_place_are_not_all_hashed() {
    let with = |count: usize| {
        let mut model = linear();
        let weights = (0..count).map(|index| elsewhere(format!("weight.{index}")));
        graph(&mut model).initializer.extend(weights);
        encode(&model)
    };
    load_with_data(&with(10), &mut Budget::for_files(0)).unwrap();
    let result = load_with_data(&with(1000), &mut Budget::for_files(0));
    assert_error(result, "OverBudget", &["hashing tensor weight.", "steps"]);
}

/// Written out for each of them, the name would be 100 GB.
#[test]
fn a_long_name_is_not_written_for_every_graph_under_it() {
    let mut model = linear();
    let mut branch = node("Identity", &["x"], "branched");
    branch.name = "n".repeat(MIB);
    branch.attribute.push(AttributeProto {
        name: "graphs".into(),
        graphs: vec![GraphProto::default(); 100_000],
        ..AttributeProto::default()
    });
    graph(&mut model).node.push(branch);
    load(encode(&model)).unwrap();
}

#[test]
fn elements_of_one_byte_are_counted_before_they_are_decoded() {
    let zeros = |count: usize, dims: Vec<i64>| {
        let mut model = linear();
        graph(&mut model).initializer.push(TensorProto {
            name: "zeros".into(),
            dims,
            data_type: DataType::Int64 as i32,
            int64_data: vec![0; count],
            ..TensorProto::default()
        });
        encode(&model)
    };
    // What the shape says is read, and costs what it takes.
    load(zeros(4 * MIB, vec![4 * MIB as i64])).unwrap();
    let result = load(zeros(4 * MIB, vec![4]));
    assert_error(
        result,
        "InvalidModel",
        &["tensor zeros", "4194304 elements"],
    );
    // A budget that somebody set is kept to, wherever it runs.
    let file = zeros(4 * MIB, vec![4 * MIB as i64]);
    let files = BTreeMap::from([("model.onnx".to_owned(), file.into())]);
    let mut budget = Budget::for_files(0).with_limit(Resource::Elements, 1000);
    let options = BundleOptions::default();
    let result = bundle::from_contents_within("test", files, &options, &mut budget);
    assert_error(result, "OverBudget", &["4194", "elements", "1000"]);
}

#[test]
fn a_model_takes_little_of_its_budget() {
    let mut budget = Budget::for_files(0);
    load_with_data(&encode(&linear()), &mut budget).unwrap();
    for resource in [
        Resource::Bytes,
        Resource::Elements,
        Resource::Steps,
        Resource::Nodes,
    ] {
        let (used, allowed) = (budget.used(resource), budget.allowed(resource));
        assert!(
            used > 0 && used < allowed / 1000,
            "{used} {resource} of {allowed}"
        );
    }
}

#[test]
fn whoever_cancels_stops_the_reading() {
    let cancel = Cancel::new();
    let mut budget = Budget::for_files(0).with_cancel(&cancel);
    cancel.cancel();
    let result = load_with_data(&linear().encode_to_vec().into(), &mut budget);
    assert_error(result, "Cancelled", &[]);
}
