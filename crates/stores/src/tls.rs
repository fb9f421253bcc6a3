//! TLS for stores that reach a server by host and port, with PEM files.

mod properties;
mod stream;
mod verification;

use std::fmt;
use std::sync::Arc;

use loadstone_load::Status;
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::{ConnectError, EngineError, Failure, TlsFault};
use properties::{read_certificates, read_key, read_roots};
use verification::{Verifier, failure_of};

pub use properties::{TlsProperties, TlsRequest, Verify};
pub use stream::{Stream, encryption};

/// How a store's connections are encrypted.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
    verify: Verify,
}

// The configuration contains keys, so it is not printed.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).field("verify", &self.verify).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. `hosts` are the servers as the user wrote them; a certificate may have any of these names.
    fn new(request: &TlsRequest, names: TlsProperties, hosts: &[String]) -> Result<Self, EngineError> {
        let verify = request.verify.unwrap_or(Verify::Full);
        let provider = Arc::new(ring::default_provider());
        let roots = match &request.ca {
            Some(path) => Some(read_roots(path, names)?),
            None if verify == Verify::None => None,
            None => {
                let message = format!("{} is not set", names.property("ca"));
                let hint = format!("set it to the CA's PEM file, or verify nothing: {}=none", names.property("verify"));
                return Err(EngineError::usage(message).hint(hint));
            }
        };
        let name = match &request.name {
            None => None,
            Some(text) => Some(ServerName::try_from(text.clone()).map_err(|_| {
                EngineError::usage(format!(
                    "{} must be a host name or an address, got \"{text}\"",
                    names.property("name")
                ))
                .hint("it is compared with the names in the server's certificate")
            })?),
        };
        let hosts = hosts.iter().filter_map(|host| ServerName::try_from(host.clone()).ok());
        let hosts = if name.is_some() { Vec::new() } else { hosts.collect() };
        let chain = match roots.filter(|_| verify != Verify::None) {
            None => None,
            Some(roots) => {
                let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
                Some(
                    built.map_err(|error| {
                        EngineError::failed(format!("the CA's certificates cannot be used: {error}"))
                    })?,
                )
            }
        };
        let verifier = Verifier { chain, verify, hosts, provider: Arc::clone(&provider) };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EngineError::failed(format!("internal error: TLS has no versions: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&request.certificate, &request.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = read_certificates(certificate, names, "certificate")?;
                builder.with_client_auth_cert(chain, read_key(key, names)?).map_err(|error| {
                    EngineError::usage(format!(
                        "the certificate in {certificate} and the key in {key} do not match: {error}"
                    ))
                    .hint("use a certificate and the key for which it was issued")
                })?
            }
            (Some(_), None) | (None, Some(_)) => {
                let (certificate, key) = (names.property("certificate"), names.property("key"));
                return Err(EngineError::usage(format!("{certificate} and {key} must be set together"))
                    .hint("a client's certificate is of no use without its key"));
            }
        };
        Ok(Self { config: Arc::new(config), name, verify })
    }

    /// The extent of the verification.
    #[cfg(test)]
    pub fn verify(&self) -> Verify {
        self.verify
    }

    /// The name that a server's certificate must match.
    fn server_name(&self, host: &str) -> Result<ServerName<'static>, Failure> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => ServerName::try_from(host.to_owned()).map_err(|_| {
                let message = format!("\"{host}\" is not a name that a certificate can have");
                Failure::new(Status::Error, message).connecting(ConnectError::Tls(TlsFault::Name))
            }),
        }
    }

    /// Encrypts a connection. `place` is the name of the server in messages.
    pub async fn connect<S>(&self, stream: S, host: &str, place: &str) -> Result<TlsStream<S>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = self.server_name(host)?;
        let connected = TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await;
        connected.map_err(|error| failure_of(&error, place))
    }

    /// The failure if a server did not complete the handshake in time.
    pub fn timeout(place: &str, late: &dyn fmt::Display) -> Failure {
        Failure::new(Status::Timeout, format!("no TLS handshake with {place}: {late}"))
            .connecting(ConnectError::Tls(TlsFault::Plain))
    }
}

/// The fact about encryption that is reported with a result.
pub fn fact(tls: Option<&Tls>, encryption: Option<&str>) -> String {
    match tls {
        None => "none".to_owned(),
        Some(tls) => format!("{}, verify={}", encryption.unwrap_or("TLS"), tls.verify.name()),
    }
}

/// Adds the likely reason to the failure of a connection that the server closed before its first answer.
pub fn explain_close(failure: Failure, tls: Option<&Tls>) -> Failure {
    if failure.status != Status::ServiceUnavailable {
        return failure;
    }
    failure.connecting(ConnectError::Tls(tls.map_or(TlsFault::Required, |_| TlsFault::ClientCertificate)))
}

#[cfg(test)]
pub mod tests;
