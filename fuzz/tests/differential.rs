//! Random tokenizers, 400 random texts each, ours against the crate `tokenizers`: how many differ, how
//! many are refused by name. By hand, because it takes minutes:
//!
//! ```sh
//! ISOVEC_TOKENIZERS=1000 cargo test --release -p isovec-fuzz --test differential -- --ignored --nocapture
//! ```

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arbitrary::Unstructured;
use isovec_fuzz::tokenizer_json;
use isovec_fuzz::tokenizers_twin::Twins;
use isovec_tokenize::{Limits, TruncationSide};

const TEXTS: u64 = 400;

#[test]
#[ignore = "takes minutes"]
fn random_tokenizers_over_random_texts() {
    let number = |name: &str, otherwise: u64| {
        let set = std::env::var(name)
            .ok()
            .and_then(|number| number.parse().ok());
        set.unwrap_or(otherwise)
    };
    let (from, count) = (number("ISOVEC_FROM", 0), number("ISOVEC_TOKENIZERS", 1000));
    let mut files = BTreeMap::new();
    let mut texts = BTreeMap::new();
    let mut differences = Vec::new();
    for seed in from..from + count {
        let bytes = bytes(seed, 1 << 14);
        let json = tokenizer_json::tokenizer(&mut Unstructured::new(&bytes)).unwrap();
        let twins = catch_unwind(AssertUnwindSafe(|| Twins::new(&json)));
        let mut twins = match twins {
            Ok(Ok(twins)) => twins,
            Ok(Err(outcome)) => {
                *files.entry(format!("{outcome:?}")).or_insert(0) += 1;
                continue;
            }
            Err(_) => {
                differences.push(format!("file {seed}: {json}"));
                continue;
            }
        };
        *files.entry("read by both".to_owned()).or_insert(0) += 1;
        let mut before = String::new();
        for number in 0..TEXTS {
            let bytes = self::bytes(seed << 16 | number | 1 << 63, 1 << 9);
            let mut input = Unstructured::new(&bytes);
            let text = tokenizer_json::text(&mut input).unwrap();
            let side = match input.arbitrary().unwrap_or_default() {
                true => TruncationSide::Start,
                false => TruncationSide::End,
            };
            let cut = twins.limits(input.int_in_range(0..=12).unwrap_or(4), side);
            // Alone for each, and every fourth with the one before it.
            let pairs: &[Option<&str>] = if number % 4 == 0 {
                &[None, Some(&before)]
            } else {
                &[None]
            };
            for &second in pairs {
                for limits in [Limits::default(), cut] {
                    let outcome =
                        catch_unwind(AssertUnwindSafe(|| twins.compare(&text, second, limits)));
                    match outcome {
                        Ok(outcome) => *texts.entry(outcome).or_insert(0_u64) += 1,
                        Err(_) => differences.push(format!("file {seed}, text {number}: {json}")),
                    }
                }
            }
            before = text;
        }
    }
    println!("{count} tokenizers: {files:?}");
    println!("comparisons: {texts:?}, {} differ", differences.len());
    differences.truncate(10);
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Random bytes (SplitMix64).
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(1);
    let mut next = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    (0..length).map(|_| next().to_le_bytes()[0]).collect()
}
