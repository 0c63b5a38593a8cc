//! What benchmarks of servers share: a model, a server of it, a client, and the middle of what was measured.

pub(crate) mod client;

use std::net::{Ipv4Addr, SocketAddr};

use isovec::{Embedder, EmbeddingConfig};
use isovec_serve::{ServeOptions, Server};
use isovec_test_support::{Which, minilm, tiny_model};

/// all-MiniLM-L6-v2 where set-up put it, else the tiny model.
pub(crate) async fn model() -> Embedder {
    let source = minilm().unwrap_or_else(tiny_model);
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = Embedder::builder(source).config(config);
    builder.load().await.unwrap()
}

/// The address of a server, which runs as long as the runtime that it is started on.
pub(crate) async fn serve(embedder: Embedder) -> SocketAddr {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Server::bind(any, ServeOptions::default()).await.unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.run(async { Ok(embedder) }, std::future::pending()));
    address
}

/// The middle of what was measured.
pub(crate) fn median<T: Copy + PartialOrd>(mut measured: Vec<T>) -> T {
    measured.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap());
    measured[measured.len() / 2]
}
