//! `isovec_fuzz::targets::kernels` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::kernels::run(data));
