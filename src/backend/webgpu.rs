//! The engine that drives a GPU itself, on both targets.

use std::sync::Arc;

use isovec_engine::Result;
use isovec_engine::engine::EngineFactory;
use isovec_engine::hardware::AdapterInfo;
use isovec_engine::maybe_send::BoxFuture;
use isovec_gpu::{Host, Options, WebGpu};
use isovec_web::executor::Pause;

use super::{cache, executor, machine};
use crate::config::RuntimeConfig;

/// The engine that drives a GPU itself, or why there is none.
pub(crate) fn webgpu(
    config: &RuntimeConfig,
) -> std::result::Result<Arc<dyn EngineFactory>, &'static str> {
    // Where nobody can be asked for an adapter, wgpu would panic.
    if !machine::knows_adapters() {
        return Err("only a page and its workers can ask a browser for a GPU");
    }
    Ok(Arc::new(factory(config)))
}

/// The engine, told what the configuration says of it.
fn factory(config: &RuntimeConfig) -> WebGpu {
    let asked = &config.providers.webgpu;
    WebGpu::new(Box::new(Sdk)).with_options(Options {
        software_adapter: asked.software_adapter.unwrap_or(false),
        low_power: asked.low_power.unwrap_or(false),
        f16: asked.f16,
        strict: config.providers.strict(),
    })
}

/// The adapters that it could open; `None` where nobody can ask for them.
pub(crate) async fn adapters() -> Option<Vec<AdapterInfo>> {
    match machine::knows_adapters() {
        true => Some(isovec_gpu::adapters().await),
        false => None,
    }
}

/// A model on a GPU whose device can be taken away, with kernels that share by subgroups or do not.
#[cfg(test)]
pub(crate) async fn webgpu_model(
    subgroups: bool,
    bundle: &isovec_engine::bundle::ModelBundle,
    config: &RuntimeConfig,
    cancel: &isovec_engine::cancel::Cancel,
) -> Result<isovec_gpu::GpuEngine> {
    let factory = factory(config).with_subgroups(subgroups);
    let config = config.of_every_engine();
    factory.load_model(bundle, &config, cancel).await
}

/// The kind of the cached entries.
const KIND: &str = "gpu";

/// Pauses where the portable engine does, and keeps things where the SDK does.
struct Sdk;

impl Host for Sdk {
    fn pause(&self) -> Result<Box<dyn Pause>> {
        Ok(isovec_web::executor::pause(&executor().worker(1)?))
    }

    fn recall<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(cache::recall(KIND, name))
    }

    fn keep<'a>(&'a self, name: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, ()> {
        Box::pin(async move { cache::keep(KIND, name, &bytes).await })
    }
}
