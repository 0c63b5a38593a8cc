//! What all requests share.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use crate::admission::{Gate, stopping};
use crate::failure::Failure;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::options::ServeOptions;
use crate::served::Served;

/// The server's state.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: ServeOptions,
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: Metrics,
    pub(crate) models: Arc<Models>,
    /// Held by whoever changes the models: one after the other.
    pub(crate) changing: Mutex<()>,
}

impl App {
    pub(crate) fn new(options: ServeOptions) -> Arc<Self> {
        let gate = Gate::new(&options);
        let models = Arc::default();
        Arc::new(Self {
            metrics: Metrics::new(Arc::clone(&gate), Arc::clone(&models)),
            options,
            gate,
            models,
            changing: Mutex::default(),
        })
    }

    /// Whether a request for this model that came now would be computed.
    pub(crate) async fn model_ready(&self, served: &Served) -> Result<(), Failure> {
        if self.gate.is_closed() {
            return Err(stopping());
        }
        served.ready(self.options.probe_timeout).await
    }

    /// Whether a request that came now would be computed, whichever of the models it is for.
    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        if self.gate.is_closed() {
            return Err(stopping());
        }
        let models = self.models.loaded()?;
        try_join_all(models.iter().map(|model| self.model_ready(model))).await?;
        Ok(())
    }
}
