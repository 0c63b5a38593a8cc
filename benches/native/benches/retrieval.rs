//! Measures the effect of int8 weights on a search: 200 queries over 5,000 passages with all-MiniLM-L6-v2 on the
//! portable engine, against the ranking in float64 (`benches/corpus/rank.py`). Run it with `cargo xtask bench
//! retrieval`; it fails below the promised values.
//!
//! Queries are the corpus's first short sentences, most of them the first lines of docstrings; passages
//! are its first other texts, whole docstrings and paragraphs of one subject. The nearest of them lie
//! close together, so that a ranking changes sooner than between texts of all the world.

use std::path::Path;

use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec::{Dtype, EmbeddingConfig, Embeddings};
use isovec_bench::{AnyError, minilm};

const QUERIES: usize = 200;
const PASSAGES: usize = 5000;
/// How much of a ranking is compared.
const TOP: usize = 10;
/// Cosines that differ by less are equal in f32: passages may change places.
const TIE: f64 = 1e-6;
/// The ranking in float64: a line for each query, the nearest passages first, `place:cosine`.
const NEAREST: &str = include_str!("../../corpus/nearest.txt");

fn main() -> Result<(), AnyError> {
    let path = isovec::cache_dir().ok_or("there is no cache folder")?;
    let corpus = std::fs::read_to_string(path.join("corpus.txt"))
        .map_err(|error| format!("run `cargo xtask setup corpus` first: {error}"))?;
    let (queries, passages) = chosen(&corpus);
    let nearest = nearest()?;
    if (queries.len(), passages.len(), nearest.len()) != (QUERIES, PASSAGES, QUERIES) {
        return Err("the corpus is not the one that was ranked".into());
    }
    let model = minilm()?;
    let full = Indexed::new(&model, Dtype::F32, &queries, &passages)?;
    let small = Indexed::new(&model, Dtype::Int8, &queries, &passages)?;
    println!("of the {TOP} nearest in float64, over {QUERIES} queries and {PASSAGES} passages:");
    let mut broken = Vec::new();
    for (what, queries, index, least) in [
        ("f32 queries on an f32 index", &full, &full, Some(1.0)),
        ("int8 queries on an f32 index", &small, &full, Some(0.97)),
        ("int8 queries on an int8 index", &small, &small, None),
    ] {
        let shares = shares(&index.passages, &queries.queries, &nearest)?;
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let worst = shares.iter().copied().fold(1.0, f64::min);
        println!("  {what:<30} {mean:.4} on average, {worst:.1} at worst");
        if least.is_some_and(|least| mean < least) {
            broken.push(what);
        }
    }
    if !broken.is_empty() {
        return Err(format!("less than is promised: {}", broken.join("; ")).into());
    }
    Ok(())
}

/// Queries and passages. `rank.py` chooses the same.
fn chosen(corpus: &str) -> (Vec<&str>, Vec<&str>) {
    let asks = |text: &&str| text.ends_with('.') && (5..=20).contains(&text.split(' ').count());
    let mut queries = Vec::new();
    let mut passages = Vec::new();
    for text in corpus.lines() {
        if queries.len() < QUERIES && asks(&text) {
            queries.push(text);
        } else if passages.len() < PASSAGES {
            passages.push(text);
        }
    }
    (queries, passages)
}

fn nearest() -> Result<Vec<Vec<(usize, f64)>>, AnyError> {
    let entry = |entry: &str| -> Result<(usize, f64), AnyError> {
        let (place, cosine) = entry.split_once(':').ok_or("place:cosine")?;
        Ok((place.parse()?, cosine.parse()?))
    };
    NEAREST
        .lines()
        .map(|line| line.split(' ').map(entry).collect())
        .collect()
}

/// The vectors of all texts with weights of one kind.
struct Indexed {
    queries: Embeddings,
    passages: Embeddings,
}

impl Indexed {
    fn new(
        model: &Path,
        dtype: Dtype,
        queries: &[&str],
        passages: &[&str],
    ) -> Result<Self, AnyError> {
        let config = EmbeddingConfig::default()
            .with_engine(EngineChoice::Portable)
            .with_dtype(dtype);
        let embedder = Embedder::builder(model).config(config).load()?;
        println!("embedding in {dtype} on {}", embedder.provider());
        Ok(Self {
            queries: embedder.embed(queries)?,
            passages: embedder.embed(passages)?,
        })
    }
}

/// For each query, how much of its top is among the nearest in float64, or tied with the last of them.
fn shares(
    passages: &Embeddings,
    queries: &Embeddings,
    nearest: &[Vec<(usize, f64)>],
) -> Result<Vec<f64>, AnyError> {
    let found = passages.search(queries, TOP)?;
    let share = |(hits, want): (&Vec<isovec::Hit>, &Vec<(usize, f64)>)| {
        let last = want[TOP - 1].1;
        let right = |index: usize| {
            let mut known = want.iter();
            known.any(|&(place, cosine)| place == index && cosine > last - TIE)
        };
        hits.iter().filter(|hit| right(hit.index)).count() as f64 / TOP as f64
    };
    Ok(found.iter().zip(nearest).map(share).collect())
}
