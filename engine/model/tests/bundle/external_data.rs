//! ONNX external data: read from inside the bundle, and from nowhere else.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::error::EngineError;
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, DATA_LOCATION_EXTERNAL, ModelProto, StringStringEntryProto,
    TensorProto,
};
use isovec_model::bundle::{self, BundleOptions};

use crate::support::{assert_error, encode, floats, graph, linear, load_all, node, weights};

/// The linear model with its weight in another file.
fn external(entries: &[(&str, &str)]) -> ModelProto {
    let mut model = linear();
    move_out(&mut graph(&mut model).initializer[0], entries);
    model
}

fn move_out(tensor: &mut TensorProto, entries: &[(&str, &str)]) {
    tensor.raw_data = Bytes::new();
    tensor.data_location = DATA_LOCATION_EXTERNAL;
    tensor.external_data = entries
        .iter()
        .map(|&(key, value)| StringStringEntryProto {
            key: key.into(),
            value: value.into(),
        })
        .collect();
}

fn data() -> Bytes {
    floats("weight", &[16, 32]).raw_data
}

#[test]
fn data_in_the_bundle_is_read() {
    let whole = load_all([("model.onnx", encode(&linear()))]).unwrap();
    let beside = external(&[("location", "model.onnx.data")]);
    let bundle = load_all([("model.onnx", encode(&beside)), ("model.onnx.data", data())]).unwrap();
    assert_eq!(weights(&bundle), weights(&whole));
    assert_eq!(bundle.identity, whole.identity);

    // Relative to the model's own folder, at an offset, among other data.
    let mut padded = vec![0xee; 100];
    padded.extend_from_slice(&data());
    padded.extend_from_slice(&[0xee; 50]);
    let within = external(&[
        ("location", "./parts/w"),
        ("offset", "100"),
        ("length", "2048"),
    ]);
    let files = [
        ("onnx/model.onnx", encode(&within)),
        ("onnx/parts/w", padded.into()),
    ];
    assert_eq!(weights(&load_all(files).unwrap()), weights(&whole));
}

#[test]
fn data_of_tensors_inside_nodes_is_taken_in() {
    let mut constant = node("Constant", &[], "pointer");
    let mut tensor = floats("", &[16, 32]);
    move_out(&mut tensor, &[("location", "data")]);
    constant.attribute.push(AttributeProto {
        name: "other".into(),
        r#type: AttributeType::Tensor as i32,
        t: Some(tensor),
        ..AttributeProto::default()
    });
    let mut model = linear();
    graph(&mut model).node.insert(0, constant);
    let bundle = load_all([("model.onnx", encode(&model)), ("data", data())]).unwrap();
    let node = &bundle.graph.graph.as_ref().unwrap().node[0];
    let tensor = node.attribute[0].t.as_ref().unwrap();
    assert_eq!((tensor.data_location, &tensor.raw_data), (0, &data()));
    assert!(
        tensor.external_data.is_empty(),
        "no engine may follow a path"
    );
}

#[test]
fn ranges_past_the_file_are_refused() {
    for (entries, parts) in [
        (
            &[("offset", "1")][..],
            &["weight", "takes 2048 bytes, not 2047"][..],
        ),
        (
            &[("length", "2049")],
            &["weight", "2049 bytes from byte 0", "2048"],
        ),
        (
            &[("offset", "4"), ("length", "2048")],
            &["weight", "from byte 4"],
        ),
        (
            &[("offset", "18446744073709551615"), ("length", "2")],
            &["weight"],
        ),
        (&[("offset", "99999999999999999999")], &["weight", "offset"]),
        (&[("offset", "-1")], &["weight", "offset \"-1\""]),
        (&[("length", "many")], &["weight", "length \"many\""]),
        (&[("offset", "4096")], &["weight"]),
    ] {
        let entries: Vec<_> = [("location", "data")]
            .iter()
            .chain(entries)
            .copied()
            .collect();
        let files = [
            ("model.onnx", encode(&external(&entries))),
            ("data", data()),
        ];
        assert_error(load_all(files), "InvalidModel", parts);
    }
    let nowhere = [("model.onnx", encode(&external(&[])))];
    assert_error(
        load_all(nowhere),
        "InvalidModel",
        &["weight", "without a location"],
    );
    let missing = [(
        "model.onnx",
        encode(&external(&[("location", "gone.data")])),
    )];
    assert_error(load_all(missing), "MissingFile", &["gone.data", "weight"]);
}

#[test]
fn places_outside_the_bundle_are_refused() {
    for location in [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/../data",
        "..",
        "/",
        ".",
    ] {
        let files = [
            ("model.onnx", encode(&external(&[("location", location)]))),
            ("data", data()),
        ];
        assert_error(load_all(files), "OutsideBundle", &["weight", location]);
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("model");
        fs::create_dir(&inside).unwrap();
        fs::write(
            inside.join("model.onnx"),
            encode(&external(&[("location", location)])),
        )
        .unwrap();
        fs::write(folder.path().join("x"), data()).unwrap();
        assert_error(from_folder(&inside), "OutsideBundle", &["weight", location]);
    }
}

fn from_folder(path: &Path) -> Result<ModelBundle, EngineError> {
    bundle::from_folder(path, &BundleOptions::default())
}

mod links {
    use symlink::{symlink_dir, symlink_file};

    use super::*;

    #[test]
    fn a_link_out_of_the_bundle_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("model");
        fs::create_dir(&inside).unwrap();
        fs::write(folder.path().join("secret"), data()).unwrap();
        fs::write(
            inside.join("model.onnx"),
            encode(&external(&[("location", "data")])),
        )
        .unwrap();
        symlink_file(folder.path().join("secret"), inside.join("data")).unwrap();
        assert_error(from_folder(&inside), "OutsideBundle", &["weight", "data"]);

        fs::remove_file(inside.join("data")).unwrap();
        symlink_dir(folder.path(), inside.join("data")).unwrap();
        let nested = encode(&external(&[("location", "data/secret")]));
        fs::write(inside.join("model.onnx"), nested).unwrap();
        assert_error(
            from_folder(&inside),
            "OutsideBundle",
            &["weight", "data/secret"],
        );
    }

    #[test]
    fn a_link_within_the_bundle_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("real"), data()).unwrap();
        fs::write(
            folder.path().join("model.onnx"),
            encode(&external(&[("location", "data")])),
        )
        .unwrap();
        symlink_file("real", folder.path().join("data")).unwrap();
        assert_eq!(
            weights(&from_folder(folder.path()).unwrap())["weight"].2,
            data()
        );
    }

    #[test]
    fn a_snapshot_of_the_hub_cache_reads_its_blobs_and_nothing_beside_them() {
        let cache = tempfile::tempdir().unwrap();
        let entry = cache.path().join("models--tests--linear");
        let snapshot = entry.join("snapshots").join("0123abcd");
        fs::create_dir_all(&snapshot).unwrap();
        fs::create_dir_all(entry.join("blobs")).unwrap();
        fs::create_dir_all(entry.join("refs")).unwrap();
        fs::write(entry.join("refs").join("main"), "0123abcd").unwrap();
        fs::write(
            entry.join("blobs").join("aaaa"),
            encode(&external(&[("location", "data")])),
        )
        .unwrap();
        fs::write(entry.join("blobs").join("bbbb"), data()).unwrap();
        symlink_file("../../blobs/aaaa", snapshot.join("model.onnx")).unwrap();
        symlink_file("../../blobs/bbbb", snapshot.join("data")).unwrap();
        // The entry, its snapshot, and a link to the snapshot are the same model.
        let link = cache.path().join("link");
        symlink_dir(&snapshot, &link).unwrap();
        for path in [&entry, &snapshot, &link] {
            assert_eq!(weights(&from_folder(path).unwrap())["weight"].2, data());
        }

        fs::write(cache.path().join("other"), data()).unwrap();
        fs::remove_file(snapshot.join("data")).unwrap();
        symlink_file(cache.path().join("other"), snapshot.join("data")).unwrap();
        assert_error(from_folder(&snapshot), "OutsideBundle", &["weight"]);
    }
}

#[test]
fn a_place_that_is_not_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(
        folder.path().join("model.onnx"),
        encode(&external(&[("location", "data")])),
    )
    .unwrap();
    assert_error(from_folder(folder.path()), "Io", &["data", "regular file"]);
}
