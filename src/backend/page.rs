//! The description of the hardware that a browser gives.

use js_sys::{Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::JsValue;

use crate::hardware::{CpuInfo, HardwareInfo, PageInfo};

/// A module with one function, `() -> v128`, that multiplies and adds in one step, as `bindings/js/ts/builds.ts` has it.
const RELAXED: &[u8] = &[
    0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, 0x03,
    0x02, 0x01, 0x00, 0x0a, 0x13, 0x01, 0x11, 0x00, 0x41, 0x00, 0xfd, 0x0f, 0x41, 0x00, 0xfd, 0x0f,
    0x41, 0x00, 0xfd, 0x0f, 0xfd, 0x85, 0x02, 0x0b,
];

/// What there is, but for what adapters tell.
pub(crate) fn look() -> HardwareInfo {
    let global: JsValue = js_sys::global().into();
    let navigator = get(&global, "navigator");
    let isolated = get(&global, "crossOriginIsolated").as_bool();
    let shared = has(&global, "SharedArrayBuffer");
    let relaxed = WebAssembly::validate(&Uint8Array::from(RELAXED).into()).unwrap_or(false);
    let cores = get(&navigator, "hardwareConcurrency").as_f64();
    let sets = isovec_kernels::instruction_sets();
    HardwareInfo {
        arch: std::env::consts::ARCH.to_owned(),
        cpu: CpuInfo {
            logical_cores: cores.map(|cores| cores as usize),
            simd: sets.into_iter().map(str::to_owned).collect(),
            kernels: isovec_kernels::instruction_set().to_owned(),
            ..CpuInfo::default()
        },
        page: Some(PageInfo {
            device_memory_gib: get(&navigator, "deviceMemory").as_f64(),
            cross_origin_isolated: isolated,
            shared_memory: shared,
            simd: true,
            relaxed_simd: relaxed,
            threads: relaxed
                && isolated == Some(true)
                && has(&global, "Worker")
                && has(&get(&global, "Atomics"), "waitAsync"),
            webgpu: has(&navigator, "gpu"),
        }),
        ..HardwareInfo::default()
    }
}

/// Whether there is anybody to ask for a GPU's adapter: a page and its workers have a browser, node has none.
#[cfg(feature = "webgpu")]
pub(crate) fn knows_adapters() -> bool {
    let global: JsValue = js_sys::global().into();
    has(&global, "Window") || has(&global, "WorkerGlobalScope")
}

/// What the process takes: a page is not told, and its module's memory is in the statistics.
pub(crate) mod process {
    pub(crate) fn memory() -> Option<crate::inspect::ProcessMemory> {
        None
    }
}

/// A property; nothing where there is no such object.
fn get(of: &JsValue, name: &str) -> JsValue {
    Reflect::get(of, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

fn has(of: &JsValue, name: &str) -> bool {
    let value = get(of, name);
    !value.is_undefined() && !value.is_null()
}
