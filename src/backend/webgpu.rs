//! The engine that drives a GPU itself, on both targets.

use std::sync::Arc;

use isovec_engine::Result;
use isovec_engine::engine::EngineFactory;
use isovec_gpu::{Pauses, WebGpu};
use isovec_web::executor::Pause;

use super::executor;

/// The engine that drives a GPU itself, or why there is none.
pub(crate) fn webgpu() -> std::result::Result<Arc<dyn EngineFactory>, &'static str> {
    Ok(Arc::new(WebGpu::new(Box::new(AsExecutor))))
}

/// A model on a GPU whose device can be taken away.
#[cfg(test)]
pub(crate) async fn webgpu_model(
    bundle: &isovec_engine::bundle::ModelBundle,
    config: &isovec_engine::config::EngineConfig,
    cancel: &isovec_engine::cancel::Cancel,
) -> Result<isovec_gpu::GpuEngine> {
    let factory = WebGpu::new(Box::new(AsExecutor));
    factory.load_model(bundle, config, cancel).await
}

/// Pauses where the portable engine does.
struct AsExecutor;

impl Pauses for AsExecutor {
    fn pause(&self) -> Result<Box<dyn Pause>> {
        Ok(isovec_web::executor::pause(&executor().worker()?))
    }
}
