//! TLS on the server's port: a real client of rustls, and certificates that the test signs itself.

use std::net::SocketAddr;
use std::time::Duration;

use isovec::EmbeddingConfig;
use isovec_serve::{ServeOptions, Tls};
use rustls::RootCertStore;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{self, Answer};
use crate::grpc;
use crate::http2;
use crate::running::{MODEL, Running, options, tiny};
use crate::signed::{Signed, connect};

fn read(signed: &Signed) -> Tls {
    Tls::read(signed.path("cert.pem"), signed.path("key.pem")).unwrap()
}

fn with(tls: &Tls) -> ServeOptions {
    let mut options = options();
    options.tls = Some(tls.clone());
    options
}

async fn send(address: SocketAddr, trusted: &RootCertStore, request: &[u8]) -> Answer {
    let mut stream = connect(address, trusted, &[b"http/1.1"]).await.unwrap();
    stream.write_all(request).await.unwrap();
    client::read(&mut stream).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_and_2_and_grpc_go_through_tls() {
    let signed = Signed::new();
    let server = secure(with(&read(&signed)), &signed.trusted).await;
    let body = json!({"model": MODEL, "input": "a text"}).to_string();
    let asked = client::post("/v1/embeddings", "", body.as_bytes());
    let answer = send(server.address, &signed.trusted, &asked).await;
    let wanted = server.model.embed_one("a text").await.unwrap();
    assert_eq!(answer.vector(), wanted);

    // Both are offered, and the server takes HTTP/2, which is all that gRPC has.
    let versions: [&[u8]; 2] = [b"http/1.1", b"h2"];
    let stream = connect(server.address, &signed.trusted, &versions)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let message = grpc::framed(&[]);
    let called = grpc::call_on(
        stream,
        "inference.GRPCInferenceService/ServerLive",
        &[],
        &message,
    )
    .await;
    assert_eq!(
        (&*called.status, called.body),
        ("0", grpc::framed(&[1 << 3, 1]))
    );

    // Without a word about versions, the first bytes tell.
    let mut stream = connect(server.address, &signed.trusted, &[]).await.unwrap();
    stream
        .write_all(&client::get("/health/live"))
        .await
        .unwrap();
    assert_eq!(client::read(&mut stream).await.unwrap().status, 200);
    let large = vec!["word ".repeat(400); 200];
    let body = json!({"model": MODEL, "input": large}).to_string();
    let asked = client::post("/v1/embeddings", "", body.as_bytes());
    assert_eq!(
        send(server.address, &signed.trusted, &asked).await.status,
        200
    );
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_chosen_is_the_only_one() {
    let signed = Signed::new();
    let server = secure(with(&read(&signed)), &signed.trusted).await;
    let live = client::get("/health/live");
    for (chosen, sent) in [(&b"h2"[..], &live[..]), (b"http/1.1", http2::PREFACE)] {
        let mut stream = connect(server.address, &signed.trusted, &[chosen])
            .await
            .unwrap();
        stream.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        // It may be closed without a word.
        let _ = stream.read_to_end(&mut answer).await;
        match chosen {
            // Settings, before anything was read, and nothing that answers the request.
            b"h2" => assert!(!answer.starts_with(b"HTTP/1"), "{answer:?}"),
            _ => assert!(
                answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"),
                "{answer:?}"
            ),
        }
    }
    let answer = send(server.address, &signed.trusted, &live).await;
    assert_eq!(answer.status, 200);
    server.stop().await.unwrap();
}

/// A server that answers only over TLS.
async fn secure(options: ServeOptions, trusted: &RootCertStore) -> Running {
    let model = tiny(EmbeddingConfig::default()).await;
    let server = Running::begin(model, options).await;
    let info = client::get("/info");
    while send(server.address, trusted, &info).await.status == 503 {
        tokio::task::yield_now().await;
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_exchanged_is_used_for_new_connections() {
    let mut signed = Signed::new();
    let tls = read(&signed);
    let server = secure(with(&tls), &signed.trusted).await;
    let address = server.address;
    let live = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut open = connect(address, &signed.trusted, &[]).await.unwrap();
    let before = signed.trusted.clone();
    signed.sign();
    assert!(
        connect(address, &before, &[]).await.is_ok(),
        "nobody has told the server"
    );
    tls.reload().unwrap();
    assert!(connect(address, &before, &[]).await.is_err());
    let answer = send(address, &signed.trusted, &client::get("/health/live")).await;
    assert_eq!(answer.status, 200);
    // Who is there already is not asked to leave.
    open.write_all(live).await.unwrap();
    let mut head = [0; 12];
    open.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");

    // A file that is being written is no certificate, and changes nothing.
    std::fs::write(signed.path("cert.pem"), "-----BEGIN CERT").unwrap();
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.contains("cert.pem"), "{error}");
    let answer = send(address, &signed.trusted, &client::get("/health/live")).await;
    assert_eq!(answer.status, 200);
    server.stop().await.unwrap();
}

#[test]
fn files_that_are_no_certificate_and_its_key_are_named() {
    let signed = Signed::new();
    let path = |name: &str| signed.path(name);
    let other = Signed::new();
    std::fs::write(path("empty.pem"), "").unwrap();
    for (certificate, key, said) in [
        (path("no.pem"), path("key.pem"), "no.pem"),
        (path("cert.pem"), path("no.pem"), "no.pem"),
        (
            path("empty.pem"),
            path("key.pem"),
            "empty.pem: there is no certificate",
        ),
        (path("key.pem"), path("key.pem"), "there is no certificate"),
        (path("cert.pem"), path("cert.pem"), "cert.pem"),
        (path("cert.pem"), other.path("key.pem"), "key.pem"),
    ] {
        let error = Tls::read(certificate, key).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_shake_hands_are_not_waited_for() {
    let signed = Signed::new();
    let mut options = with(&read(&signed));
    options.read_timeout = Duration::from_millis(200);
    options.max_connections = 4;
    let server = secure(options, &signed.trusted).await;
    let hello = [0x16, 3, 1, 2, 0];
    // Silent ones, one that stops in the middle of its first message, one of plain HTTP: each takes a place and gives it back.
    for first in [&[][..], &hello, b"GET / HTTP/1.1\r\nhost: test\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(first).await.unwrap();
        let mut rest = Vec::new();
        // It may be reset.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
    }
    // The same after the handshake: nothing, and a part of what begins HTTP/2.
    for first in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let mut stream = connect(server.address, &signed.trusted, &[b"h2"])
            .await
            .unwrap();
        stream.write_all(first).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert_eq!(rest, b"");
    }
    let answer = send(
        server.address,
        &signed.trusted,
        &client::get("/health/live"),
    )
    .await;
    assert_eq!(answer.status, 200);
    // Nor does a drain wait for them.
    let silent = TcpStream::connect(server.address).await.unwrap();
    let idle = connect(server.address, &signed.trusted, &[]).await.unwrap();
    server.stop().await.unwrap();
    drop((silent, idle));
}
