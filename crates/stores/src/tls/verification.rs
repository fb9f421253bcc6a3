//! Verifies servers, and explains why a verification failed.

use std::io;
use std::sync::Arc;

use loadstone_load::Status;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, DigitallySignedStruct, SignatureScheme};

use super::properties::Verify;
use crate::error::{ConnectError, Failure, TlsFault};

/// Verifies a server's certificate by the library's rules, but compares the certificate's names with several hosts.
#[derive(Debug)]
pub struct Verifier {
    /// The library's rules; `None` if nothing is verified.
    pub chain: Option<Arc<WebPkiServerVerifier>>,
    pub verify: Verify,
    /// The certificate must have at least one of these names.
    pub hosts: Vec<ServerName<'static>>,
    pub provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        let verify = |name| chain.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        let verified = verify(server_name);
        // The library compares names last, after it has verified signatures and dates.
        let named = |result: &Result<_, rustls::Error>| {
            !matches!(
                result,
                Err(rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
                ))
            )
        };
        if named(&verified) {
            return verified;
        }
        if self.verify == Verify::Ca {
            return Ok(ServerCertVerified::assertion());
        }
        self.hosts.iter().map(verify).find(Result::is_ok).unwrap_or(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The failure of a handshake, or of a connection that the server closed after the handshake.
pub fn failure_of(error: &io::Error, place: &str) -> Failure {
    let (fault, message) = explain(error, place);
    let status = if fault == TlsFault::ClientCertificate { Status::Forbidden } else { Status::ServiceUnavailable };
    Failure::new(status, message).connecting(ConnectError::Tls(fault))
}

/// The cause of an error from the library, and a line that explains it.
pub fn explain(error: &io::Error, place: &str) -> (TlsFault, String) {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let certificate = |text: &str| format!("the certificate of {place} {text}");
    let Some(cause) = cause else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                (TlsFault::Closed, format!("{place} closed the connection in the TLS handshake"))
            }
            _ => (TlsFault::Other, format!("TLS with {place} failed: {error}")),
        };
    };
    match cause {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                (TlsFault::Issuer, certificate("is not signed by the CA"))
            }
            CertificateError::Expired => (TlsFault::Time, certificate("has expired")),
            CertificateError::ExpiredContext { time, not_after } => {
                let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
                (TlsFault::Time, certificate(&format!("expired {days} days ago")))
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                (TlsFault::Time, certificate("is not valid yet"))
            }
            CertificateError::NotValidForName => (TlsFault::Name, certificate("has a different name")),
            CertificateError::NotValidForNameContext { expected, presented } => {
                let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
                let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
                (TlsFault::Name, certificate(&format!("is for {names}, not for {}", expected.to_str())))
            }
            other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                (TlsFault::Other, certificate("is a CA certificate, which a server cannot use"))
            }
            _ => (TlsFault::Other, certificate("cannot be verified")),
        },
        rustls::Error::InvalidMessage(_) => (TlsFault::Plain, format!("{place} does not respond with TLS")),
        rustls::Error::AlertReceived(alert) => {
            let refused = matches!(
                alert,
                AlertDescription::CertificateRequired
                    | AlertDescription::BadCertificate
                    | AlertDescription::UnsupportedCertificate
                    | AlertDescription::CertificateRevoked
                    | AlertDescription::CertificateExpired
                    | AlertDescription::CertificateUnknown
                    | AlertDescription::UnknownCA
                    | AlertDescription::AccessDenied
            );
            let text = alert.as_str().unwrap_or("unknown");
            if refused {
                (TlsFault::ClientCertificate, format!("{place} refuses the client's certificate (alert {text})"))
            } else {
                (TlsFault::Other, format!("{place} refuses the TLS handshake (alert {text})"))
            }
        }
        other => (TlsFault::Other, format!("TLS with {place} failed: {other}")),
    }
}

/// A name without the library's notation, which is `DnsName("a")` or `IpAddress(127.0.0.1)`.
fn plain_name(text: &str) -> &str {
    text.split_once('(').map_or(text, |(_, name)| name.trim_end_matches(')').trim_matches('"'))
}
