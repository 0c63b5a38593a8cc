//! Writing ONNX: a written file is read back unchanged, and damage is found.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::error::EngineError;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::onnx::proto::{ModelProto, StringStringEntryProto};
use isovec_engine::weights::{WeightInfo, WeightSource, WeightsIdentity};
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::onnx::{IDENTITY_KEY, TENSORS_KEY, export, write_model};
use prost::Message;

use crate::support::{assert_error, encode, linear, load, weights};

fn bundle() -> ModelBundle {
    let mut model = linear();
    model.metadata_props.push(StringStringEntryProto {
        key: "kept".into(),
        value: "yes".into(),
    });
    let mut bundle = load(encode(&model)).unwrap();
    bundle.identity = WeightsIdentity("ab".repeat(32));
    bundle
}

fn written(bundle: &ModelBundle) -> Bytes {
    pollster::block_on(write_model(bundle)).unwrap().into()
}

#[test]
fn a_written_model_is_whole_and_reads_back_as_it_was() {
    let bundle = bundle();
    let file = written(&bundle);
    let plain = ModelProto::decode(file.clone()).unwrap();
    let initializers = plain.graph.unwrap().initializer;
    let names: Vec<&str> = initializers
        .iter()
        .map(|tensor| tensor.name.as_str())
        .collect();
    assert_eq!(names, ["bias", "weight"]);
    assert_eq!(initializers[1].raw_data.len(), 2048);
    let keys: Vec<&str> = plain
        .metadata_props
        .iter()
        .map(|entry| entry.key.as_str())
        .collect();
    assert_eq!(keys, ["kept", IDENTITY_KEY, TENSORS_KEY]);

    let back = load(file.clone()).unwrap();
    assert_eq!(back.identity, bundle.identity);
    assert_eq!(weights(&back), weights(&bundle));
    let graphs = [&back, &bundle].map(|bundle| bundle.graph.graph.clone().unwrap());
    assert_eq!(graphs[0], graphs[1]);
    // Written again it is the same file: the metadata does not pile up.
    assert_eq!(written(&back), file);
    assert_eq!(written(&bundle), file);
}

#[test]
fn a_written_model_that_was_cut_short_anywhere_is_refused() {
    let whole = written(&bundle());
    for length in 0..whole.len() {
        assert_error(load(whole.slice(..length)), "InvalidModel", &[]);
    }
}

#[test]
fn a_weight_that_changed_after_writing_is_refused() {
    let whole = written(&bundle()).to_vec();
    let weight = weights(&bundle())["weight"].2.clone();
    let start = whole
        .windows(weight.len())
        .position(|window| window == weight)
        .unwrap();
    for at in [start, start + 1000, start + weight.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        assert_error(load(damaged), "InvalidModel", &["damaged", IDENTITY_KEY]);
    }
    let mut forged = ModelProto::decode(&whole[..]).unwrap();
    forged.metadata_props[1].value = "not a hash".into();
    assert_error(load(encode(&forged)), "InvalidModel", &[IDENTITY_KEY]);
}

#[test]
fn export_replaces_the_file_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let files = pollster::block_on(export(&bundle(), &path)).unwrap();
    assert_eq!(files, std::slice::from_ref(&path));
    assert_eq!(fs::read(&path).unwrap(), written(&bundle()));

    let mut broken = bundle();
    let infos = broken.weights.weights().to_vec();
    for fault in [Fault::Short, Fault::Fails] {
        broken.weights = Arc::new(Broken {
            infos: infos.clone(),
            fault,
        });
        assert_error(
            pollster::block_on(export(&broken, &path)),
            "Weight",
            &["weight"],
        );
    }
    assert_eq!(
        fs::read(&path).unwrap(),
        written(&bundle()),
        "the old file is still there"
    );
    assert_eq!(names(folder.path()), ["model.onnx"], "and nothing else");

    let nowhere = folder.path().join("gone").join("model.onnx");
    assert_error(
        pollster::block_on(export(&bundle(), &nowhere)),
        "Io",
        &["gone"],
    );
    let back = bundle::from_folder(folder.path(), &BundleOptions::default()).unwrap();
    assert_eq!(weights(&back), weights(&bundle()));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Short,
    Fails,
}

/// A source whose weights cannot be read as they are announced.
#[derive(Debug)]
struct Broken {
    infos: Vec<WeightInfo>,
    fault: Fault,
}

impl WeightSource for Broken {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        let result = match self.fault {
            Fault::Short => Ok(Bytes::from_static(&[0; 5])),
            Fault::Fails => Err(EngineError::Weight {
                name: self.infos[index].name.clone(),
                detail: "the disk is gone".into(),
            }),
        };
        Box::pin(async move { result })
    }
}
