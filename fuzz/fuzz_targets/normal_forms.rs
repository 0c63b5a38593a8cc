//! `isovec_fuzz::targets::normal_forms` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::normal_forms::run(data));
