//! Embeds a few sentences and finds the one nearest to a question.
//!
//! ```sh
//! cargo run --example quickstart                      # all-MiniLM-L6-v2 from the hub or its cache
//! cargo run --example quickstart -- path/to/a/model   # a folder
//! ```

use std::path::PathBuf;

use isovec::blocking::Embedder;
use isovec::{ModelSource, models};

fn main() -> isovec::Result<()> {
    let source = match std::env::args_os().nth(1) {
        Some(folder) => ModelSource::from(PathBuf::from(folder)),
        None => ModelSource::from(models::ALL_MINILM_L6_V2),
    };
    let embedder = Embedder::load(source)?;
    println!("{} runs on {}", embedder.model_name(), embedder.provider());

    let sentences = [
        "The cat sleeps on the warm windowsill.",
        "Shares fell sharply after the announcement.",
        "Rain is expected in the north tomorrow.",
    ];
    let index = embedder.embed_passages(sentences)?.with_labels(sentences)?;
    let query = embedder.embed_query("What will the weather be like?")?;
    for hit in index.search_one(&query, 3)? {
        println!("{:.3}  {}", hit.score, sentences[hit.index]);
    }

    // The file opens in Rust and in the browser, and remembers which model made it.
    let path = std::env::temp_dir().join("isovec-quickstart.safetensors");
    index.save(&path)?;
    println!(
        "saved {} vectors of {} components to {}",
        index.len(),
        index.dim(),
        path.display()
    );
    Ok(())
}
