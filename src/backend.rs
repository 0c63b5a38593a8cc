//! What differs between the targets, chosen in this one place: which engines there are, who
//! does work that should not run where the caller polls, and whether there is a hub.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cfg_if::cfg_if;
use isovec_engine::cancel::Cancel;

use crate::error::{Error, Result};

cfg_if! {
    if #[cfg(target_arch = "wasm32")] {
        mod web;
        pub(crate) use web::{engines, fetch, in_slices, offload};
    } else {
        mod native;
        #[path = "../blocking.rs"]
        pub mod blocking;
        pub(crate) use native::{engines, fetch, in_slices, in_slices_blocking, offload, wait_for};
    }
}

cfg_if! {
    if #[cfg(all(not(target_arch = "wasm32"), any(feature = "onnxruntime", feature = "onnxruntime-download")))] {
        fn onnxruntime() -> Option<std::sync::Arc<dyn isovec_engine::engine::EngineFactory>> {
            Some(std::sync::Arc::new(isovec_native::OnnxRuntime))
        }
    } else {
        fn onnxruntime() -> Option<std::sync::Arc<dyn isovec_engine::engine::EngineFactory>> {
            None
        }
    }
}

/// Why ONNX Runtime is not among the engines, where it is not.
pub(crate) const NO_ONNXRUNTIME: &str = if cfg!(target_arch = "wasm32") {
    "browsers cannot load shared libraries"
} else {
    "isovec was built without its feature `onnxruntime`"
};
