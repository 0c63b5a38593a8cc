//! Certificates that a test signs itself, and a client of rustls that trusts them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A folder with `cert.pem` and `key.pem`, and what a client trusts that trusts no other.
pub(crate) struct Signed {
    folder: TempDir,
    pub(crate) trusted: RootCertStore,
}

impl Signed {
    pub(crate) fn new() -> Self {
        let mut signed = Self {
            folder: tempfile::tempdir().unwrap(),
            trusted: RootCertStore::empty(),
        };
        signed.sign();
        signed
    }

    /// Writes another certificate and its key in the place of those before, and trusts it alone.
    pub(crate) fn sign(&mut self) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(self.path("cert.pem"), cert.pem()).unwrap();
        std::fs::write(self.path("key.pem"), signing_key.serialize_pem()).unwrap();
        self.trusted = RootCertStore::empty();
        self.trusted.add(cert.der().clone()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Shakes hands, and offers these versions of HTTP.
pub(crate) async fn connect(
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
