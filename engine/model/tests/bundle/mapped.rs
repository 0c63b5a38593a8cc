//! A mapped file takes memory only while a part of it is read.

use std::fs;
use std::path::Path;

use isovec_engine::Result;
use isovec_engine::weights::Sink;
use isovec_model::bundle::{self, BundleOptions};
use pollster::block_on;
use prost::Message;

use crate::support::{floats, graph, linear};

/// What is left when nothing is read: pages that two weights share.
const LITTLE: u64 = 256 << 10;

/// Bytes of a file's mapping that are in this process's memory.
fn resident(path: &Path) -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let path = path.canonicalize().unwrap();
    let mut lines = maps.lines();
    lines
        .find(|line| line.ends_with(path.to_str().unwrap()))
        .expect("it is mapped");
    let line = lines.find(|line| line.starts_with("Rss:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

#[test]
fn what_was_read_is_given_back() {
    struct Count(u64);
    impl Sink for Count {
        fn take(&mut self, piece: &[u8]) -> Result<()> {
            self.0 += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let mut model = linear();
    for name in ["one", "other", "third"] {
        let large = floats(name, &[1024, 1024 + 1]);
        graph(&mut model).initializer.push(large);
    }
    fs::write(&path, model.encode_to_vec()).unwrap();

    let bundle = bundle::from_folder(folder.path(), &BundleOptions::default()).unwrap();
    assert!(resident(&path) < LITTLE, "after the hash of everything");

    let infos = bundle.weights.weights();
    let large = infos.iter().position(|info| info.name == "other").unwrap();
    let held = block_on(bundle.weights.read(large)).unwrap();
    let sum: u64 = held.iter().map(|&byte| u64::from(byte)).sum();
    assert!(resident(&path) >= held.len() as u64, "while it is held");
    let part = held.slice(16..32);
    let copy = part.to_vec();
    drop(held);
    assert!(resident(&path) > LITTLE, "a part of it is held");
    drop(part);
    assert!(resident(&path) < LITTLE, "nobody holds it");

    let mut pieces = Count(0);
    block_on(bundle.weights.read_pieces(large, &mut pieces)).unwrap();
    assert_eq!(pieces.0, sum, "and it is read again as it was");
    assert!(resident(&path) < LITTLE, "after pieces");
    let again = block_on(bundle.weights.read(large)).unwrap();
    assert_eq!(again[16..32], copy);
}
