//! What this engine says about itself.

use isovec_engine::engine::ProviderInfo;

use crate::ENGINE;

/// The version of tract that the workspace pins.
const TRACT: &str = "tract 0.23.9";

/// What the compiled code computes on. The browser's instruction sets are fixed when the module
/// is compiled; natively, tract chooses its kernels by what the processor can do.
const fn provider() -> &'static str {
    if cfg!(not(target_family = "wasm")) {
        "CPU"
    } else if cfg!(target_feature = "relaxed-simd") {
        "wasm relaxed-simd"
    } else if cfg!(target_feature = "simd128") {
        "wasm simd128"
    } else {
        "wasm"
    }
}

/// The version of the runtime underneath.
pub(crate) fn version() -> String {
    TRACT.to_owned()
}

/// What [`crate::Portable`] computes on, best first.
pub(crate) fn providers() -> Vec<String> {
    vec![provider().to_owned()]
}

/// Who truly computes.
pub(crate) fn info() -> ProviderInfo {
    ProviderInfo::new(ENGINE, provider(), version())
}
