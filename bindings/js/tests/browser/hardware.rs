//! Tests Rust's description of the page that it runs in.

use isovec::hardware::HardwareInfo;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
async fn a_page_is_told_what_its_browser_tells() {
    let info = HardwareInfo::detect().await.expect("nothing panics");
    let navigator = web_sys::window()
        .expect("the suite runs in a page")
        .navigator();
    let cores = navigator.hardware_concurrency();
    assert_eq!(info.cpu.logical_cores, Some(cores as usize));
    assert_eq!((info.os.clone(), info.cpu.model.clone()), (None, None));
    assert_eq!(info.arch, "wasm32");
    assert_eq!(info.memory, isovec::hardware::MemoryInfo::default());
    let page = info.page.as_ref().expect("it is a page");
    assert!(page.simd && page.relaxed_simd, "as every current browser");
    assert_eq!(page.threads, page.cross_origin_isolated == Some(true));
    // Chromium has WebGPU, and no adapter where it runs without a GPU.
    let adapters = info.adapters.as_ref().expect("the build has webgpu");
    assert!(adapters.len() <= 1, "{adapters:?}");
    assert!(info.gpus.len() <= adapters.len(), "{:?}", info.gpus);
    let again = HardwareInfo::detect().await.expect("nothing panics");
    assert_eq!(again.id(), info.id());
}
