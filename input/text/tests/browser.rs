//! The large vocabulary where memory is dearest: in a browser tab.
//!
//! `cargo xtask test browser` prints how long loading takes. Natively there is nothing to run here: `memory.rs` is this test's twin.
#![allow(dead_code, unused_imports, reason = "used where there is a browser")]

mod support;

use isovec_tokenize::{Limits, Tokenizer};
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};
use web_time::Instant;

use support::counting::{Counting, measured};
use support::{bundle, xlmr};

wasm_bindgen_test_configure!(run_in_browser);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEGABYTE: usize = 1_000_000;

#[wasm_bindgen_test]
fn a_quarter_of_a_million_pieces_in_a_tab() {
    let files = bundle(xlmr::tokenizer_json(7, xlmr::PIECES));
    let start = Instant::now();
    let (tokenizer, held, peak) =
        measured(|| Tokenizer::from_files(&files, "generated").expect("loads"));
    let first = start.elapsed();
    // Once more, with the memory already there and the code compiled by the browser's best.
    let start = Instant::now();
    let again = Tokenizer::from_files(&files, "generated").expect("loads");
    let second = start.elapsed();
    console_log!(
        "{} MB of JSON: loaded in {} ms, again in {} ms; {:.1} MB held, {:.1} MB at most while loading",
        files["tokenizer.json"].len() / MEGABYTE,
        first.as_millis(),
        second.as_millis(),
        held as f64 / 1e6,
        peak as f64 / 1e6
    );
    assert_eq!(again.identity(), tokenizer.identity());
    assert_eq!(tokenizer.vocab_size(), xlmr::PIECES);
    assert!(held < 60 * MEGABYTE, "{held} bytes held");
    assert!(peak < 60 * MEGABYTE, "{peak} bytes at most while loading");

    // The same ids and the same identity as natively (`memory.rs`).
    let encoding = &tokenizer
        .encode(&[xlmr::MIXED], &Limits::default())
        .expect("encodes")[0];
    assert_eq!(encoding.ids, xlmr::MIXED_IDS);
    assert_eq!(tokenizer.identity(), xlmr::IDENTITY);
}
