//! ONNX files that are kept elsewhere are what they are in memory, broken ones as well, and are
//! not copied as a whole.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isovec_engine::Result;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::content::{ByteSource, Content};
use isovec_engine::onnx::proto::{StringStringEntryProto, TensorProto};
use isovec_model::bundle::{self, BundleOptions};
use prost::Message;
use prost::encoding::encode_varint;

use crate::support::{floats, graph, linear};

#[derive(Debug)]
struct Elsewhere {
    bytes: Vec<u8>,
    /// The most bytes that were asked for at once.
    largest: Arc<AtomicUsize>,
}

impl ByteSource for Elsewhere {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
        self.largest.fetch_max(into.len(), Ordering::Relaxed);
        into.copy_from_slice(&self.bytes[from..from + into.len()]);
        Ok(())
    }
}

/// Several weights that are large enough to stay where they are.
fn file() -> Vec<u8> {
    let mut model = linear();
    for name in ["one", "other", "third"] {
        let large = floats(name, &[256, 128]);
        graph(&mut model).initializer.push(large);
    }
    model.encode_to_vec()
}

fn load(content: Content) -> Result<ModelBundle> {
    let files = BTreeMap::from([("model.onnx".to_owned(), content)]);
    bundle::from_contents("test", files, &BundleOptions::default())
}

/// Loads a file from memory and from elsewhere, and compares. Returns the most bytes that were
/// asked for at once, if it is a model.
fn compare(file: &[u8]) -> Option<usize> {
    let largest = Arc::new(AtomicUsize::new(0));
    let elsewhere = Content::elsewhere(Elsewhere {
        bytes: file.to_vec(),
        largest: Arc::clone(&largest),
    });
    match (load(file.to_vec().into()), load(elsewhere)) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.identity, other.identity);
            assert_eq!(one.graph, other.graph);
            assert_eq!(one.weights.weights(), other.weights.weights());
            for index in 0..one.weights.weights().len() {
                let read = |bundle: &ModelBundle| pollster::block_on(bundle.weights.read(index));
                assert_eq!(read(&one).unwrap(), read(&other).unwrap());
            }
            Some(largest.load(Ordering::Relaxed))
        }
        (Err(one), Err(other)) => {
            assert_eq!(one.to_string(), other.to_string());
            None
        }
        (one, other) => panic!("{one:?} {other:?}"),
    }
}

#[test]
fn a_whole_file_is_read_a_little_at_a_time() {
    let file = file();
    let largest = compare(&file).unwrap();
    assert!(largest <= 256 * 128 * 4, "{largest} of {}", file.len());
}

#[test]
fn broken_files_are_refused_in_the_same_words() {
    let file = file();
    for cut in (0..file.len()).step_by(9973).chain([file.len() - 1]) {
        compare(&file[..cut]);
    }
    // Past the three large tensors, and in front of them, lies all that is no raw byte.
    let structure = (0..3000).chain(file.len() - 200..file.len()).step_by(7);
    for at in structure {
        for to in [0, 0x4a, 0xff] {
            let mut file = file.clone();
            file[at] = to;
            compare(&file);
        }
    }
}

/// A tensor of so many bytes, every one of which says which tensor it is.
fn odd(location: i32, left_over: bool) -> TensorProto {
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: key.into(),
        value: value.into(),
    };
    let mut tensor = floats("odd", &[256, 128]);
    tensor.data_location = location;
    if left_over {
        // Inside this file, and of the right length: the bytes of another tensor.
        tensor.external_data = vec![
            entry("location", "model.onnx"),
            entry("offset", "1000"),
            entry("length", &(256 * 128 * 4).to_string()),
        ];
    }
    tensor
}

#[test]
fn what_a_tensor_says_beside_its_bytes_means_the_same() {
    for location in [0, 1, 7] {
        for left_over in [false, true] {
            let mut model = linear();
            graph(&mut model)
                .initializer
                .push(floats("before", &[256, 256]));
            graph(&mut model).initializer.push(odd(location, left_over));
            let whole = compare(&model.encode_to_vec());
            // In the file, whatever is left over; elsewhere as well, or nobody knows where, is refused.
            assert_eq!(whole.is_some(), location == 0, "{location} {left_over}");
        }
    }
    let mut model = linear();
    graph(&mut model).initializer.push(odd(0, true));
    let bundle = load(model.encode_to_vec().into()).unwrap();
    let weights = crate::support::weights(&bundle);
    assert_eq!(weights["odd"].2, floats("odd", &[256, 128]).raw_data);
}

/// Bytes twice, the last of which count; lengths that are written too long.
#[test]
fn fields_that_are_written_oddly_mean_the_same() {
    let around = |tensor: &[u8], length: &dyn Fn(usize) -> Vec<u8>| {
        let mut initializer = vec![5 << 3 | 2];
        initializer.extend(length(tensor.len()));
        initializer.extend_from_slice(tensor);
        let mut file = linear().encode_to_vec();
        file.push(7 << 3 | 2);
        file.extend(length(initializer.len()));
        file.extend(initializer);
        file
    };
    let plain = |length: usize| {
        let mut bytes = Vec::new();
        encode_varint(length as u64, &mut bytes);
        bytes
    };
    // The same number in ten bytes; and with bits that no number of 64 has.
    let long = |last: u8| {
        move |length: usize| {
            let mut bytes: Vec<u8> = (0..9).map(|at| (length >> (7 * at)) as u8 | 0x80).collect();
            bytes.push(last);
            bytes
        }
    };
    let tensor = floats("odd", &[256, 128]).encode_to_vec();
    assert!(compare(&around(&tensor, &plain)).is_some());
    assert!(compare(&around(&tensor, &long(0))).is_some());
    assert!(compare(&around(&tensor, &long(2))).is_none());

    let raw = |bytes: &[u8]| TensorProto {
        raw_data: bytes.to_vec().into(),
        ..TensorProto::default()
    };
    for second in [vec![7; 256 * 128 * 4], vec![7; 12]] {
        let mut twice = tensor.clone();
        twice.extend(raw(&second).encode_to_vec());
        let fits = second.len() > 12;
        assert_eq!(compare(&around(&twice, &plain)).is_some(), fits);
    }
    // An empty one is written nowhere by the encoder, and counts as well.
    let mut emptied = tensor.clone();
    emptied.extend([9 << 3 | 2, 0]);
    assert!(compare(&around(&emptied, &plain)).is_none());
    // Text is no raw bytes.
    let mut text = floats("odd", &[0]);
    text.data_type = 8;
    text.raw_data = vec![7; 100_000].into();
    assert!(compare(&around(&text.encode_to_vec(), &plain)).is_none());
}
