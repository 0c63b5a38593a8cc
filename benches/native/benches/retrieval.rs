//! Measures the effect of int8 weights and of compact sets on a search: 200 queries over 5,000 passages with
//! all-MiniLM-L6-v2 on the portable engine, against the ranking in float64 (`benches/corpus/rank.py`). Run it with `cargo
//! xtask bench retrieval`; it fails below the promised values.
//!
//! Queries are the corpus's first short sentences, most of them the first lines of docstrings; passages
//! are its first other texts, whole docstrings and paragraphs of one subject. The nearest of them lie
//! close together, so that a ranking changes sooner than between texts of all the world.

use std::path::Path;
use std::time::Instant;

use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec::{CompactForm, Dtype, EmbeddingConfig, Embeddings, Hit};
use isovec_bench::{AnyError, minilm};

const QUERIES: usize = 200;
const PASSAGES: usize = 5000;
/// How much of a ranking is compared.
const TOP: usize = 10;
/// Searches of all queries that are timed, one way after another.
const ROUNDS: usize = 11;
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
        let found = index.passages.search(&queries.queries, TOP)?;
        let mean = print_share(what, &shares(&found, &nearest));
        if least.is_some_and(|least| mean < least) {
            broken.push(what);
        }
    }
    compact(&full, &nearest)?;
    if !broken.is_empty() {
        return Err(format!("less than is promised: {}", broken.join("; ")).into());
    }
    Ok(())
}

/// What compact sets of the passages find, in which time and in how many bytes, beside the set in f32.
fn compact(full: &Indexed, nearest: &[Vec<(usize, f64)>]) -> Result<(), AnyError> {
    let Indexed { queries, passages } = full;
    let int8 = passages.compact(CompactForm::Int8)?;
    let signs = passages.compact(CompactForm::Binary)?;
    let dim = queries.dim();
    let one = |row: &[f32]| Embeddings::new(dim, row.to_vec(), queries.fingerprint().clone());
    let singles = queries.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let rough = |query| signs.search_one(query, 100);
    type Search<'a> = &'a dyn Fn() -> isovec::Result<Vec<Vec<Hit>>>;
    let searches: [(&str, usize, Search<'_>); 5] = [
        ("f32", 4 * dim, &|| passages.search(queries, TOP)),
        ("int8", dim + 4, &|| int8.search(queries, TOP)),
        ("binary", dim / 8, &|| signs.search(queries, TOP)),
        ("binary, 100 of them by int8", dim / 8 + dim + 4, &|| {
            let find = |query| int8.rescored(query, &rough(query)?, TOP);
            singles.iter().map(find).collect()
        }),
        ("binary, 100 of them by f32", dim / 8 + 4 * dim, &|| {
            let find = |query| passages.rescored(query, &rough(query)?, TOP);
            singles.iter().map(find).collect()
        }),
    ];
    let mut plain = None;
    for (what, bytes, search) in searches {
        let found = search()?;
        print_share(what, &shares(&found, nearest));
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                search().map(|_| started.elapsed().as_secs_f64())
            })
            .collect::<Result<_, _>>()?;
        times.sort_by(f64::total_cmp);
        let took = times[ROUNDS / 2];
        let plain = *plain.get_or_insert(took);
        let micros = took * 1e6 / queries.len() as f64;
        println!(
            "      {bytes} bytes a row, {micros:.0} µs a query, {:.2} times as fast as f32",
            plain / took
        );
    }
    Ok(())
}

/// Prints the mean and the worst share, and gives the mean.
fn print_share(what: &str, shares: &[f64]) -> f64 {
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let worst = shares.iter().copied().fold(1.0, f64::min);
    println!("  {what:<30} {mean:.4} on average, {worst:.1} at worst");
    mean
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
fn shares(found: &[Vec<Hit>], nearest: &[Vec<(usize, f64)>]) -> Vec<f64> {
    let share = |(hits, want): (&Vec<Hit>, &Vec<(usize, f64)>)| {
        let last = want[TOP - 1].1;
        let right = |index: usize| {
            let mut known = want.iter();
            known.any(|&(place, cosine)| place == index && cosine > last - TIE)
        };
        hits.iter().filter(|hit| right(hit.index)).count() as f64 / TOP as f64
    };
    found.iter().zip(nearest).map(share).collect()
}
