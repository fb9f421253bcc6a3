//! Certificates for test servers: PEM files of a CA, a server certificate and a client certificate.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::error::EngineError;

/// The last year in which the certificates are valid.
const LAST_YEAR: i32 = 2049;

/// A CA that exists only as long as this value, because its key is not written to any file.
#[derive(Debug)]
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM format.
#[derive(Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key, in PKCS#8 format without a password.
    pub key: String,
}

fn params(name: &str, hosts: &[String], last_year: i32) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // Certificates are valid from a date in the past, because the clocks of hosts differ.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(last_year, 12, 31);
    Ok(params)
}

fn internal(error: &rcgen::Error) -> EngineError {
    EngineError::failed(format!("cannot create a certificate: {error}"))
        .hint("write hosts as names or addresses: localhost 127.0.0.1")
}

impl Authority {
    /// Creates a CA with this name.
    pub fn new(name: &str) -> Result<Self, EngineError> {
        let create = || -> Result<Self, rcgen::Error> {
            let mut params = params(name, &[], LAST_YEAR)?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            let key = KeyPair::generate()?;
            let pem = params.self_signed(&key)?.pem();
            Ok(Self { pem, issuer: Issuer::new(params, key) })
        };
        create().map_err(|error| internal(&error))
    }

    /// The CA's certificate in PEM format.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Issues a certificate that servers and clients on these hosts can use. It is valid until the end of `last_year`.
    pub fn issue(&self, name: &str, hosts: &[String], last_year: i32) -> Result<Pair, EngineError> {
        let create = || -> Result<Pair, rcgen::Error> {
            let mut params = params(name, hosts, last_year)?;
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let key = KeyPair::generate()?;
            Ok(Pair { certificate: params.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
        };
        create().map_err(|error| internal(&error))
    }
}

/// Writes `ca.pem`, `server.pem`, `server.key`, `client.pem` and `client.key` to a directory, which is created if it is
/// missing. The server's certificate is valid for these hosts, and the client's certificate for the user name `client`.
pub fn write(directory: &Path, hosts: &[String], client: &str) -> Result<(), EngineError> {
    let authority = Authority::new("Loadstone CA for tests")?;
    let server = authority.issue(hosts.first().map_or("server", String::as_str), hosts, LAST_YEAR)?;
    let client = authority.issue(client, &[], LAST_YEAR)?;
    let failed = |path: &Path, error: std::io::Error| {
        EngineError::failed(format!("cannot write {}: {error}", path.display())).hint("choose another directory")
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, mode, text) in [
        ("ca.pem", 0o644, authority.pem()),
        ("server.pem", 0o644, &server.certificate),
        ("server.key", 0o600, &server.key),
        ("client.pem", 0o644, &client.certificate),
        ("client.key", 0o600, &client.key),
    ] {
        let path = directory.join(name);
        // The file is deleted and created again, so that other users can never read a key, not even before the file's
        // mode is changed.
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
