//! Several models on one port, which come and go while requests are answered.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use isovec::{Embedder, EmbeddingConfig, ModelSource, ModelTask};
use isovec_serve::{Error, ModelSpec, Result, ServeOptions, Server};
use isovec_test_support::{Which, data};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::{self, Answer};
use crate::rerank::files;
use crate::running::waits_for;

/// A server whose models a test changes.
pub(crate) struct Changing {
    pub(crate) address: SocketAddr,
    wanted: mpsc::UnboundedSender<Vec<ModelSpec>>,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) ended: JoinHandle<Result<()>>,
}

impl Changing {
    pub(crate) async fn start(first: Vec<ModelSpec>) -> Self {
        Self::with(first, ServeOptions::default()).await
    }

    pub(crate) async fn with(first: Vec<ModelSpec>, options: ServeOptions) -> Self {
        let server = Self::begin(first, options).await;
        while server.get("/info").await.status == 503 {
            tokio::task::yield_now().await;
        }
        server
    }

    /// The same before its models are there.
    pub(crate) async fn begin(first: Vec<ModelSpec>, options: ServeOptions) -> Self {
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), options);
        let server = server.await.unwrap();
        let address = server.address().unwrap();
        let (wanted, lists) = mpsc::unbounded_channel();
        let lists = futures_util::stream::unfold(lists, |mut lists| async {
            lists.recv().await.map(|list| (list, lists))
        });
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run_models(lists, async {
            let _ = stopped.await;
        }));
        let server = Self {
            address,
            wanted,
            stop,
            ended,
        };
        server.want(first);
        server
    }

    pub(crate) fn want(&self, models: Vec<ModelSpec>) {
        self.wanted.send(models).unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        client::send(self.address, head.as_bytes()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.raw(&client::post(path, "", body.as_bytes())).await
    }

    pub(crate) async fn raw(&self, request: &[u8]) -> Answer {
        client::send(self.address, request).await
    }

    pub(crate) async fn embed(&self, model: &str) -> Answer {
        let asked = json!({"model": model, "input": "a text"});
        self.post("/v1/embeddings", &asked).await
    }

    /// The names of the models in their order.
    pub(crate) async fn names(&self) -> Vec<String> {
        let list = self.get("/v1/models").await.json();
        let models = list["data"].as_array().unwrap().iter();
        models
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) async fn until_names(&self, names: &[&str]) {
        while self.names().await != names {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn until(&self, line: &str) {
        while !self
            .get("/metrics")
            .await
            .text()
            .lines()
            .any(|one| one == line)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

fn portable() -> EmbeddingConfig {
    Which::Portable.configure(EmbeddingConfig::default())
}

pub(crate) fn embedder(name: &str) -> ModelSpec {
    let spec = ModelSpec::new(data("tiny-bert")).with_name(name);
    spec.with_config(portable())
}

pub(crate) fn reranker() -> ModelSpec {
    let files = files().map(|(name, bytes)| (name.to_owned(), bytes.into()));
    let spec = ModelSpec::new(ModelSource::bytes("a reranker", files)).with_name("ranks");
    spec.with_config(portable())
}

pub(crate) fn classifier() -> ModelSpec {
    ModelSpec::new(data("tiny-classifier")).with_config(portable())
}

pub(crate) fn multi_vector() -> ModelSpec {
    ModelSpec::new(data("tiny-colbert")).with_config(portable())
}

pub(crate) fn sparse() -> ModelSpec {
    ModelSpec::new(data("tiny-splade")).with_config(portable())
}

async fn library() -> Embedder {
    let builder = Embedder::builder(data("tiny-bert")).config(portable());
    builder.load().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_gets_the_model_that_it_names_or_the_first_that_can_do_it() {
    let short = embedder("short").with_config(portable().with_dimension(8));
    let server = Changing::start(vec![
        classifier(),
        embedder("whole").with_alias("an-alias"),
        short,
        reranker(),
    ])
    .await;
    assert_eq!(
        server.names().await,
        ["tiny-classifier", "whole", "short", "ranks"]
    );
    let wanted = library().await.embed_one("a text").await.unwrap();
    for (name, len) in [("whole", 32), ("an-alias", 32), ("short", 8)] {
        let answer = server.embed(name).await;
        assert_eq!(answer.vector().len(), len, "{name}");
        let served = answer.json()["model"].clone();
        assert_eq!(served, if len == 8 { "short" } else { "whole" });
    }
    assert_eq!(server.embed("whole").await.vector(), wanted);
    // No name.
    for (path, asked, status) in [
        ("/v1/embeddings", json!({"input": "a text"}), 200),
        ("/embed", json!({"inputs": "a text"}), 200),
        ("/embed", json!({"inputs": "a text", "model": "short"}), 200),
        ("/predict", json!({"inputs": "a text"}), 200),
        ("/v1/rerank", json!({"query": "a", "documents": ["b"]}), 200),
        (
            "/rerank",
            json!({"query": "a", "texts": ["b"], "model": "ranks"}),
            200,
        ),
        // Another's task, and nobody's name.
        (
            "/rerank",
            json!({"query": "a", "texts": ["b"], "model": "whole"}),
            424,
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "model": "ranks"}),
            400,
        ),
        ("/embed", json!({"inputs": "a", "model": "nobody"}), 404),
    ] {
        let answer = server.post(path, &asked).await;
        assert_eq!(answer.status, status, "{path} {asked}: {answer:?}");
    }
    let unknown = server.embed("nobody").await;
    assert_eq!(unknown.status, 404);
    let (said, ..) = unknown.openai_error();
    for name in ["nobody", "tiny-classifier", "whole", "short", "ranks"] {
        assert!(said.contains(name), "{said}");
    }
    assert_eq!(
        server.get("/v1/models/ranks").await.json()["task"],
        "rerank"
    );
    let info = server.get("/info").await.json();
    assert_eq!(info["model_id"], "tiny-classifier");
    assert_eq!(info["models"].as_array().unwrap().len(), 4);
    assert_eq!(info["models"][1]["aliases"], json!(["an-alias"]));
    assert_eq!(server.get("/health/ready").await.status, 200);
    let page = server.get("/metrics").await;
    for line in [
        "isovec_serve_texts_total{model=\"short\"} 2",
        "isovec_serve_texts_total{model=\"ranks\"} 2",
        "isovec_serve_queue_texts{model=\"whole\"} 0",
    ] {
        assert!(
            page.text().lines().any(|one| one == line),
            "{line}: {}",
            page.text()
        );
    }
    assert!(
        page.text()
            .contains("isovec_texts_total{model=\"tiny-classifier\"}")
    );
    assert_eq!(page.text().matches("# TYPE isovec_texts ").count(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_ready_when_every_model_is() {
    let stuck = embedder("stuck").with_config(Which::Portable.configure(waits_for(9)));
    let mut options = ServeOptions::default();
    options.probe_timeout = Duration::from_millis(50);
    let server = Changing::begin(vec![embedder("well"), stuck], options).await;
    while server.get("/info").await.status == 503 {
        tokio::task::yield_now().await;
    }
    let unready = server.get("/health/ready").await;
    assert_eq!(unready.status, 503);
    assert!(unready.tei_error().0.contains("stuck"));
    assert_eq!(server.embed("well").await.status, 200);
    server.want(vec![embedder("well")]);
    server.until_names(&["well"]).await;
    // On a busy machine a probe of 50 ms may come too late: vectors of the last second say as much.
    while server.get("/health/ready").await.status != 200 {
        assert_eq!(server.embed("well").await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_come_go_and_change_without_a_lost_request() {
    let server = Changing::start(vec![embedder("stays"), embedder("changes")]).await;
    let wanted = library().await.embed_one("a text").await.unwrap();
    let ask = |name: &'static str, short: bool| {
        let (server, wanted) = (&server, &wanted);
        async move {
            let mut answered = 0;
            while server.names().await.last().unwrap() != "last" {
                let answer = server.embed(name).await;
                assert_eq!(answer.status, 200, "{name}: {answer:?}");
                let vector = answer.vector();
                assert!(vector == *wanted || short && vector.len() == 8);
                answered += 1;
            }
            answered
        }
    };
    let change = async {
        for round in 0..6 {
            let dimension = if round % 2 == 0 { 8 } else { 32 };
            let config = portable().with_dimension(dimension);
            let new = format!("new-{round}");
            server.want(vec![
                embedder("stays"),
                embedder("changes").with_config(config),
                embedder(&new),
            ]);
            server.until_names(&["stays", "changes", &new]).await;
            assert_eq!(server.embed(&new).await.status, 200);
        }
        server.want(vec![
            embedder("stays"),
            embedder("changes"),
            embedder("last"),
        ]);
        1
    };
    let asking = [
        ask("stays", false),
        ask("stays", false),
        ask("changes", true),
    ];
    let (answered, _) = tokio::join!(join_all(asking), change);
    assert!(
        answered.iter().all(|answered| *answered > 0),
        "{answered:?}"
    );
    assert_eq!(server.embed("new-5").await.status, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_leaves_answers_those_who_are_inside_and_the_drain_waits_for_them() {
    let leaves = embedder("leaves").with_config(Which::Portable.configure(waits_for(2)));
    let server = Changing::start(vec![embedder("stays"), leaves]).await;
    let asked = json!({"model": "leaves", "input": "a text"}).to_string();
    let asked = client::post(
        "/v1/embeddings",
        "x-request-timeout: 1\r\n",
        asked.as_bytes(),
    );
    let mut inside = TcpStream::connect(server.address).await.unwrap();
    inside.write_all(&asked).await.unwrap();
    server
        .until("isovec_serve_queue_texts{model=\"leaves\"} 1")
        .await;
    server.want(vec![embedder("stays")]);
    server.until_names(&["stays"]).await;
    assert_eq!(server.embed("leaves").await.status, 404);
    server.stop.send(()).unwrap();
    // It waits for a second text, which nobody can send any more, until its own time is over.
    let answer = client::read(&mut inside).await.unwrap();
    assert_eq!(answer.status, 504);
    server.ended.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_cannot_be_served_changes_nothing() {
    let server = Changing::start(vec![embedder("a")]).await;
    let since = server.get("/v1/models/a").await.json();
    for broken in [
        vec![],
        vec![embedder("a"), embedder("a")],
        vec![embedder("b"), ModelSpec::new(Path::new("not/there"))],
        vec![embedder("b"), embedder("c").with_task(ModelTask::Rerank)],
    ] {
        server.want(broken);
    }
    // Lists are served one after the other: when this is there, those before it were looked at.
    server.want(vec![embedder("a"), embedder("d")]);
    server.until_names(&["a", "d"]).await;
    assert_eq!(server.get("/v1/models/a").await.json(), since);
    let page = server.get("/metrics").await;
    assert!(!page.text().contains("model=\"b\""));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_list_that_cannot_be_served_ends_the_server() {
    let nowhere = ModelSpec::new(Path::new("not/there")).with_name("lost");
    let server = Changing::begin(vec![embedder("a"), nowhere], ServeOptions::default()).await;
    let error = server.ended.await.unwrap().unwrap_err();
    let Error::Model { name, source } = error else {
        panic!("{error}");
    };
    assert_eq!(name.as_deref(), Some("lost"));
    assert!(source.to_string().contains("not/there"), "{source}");
    let server = Changing::begin(vec![], ServeOptions::default()).await;
    let error = server.ended.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Options(_)), "{error}");
}
