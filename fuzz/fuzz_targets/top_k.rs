//! `isovec_fuzz::targets::top_k` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::top_k::run(data));
