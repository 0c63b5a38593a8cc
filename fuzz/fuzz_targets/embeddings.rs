//! `isovec_fuzz::targets::embeddings` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::embeddings::run(data));
