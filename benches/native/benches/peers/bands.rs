//! isovec's batches against one text at a time, texts of like length by themselves.

use std::hint::black_box;

use isovec::EmbeddingConfig;
use isovec_bench::{AnyError, BANDS, Corpus, Raw, minilm, take_turns};

use crate::{MAX_TOKENS, contestants, results};

/// Texts of each band, so that a round takes seconds.
const TEXTS: usize = 128;
const ROUNDS: usize = 5;

/// Prints and writes a line for each band.
pub(crate) fn compare() -> Result<(), AnyError> {
    let model = minilm()?;
    let embedder = contestants::embedder(&model, EmbeddingConfig::high_throughput())?;
    let raw = Raw::load(&model, 0, MAX_TOKENS)?;
    let corpus = Corpus::load(&embedder)?;
    let mut shortest = 3;
    let mut table = "| tokens | isovec, ms a text | raw `ort`, one at a time, all threads | isovec is |\n|---|---|---|---|\n".to_owned();
    for (band, longest) in BANDS.iter().enumerate() {
        let mut texts = corpus.band(band);
        texts.truncate(TEXTS);
        println!("{} texts of {shortest} to {longest} tokens", texts.len());
        let medians = take_turns(
            ROUNDS,
            vec![
                (
                    "isovec",
                    Box::new(|| drop(black_box(embedder.embed(&texts).expect("real texts")))),
                ),
                (
                    "raw ort, one text at a time, all threads",
                    Box::new(|| {
                        for text in &texts {
                            drop(black_box(raw.embed(text).expect("a real text")));
                        }
                    }),
                ),
            ],
        );
        print!("{medians}");
        let each = |at: usize| medians.seconds(at) * 1e3 / texts.len() as f64;
        table += &format!(
            "| {shortest} to {longest} | {:.2} | {:.2} | {:.2}x |\n",
            each(0),
            each(1),
            medians.ratio(1)
        );
        shortest = longest + 1;
    }
    results::write("peers by length", &table)
}
