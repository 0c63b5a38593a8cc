//! Available providers are measured once, and the result is cached for the next start: on the real ONNX Runtime and
//! the portable engine. Alone in its program, because it has a cache of its own.

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec_test_support::{Which, engines, tiny_model};

#[test]
fn what_is_fastest_is_measured_once_and_remembered() {
    // The user's own cache may have what an earlier version measured.
    let cache = tempfile::tempdir().unwrap();
    // SAFETY: the only test of this program, before any other thread is started.
    unsafe { std::env::set_var("ISOVEC_CACHE", cache.path()) };
    if !engines().contains(&Which::OnnxRuntime) {
        return;
    }
    let config = EmbeddingConfig::default().with_provider_auto_selection(true);
    let first = Embedder::builder(tiny_model())
        .config(config.clone())
        .load()
        .unwrap();
    let why = |embedder: &Embedder| {
        embedder
            .effective_config()
            .get("engine")
            .unwrap()
            .why
            .clone()
    };
    assert!(why(&first).contains("portable/cpu"), "{}", why(&first));
    assert!(why(&first).contains("onnxruntime/cpu"), "{}", why(&first));
    let again = Embedder::builder(tiny_model())
        .config(config)
        .load()
        .unwrap();
    assert_eq!(again.provider(), first.provider());
    assert!(
        why(&again).starts_with("measured at an earlier start"),
        "{}",
        why(&again)
    );
}
