//! Measures the savings of cached vectors, and the cost of the cache if no text repeats: all-MiniLM-L6-v2, fp32, one
//! thread, one text of about 16 tokens a call, then 512 in one. Run it with `cargo xtask bench kept`.

use std::cell::Cell;
use std::hint::black_box;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, TEXT, minilm, take_turns};

/// Each is one text of every contestant.
const ROUNDS: usize = 400;
/// Texts of the large calls.
const MANY: usize = 512;

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    let folder = tempfile::tempdir()?;
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::Portable)
        .with_intra_op_threads(1);
    let in_memory = config.clone().with_embedding_cache_memory(64 << 20);
    let on_disk = config
        .clone()
        .with_embedding_cache_disk(256 << 20)
        .with_embedding_cache_folder(folder.path());
    let load = |config: &EmbeddingConfig| {
        Embedder::builder(model.as_path())
            .config(config.clone())
            .load()
    };
    let (plain, memory, disk) = (load(&config)?, load(&in_memory)?, load(&on_disk)?);
    println!(
        "{}; median time, and median of the ratios of the rounds",
        plain.provider()
    );

    // Never the same twice, and of one length for all.
    let number = Cell::new(100_000);
    let fresh = || {
        number.set(number.get() + 1);
        format!("{TEXT} {}", number.get())
    };
    memory.embed_one(TEXT)?;
    disk.embed_one(TEXT)?;
    let one = |name, embedder: &Embedder, again: bool| {
        let (embedder, fresh) = (embedder.clone(), &fresh);
        let text = move || if again { TEXT.to_owned() } else { fresh() };
        let run: Box<dyn FnMut() + '_> =
            Box::new(move || drop(black_box(embedder.embed_one(text()))));
        (name, run)
    };
    let medians = take_turns(
        ROUNDS,
        vec![
            one("new, nothing is kept", &plain, false),
            one("new, kept in memory", &memory, false),
            one("new, kept on the disk", &disk, false),
            one("again, from memory", &memory, true),
            one("again, from the disk", &disk, true),
        ],
    );
    println!("\none text a call");
    print!("{medians}");

    let texts: Vec<String> = (0..MANY).map(|_| fresh()).collect();
    let many = |name, embedder: &Embedder| {
        let (embedder, texts) = (embedder.clone(), &texts);
        let run: Box<dyn FnMut() + '_> = Box::new(move || drop(black_box(embedder.embed(texts))));
        (name, run)
    };
    let medians = take_turns(
        6,
        vec![
            many("nothing is kept", &plain),
            many("all from memory", &memory),
            many("all from the disk", &disk),
        ],
    );
    println!("\n{MANY} texts a call; a text takes, in microseconds");
    print!("{medians}");
    for contestant in 0..3 {
        println!("{:.1}", medians.seconds(contestant) * 1e6 / MANY as f64);
    }
    for (name, embedder) in [("memory", &memory), ("disk", &disk)] {
        let stats = embedder.stats().embedding_cache.unwrap_or_default();
        println!("{name}: {} hits, {} misses", stats.hits, stats.misses);
    }
    Ok(())
}
