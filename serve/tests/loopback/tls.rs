//! TLS on the server's port: a real client of rustls, and certificates that the test signs itself.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isovec::EmbeddingConfig;
use isovec_serve::{ServeOptions, Tls};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::{self, Answer};
use crate::grpc;
use crate::running::{MODEL, Running, options, tiny};

/// A folder with a certificate of its own, and what a client trusts that trusts no other.
struct Signed {
    folder: TempDir,
    trusted: RootCertStore,
}

impl Signed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trusted = sign(folder.path());
        Self { folder, trusted }
    }

    fn read(&self) -> Tls {
        let path = self.folder.path();
        Tls::read(path.join("cert.pem"), path.join("key.pem")).unwrap()
    }
}

/// Writes a new certificate and its key, and returns what trusts it.
fn sign(folder: &Path) -> RootCertStore {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
    let mut trusted = RootCertStore::empty();
    trusted.add(cert.der().clone()).unwrap();
    trusted
}

fn with(tls: &Tls) -> ServeOptions {
    let mut options = options();
    options.tls = Some(tls.clone());
    options
}

async fn connect(
    address: SocketAddr,
    trusted: &RootCertStore,
    versions: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted.clone())
        .with_no_client_auth();
    config.alpn_protocols = versions.iter().map(|version| version.to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

async fn send(address: SocketAddr, trusted: &RootCertStore, request: &[u8]) -> Answer {
    let mut stream = connect(address, trusted, &[b"http/1.1"]).await.unwrap();
    stream.write_all(request).await.unwrap();
    client::read(&mut stream).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_and_2_and_grpc_go_through_tls() {
    let signed = Signed::new();
    let server = secure(with(&signed.read()), &signed.trusted).await;
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
    let tls = signed.read();
    let server = secure(with(&tls), &signed.trusted).await;
    let address = server.address;
    let live = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut open = connect(address, &signed.trusted, &[]).await.unwrap();
    let before = signed.trusted.clone();
    signed.trusted = sign(signed.folder.path());
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
    std::fs::write(signed.folder.path().join("cert.pem"), "-----BEGIN CERT").unwrap();
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.contains("cert.pem"), "{error}");
    let answer = send(address, &signed.trusted, &client::get("/health/live")).await;
    assert_eq!(answer.status, 200);
    server.stop().await.unwrap();
}

#[test]
fn files_that_are_no_certificate_and_its_key_are_named() {
    let signed = Signed::new();
    let path = |name: &str| signed.folder.path().join(name);
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
        (
            path("cert.pem"),
            other.folder.path().join("key.pem"),
            "key.pem",
        ),
    ] {
        let error = Tls::read(certificate, key).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_shake_hands_are_not_waited_for() {
    let signed = Signed::new();
    let mut options = with(&signed.read());
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
