//! TLS between clients and a router.

use isovec_route::{Router, Tls};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::client;
use crate::running::{MODEL, Served, embed, options, to};
use crate::signed::{Signed, connect};

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_tls_get_what_the_replica_says() {
    let signed = Signed::new();
    let server = Served::start().await;
    let mut options = options();
    options.tls = Some(Tls::read(signed.path("cert.pem"), signed.path("key.pem")).unwrap());
    let any = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let router = Router::bind(any, vec![to(server.address)], options);
    let router = router.await.unwrap();
    let address = router.address().unwrap();
    let routing = tokio::spawn(router.run(std::future::pending()));

    let body = json!({"model": MODEL, "input": ["a"]}).to_string();
    let asked = client::post("/v1/embeddings", "", body.as_bytes());
    let mut stream = connect(address, &signed.trusted, &[]).await.unwrap();
    stream.write_all(&asked).await.unwrap();
    let answer = client::read(&mut stream).await.unwrap();
    let direct = embed(server.address, &["a"]).await;
    assert_eq!((answer.status, answer.json()), (200, direct.json()));
    routing.abort();
}
