//! The differences between the targets, chosen in this one place: the engines, the threads for work that must not run
//! where the caller polls, and the hub.

use cfg_if::cfg_if;

cfg_if! {
    if #[cfg(target_arch = "wasm32")] {
        #[path = "backend/cache_in_browser.rs"]
        pub(crate) mod cache;
        #[path = "backend/page.rs"]
        pub(crate) mod machine;
        #[path = "backend/entries_by_browser.rs"]
        pub(crate) mod entries;
        #[path = "backend/small_forms_in_browser.rs"]
        pub(crate) mod small_forms;
        mod web;
        #[cfg(feature = "webgpu")]
        use web::executor;
        #[cfg(feature = "ocr")]
        pub(crate) use web::simplified;
        pub(crate) use web::{identities, in_slices, offload, portable, spawn};

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
        #[path = "backend/small_forms_on_disk.rs"]
        pub(crate) mod small_forms;
        mod native;
        #[path = "blocking.rs"]
        pub mod blocking;
        #[cfg(feature = "webgpu")]
        use native::executor;
        #[cfg(feature = "ocr")]
        pub(crate) use native::simplified;
        pub(crate) use native::{cache_dir, identities, in_slices, in_slices_blocking, offload, portable, spawn, wait};

        /// What users see of it.
        pub(crate) mod target_api {
            pub use super::blocking;
            pub use super::native::cache_dir;
        }
    }
}

cfg_if! {
    if #[cfg(all(not(target_arch = "wasm32"), any(feature = "onnxruntime", feature = "onnxruntime-download")))] {
        mod onnxruntime;
        pub(crate) use onnxruntime::{onnxruntime, optimized};
    } else {
        mod no_onnxruntime;
        pub(crate) use no_onnxruntime::{onnxruntime, optimized};
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
        pub(crate) fn webgpu(
            _: &crate::config::RuntimeConfig,
        ) -> Result<std::sync::Arc<dyn isovec_engine::engine::EngineFactory>, &'static str> {
            Err(if cfg!(target_arch = "wasm32") {
                "this build of the package has no path for GPUs: `simd128` and `threads` have, and a page gets one of them where its browser has an adapter (a software adapter counts with providers.webgpu.software_adapter)"
            } else {
                "isovec was built without its feature `webgpu`"
            })
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
