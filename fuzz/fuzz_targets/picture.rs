//! `isovec_fuzz::targets::picture` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::picture::run(data));
