//! A server that runs.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use isovec::{Embedder, EmbeddingConfig};
use isovec_serve::{Model, Result, ServeOptions, Server};
use isovec_test_support::{Which, tiny_model};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{self, Answer};

/// The name of the model in all tests.
pub(crate) const MODEL: &str = "tiny";

#[derive(Debug)]
pub(crate) struct Running<H = Embedder> {
    pub(crate) address: SocketAddr,
    /// The library's handle on the model that is served.
    pub(crate) model: H,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<()>>,
}

/// The options of a test, which change a few of these.
pub(crate) fn options() -> ServeOptions {
    let mut options = ServeOptions::default();
    options.name = Some(MODEL.into());
    options
}

/// The tiny model on the portable engine.
pub(crate) async fn tiny(config: EmbeddingConfig) -> Embedder {
    let config = Which::Portable.configure(config);
    let builder = Embedder::builder(tiny_model()).config(config);
    builder.load().await.unwrap()
}

/// A queue that waits for so many texts, for a minute: fewer stay in it. Texts of very different lengths would run apart,
/// and the last of them wait again.
pub(crate) fn waits_for(texts: usize) -> EmbeddingConfig {
    EmbeddingConfig::default()
        .with_dynamic_batching(false)
        .with_preferred_batch_size(texts)
        .with_max_wait(Duration::from_secs(60))
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(EmbeddingConfig::default(), options()).await
    }

    pub(crate) async fn with(config: EmbeddingConfig, options: ServeOptions) -> Self {
        Self::over(tiny(config).await, options).await
    }
}

impl<H: Into<Model> + Clone + Send + 'static> Running<H> {
    pub(crate) async fn over(model: H, options: ServeOptions) -> Self {
        let running = Self::begin(model, options).await;
        // The port is open before the model is there.
        while running.get("/info").await.status == 503 {
            tokio::task::yield_now().await;
        }
        running
    }

    /// The same before anybody has asked it anything.
    pub(crate) async fn begin(model: H, options: ServeOptions) -> Self {
        let served = model.clone();
        Self::serving(model, async { served }, options).await
    }
}

impl Running<()> {
    /// A server that has no model yet, and what gives it one.
    pub(crate) async fn without_model(options: ServeOptions) -> (Self, oneshot::Sender<Embedder>) {
        let (load, loaded) = oneshot::channel();
        let server = Self::serving((), async { loaded.await.unwrap() }, options).await;
        (server, load)
    }
}

impl<H> Running<H> {
    /// A server of a model that may come later.
    async fn serving<M: Into<Model> + Send + 'static>(
        model: H,
        served: impl Future<Output = M> + Send + 'static,
        options: ServeOptions,
    ) -> Self {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let server = Server::bind(any, options).await.unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = async { Ok(served.await) };
        let ended = tokio::spawn(server.run(served, async {
            let _ = stopped.await;
        }));
        Self {
            address,
            model,
            stop,
            ended,
        }
    }

    pub(crate) async fn raw(&self, request: &[u8]) -> Answer {
        client::send(self.address, request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.raw(&client::get(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.raw(&client::post(path, "", body.as_bytes())).await
    }

    /// Embeds texts over the route of OpenAI.
    pub(crate) async fn openai(&self, texts: &[&str]) -> Answer {
        self.post("/v1/embeddings", &json!({"model": MODEL, "input": texts}))
            .await
    }

    /// A value of `/metrics`, by its name and labels as they are written there.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let page = self.get("/metrics").await;
        let lines = page.text().lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = values
            .next()
            .unwrap_or_else(|| panic!("{name}: {}", page.text()));
        assert_eq!(values.next(), None, "{name}");
        value.parse().unwrap()
    }

    /// Waits until a value of `/metrics` is that.
    pub(crate) async fn until(&self, name: &str, value: u64) {
        while self.metric(name).await != value {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Tells the server to stop; its end comes later.
    pub(crate) fn begin_stop(self) -> JoinHandle<Result<()>> {
        self.stop.send(()).unwrap();
        self.ended
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.begin_stop().await.unwrap()
    }
}
