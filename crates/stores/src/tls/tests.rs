//! Tests with servers that use the same TLS library, and with certificates that are created for each test.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::certificates::{Authority, Pair};

const NAMES: TlsProperties = TlsProperties { prefix: "redis", switch: "redis.tls=true" };
const LAST_YEAR: i32 = 2049;

/// A server that uses the certificate of `pair`. If `clients` is set, the server requires a client certificate from
/// this authority.
pub fn acceptor(pair: &Pair, clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = match clients {
        None => builder.unwrap().with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.unwrap().with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
}

/// Issues an authority's certificate for these hosts.
pub fn issue(authority: &Authority, hosts: &[&str]) -> Pair {
    authority.issue("server", &strings(hosts), LAST_YEAR).unwrap()
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// The files of a test.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn request(&self, authority: &Authority) -> TlsRequest {
        TlsRequest { ca: Some(self.write("ca.pem", authority.pem())), ..TlsRequest::default() }
    }

    /// A client that trusts this authority.
    pub fn trust_authority(&self, authority: &Authority) -> Tls {
        configure(self.request(authority))
    }
}

fn configure(request: TlsRequest) -> Tls {
    request.configure(true, NAMES, &[]).unwrap().unwrap()
}

fn run_on_executor<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

/// Connects to an echo server under the name `localhost`, and exchanges a few bytes.
async fn exchange(tls: &Tls, acceptor: TlsAcceptor) -> Result<Stream, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        let (socket, _) = listener.accept().await.unwrap();
        if let Ok(mut stream) = acceptor.accept(socket).await {
            let mut bytes = [0; 5];
            while stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
    });
    let socket = TcpStream::connect(address).await.unwrap();
    let mut stream = Stream::new(socket, Some(tls), "localhost", "HOST").await?;
    assert!(stream.is_open(), "tickets of the server may wait to be read");
    let mut bytes = [0; 5];
    let exchanged = async {
        stream.write_all(b"hello").await?;
        stream.flush().await?;
        stream.read_exact(&mut bytes).await
    };
    match exchanged.await {
        Ok(_) => Ok(stream),
        Err(error) => Err(failure_of(&error, "HOST")),
    }
}

fn refusal(tls: &Tls, acceptor: TlsAcceptor) -> (TlsFault, String) {
    let failure = run_on_executor(exchange(tls, acceptor)).unwrap_err();
    match failure.connect {
        Some(ConnectError::Tls(fault)) => (fault, failure.message),
        other => panic!("{other:?}: {failure}"),
    }
}

#[test]
fn trusted_servers_are_connected() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let stream = run_on_executor(exchange(
        &files.trust_authority(&authority),
        acceptor(&issue(&authority, &["localhost"]), None),
    ));
    let encryption = stream.unwrap().encryption().unwrap();
    assert!(encryption.starts_with("TLS 1.3, TLS_") && !encryption.contains('"'), "{encryption}");
}

#[test]
fn wrong_certificates_have_a_line_each() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let tls = files.trust_authority(&authority);
    // A second CA with the same name has a different key, so the signature is wrong.
    for name in ["other CA", "CA"] {
        let other = Authority::new(name).unwrap();
        let (fault, message) = refusal(&tls, acceptor(&issue(&other, &["localhost"]), None));
        assert_eq!((fault, &*message), (TlsFault::Issuer, "the certificate of HOST is not signed by the CA"), "{name}");
    }
    let (fault, message) = refusal(&tls, acceptor(&issue(&authority, &["db.example", "10.0.0.1"]), None));
    assert_eq!(fault, TlsFault::Name);
    assert_eq!(message, "the certificate of HOST is for db.example, 10.0.0.1, not for localhost");
    let (fault, message) = refusal(&tls, acceptor(&issue(&authority, &[]), None));
    assert_eq!((fault, &*message), (TlsFault::Name, "the certificate of HOST is for no name, not for localhost"));
    let expired = authority.issue("server", &strings(&["localhost"]), 2020).unwrap();
    let (fault, message) = refusal(&tls, acceptor(&expired, None));
    assert!(message.starts_with("the certificate of HOST expired ") && message.ends_with(" days ago"), "{message}");
    assert_eq!(fault, TlsFault::Time);
}

#[test]
fn less_is_verified_on_request() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let request = || files.request(&authority);
    let named = acceptor(&issue(&authority, &["db.example"]), None);
    let connect = |request: TlsRequest| run_on_executor(exchange(&configure(request), named.clone())).is_ok();
    assert!(!connect(request()));
    assert!(connect(TlsRequest { verify: Some(Verify::Ca), ..request() }));
    assert!(connect(TlsRequest { name: Some("db.example".to_owned()), ..request() }));
    assert!(connect(TlsRequest { verify: Some(Verify::None), ..TlsRequest::default() }));
    let hosts = strings(&["10.0.0.1", "db.example"]);
    let tls = request().configure(true, NAMES, &hosts).unwrap().unwrap();
    assert!(run_on_executor(exchange(&tls, named.clone())).is_ok(), "a contact point has this name");
    // Without the CA, a matching name is useless. An expired certificate is refused whatever its name.
    let other = acceptor(&issue(&Authority::new("CA").unwrap(), &["db.example"]), None);
    assert_eq!(refusal(&configure(TlsRequest { verify: Some(Verify::Ca), ..request() }), other).0, TlsFault::Issuer);
    let expired = acceptor(&authority.issue("server", &hosts, 2020).unwrap(), None);
    assert_eq!(refusal(&configure(TlsRequest { verify: Some(Verify::Ca), ..request() }), expired).0, TlsFault::Time);
}

#[test]
fn client_certificates_are_sent() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let server = issue(&authority, &["localhost"]);
    let trusted = files.request(&authority);
    let client = |authority: &Authority, name: &str| {
        let pair = authority.issue("client", &[], LAST_YEAR).unwrap();
        let certificate = Some(files.write(&format!("{name}.pem"), &pair.certificate));
        TlsRequest { certificate, key: Some(files.write(&format!("{name}.key"), &pair.key)), ..trusted.clone() }
    };
    let strict = || acceptor(&server, Some(&authority));
    let own = client(&authority, "own");
    let tls = configure(own.clone());
    run_on_executor(exchange(&tls, strict())).unwrap();
    assert!(!format!("{tls:?}").to_lowercase().contains("key"), "{tls:?}");
    // A reset may arrive before the alert.
    let (fault, message) = refusal(&files.trust_authority(&authority), strict());
    assert!(matches!(fault, TlsFault::ClientCertificate | TlsFault::Closed), "{message}");
    let stranger = client(&Authority::new("other CA").unwrap(), "stranger");
    let (fault, message) = refusal(&configure(stranger), strict());
    assert!(matches!(fault, TlsFault::ClientCertificate | TlsFault::Closed), "{message}");
    let mixed = TlsRequest { key: Some(files.write("other.key", &issue(&authority, &[]).key)), ..own };
    assert!(mixed.configure(true, NAMES, &[]).unwrap_err().message.contains("do not match"));
}

#[test]
fn plain_ports_are_recognised() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let tls = files.trust_authority(&authority);
    for (reply, expected, fault) in [
        ("-ERR unknown command\r\n", "HOST does not respond with TLS", TlsFault::Plain),
        ("", "HOST closed the connection in the TLS handshake", TlsFault::Closed),
    ] {
        let failure = run_on_executor(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::task::spawn_local(async move {
                let (mut socket, _) = listener.accept().await.unwrap();
                // Unread bytes would make the kernel reset the connection, and the reply would be lost.
                let _ = socket.read(&mut [0; 4_096]).await;
                socket.write_all(reply.as_bytes()).await.unwrap();
            });
            let socket = TcpStream::connect(address).await.unwrap();
            Stream::new(socket, Some(&tls), "localhost", "HOST").await.unwrap_err()
        });
        assert_eq!((failure.message.as_str(), failure.connect), (expected, Some(ConnectError::Tls(fault))));
    }
}

#[test]
fn closed_connections_are_not_open() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let (tls, acceptor) = (files.trust_authority(&authority), acceptor(&issue(&authority, &["localhost"]), None));
    run_on_executor(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::task::spawn_local(async move {
            let (socket, _) = listener.accept().await.unwrap();
            acceptor.accept(socket).await.unwrap().shutdown().await.unwrap();
        });
        let socket = TcpStream::connect(address).await.unwrap();
        let mut stream = Stream::new(socket, Some(&tls), "localhost", "HOST").await.unwrap();
        server.await.unwrap();
        while stream.is_open() {
            tokio::task::yield_now().await;
        }
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the server closed the connection cleanly");
    });
}

#[test]
fn unusable_settings_have_a_hint() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let some = |text: &str| Some(text.to_owned());
    let request = || files.request(&authority);
    let text = "text, and -----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let none = Some(files.write("none.pem", text));
    let certificate = Some(files.write("certificate.pem", &issue(&authority, &[]).certificate));
    for (request, expected) in [
        (TlsRequest::default(), "redis.tls.ca is not set"),
        (TlsRequest { ca: some("/no/ca.pem"), ..TlsRequest::default() }, "cannot read /no/ca.pem: No such file"),
        (TlsRequest { ca: none.clone(), ..TlsRequest::default() }, "there is no PEM certificate in "),
        (
            TlsRequest { name: some("a b"), ..request() },
            "redis.tls.name must be a host name or an address, got \"a b\"",
        ),
        (TlsRequest { key: some("k"), ..request() }, "redis.tls.certificate and redis.tls.key must be set together"),
        (TlsRequest { certificate, key: none, ..request() }, "there is no unencrypted PEM key in "),
    ] {
        let error = request.configure(true, NAMES, &[]).unwrap_err();
        assert!(error.is_usage() && error.hint.is_some() && error.message.starts_with(expected), "{error}");
        assert!(!error.message.contains("c2VjcmV0"), "{error}");
    }
    let error = request().configure(false, NAMES, &[]).unwrap_err();
    assert_eq!(error.message, "redis.tls.ca has no effect without redis.tls=true");
    assert!(TlsRequest::default().configure(false, NAMES, &[]).unwrap().is_none());
}

#[test]
fn every_fault_has_a_hint() {
    for (fault, property) in [
        (TlsFault::Issuer, "redis.tls.ca"),
        (TlsFault::Name, "redis.tls.name"),
        (TlsFault::Time, "certificate"),
        (TlsFault::Plain, "redis.tls=true"),
        (TlsFault::Closed, "redis.tls=true"),
        (TlsFault::Required, "redis.tls=true"),
        (TlsFault::ClientCertificate, "redis.tls.certificate"),
        (TlsFault::Other, "redis.tls.ca"),
    ] {
        assert!(NAMES.hint(fault).contains(property), "{fault:?}");
    }
}
