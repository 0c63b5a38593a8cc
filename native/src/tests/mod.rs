//! The engine against the real library. Without one these tests pass with a note, or fail when
//! `ISOVEC_REQUIRE_ONNXRUNTIME=1` says that there must be one.

mod cancelling;
#[cfg(feature = "load-dynamic")]
mod library;
mod loading;
mod models;
mod predicting;
mod running;
mod whole_numbers;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Engine, EngineFactory, Probe};
use isovec_engine::error::Result;

use crate::OnnxRuntime;

/// Whether there is a library to test with.
fn available() -> bool {
    match OnnxRuntime::default().probe() {
        Probe::Available { .. } => true,
        missing => {
            assert!(
                std::env::var_os("ISOVEC_REQUIRE_ONNXRUNTIME").is_none_or(|value| value != "1"),
                "ISOVEC_REQUIRE_ONNXRUNTIME=1, but {missing:?}"
            );
            eprintln!("skipped: {missing:?}");
            false
        }
    }
}

fn load(bundle: &ModelBundle) -> Result<Arc<dyn Engine>> {
    let mut config = EngineConfig::default();
    config.session.intra_op_threads = Some(1);
    pollster::block_on(OnnxRuntime::default().load(bundle, &config, &Cancel::new()))
}

/// Polls once with a waker that does nothing.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}
