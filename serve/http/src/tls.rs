//! TLS by rustls, with its provider `ring`: a certificate and a key out of files, which can be read again while connections are open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The name of HTTP/2 in a handshake.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// The versions of HTTP that a client may choose in the handshake (RFC 7301), the better one first.
const VERSIONS: [&[u8]; 2] = [HTTP_2, b"http/1.1"];

/// A file of a certificate or a key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {detail}", .path.display())]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub detail: String,
}

/// What a server proves to be, and how it encrypts: TLS 1.2 and 1.3, with HTTP/1.1 and HTTP/2. Clones are the same.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    certificates: PathBuf,
    key: PathBuf,
    now: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its key, both as PEM.
    ///
    /// # Errors
    /// A file that cannot be read or has no such thing, and a key that is not the certificate's.
    pub fn read(
        certificates: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let (certificates, key) = (certificates.into(), key.into());
        let now = RwLock::new(read(&certificates, &key)?);
        Ok(Self(Arc::new(Shared {
            certificates,
            key,
            now,
        })))
    }

    /// Reads the same files again: connections that are opened from now on get what they hold, and those that are open go on.
    ///
    /// # Errors
    /// As [`read`](Self::read); then nothing has changed.
    pub fn reload(&self) -> Result<(), TlsError> {
        let new = read(&self.0.certificates, &self.0.key)?;
        *self.0.now.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// What a new connection is accepted by.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let now = self.0.now.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&now).into()
    }
}

fn read(certificates: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let wrong = |path: &Path, detail: String| TlsError {
        path: path.to_owned(),
        detail,
    };
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificates, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificates, "there is no certificate in it".into()));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_no_client_auth())
        .and_then(|builder| builder.with_single_cert(chain, private))
        .map_err(|error| wrong(key, error.to_string()))?;
    config.alpn_protocols = VERSIONS.map(<[u8]>::to_vec).into();
    Ok(Arc::new(config))
}
