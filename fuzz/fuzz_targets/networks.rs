//! `isovec_fuzz::targets::networks` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::networks::run(data));
