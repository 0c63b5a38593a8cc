//! Safetensors: files of the format's own crate are read, and invalid files are refused.

use bytes::Bytes;
use isovec_engine::error::EngineError;
use isovec_model::safetensors::{SourceDType, TensorSet};
use safetensors::tensor::{Dtype, TensorView};

use crate::support::assert_error;

/// A file with this header and as many bytes of data.
fn file(header: &str, data: usize) -> Bytes {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..data).map(|byte| byte as u8));
    file.into()
}

fn read(file: Bytes) -> Result<TensorSet, EngineError> {
    TensorSet::from_files("test", vec![("model.safetensors".into(), file.into())])
}

/// A file as the reference implementation writes it.
fn reference(tensors: &[(&str, Dtype, &[usize], &[u8])]) -> Bytes {
    let views = tensors.iter().map(|&(name, dtype, shape, data)| {
        (name, TensorView::new(dtype, shape.to_vec(), data).unwrap())
    });
    let metadata = [("format".to_owned(), "pt".to_owned())];
    safetensors::serialize(views, Some(metadata.into()))
        .unwrap()
        .into()
}

#[test]
fn every_element_type_of_the_reference_writer_is_read() {
    let data: Vec<u8> = (0..48).collect();
    let types = [
        (Dtype::F64, SourceDType::F64),
        (Dtype::F32, SourceDType::F32),
        (Dtype::F16, SourceDType::F16),
        (Dtype::BF16, SourceDType::BF16),
        (Dtype::I64, SourceDType::I64),
        (Dtype::I32, SourceDType::I32),
        (Dtype::I16, SourceDType::I16),
        (Dtype::I8, SourceDType::I8),
        (Dtype::U8, SourceDType::U8),
        (Dtype::BOOL, SourceDType::Bool),
    ];
    let names: Vec<String> = types
        .iter()
        .map(|(dtype, _)| format!("t.{dtype:?}"))
        .collect();
    let shapes: Vec<[usize; 2]> = types
        .iter()
        .map(|(_, dtype)| [2, 24 / dtype.size()])
        .collect();
    let tensors: Vec<_> = types
        .iter()
        .zip(names.iter().zip(&shapes))
        .map(|((dtype, _), (name, shape))| {
            (name.as_str(), *dtype, shape.as_slice(), data.as_slice())
        })
        .collect();
    let set = read(reference(&tensors)).unwrap();
    assert_eq!(set.names().count(), types.len());
    for ((_, dtype), (name, shape)) in types.iter().zip(names.iter().zip(&shapes)) {
        let tensor = set.get(name).unwrap();
        assert_eq!(
            (
                tensor.dtype,
                &tensor.shape[..],
                &tensor.data.bytes().unwrap()[..]
            ),
            (*dtype, &shape[..], &data[..])
        );
    }
}

#[test]
fn scalars_and_empty_tensors_are_read() {
    let set = read(reference(&[
        ("scalar", Dtype::F32, &[], &[1, 2, 3, 4]),
        ("empty", Dtype::F32, &[0, 7], &[]),
    ]));
    let set = set.unwrap();
    assert_eq!(set.get("scalar").unwrap().shape, Vec::<usize>::new());
    assert_eq!(set.get("empty").unwrap().data.len(), 0);
}

#[test]
fn shards_make_one_set_with_the_identity_of_the_whole() {
    let a: (&str, Dtype, &[usize], &[u8]) = ("a", Dtype::F32, &[1], &[1, 2, 3, 4]);
    let b: (&str, Dtype, &[usize], &[u8]) = ("b", Dtype::F16, &[2], &[5, 6, 7, 8]);
    let whole = read(reference(&[a, b])).unwrap();
    let shards = vec![
        ("2.safetensors".into(), reference(&[b]).into()),
        ("1.safetensors".into(), reference(&[a]).into()),
    ];
    let sharded = TensorSet::from_files("test", shards).unwrap();
    assert_eq!(sharded.names().collect::<Vec<_>>(), ["a", "b"]);
    let identity = whole.identity().unwrap();
    assert_eq!(sharded.identity().unwrap(), identity);
    assert_eq!(identity.0.len(), 64);

    let twice = vec![
        ("1.safetensors".into(), reference(&[a]).into()),
        ("2.safetensors".into(), reference(&[a]).into()),
    ];
    assert_error(
        TensorSet::from_files("test", twice),
        "InvalidModel",
        &["2.safetensors", "tensor a", "1.safetensors"],
    );
}

#[test]
fn identity_sees_names_types_shapes_and_bytes() {
    let variants: [(&str, Dtype, &[usize], &[u8]); 5] = [
        ("a", Dtype::F32, &[2, 1], &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("b", Dtype::F32, &[2, 1], &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("a", Dtype::I32, &[2, 1], &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("a", Dtype::F32, &[1, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("a", Dtype::F32, &[2, 1], &[1, 2, 3, 4, 5, 6, 7, 9]),
    ];
    let identities: std::collections::HashSet<String> = variants
        .iter()
        .map(|&variant| {
            let set = read(reference(&[variant])).unwrap();
            set.identity().unwrap().0
        })
        .collect();
    assert_eq!(identities.len(), variants.len());
}

#[test]
fn headers_that_break_the_format_are_refused_by_name() {
    let f32 = |name: &str, shape: &str, from: u64, to: u64| {
        format!(r#""{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    };
    let huge = u64::MAX;
    let cases: [(String, usize, &str, &[&str]); 14] = [
        (
            f32("a", "[2]", 0, 8) + "," + &f32("b", "[2]", 4, 12),
            12,
            "InvalidModel",
            &["tensor b", "overlaps a"],
        ),
        (
            f32("a", "[2]", 0, 8) + "," + &f32("b", "[2]", 0, 8),
            8,
            "InvalidModel",
            &["tensor b", "overlaps a"],
        ),
        (
            f32("a", "[1]", 0, 4) + "," + &f32("b", "[1]", 8, 12),
            12,
            "InvalidModel",
            &["no tensor holds bytes 4 to 8"],
        ),
        (
            f32("a", "[1]", 4, 8),
            8,
            "InvalidModel",
            &["no tensor holds bytes 0 to 4"],
        ),
        (
            f32("a", "[2]", 0, 8),
            4,
            "InvalidModel",
            &["tensor a", "bytes 0 to 8 of 4"],
        ),
        (
            f32("a", "[2]", 8, 0),
            8,
            "InvalidModel",
            &["tensor a", "bytes 8 to 0"],
        ),
        (
            f32("a", "[2]", huge - 7, huge),
            8,
            "InvalidModel",
            &["tensor a"],
        ),
        (
            f32("a", "[1]", 0, 4),
            8,
            "InvalidModel",
            &["4 bytes follow"],
        ),
        (
            f32("a", "[3]", 0, 8),
            8,
            "InvalidModel",
            &["tensor a", "takes 12 bytes, but has 8"],
        ),
        (
            f32("a", "[4294967296, 4294967296]", 0, 8),
            8,
            "InvalidModel",
            &["tensor a", "more than 2^64"],
        ),
        (f32("a", "[-1]", 0, 8), 8, "InvalidModel", &["tensor a"]),
        (
            f32("a", "[1]", 0, 4) + "," + &f32("a", "[1]", 4, 8),
            8,
            "InvalidModel",
            &["tensor a twice"],
        ),
        (
            r#""a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}"#.into(),
            1,
            "UnsupportedModel",
            &["tensor a", "F8_E4M3", "F16"],
        ),
        (
            r#""a":{"dtype":"F32","shape":[1]}"#.into(),
            4,
            "InvalidModel",
            &["tensor a", "data_offsets"],
        ),
    ];
    for (entries, data, kind, parts) in cases {
        let parts: Vec<&str> = parts.iter().copied().chain(["model.safetensors"]).collect();
        assert_error(read(file(&format!("{{{entries}}}"), data)), kind, &parts);
    }
}

#[test]
fn header_lengths_that_cannot_be_are_refused_before_memory_is_taken() {
    for length in [u64::MAX, u64::MAX - 7, 1 << 40, 200_000_000, 9] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(b"{}      ");
        assert_error(read(bytes.into()), "InvalidModel", &[&length.to_string()]);
    }
    for header in [
        "[]",
        "{",
        "{}}",
        "null",
        "\u{1}",
        r#"{"__metadata__":3,"a":1}"#,
    ] {
        assert_error(read(file(header, 0)), "InvalidModel", &["header"]);
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let whole = reference(&[
        ("a", Dtype::F32, &[2], &[0; 8]),
        ("b", Dtype::F32, &[2], &[0; 8]),
    ]);
    assert!(read(whole.clone()).is_ok());
    for length in 0..whole.len() {
        assert_error(
            read(whole.slice(..length)),
            "InvalidModel",
            &["model.safetensors"],
        );
    }
}

#[test]
fn other_formats_are_named() {
    for (bytes, part) in [
        (&b""[..], "empty"),
        (b"<!DOCTYPE html><html>", "web page"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
            "Git LFS",
        ),
        (b"PK\x03\x04 archive/data.pkl", "PyTorch"),
        (b"{\"error\":\"Repository not found\"}", "JSON"),
    ] {
        assert_error(read(Bytes::from_static(bytes)), "InvalidModel", &[part]);
    }
}
