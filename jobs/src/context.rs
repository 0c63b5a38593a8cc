//! What a run's parts share.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::retry::Retry;
use crate::spec::Spec;

/// The runtime that the stores' futures run on, and how often they are tried again.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) retry: Retry,
}

impl Context {
    pub(crate) fn new(spec: &Spec, observer: Arc<dyn Observer>) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .map_err(Error::Threads)?;
        Ok(Self {
            runtime: Arc::new(runtime),
            retry: Retry {
                retries: spec.retries,
                wait: spec.retry_wait,
                observer,
            },
        })
    }
}
