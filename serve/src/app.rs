//! What all requests share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use crate::admission::{Gate, loading, stopping};
use crate::failure::{Failure, Kind};
use crate::metrics::Metrics;
use crate::model::Served;
use crate::options::ServeOptions;

/// Vectors that were computed so lately say as much as a new probe. Whoever asks again and again has no more computed.
const FRESH: Duration = Duration::from_secs(1);

/// How long a probe that found the queue full waits before it looks again.
const AGAIN: Duration = Duration::from_millis(20);

/// The server's state.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: ServeOptions,
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: Metrics,
    model: Arc<OnceLock<Served>>,
    /// Held by the probe that is on its way: one is enough.
    probing: Mutex<()>,
    probes: AtomicU64,
}

impl App {
    pub(crate) fn new(options: ServeOptions) -> Arc<Self> {
        let gate = Gate::new(&options);
        let model = Arc::default();
        Arc::new(Self {
            metrics: Metrics::new(Arc::clone(&gate), Arc::clone(&model)),
            options,
            gate,
            model,
            probing: Mutex::default(),
            probes: AtomicU64::default(),
        })
    }

    /// Puts the loaded model in. There is one model a server.
    pub(crate) fn serve(&self, model: Served) -> &Served {
        self.model.get_or_init(|| model)
    }

    /// The model, once it is loaded.
    pub(crate) fn model(&self) -> Result<&Served, Failure> {
        self.model.get().ok_or_else(loading)
    }

    /// Whether a request that came now would get its vectors: vectors were given out just now, or a probe gets through
    /// the queue and the engine in time.
    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        if self.gate.is_closed() {
            return Err(stopping());
        }
        let model = self.model()?;
        let most = self.options.probe_timeout;
        let probed = timeout(most, self.probe(model)).await;
        probed.unwrap_or_else(|_| {
            Err(Failure::new(
                Kind::Unready,
                format!("no text came through the queue and the engine in {most:?}"),
            ))
        })
    }

    async fn probe(&self, model: &Served) -> Result<(), Failure> {
        let _turn = self.probing.lock().await;
        loop {
            if self
                .gate
                .since_computed()
                .is_some_and(|since| since < FRESH)
            {
                return Ok(());
            }
            // Never the same text, which a cache of vectors would answer for the engine.
            let number = self.probes.fetch_add(1, Ordering::Relaxed);
            match model.batcher.embed([format!("probe {number}")]).await {
                Ok(_) => {
                    self.gate.computed();
                    return Ok(());
                }
                // Full, and perhaps moving on.
                Err(isovec::Error::Overloaded { .. }) => sleep(AGAIN).await,
                Err(error) => {
                    let message = format!("the model computes nothing: {error}");
                    return Err(Failure::new(Kind::Unready, message));
                }
            }
        }
    }
}
