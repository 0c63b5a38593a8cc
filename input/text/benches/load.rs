//! How long a tokenizer takes to load and to encode, and what it holds, beside the original.
//!
//! `cargo bench -p isovec-tokenize --features parallel`; the figures are in `benches/RESULTS.md`
//! of the repository. With a path to a `tokenizer.json` as argument that file is measured as well.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use isovec_tokenize::{Limits, Tokenizer};

use support::counting::{Counting, measured};
use support::{bundle, xlmr};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let generated = xlmr::tokenizer_json(7, xlmr::PIECES);
    let texts: Vec<String> = (0..500).map(|seed| xlmr::text(seed, 30)).collect();
    compare(
        "generated, 250,002 Unigram pieces",
        generated.into(),
        &texts,
    );

    for path in std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
    {
        let json = std::fs::read(&path).expect("the tokenizer.json given as argument can be read");
        let sentence =
            "The quick brown fox jumps over the lazy dog, and Größe matters: naïve café №5. ";
        let texts: Vec<String> = (0..500).map(|n| sentence.repeat(1 + n % 4)).collect();
        compare(&path, json.into(), &texts);
    }
}

fn compare(name: &str, json: Bytes, texts: &[String]) {
    println!("{name}: {:.1} MB of JSON", json.len() as f64 / 1e6);
    let files = bundle(json.clone());
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();

    let load = median(9, || {
        drop(black_box(
            Tokenizer::from_files(&files, "bench").expect("loads"),
        ))
    });
    let (ours, held, peak) = measured(|| Tokenizer::from_files(&files, "bench").expect("loads"));
    report("isovec-tokenize load", load, held, peak);
    let load = median(3, || {
        drop(black_box(
            tokenizers::Tokenizer::from_bytes(&json).expect("loads"),
        ));
    });
    let (mut theirs, held, peak) =
        measured(|| tokenizers::Tokenizer::from_bytes(&json).expect("loads"));
    theirs.with_padding(None);
    theirs.with_truncation(None).expect("no limit");
    report("tokenizers load", load, held, peak);

    let limits = Limits::default();
    let speed = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    let one = median(9, || {
        for text in &texts {
            black_box(ours.encode(&[text], &limits).expect("encodes"));
        }
    });
    let all = median(9, || {
        drop(black_box(ours.encode(&texts, &limits).expect("encodes")))
    });
    println!(
        "  isovec-tokenize encode: {:.1} MB/s one by one, {:.1} MB/s in one call",
        speed(one),
        speed(all)
    );
    let one = median(5, || {
        for text in &texts {
            black_box(theirs.encode_fast(*text, true).expect("encodes"));
        }
    });
    let all = median(5, || {
        drop(black_box(
            theirs
                .encode_batch_fast(texts.clone(), true)
                .expect("encodes"),
        ));
    });
    println!(
        "  tokenizers encode_fast: {:.1} MB/s one by one, {:.1} MB/s in one call",
        speed(one),
        speed(all)
    );
    let short = "how do I reset my password?";
    let ours_short = median(2001, || {
        drop(black_box(ours.encode(&[short], &limits).expect("encodes")))
    });
    let theirs_short = median(2001, || {
        drop(black_box(theirs.encode_fast(short, true).expect("encodes")))
    });
    println!(
        "  a short query: {:.1} µs, tokenizers {:.1} µs",
        ours_short.as_secs_f64() * 1e6,
        theirs_short.as_secs_f64() * 1e6
    );
}

fn report(what: &str, time: Duration, held: usize, peak: usize) {
    println!(
        "  {what}: {:.1} ms, {:.1} MB held, {:.1} MB at most",
        time.as_secs_f64() * 1e3,
        held as f64 / 1e6,
        peak as f64 / 1e6
    );
}

fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[runs / 2]
}
