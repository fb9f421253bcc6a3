//! TLS for stores that reach a server by host and port, with PEM files.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use loadstone_load::Status;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::{ConnectError, Failure, StoreError, TlsFault};
use crate::options::Options;
use crate::remote;

/// The names of a store's properties for TLS.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// The beginning of the properties: `redis` for `redis.tls.ca`.
    pub prefix: &'static str,
    /// The property that requests TLS, with its value.
    pub switch: &'static str,
}

impl Properties {
    fn property(self, name: &str) -> String {
        format!("{}.tls.{name}", self.prefix)
    }

    /// The next step after a failure.
    pub fn hint(self, fault: TlsFault) -> String {
        let property = |name| self.property(name);
        match fault {
            TlsFault::Issuer => format!("set {} to the PEM file of the CA that signed it", property("ca")),
            TlsFault::Name => {
                format!("set {} to a name in the certificate, or {}=ca", property("name"), property("verify"))
            }
            TlsFault::Time => "renew the certificate, and check this host's clock".to_owned(),
            TlsFault::Plain => format!("use the server's port for TLS, or leave out {}", self.switch),
            TlsFault::Required => format!("does it require TLS? add {}", self.switch),
            TlsFault::ClientCertificate => format!(
                "set {} and {} to a certificate that the server accepts",
                property("certificate"),
                property("key")
            ),
            TlsFault::Other => {
                format!("check {} and the server's certificate, versions and cipher suites", property("ca"))
            }
        }
    }
}

/// The extent to which a server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Its signature and its name.
    Full,
    /// Its signature.
    Ca,
    /// Nothing: the connection is encrypted, and the server may be any.
    None,
}

impl Verify {
    /// As the property has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Ca => "ca",
            Self::None => "none",
        }
    }
}

/// The files and the name for TLS, before they are read.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The PEM file with the certificates of authorities.
    pub ca: Option<String>,
    /// The PEM file with the client's certificate and its chain.
    pub certificate: Option<String>,
    /// The PEM file with the client's key.
    pub key: Option<String>,
    /// The name that the server's certificate must have.
    pub name: Option<String>,
    /// What is verified; `None`: everything.
    pub verify: Option<Verify>,
}

impl Request {
    /// Reads the properties of a store.
    pub fn read(options: &Options, names: Properties) -> Result<Self, StoreError> {
        let get = |name| options.get(&names.property(name)).map(str::to_owned);
        let verify = match get("verify").as_deref() {
            None => None,
            Some("full") => Some(Verify::Full),
            Some("ca") => Some(Verify::Ca),
            Some("none") => Some(Verify::None),
            Some(other) => {
                let message = format!("{} must be full, ca or none, got \"{other}\"", names.property("verify"));
                return Err(StoreError::usage(message).hint("the default is full: the CA and the name"));
            }
        };
        Ok(Self { ca: get("ca"), certificate: get("certificate"), key: get("key"), name: get("name"), verify })
    }

    /// The configuration, if TLS is requested. A property without effect is an error.
    pub fn configure(self, requested: bool, names: Properties, hosts: &[String]) -> Result<Option<Tls>, StoreError> {
        if requested {
            return Tls::new(&self, names, hosts).map(Some);
        }
        let Self { ca, certificate, key, name, verify } = &self;
        let set = [("ca", ca), ("certificate", certificate), ("key", key), ("name", name)];
        let set = set.into_iter().find(|(_, value)| value.is_some()).map(|(name, _)| name);
        match set.or(verify.map(|_| "verify")) {
            None => Ok(None),
            Some(name) => {
                let message = format!("{} has no effect without {}", names.property(name), names.switch);
                Err(StoreError::usage(message).hint(format!("add {}", names.switch)))
            }
        }
    }
}

/// How a store's connections are encrypted.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
    verify: Verify,
}

// Keys are in the configuration.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).field("verify", &self.verify).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. `hosts` are the servers as the user named them: a certificate may have any of these names.
    fn new(request: &Request, names: Properties, hosts: &[String]) -> Result<Self, StoreError> {
        let verify = request.verify.unwrap_or(Verify::Full);
        let provider = Arc::new(ring::default_provider());
        let roots = match &request.ca {
            Some(path) => Some(read_roots(path, names)?),
            None if verify == Verify::None => None,
            None => {
                let message = format!("{} is not set", names.property("ca"));
                let hint =
                    format!("name the CA's PEM file, or encrypt without a check: {}=none", names.property("verify"));
                return Err(StoreError::usage(message).hint(hint));
            }
        };
        let name = match &request.name {
            None => None,
            Some(text) => Some(ServerName::try_from(text.clone()).map_err(|_| {
                StoreError::usage(format!(
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
                        StoreError::failed(format!("the CA's certificates cannot be used: {error}"))
                    })?,
                )
            }
        };
        let verifier = Verifier { chain, verify, hosts, provider: Arc::clone(&provider) };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::failed(format!("internal error: TLS has no versions: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&request.certificate, &request.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = read_certificates(certificate, names, "certificate")?;
                builder.with_client_auth_cert(chain, read_key(key, names)?).map_err(|error| {
                    StoreError::usage(format!(
                        "the certificate in {certificate} and the key in {key} do not fit: {error}"
                    ))
                    .hint("the two files must be of one pair")
                })?
            }
            (Some(_), None) | (None, Some(_)) => {
                let (certificate, key) = (names.property("certificate"), names.property("key"));
                return Err(StoreError::usage(format!("{certificate} and {key} must be set together"))
                    .hint("a client's certificate is of no use without its key"));
            }
        };
        Ok(Self { config: Arc::new(config), name, verify })
    }

    /// What is verified.
    #[cfg(test)]
    pub fn verify(&self) -> Verify {
        self.verify
    }

    /// The name that is verified on a server.
    fn server_name(&self, host: &str) -> Result<ServerName<'static>, Failure> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => ServerName::try_from(host.to_owned()).map_err(|_| {
                let message = format!("\"{host}\" cannot be in a certificate");
                Failure::new(Status::Error, message).connecting(ConnectError::Tls(TlsFault::Name))
            }),
        }
    }

    /// Encrypts a connection. `place` names the server in messages.
    pub async fn connect<S>(&self, stream: S, host: &str, place: &str) -> Result<TlsStream<S>, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = self.server_name(host)?;
        let connected = TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await;
        connected.map_err(|error| failure_of(&error, place))
    }

    /// The failure of a server that did not finish the handshake in time.
    pub fn timeout(place: &str, late: &dyn fmt::Display) -> Failure {
        Failure::new(Status::Timeout, format!("no TLS handshake with {place}: {late}"))
            .connecting(ConnectError::Tls(TlsFault::Plain))
    }
}

fn read_certificates(path: &str, names: Properties, name: &str) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let hint = || format!("check {}", names.property(name));
    let text = read_file(path, names, name)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(StoreError::usage(format!("there is no PEM certificate in {path}")).hint(hint())),
    }
}

fn read_file(path: &str, names: Properties, name: &str) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|error| {
        StoreError::usage(format!("cannot read {path}: {error}")).hint(format!("check {}", names.property(name)))
    })
}

fn read_roots(path: &str, names: Properties) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path, names, "ca")? {
        roots.add(certificate).map_err(|error| {
            StoreError::usage(format!("a certificate in {path} is not a CA's: {error}"))
                .hint(format!("check {}", names.property("ca")))
        })?;
    }
    Ok(roots)
}

fn read_key(path: &str, names: Properties) -> Result<PrivateKeyDer<'static>, StoreError> {
    // The library's own message may have the text of the file.
    PrivateKeyDer::from_pem_slice(&read_file(path, names, "key")?).map_err(|_| {
        StoreError::usage(format!("there is no unencrypted PEM key in {path}"))
            .hint(format!("openssl pkey -in {path} -out FILE decrypts one"))
    })
}

/// Verifies a server's certificate by the rules of the library, and compares its names with more than one host.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    verify: Verify,
    hosts: Vec<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
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
        // The library compares names last, after the signatures and dates.
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

/// The failure of a handshake, or of a connection that the server ended after it.
fn failure_of(error: &io::Error, place: &str) -> Failure {
    let (fault, message) = explain(error, place);
    let status = if fault == TlsFault::ClientCertificate { Status::Forbidden } else { Status::ServiceUnavailable };
    Failure::new(status, message).connecting(ConnectError::Tls(fault))
}

/// The cause in an error of the library, and a line about it.
pub fn explain(error: &io::Error, place: &str) -> (TlsFault, String) {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let certificate = |text: &str| format!("the certificate of {place} {text}");
    let Some(cause) = cause else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                (TlsFault::Plain, format!("{place} closed the connection in the TLS handshake"))
            }
            _ => (TlsFault::Other, format!("no TLS with {place}: {error}")),
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
            CertificateError::NotValidForName => (TlsFault::Name, certificate("has another name")),
            CertificateError::NotValidForNameContext { expected, presented } => {
                let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
                let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
                (TlsFault::Name, certificate(&format!("is for {names}, not for {}", expected.to_str())))
            }
            other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                (TlsFault::Other, certificate("is a CA's, which cannot be a server's, too"))
            }
            _ => (TlsFault::Other, certificate("cannot be verified")),
        },
        rustls::Error::InvalidMessage(_) => (TlsFault::Plain, format!("{place} does not answer in TLS")),
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
        other => (TlsFault::Other, format!("no TLS with {place}: {other}")),
    }
}

/// A name without the notation of the library: `DnsName("a")`, `IpAddress(127.0.0.1)`.
fn plain_name(text: &str) -> &str {
    text.split_once('(').map_or(text, |(_, name)| name.trim_end_matches(')').trim_matches('"'))
}

/// A connection, encrypted or not.
#[derive(Debug)]
pub enum Stream {
    /// Not encrypted.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Encrypts a connection if the store is to.
    pub async fn new(stream: TcpStream, tls: Option<&Tls>, host: &str, place: &str) -> Result<Self, Failure> {
        match tls {
            None => Ok(Self::Plain(stream)),
            Some(tls) => tls.connect(stream, host, place).await.map(|stream| Self::Tls(Box::new(stream))),
        }
    }

    /// The version of the protocol and the cipher suite; `None` without TLS.
    pub fn encryption(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => Some(encryption(stream.get_ref().1)),
        }
    }

    /// A line about the end of an encrypted connection, where the error is of TLS: since version 1.3, a server refuses a
    /// client's certificate after the handshake (RFC 8446, appendix E.1.2).
    pub fn explain(&self, error: &io::Error, place: &str) -> Option<String> {
        let of_tls = error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
        (of_tls && matches!(self, Self::Tls(_))).then(|| explain(error, place).1)
    }

    /// Whether the peer has not closed the connection. Unread bytes mean a closed one without TLS, where a server sends none
    /// without a request; TLS has messages between requests, such as tickets.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Plain(stream) => remote::is_open(stream),
            Self::Tls(_) => !remote::is_ended(self),
        }
    }
}

/// The fact about encryption in results.
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

/// The version of the protocol and the cipher suite of a connection.
pub fn encryption(session: &rustls::ClientConnection) -> String {
    let version = session.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
    let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    let suite = suite.unwrap_or("unknown").replace("TLS13_", "TLS_");
    format!("{}, {suite}", version.replace("TLSv1_", "TLS 1."))
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Plain(stream) => stream.as_raw_fd(),
            Self::Tls(stream) => stream.as_raw_fd(),
        }
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
pub mod tests;
