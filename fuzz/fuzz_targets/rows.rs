//! `isovec_fuzz::targets::rows` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::rows::run(data));
