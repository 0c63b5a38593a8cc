//! The differences between the targets, chosen in this one place: the engines, the threads for work that must not run
//! where the caller polls, and the hub.

use std::sync::Arc;

use cfg_if::cfg_if;
use isovec_engine::engine::EngineFactory;

cfg_if! {
    if #[cfg(target_arch = "wasm32")] {
        #[path = "backend/cache_in_browser.rs"]
        pub(crate) mod cache;
        #[path = "backend/page.rs"]
        pub(crate) mod machine;
        #[path = "backend/entries_by_browser.rs"]
        pub(crate) mod entries;
        mod web;
        #[cfg(feature = "webgpu")]
        use web::executor;
        pub(crate) use web::{cache_dir, in_slices, offload, portable, spawn};

        /// What users see of it.
        pub(crate) mod target_api {
            pub use super::web::cache_dir;
        }
    } else {
        #[path = "backend/cache_on_disk.rs"]
        pub(crate) mod cache;
        pub(crate) mod machine;
        #[path = "backend/entries_on_disk.rs"]
        pub(crate) mod entries;
        mod native;
        #[path = "blocking.rs"]
        pub mod blocking;
        #[cfg(feature = "webgpu")]
        use native::executor;
        pub(crate) use native::{cache_dir, in_slices, in_slices_blocking, offload, portable, spawn, wait};

        /// What users see of it.
        pub(crate) mod target_api {
            pub use super::blocking;
            pub use super::native::cache_dir;
        }
    }
}

cfg_if! {
    if #[cfg(all(not(target_arch = "wasm32"), any(feature = "onnxruntime", feature = "onnxruntime-download")))] {
        /// The engine that needs a shared library, or why there is none.
        pub(crate) fn onnxruntime() -> Result<Arc<dyn EngineFactory>, &'static str> {
            Ok(Arc::new(isovec_native::OnnxRuntime))
        }

        pub(crate) use isovec_native::optimized;
    } else if #[cfg(target_arch = "wasm32")] {
        /// The engine that needs a shared library, or why there is none.
        pub(crate) fn onnxruntime() -> Result<Arc<dyn EngineFactory>, &'static str> {
            Err("browsers load no shared libraries")
        }
    } else {
        /// The engine that needs a shared library, or why there is none.
        pub(crate) fn onnxruntime() -> Result<Arc<dyn EngineFactory>, &'static str> {
            Err("isovec was built without its feature `onnxruntime`")
        }
    }
}

cfg_if! {
    if #[cfg(not(all(not(target_arch = "wasm32"), any(feature = "onnxruntime", feature = "onnxruntime-download"))))] {
        /// What that engine makes of a graph; nobody has one to ask.
        pub(crate) async fn optimized(
            _: &isovec_engine::bundle::ModelBundle,
            _: &isovec_engine::config::EngineConfig,
            _: &isovec_engine::cancel::Cancel,
        ) -> isovec_engine::Result<(
            isovec_engine::onnx::proto::ModelProto,
            Vec<isovec_engine::weights::WeightInfo>,
        )> {
            Err(isovec_engine::EngineError::EngineUnavailable {
                engine: "onnxruntime",
                reason: "isovec was built without it".into(),
                hint: "Build isovec with its feature `onnxruntime`".into(),
            })
        }
    }
}

cfg_if! {
    if #[cfg(feature = "webgpu")] {
        mod webgpu;
        pub(crate) use webgpu::{adapters, webgpu};
        #[cfg(test)]
        pub(crate) use webgpu::webgpu_model;
    } else {
        /// The engine that drives a GPU itself, or why there is none.
        pub(crate) fn webgpu() -> Result<Arc<dyn EngineFactory>, &'static str> {
            Err("isovec was built without its feature `webgpu`")
        }

        /// The adapters that it could open; `None` where nobody can ask for them.
        pub(crate) async fn adapters() -> Option<Vec<isovec_engine::hardware::AdapterInfo>> {
            None
        }
    }
}

cfg_if! {
    if #[cfg(all(not(target_arch = "wasm32"), feature = "hub"))] {
        mod hub;
        pub(crate) use hub::fetch;
    } else {
        mod no_hub;
        pub(crate) use no_hub::fetch;
    }
}
