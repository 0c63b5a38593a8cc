//! What this engine says about itself.

use isovec_engine::engine::ProviderInfo;

use crate::ENGINE;

/// What the compiled code computes on. The browser's instruction sets are fixed when the module
/// is compiled; natively, kernels are chosen by what the processor can do.
const fn provider() -> &'static str {
    if cfg!(not(target_family = "wasm")) {
        "CPU"
    } else if cfg!(all(
        target_feature = "relaxed-simd",
        target_feature = "atomics"
    )) {
        "wasm relaxed-simd, threads"
    } else if cfg!(target_feature = "relaxed-simd") {
        "wasm relaxed-simd"
    } else if cfg!(target_feature = "simd128") {
        "wasm simd128"
    } else {
        "wasm"
    }
}

/// The version of our own kernels.
pub(crate) fn version() -> String {
    concat!("isovec ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// What [`crate::Portable`] computes on, best first.
pub(crate) fn providers() -> Vec<String> {
    vec![provider().to_owned()]
}

/// Who truly computes; `version` is that of the code underneath.
pub(crate) fn info(version: String) -> ProviderInfo {
    ProviderInfo::new(ENGINE, provider(), version)
}
