//! Writes a model of the shape of bert-base-uncased with seeded weights, whose texts are those of all-MiniLM-L6-v2:
//! `cargo run --release -p isovec-test-models --example bert_base FOLDER MINILM`. Benchmarks read it.

use std::io::{Error, Result};
use std::path::PathBuf;

use isovec_test_models::checkpoint::Stored;
use isovec_test_models::full_size::bert_base;

/// Its vocabulary has as many words as bert-base-uncased.
const FROM_MINILM: [&str; 4] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "sentence_bert_config.json",
    "modules.json",
];

fn main() -> Result<()> {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, minilm] = folders.as_slice() else {
        return Err(Error::other(
            "name a folder to write into, and that of all-MiniLM-L6-v2",
        ));
    };
    let model = bert_base();
    let pooling = "1_Pooling";
    std::fs::create_dir_all(folder.join(pooling))?;
    std::fs::write(
        folder.join(pooling).join("config.json"),
        r#"{"word_embedding_dimension": 768, "pooling_mode_mean_tokens": true}"#,
    )?;
    for name in FROM_MINILM {
        std::fs::copy(minilm.join(name), folder.join(name))?;
    }
    std::fs::write(folder.join("config.json"), model.config_json())?;
    std::fs::write(folder.join("model.safetensors"), model.file(Stored::F32))
}
