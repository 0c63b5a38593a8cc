//! Writes the tiny models of `tests/data`: `cargo run -p isovec-test-models --example tiny_model [FOLDER]`. The same bytes on
//! every run; tests compare them with the folder's.

use std::path::PathBuf;

use isovec_test_models::{
    classifier, decoder_reranker, late, reranker, sparse, tiny, tiny_clip, tiny_network,
};

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data"),
        PathBuf::from,
    );
    let models = [
        ("tiny-bert", tiny::files()),
        ("tiny-classifier", classifier::files()),
        ("tiny-reranker", reranker::files()),
        ("tiny-decoder-reranker", decoder_reranker::tiny_files()),
        ("tiny-splade", sparse::tiny_files()),
        ("tiny-colbert", late::tiny_files()),
        ("tiny-clip", tiny_clip::files()),
        ("tiny-network", tiny_network::files()),
    ];
    let files = models.into_iter().flat_map(|(model, files)| {
        files
            .into_iter()
            .map(move |(name, contents)| (format!("{model}/{name}"), contents))
    });
    for (name, contents) in files {
        let path = folder.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, &contents)?;
        println!("{} bytes in {}", contents.len(), path.display());
    }
    Ok(())
}
