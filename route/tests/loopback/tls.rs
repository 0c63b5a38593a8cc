//! TLS between clients and a router.

use std::sync::Arc;

use isovec_route::{Router, Tls};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::client;
use crate::running::{MODEL, Served, embed, options, to};

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_tls_get_what_the_replica_says() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("cert.pem"), cert.pem()).unwrap();
    std::fs::write(path("key.pem"), signing_key.serialize_pem()).unwrap();
    let server = Served::start().await;
    let mut options = options();
    options.tls = Some(Tls::read(path("cert.pem"), path("key.pem")).unwrap());
    let any = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let router = Router::bind(any, vec![to(server.address)], options);
    let router = router.await.unwrap();
    let address = router.address().unwrap();
    let routing = tokio::spawn(router.run(std::future::pending()));

    let mut trusted = RootCertStore::empty();
    trusted.add(cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let body = json!({"model": MODEL, "input": ["a"]}).to_string();
    let asked = client::post("/v1/embeddings", "", body.as_bytes());
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(&asked).await.unwrap();
    let answer = client::read(&mut stream).await.unwrap();
    let direct = embed(server.address, &["a"]).await;
    assert_eq!((answer.status, answer.json()), (200, direct.json()));
    routing.abort();
}
