//! Servers and routers that run.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use isovec::{Embedder, EmbeddingConfig};
use isovec_route::{Result, RouteOptions, Router, Target};
use isovec_serve::{ServeOptions, Server};
use isovec_test_support::{Which, tiny_model};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{self, Answer};

/// The name of the model in all tests.
pub(crate) const MODEL: &str = "tiny";

/// A server with threads of its own, so that all of it can end at once.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Served {
    /// A server of the tiny model.
    pub(crate) async fn start() -> Self {
        Self::with((Ipv4Addr::LOCALHOST, 0).into(), EmbeddingConfig::default()).await
    }

    /// The same, to be killed and started again at its address. No port is given away there meanwhile: the other tests' are on
    /// another address, where the system has more than one of its own.
    pub(crate) async fn mortal() -> Self {
        let apart = if cfg!(target_os = "linux") {
            Ipv4Addr::new(127, 0, 0, 2)
        } else {
            Ipv4Addr::LOCALHOST
        };
        Self::with((apart, 0).into(), EmbeddingConfig::default()).await
    }

    /// The same at an address, with another configuration.
    pub(crate) async fn with(address: SocketAddr, config: EmbeddingConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let started = runtime.spawn(async move {
            let mut options = ServeOptions::default();
            options.name = Some(MODEL.into());
            let server = Server::bind(address, options).await.unwrap();
            let address = server.address().unwrap();
            let config = Which::Portable.configure(config);
            let model = Embedder::builder(tiny_model())
                .config(config)
                .load()
                .await
                .unwrap();
            tokio::spawn(server.run(async { Ok(model) }, std::future::pending()));
            address
        });
        let address = started.await.unwrap();
        while get(address, "/health/ready").await.status != 200 {}
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    /// Ends it in the middle of whatever it does: its connections are closed, and nothing listens.
    pub(crate) async fn kill(mut self) -> SocketAddr {
        let runtime = self.runtime.take().unwrap();
        let ended =
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(60)));
        ended.await.unwrap();
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A router that runs.
#[derive(Debug)]
pub(crate) struct Routing {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<()>>,
}

/// Options whose probes are quick.
pub(crate) fn options() -> RouteOptions {
    let mut options = RouteOptions::default();
    options.probe_interval = Duration::from_millis(10);
    options
}

/// An address at which nobody listens while the socket lives. The port of a listener that ended may be another test's at once.
pub(crate) fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// The target of an address.
pub(crate) fn to(address: SocketAddr) -> Target {
    format!("http://{address}").parse().unwrap()
}

impl Routing {
    /// A router before these, once all of them are in rotation.
    pub(crate) async fn before(replicas: &[SocketAddr], options: RouteOptions) -> Self {
        let targets = replicas.iter().map(|address| to(*address)).collect();
        let router = Self::start(targets, options).await;
        for replica in replicas {
            router.until(*replica, "state", &json!("in")).await;
        }
        router
    }

    pub(crate) async fn start(targets: Vec<Target>, options: RouteOptions) -> Self {
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let router = Router::bind(any, targets, options).await.unwrap();
        let address = router.address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(router.run(async {
            let _ = stopped.await;
        }));
        Self {
            address,
            stop,
            ended,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        get(self.address, path).await
    }

    /// Embeds texts over the route of OpenAI.
    pub(crate) async fn embed(&self, texts: &[&str]) -> Answer {
        embed(self.address, texts).await
    }

    /// What `/status` says of a replica.
    pub(crate) async fn of(&self, replica: SocketAddr, field: &str) -> Value {
        let status = self.get("/status").await.json();
        let url = json!(format!("http://{replica}"));
        let mut all = status["replicas"].as_array().unwrap().iter();
        all.find(|replica| replica["url"] == url).unwrap()[field].clone()
    }

    /// Waits until `/status` says that of a replica.
    pub(crate) async fn until(&self, replica: SocketAddr, field: &str, value: &Value) {
        while self.of(replica, field).await != *value {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Tells the router to stop; its end comes later.
    pub(crate) fn begin_stop(self) -> JoinHandle<Result<()>> {
        self.stop.send(()).unwrap();
        self.ended
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    client::send(address, &client::get(path)).await
}

pub(crate) async fn post(address: SocketAddr, path: &str, head: &str, body: &Value) -> Answer {
    let body = body.to_string();
    client::send(address, &client::post(path, head, body.as_bytes())).await
}

pub(crate) async fn embed(address: SocketAddr, texts: &[&str]) -> Answer {
    post(
        address,
        "/v1/embeddings",
        "",
        &json!({"model": MODEL, "input": texts}),
    )
    .await
}
