//! ONNX files that are kept elsewhere are what they are in memory, broken ones as well, and are
//! not copied as a whole.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isovec_engine::Result;
use isovec_engine::bundle::{BundleOptions, ModelBundle};
use isovec_engine::content::{ByteSource, Content};
use prost::Message;

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
    ModelBundle::from_contents("test", files, &BundleOptions::default())
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
