//! Files of pictures, from `input/image/tests/data`.

use std::path::Path;

use serde_json::{Value, json};

/// A picture's file.
pub(crate) struct Stored {
    /// `name`, and `at` and `bytes`, its place in `pictures.bin`.
    pub(crate) about: Value,
    pub(crate) file: Vec<u8>,
}

/// The pictures of these names.
pub(crate) fn stored(names: &[&str]) -> Vec<Stored> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../input/image/tests/data");
    let read = |name: &str| std::fs::read(folder.join(name)).expect("the pictures");
    let all: Vec<Value> = serde_json::from_slice(&read("pictures.json")).expect("a list");
    let bytes = read("pictures.bin");
    let picture = |name: &&str| {
        let mut all = all.iter();
        let about = all.find(|about| about["name"] == *name).expect(name);
        let number = |key: &str| about[key].as_u64().expect("a number") as usize;
        let (at, length) = (number("at"), number("bytes"));
        Stored {
            about: json!({"name": name, "at": at, "bytes": length}),
            file: bytes[at..at + length].to_vec(),
        }
    };
    names.iter().map(picture).collect()
}
