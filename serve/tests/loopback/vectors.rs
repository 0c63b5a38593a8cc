//! A model whose weights are broken: no answer holds what it computes.

use std::fs;
use std::path::Path;

use isovec::{Embedder, EmbeddingConfig};
use isovec_test_support::{Which, data};
use serde_json::json;

use crate::running::{Running, options};

/// The tiny model with every weight made of the same bytes.
fn broken(folder: &Path, byte: u8) {
    let whole = data("tiny-bert");
    for entry in fs::read_dir(&whole).unwrap() {
        let path = entry.unwrap().path();
        let to = folder.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&to).unwrap();
            fs::copy(path.join("config.json"), to.join("config.json")).unwrap();
        } else {
            fs::copy(path, to).unwrap();
        }
    }
    let file = folder.join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    // The header's length, the header, the values.
    let (length, _) = bytes.split_first_chunk::<8>().unwrap();
    let start = 8 + u64::from_le_bytes(*length) as usize;
    bytes[start..].fill(byte);
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn zeros_and_what_is_no_number_are_failures() {
    // All bits set are NaN in every component; no bits set give vectors of zeros.
    for (byte, normalize, reason) in [
        (0xff, true, "not finite"),
        (0xff, false, "not finite"),
        (0, true, "length 0"),
        (0, false, "is zero"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        broken(folder.path(), byte);
        let config = EmbeddingConfig::default().with_normalize(normalize);
        let config = Which::Portable.configure(config);
        let loaded = Embedder::builder(folder.path()).config(config).load().await;
        let server = Running::over(loaded.unwrap(), options()).await;
        let answer = server.openai(&["a text", "another"]).await;
        assert_eq!(answer.status, 500, "{byte} {normalize}");
        let (message, kind, ..) = answer.openai_error();
        assert!(
            message.contains(reason) && kind == "server_error",
            "{message}"
        );
        let asked = json!({"inputs": "a text", "normalize": normalize});
        let answer = server.post("/embed", &asked).await;
        assert_eq!(answer.status, 424, "{byte} {normalize}");
        assert_eq!(answer.tei_error().1, "backend");
        let failed = "isovec_serve_requests_ended_total{end=\"failed\"}";
        assert_eq!(server.metric(failed).await, 2);
    }
}
