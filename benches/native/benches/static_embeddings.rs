//! A model of static embeddings in the shape of potion-base-8M, with seeded weights and the tokenizer of all-MiniLM-L6-v2:
//! the whole corpus, and one text a call, through isovec and through model2vec-rs. Their vectors are compared first. Run it
//! with `cargo xtask bench static_embeddings`.

use std::hint::black_box;
use std::path::Path;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, Contestant, Corpus, TEXT, minilm, take_turns};
use isovec_test_models::static_embedding::{Stored, plain};
use model2vec_rs::model::StaticModel;

/// Tokens of all-MiniLM-L6-v2's vocabulary.
const TOKENS: usize = 30_522;
/// Components of a vector.
const WIDTH: usize = 256;
/// Rounds of the whole corpus.
const ROUNDS: usize = 15;
/// Calls with one text in a round, and rounds of them.
const CALLS: (usize, usize) = (500, 100);

/// Writes the files of Model2Vec.
fn write(folder: &Path) -> Result<(), AnyError> {
    let model = plain(TOKENS, WIDTH);
    std::fs::write(
        folder.join("model.safetensors"),
        model.tensors("embeddings", Stored::F32),
    )?;
    std::fs::write(folder.join("config.json"), model.config().to_string())?;
    let tokenizer = std::fs::read(minilm()?.join("tokenizer.json"))?;
    let mut tokenizer: serde_json::Value = serde_json::from_slice(&tokenizer)?;
    // The file cuts and pads at 128 tokens, as no model of Model2Vec does.
    tokenizer["truncation"] = serde_json::Value::Null;
    tokenizer["padding"] = serde_json::Value::Null;
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string())?;
    Ok(())
}

fn main() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    write(folder.path())?;
    let texts = {
        let minilm = Embedder::builder(minilm()?.as_path()).load()?;
        Corpus::load(&minilm)?.texts
    };
    let peer = StaticModel::from_pretrained(folder.path(), None, None, None)?;
    let load = |engine: Option<EngineChoice>| {
        let config = match engine {
            Some(engine) => EmbeddingConfig::default().with_engine(engine),
            None => EmbeddingConfig::default(),
        };
        Embedder::builder(folder.path()).config(config).load()
    };
    let portable = load(Some(EngineChoice::Portable))?;
    let default = load(None)?;

    let (own, others) = (portable.embed(&texts)?, peer.encode(&texts));
    let pairs = own.iter().zip(&others);
    let differences = pairs.flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    let worst = differences.fold(0.0, f32::max);
    let tokens: u64 = own
        .token_counts()
        .iter()
        .map(|&count| u64::from(count))
        .sum();
    println!(
        "{} texts, {tokens} tokens; components differ by up to {worst:e}",
        texts.len()
    );
    println!("{}; by default {}", portable.provider(), default.provider());
    if worst > 1e-5 {
        return Err("the vectors are not the same".into());
    }

    let all = |embedder: &Embedder| -> Box<dyn FnMut() + '_> {
        let (embedder, texts) = (embedder.clone(), &texts);
        Box::new(move || drop(black_box(embedder.embed(texts))))
    };
    let contestants: Vec<Contestant<'_>> = vec![
        (
            "model2vec-rs",
            Box::new(|| drop(black_box(peer.encode(&texts)))),
        ),
        ("isovec, portable engine", all(&portable)),
        ("isovec, by default", all(&default)),
    ];
    let medians = take_turns(ROUNDS, contestants);
    println!("\nall texts in one call");
    print!("{medians}");
    for (at, name) in ["model2vec-rs", "portable", "by default"]
        .iter()
        .enumerate()
    {
        println!(
            "{name}: {:.0} texts a second",
            texts.len() as f64 / medians.seconds(at)
        );
    }

    let one = |embedder: &Embedder| -> Box<dyn FnMut()> {
        let embedder = embedder.clone();
        Box::new(move || {
            for _ in 0..CALLS.0 {
                drop(black_box(embedder.embed_one(TEXT)));
            }
        })
    };
    let contestants: Vec<Contestant<'_>> = vec![
        (
            "model2vec-rs",
            Box::new(|| {
                for _ in 0..CALLS.0 {
                    drop(black_box(peer.encode_single(TEXT)));
                }
            }),
        ),
        ("isovec, portable engine", one(&portable)),
        ("isovec, by default", one(&default)),
    ];
    println!("\n{} calls with one text of 14 tokens", CALLS.0);
    print!("{}", take_turns(CALLS.1, contestants));
    Ok(())
}
