//! `isovec_fuzz::targets::chat` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::chat::run(data));
