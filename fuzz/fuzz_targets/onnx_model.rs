//! `isovec_fuzz::targets::onnx_model` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isovec_fuzz::targets::onnx_model::run(data));
