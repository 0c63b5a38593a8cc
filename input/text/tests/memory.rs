//! A vocabulary of XLM-RoBERTa's size: loads, stays small, gives the ids of the original.

mod support;

use isovec_tokenize::{Limits, Tokenizer};

use support::counting::{Counting, measured};
use support::{bundle, xlmr};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEGABYTE: usize = 1_000_000;

#[test]
fn a_quarter_of_a_million_pieces_stay_under_60_megabytes() {
    let json = xlmr::tokenizer_json(7, xlmr::PIECES);
    let files = bundle(json);
    let (tokenizer, held, peak) =
        measured(|| Tokenizer::from_files(&files, "generated").expect("loads"));
    println!(
        "{} MB of JSON: {:.1} MB held, {:.1} MB at most while loading",
        files["tokenizer.json"].len() / MEGABYTE,
        held as f64 / 1e6,
        peak as f64 / 1e6
    );
    assert_eq!(tokenizer.vocab_size(), xlmr::PIECES);
    assert_eq!(tokenizer.max_id() as usize, xlmr::PIECES - 1);
    assert_eq!(tokenizer.pad_id(), 1);
    assert!(held < 60 * MEGABYTE, "{held} bytes held");
    assert!(peak < 60 * MEGABYTE, "{peak} bytes at most");

    // The same ids and the same identity as in a browser (`browser.rs`).
    let encoding = &tokenizer
        .encode(&[xlmr::MIXED], &Limits::default())
        .expect("encodes")[0];
    assert_eq!(encoding.ids, xlmr::MIXED_IDS);
    assert_eq!(tokenizer.identity(), xlmr::IDENTITY);

    // What encoding leaves behind is its result: no cache grows with the texts.
    let texts: Vec<String> = (0..2000).map(|seed| xlmr::text(seed, 40)).collect();
    let ((), left, _) = measured(|| {
        for text in &texts {
            let encoding = tokenizer
                .encode(&[text], &Limits::tokens(64))
                .expect("encodes");
            assert!(encoding[0].ids.len() <= 64);
        }
    });
    assert!(left < MEGABYTE, "{left} bytes left behind");

    // Every piece is found again: a word that is a piece costs one token, or a better split.
    let theirs = tokenizers::Tokenizer::from_bytes(&files["tokenizer.json"]).expect("theirs loads");
    for text in texts.iter().take(300) {
        let ours = tokenizer
            .encode(&[text], &Limits::default())
            .expect("encodes");
        let theirs = theirs.encode(text.as_str(), true).expect("theirs encodes");
        assert_eq!(ours[0].ids, theirs.get_ids(), "{text}");
    }
}
