//! Redis's properties, under the names that YCSB's binding uses.

use std::net::IpAddr;
use std::time::Duration;

use crate::error::EngineError;
use crate::options::Options;
use crate::reconnect::Reconnect;
use crate::remote::{Server, boolean, milliseconds};
use crate::tls::{Tls, TlsProperties, TlsRequest};

/// The properties for TLS.
pub const TLS: TlsProperties = TlsProperties { prefix: "redis", switch: "redis.tls=true" };
pub const PORT: u16 = 6379;
/// The default of Jedis, the Java client, for connecting and for each reply.
const TIMEOUT_MS: u64 = 2_000;

/// The server's address, and the settings of the client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host and port of the server.
    pub server: Server,
    /// The arguments of AUTH: a password, or a user name and a password; empty if AUTH is not sent.
    pub credentials: Vec<String>,
    /// Time limit for connecting, and for each answer.
    pub timeout: Duration,
    /// Whether the server is a node of a cluster.
    pub cluster: bool,
    /// Whether the commands of an operation are sent together.
    pub pipeline: bool,
    /// The delays between attempts to connect.
    pub reconnect: Reconnect,
    /// How connections are encrypted; `None` if they are not.
    pub tls: Option<Tls>,
}

impl Settings {
    /// Reads the properties.
    pub fn read(options: &Options) -> Result<Self, EngineError> {
        let cluster = boolean(options, "redis.cluster", false)?;
        let credentials = credentials(options)?;
        let timeout = milliseconds(options, "redis.timeout", TIMEOUT_MS)?;
        let pipeline = boolean(options, "redis.pipeline", false)?;
        if cluster && pipeline {
            return Err(EngineError::usage("redis.pipeline cannot be combined with redis.cluster")
                .hint("leave redis.pipeline out: the commands of an operation are for different nodes"));
        }
        let port = match options.get("redis.port") {
            None => PORT,
            Some(text) => text.parse().ok().filter(|&port| port > 0).ok_or_else(|| {
                EngineError::usage(format!("redis.port must be a port, got \"{text}\""))
                    .hint(format!("the default is {PORT}"))
            })?,
        };
        let tls = TlsRequest::read(options, TLS)?.configure(boolean(options, "redis.tls", false)?, TLS, &[])?;
        let host = options.get("redis.host").unwrap_or("127.0.0.1");
        if host.contains([':', '/', '@']) && host.parse::<IpAddr>().is_err() {
            // The text is not repeated, because a URL may contain a password.
            return Err(EngineError::usage("redis.host must be a host name or an address, without a port")
                .hint("set redis.port, redis.password, and, for rediss://, redis.tls=true"));
        }
        let server = Server::find(host, port, "redis.host")?;
        Ok(Self { server, credentials, timeout, cluster, pipeline, reconnect: Reconnect::read(options)?, tls })
    }
}

/// As in YCSB's binding, a user name is valid only together with its own password, and `redis.password` has no user
/// name.
fn credentials(options: &Options) -> Result<Vec<String>, EngineError> {
    let [user, own, password] =
        ["redis.cusername", "redis.cpassword", "redis.password"].map(|name| options.get(name).map(str::to_owned));
    match (user, own, password) {
        (Some(user), Some(own), None) => Ok(vec![user, own]),
        (None, None, password) => Ok(password.into_iter().collect()),
        _ => Err(EngineError::usage("set redis.password, or redis.cusername and redis.cpassword")
            .hint("the latter two are for servers with several users (ACL SETUSER)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, EngineError> {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::read(&Options { properties, ..Options::default() })
    }

    #[test]
    fn defaults_are_the_bindings() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.server.to_string(), "127.0.0.1:6379");
        assert_eq!(read(&[("redis.host", "::1")]).unwrap().server.to_string(), "[::1]:6379");
        assert_eq!((settings.timeout, settings.pipeline), (Duration::from_secs(2), false));
        assert!(settings.credentials.is_empty());
    }

    #[test]
    fn user_requires_a_password() {
        assert_eq!(read(&[("redis.password", "p")]).unwrap().credentials, ["p"]);
        let both = [("redis.cusername", "u"), ("redis.cpassword", "p")];
        assert_eq!(read(&both).unwrap().credentials, ["u", "p"]);
        assert!(read(&both[..1]).unwrap_err().is_usage());
        assert!(read(&[both[0], both[1], ("redis.password", "q")]).unwrap_err().is_usage());
    }

    #[test]
    fn what_cannot_be_is_wrong_usage() {
        for (name, value) in [
            ("redis.cluster", "maybe"),
            ("redis.port", "0"),
            ("redis.port", "65536"),
            ("redis.timeout", "0"),
            ("redis.pipeline", "maybe"),
            ("redis.tls", "maybe"),
            ("redis.host", "127.0.0.1:6380"),
            ("redis.host", "rediss://:secret@127.0.0.1"),
            ("redis.tls.verify", "maybe"),
            ("redis.tls.ca", "ca.pem"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.is_usage() && error.message.contains(name) && error.hint.is_some(), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
