//! The description of this engine.

use isovec_engine::engine::ProviderInfo;

use crate::ENGINE;

/// What the compiled code computes on. The browser's instruction sets are fixed when the module
/// is compiled; natively, kernels are chosen by what the processor can do.
pub(crate) const fn provider() -> &'static str {
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

/// What tract computes on. A page has one provider for its own kernels, and tells tract from them by name; natively the
/// configuration names the processor as a provider, whoever computes there.
#[cfg(feature = "tract")]
pub(crate) const fn of_tract() -> &'static str {
    if cfg!(target_family = "wasm") {
        "tract"
    } else {
        provider()
    }
}

/// Who truly computes: what it computes on, and the version of the code underneath.
pub(crate) fn info(provider: &'static str, version: String) -> ProviderInfo {
    ProviderInfo::new(ENGINE, provider, version)
}
