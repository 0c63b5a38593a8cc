//! The embeddings file between the SDKs: what `isovec embed` wrote and what the npm package wrote
//! are one set, with the same hits. `js/tests/file.test.mjs` holds the other half.

use std::path::PathBuf;

use isovec::{Embeddings, Hit};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/embeddings")
        .join(name)
}

#[test]
fn both_sdks_read_what_the_other_wrote_and_find_the_same() {
    let native = Embeddings::load(data("native.safetensors")).unwrap();
    let npm = Embeddings::load(data("npm.safetensors")).unwrap();
    assert_eq!(native, npm);
    assert_eq!(native.labels().unwrap()[3], "Δοκιμή: größer, 深い海, 🐈");

    let hits = std::fs::read_to_string(data("hits.json")).unwrap();
    let hits: Vec<Vec<Hit>> = serde_json::from_str(&hits).unwrap();
    assert_eq!(native.search(&npm, 3).unwrap(), hits);
}

#[test]
fn what_is_written_is_what_was_read() {
    let bytes = std::fs::read(data("native.safetensors")).unwrap();
    let set = Embeddings::from_bytes(&bytes).unwrap();
    assert_eq!(set.to_bytes().unwrap(), bytes);
}
