//! In the browser: one thread, so work is done in small pieces with turns for the event loop
//! between them.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "ocr")]
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::EngineFactory;
use isovec_web::Portable;
use isovec_web::executor::Executor;
use isovec_web::executor::event_loop::EventLoop;

use crate::config::EmbeddingConfig;
use crate::error::Result;

/// Texts that are worked on between two looks at the clock and the cancellation.
const SLICE: usize = 8;

/// Where engines' jobs run.
pub(super) fn executor() -> Arc<dyn Executor> {
    Arc::new(EventLoop)
}

/// The engine that needs nothing installed.
pub(crate) fn portable() -> Arc<dyn EngineFactory> {
    Arc::new(Portable::new(executor()))
}

/// The folder where set-up keeps models and ONNX Runtime: the variable `ISOVEC_CACHE`, else the
/// platform's folder for caches + `isovec`. `None` where none is known, as in browsers.
pub fn cache_dir() -> Option<PathBuf> {
    None
}

/// Where hashes of weights are kept: nowhere.
pub(crate) fn identities(_: &EmbeddingConfig) -> Option<PathBuf> {
    None
}

/// The graph as it is. The passes would be 50 KB of a page's download, and a program of convolutions joins most of the same.
#[cfg(feature = "ocr")]
pub(crate) async fn simplified(bundle: ModelBundle, _: &Cancel) -> Result<ModelBundle> {
    Ok(bundle)
}

/// Does the job: there is nobody else.
pub(crate) async fn offload<T>(
    _doing: &'static str,
    job: impl Future<Output = Result<T>>,
) -> Result<T> {
    job.await
}

/// Runs a future to its end, between the other work of the event loop.
pub(crate) fn spawn(_name: &'static str, future: impl Future<Output = ()> + 'static) -> Result<()> {
    wasm_bindgen_futures::spawn_local(future);
    Ok(())
}

/// Works through `items`, slice by slice, until done or cancelled.
pub(crate) async fn in_slices<T, R>(
    _doing: &'static str,
    items: Vec<T>,
    cancel: Cancel,
    work: impl Fn(&[T]) -> Result<Vec<R>>,
) -> Result<Vec<R>> {
    // The same clock and the same turns that the engine's own work takes.
    let mut pause = isovec_web::executor::pause(&EventLoop.worker(1)?);
    let mut results = Vec::with_capacity(items.len());
    for slice in items.chunks(SLICE) {
        cancel.check()?;
        results.extend(work(slice)?);
        pause.pause().await;
    }
    Ok(results)
}
