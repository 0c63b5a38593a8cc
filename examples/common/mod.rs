//! Shared parts of the examples: a model to load and texts to embed.

#![allow(dead_code)] // Each example uses its own part.

use isovec::blocking::Embedder;
use isovec::{ModelSource, models};

/// The first argument (a folder written as a path, or a model id), else all-MiniLM-L6-v2 from
/// where `cargo xtask setup` put it, else from the hub or its cache.
pub(crate) fn source() -> ModelSource {
    if let Some(model) = std::env::args().nth(1) {
        return ModelSource::from(model);
    }
    let folder = isovec::cache_dir().map(|cache| cache.join("models/all-MiniLM-L6-v2"));
    match folder.filter(|folder| folder.join("config.json").is_file()) {
        Some(folder) => ModelSource::from(folder),
        None => ModelSource::from(models::ALL_MINILM_L6_V2),
    }
}

/// Texts of mixed lengths, up to `longest` words, in no order: the same at every start.
pub(crate) fn texts(count: usize, longest: usize) -> Vec<String> {
    const WORDS: [&str; 8] = ["rain", "the", "fell", "on", "old", "hills", "all", "night"];
    (0..count)
        .map(|text| {
            let words = 1 + text * 7919 % longest;
            let word = |place| WORDS[(text + place * 3) % WORDS.len()];
            (0..words).map(word).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// Some knobs as they are in effect, with the reason.
pub(crate) fn print_knobs(embedder: &Embedder, names: &[&str]) {
    for name in names {
        if let Some(knob) = embedder.effective_config().get(name) {
            println!("  {name} = {} ({})", knob.used, knob.why);
        }
    }
}

pub(crate) fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}
