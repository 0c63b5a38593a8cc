//! TLS between clients and a router, and between a router and replicas.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use isovec_route::{Router, Tls, Trust};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::client;
use crate::grpc;
use crate::running::{MODEL, Routing, Served, embed, options, to};
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

/// The port of a proxy that speaks TLS to clients, with the versions of HTTP that they offer, and passes all on.
async fn before(address: SocketAddr, signed: &Signed) -> u16 {
    let chain = CertificateDer::pem_file_iter(signed.path("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(signed.path("key.pem")).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).into();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                let mut server = TcpStream::connect(address).await?;
                copy_bidirectional(&mut stream, &mut server).await
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_tls_are_asked_if_they_prove_who_they_are() {
    let (signed, other) = (Signed::new(), Signed::new());
    let server = Served::start().await;
    let port = before(server.address, &signed).await;
    let target = || format!("https://localhost:{port}");
    let mut trusting = options();
    trusting.trust = Some(Trust::read(signed.path("cert.pem")).unwrap());
    let router = Routing::start(vec![target().parse().unwrap()], trusting.clone()).await;
    while router.get("/health/ready").await.status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let vectors = router.embed(&["a"]).await;
    assert_eq!(vectors.status, 200, "{vectors:?}");
    let ready = grpc::call(router.address, "ServerReady", "5S", b"\0\0\0\0\0").await;
    assert_eq!(&ready.1[..], b"\0\0\0\0\x02\x08\x01");

    // Another's certificate, another's name, and no TLS at all.
    let mut distrusting = options();
    distrusting.trust = Some(Trust::read(other.path("cert.pem")).unwrap());
    let by_number = format!("https://127.0.0.1:{port}");
    let plain = format!("https://localhost:{}", server.address.port());
    for (target, options, said) in [
        (target(), distrusting, "invalid peer certificate"),
        (by_number, trusting.clone(), "invalid peer certificate"),
        (plain, trusting, "corrupt message"),
    ] {
        let router = Routing::start(vec![target.parse().unwrap()], options).await;
        let why = loop {
            let status = router.get("/status").await.json();
            let replica = &status["replicas"][0];
            if replica["state"] == "out" {
                break replica["why"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        };
        assert!(why.contains(said), "{target}: {why}");
        assert_eq!(router.embed(&["a"]).await.status, 503, "{target}: {why}");
    }
    let none = Trust::read(signed.path("key.pem")).unwrap_err();
    assert!(none.to_string().contains("no certificate"), "{none}");
}
