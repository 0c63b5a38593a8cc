//! Whom a client of TLS trusts.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;

use crate::tls::TlsError;

/// Whom a client trusts: those who are proven by certificates. TLS 1.2 and 1.3, by rustls with its provider `ring`.
#[derive(Debug, Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Whoever the certificates of a file have signed, as PEM, and nobody else.
    ///
    /// # Errors
    /// A file that cannot be read, or has no certificate that can sign others.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        let path = path.as_ref();
        let wrong = |detail: String| TlsError {
            path: path.to_owned(),
            detail,
        };
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(path);
        for certificate in certificates.map_err(|error| wrong(error.to_string()))? {
            certificate
                .map_err(|error| error.to_string())
                .and_then(|one| roots.add(one).map_err(|error| error.to_string()))
                .map_err(wrong)?;
        }
        if roots.is_empty() {
            return Err(wrong("there is no certificate in it".into()));
        }
        let config = begun(Arc::new(ring::default_provider()))
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Whoever the system trusts.
    ///
    /// # Errors
    /// A system without certificates.
    pub fn system() -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new(Arc::clone(&provider))?;
        let config = begun(provider)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Nobody, for a client that opens no connection of TLS.
    ///
    /// # Errors
    /// None that is known: that rustls has no versions for its own provider.
    pub fn nobody() -> Result<Self, rustls::Error> {
        let config = begun(Arc::new(ring::default_provider()))?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// What connections are made by; it names no version of HTTP.
    pub fn config(&self) -> ClientConfig {
        (*self.0).clone()
    }
}

fn begun(
    provider: Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}
