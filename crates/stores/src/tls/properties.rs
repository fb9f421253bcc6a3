//! The properties for TLS, and the PEM files that they name.

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Tls;
use crate::error::{EngineError, TlsFault};
use crate::options::Options;

/// The names of a store's properties for TLS.
#[derive(Clone, Copy, Debug)]
pub struct TlsProperties {
    /// The prefix of the property names: for example, `redis` for `redis.tls.ca`.
    pub prefix: &'static str,
    /// The property that enables TLS, with its value.
    pub switch: &'static str,
}

impl TlsProperties {
    /// The full name of a property.
    pub fn property(self, name: &str) -> String {
        format!("{}.tls.{name}", self.prefix)
    }

    /// A hint for the next step after a failure.
    pub fn hint(self, fault: TlsFault) -> String {
        let property = |name| self.property(name);
        match fault {
            TlsFault::Issuer => format!("set {} to the PEM file of the CA that signed it", property("ca")),
            TlsFault::Name => {
                format!("set {} to a name in the certificate, or {}=ca", property("name"), property("verify"))
            }
            TlsFault::Time => "renew the certificate, and check this host's clock".to_owned(),
            TlsFault::Plain | TlsFault::Closed => format!("use the server's port for TLS, or omit {}", self.switch),
            TlsFault::Required => format!("if the server requires TLS, add {}", self.switch),
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

loadstone_load::named_variants! {
    /// The extent to which a server's certificate is verified, as in the property.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verify {
        /// The certificate's signature, dates and names.
        Full = "full",
        /// The certificate's signature and dates.
        Ca = "ca",
        /// Nothing: the connection is encrypted, but anyone could pretend to be the server.
        None = "none",
    }
}

/// The files and the name for TLS, before the files are read.
#[derive(Clone, Debug, Default)]
pub struct TlsRequest {
    /// The PEM file with the certificates of the CAs.
    pub ca: Option<String>,
    /// The PEM file with the client's certificate and its chain.
    pub certificate: Option<String>,
    /// The PEM file with the client's key.
    pub key: Option<String>,
    /// The name that the server's certificate must have.
    pub name: Option<String>,
    /// The extent of the verification; `None` means everything.
    pub verify: Option<Verify>,
}

impl TlsRequest {
    /// Reads a store's properties.
    pub fn read(options: &Options, names: TlsProperties) -> Result<Self, EngineError> {
        let get = |name| options.get(&names.property(name)).map(str::to_owned);
        let verify = get("verify").map(|text| {
            Verify::ALL.into_iter().find(|extent| extent.name() == text).ok_or_else(|| {
                let message = format!("{} must be full, ca or none, got \"{text}\"", names.property("verify"));
                EngineError::usage(message).hint("the default is full: the CA and the name")
            })
        });
        let (ca, certificate) = (get("ca"), get("certificate"));
        Ok(Self { ca, certificate, key: get("key"), name: get("name"), verify: verify.transpose()? })
    }

    /// The TLS configuration; `None` if TLS is not requested. In this case, any other property for TLS is an error,
    /// because it has no effect.
    pub fn configure(
        self,
        requested: bool,
        names: TlsProperties,
        hosts: &[String],
    ) -> Result<Option<Tls>, EngineError> {
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
                Err(EngineError::usage(message).hint(format!("add {}", names.switch)))
            }
        }
    }
}

pub fn read_certificates(
    path: &str,
    names: TlsProperties,
    name: &str,
) -> Result<Vec<CertificateDer<'static>>, EngineError> {
    let hint = || format!("check {}", names.property(name));
    let text = read_file(path, names, name)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(EngineError::usage(format!("there is no PEM certificate in {path}")).hint(hint())),
    }
}

pub fn read_file(path: &str, names: TlsProperties, name: &str) -> Result<Vec<u8>, EngineError> {
    std::fs::read(path).map_err(|error| {
        EngineError::usage(format!("cannot read {path}: {error}")).hint(format!("check {}", names.property(name)))
    })
}

pub fn read_roots(path: &str, names: TlsProperties) -> Result<RootCertStore, EngineError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path, names, "ca")? {
        roots.add(certificate).map_err(|error| {
            EngineError::usage(format!("a certificate in {path} is not a CA certificate: {error}"))
                .hint(format!("check {}", names.property("ca")))
        })?;
    }
    Ok(roots)
}

pub fn read_key(path: &str, names: TlsProperties) -> Result<PrivateKeyDer<'static>, EngineError> {
    // The library's message is not shown, because it may contain text from the file.
    PrivateKeyDer::from_pem_slice(&read_file(path, names, "key")?).map_err(|_| {
        EngineError::usage(format!("there is no unencrypted PEM key in {path}"))
            .hint(format!("decrypt the key: openssl pkey -in {path} -out FILE"))
    })
}
