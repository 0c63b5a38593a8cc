//! Tests of reading files to bundles, writing them, and refusing bad files.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod budget;
mod elsewhere;
mod everywhere;
mod external_data;
mod folders;
#[cfg(unix)] // Elsewhere nothing tells that a file is the same.
mod identities;
#[cfg(target_os = "linux")] // What is in memory of a mapping is asked of /proc.
mod mapped;
mod onnx_bad_input;
mod onnx_read;
mod onnx_write;
mod precision;
mod properties;
mod safetensors;
mod support;
