//! Embeds a document that is longer than the model sees: in chunks, and as one vector.
//!
//! ```sh
//! cargo run --release --example long_texts
//! ```

mod common;

use isovec::blocking::Embedder;
use isovec::{ChunkBy, ChunkOptions, Combine, EmbedOptions, Prompt};

const DOCUMENT: &str = include_str!("../README.md");

fn main() -> isovec::Result<()> {
    let embedder = Embedder::load(common::source())?;
    println!(
        "the document has {} tokens, the model sees {}",
        embedder.count_tokens(DOCUMENT)?,
        embedder.max_length()
    );

    // Every way to cut covers the whole document; what differs is where.
    for by in [ChunkBy::Tokens, ChunkBy::Sentences, ChunkBy::Markdown] {
        let chunks = embedder.chunk(DOCUMENT, &ChunkOptions::by(by).with_max_tokens(128))?;
        let tokens: Vec<usize> = chunks.iter().map(|chunk| chunk.tokens).collect();
        println!("{by:?}: {} chunks of {tokens:?} tokens", chunks.len());
    }

    // One vector a chunk finds the place in the document.
    let options = ChunkOptions::by(ChunkBy::Markdown)
        .with_max_tokens(128)
        .with_overlap(16);
    let passages = EmbedOptions::default().with_prompt(Prompt::Passage);
    let index = embedder.embed_chunks_with([DOCUMENT], options.clone(), passages.clone())?;
    let query = embedder.embed_query("how do I install the command line program?")?;
    for hit in index.embeddings.search_one(&query, 2)? {
        let range = &index.places[hit.index].range;
        println!(
            "\n{:.3}, bytes {range:?}:\n{}",
            hit.score,
            &DOCUMENT[range.clone()]
        );
    }

    // One vector a text compares whole documents.
    for combine in [Combine::Mean, Combine::Max] {
        let whole =
            embedder.embed_long_with([DOCUMENT], options.clone(), combine, passages.clone())?;
        let hit = whole.search_one(&query, 1)?[0];
        println!("\nthe whole document by {combine:?}: {:.3}", hit.score);
    }
    Ok(())
}
