//! The properties of the store, under the names of YCSB's binding where the binding has them.

use std::net::IpAddr;
use std::time::Duration;

use super::compression::Algorithm;
use super::consistency::Consistency;
use super::wire::Version;
use crate::error::EngineError;
use crate::options::Options;
use crate::reconnect::Reconnect;
use crate::tls::{Tls, TlsProperties, TlsRequest};

/// The key column of a table of records.
pub const KEY: &str = "y_id";
/// The properties for TLS.
pub const TLS: TlsProperties = TlsProperties { prefix: "cassandra", switch: "cassandra.useSSL=true" };
/// The default port of a node.
pub const PORT: u16 = 9042;
/// The defaults of YCSB's binding and of the driver that it uses.
const CONNECT_MS: u64 = 5_000;
const REQUEST_MS: u64 = 12_000;
/// Maximum of all time settings: longer than any run, but short enough to prevent overflow when times are added.
const MS_MAX: u64 = 86_400_000;
/// Maximum number of connections per executor and node. Each connection may have 32,768 requests in flight.
const CONNECTIONS_MAX: u64 = 1_024;
/// Default number of clients per connection: half of a connection's limit.
const CLIENTS_PER_CONNECTION: usize = 16_384;

/// The settings with which the store is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hosts of the contact points.
    pub hosts: Vec<String>,
    /// The port, which is the same on all nodes.
    pub port: u16,
    /// The keyspace's name in CQL.
    pub keyspace: String,
    /// The table's name in CQL; empty if the statements name their tables.
    pub table: String,
    /// User name and password.
    pub login: Option<(String, String)>,
    /// Consistency level of reads and scans.
    pub read: Consistency,
    /// Consistency level of writes.
    pub write: Consistency,
    /// Number of connections to each shard, or to each node without shards, per executor or per client.
    pub connections: usize,
    /// Maximum number of connections to each node, but at least one to each shard, per executor or per client.
    pub connections_max: usize,
    /// Whether each client has separate connections.
    pub per_client: bool,
    /// Time limit for opening a connection, including the login.
    pub connect_timeout: Duration,
    /// Time limit for an answer.
    pub request_timeout: Duration,
    /// The data centre whose nodes are contacted; empty for the data centre of the contact point.
    pub local_dc: String,
    /// Whether only the hosts in `hosts` are contacted.
    pub whitelist: bool,
    /// The delays between attempts to connect to a node.
    pub reconnect: Reconnect,
    /// Whether the servers trace each request.
    pub tracing: bool,
    /// The protocol version; `None` for the latest that the contact point supports.
    pub protocol: Option<Version>,
    /// The compression of requests and answers; `None` for no compression.
    pub compression: Option<Algorithm>,
    /// The encryption of connections; `None` for no encryption.
    pub tls: Option<Tls>,
}

impl Settings {
    /// Reads the settings from properties.
    pub fn from_options(options: &Options) -> Result<Self, EngineError> {
        let hosts: Vec<String> = options
            .get("hosts")
            .unwrap_or_default()
            .split(',')
            .map(|host| host.trim().to_owned())
            .filter(|host| !host.is_empty())
            .collect();
        if hosts.is_empty() {
            return Err(EngineError::usage("hosts is not set").hint("add -p hosts=HOST,HOST"));
        }
        let is_host = |host: &&String| !host.contains([':', '/', '@']) || host.parse::<IpAddr>().is_ok();
        if let Some(host) = hosts.iter().find(|host| !is_host(host)) {
            return Err(EngineError::usage(format!("hosts must be host names or addresses, got \"{host}\""))
                .hint("set the port with port=9042; it is the same on all nodes"));
        }
        let tls = TlsRequest::read(options, TLS)?.configure(truth(options, "cassandra.useSSL")?, TLS, &hosts)?;
        let per_client = match options.get("cassandra.connections") {
            None | Some("shared") => false,
            Some("client") => true,
            Some(other) => {
                let message = format!("cassandra.connections must be shared or client, got \"{other}\"");
                return Err(EngineError::usage(message).hint("client: a connection for each client"));
            }
        };
        let enough = if per_client { 1 } else { options.clients.div_ceil(CLIENTS_PER_CONNECTION).max(1) };
        let login = options.get("cassandra.username").map(str::to_owned);
        if login.is_none() && options.get("cassandra.password").is_some() {
            return Err(EngineError::usage("cassandra.password has no effect without cassandra.username")
                .hint("set both, or neither"));
        }
        let password = options.get("cassandra.password").unwrap_or_default().to_owned();
        let (mut protocol, compression) = (protocol(options)?, compression(options)?);
        if compression == Some(Algorithm::Snappy) {
            if protocol == Some(Version::V5) {
                return Err(EngineError::usage("cassandra.compression=snappy cannot be combined with protocol 5")
                    .hint("use lz4, or cassandra.protocol=4"));
            }
            protocol = protocol.or(Some(Version::V4));
        }
        let milliseconds = |name, default| number(options, name, default, MS_MAX).map(Duration::from_millis);
        let (read, write) = ("cassandra.readconsistencylevel", "cassandra.writeconsistencylevel");
        Ok(Self {
            hosts,
            port: number(options, "port", u64::from(PORT), u64::from(u16::MAX))? as u16,
            keyspace: identifier("cassandra.keyspace", options.get("cassandra.keyspace").unwrap_or("ycsb"))?,
            // If the table is empty, statements name their own tables.
            table: if options.table.is_empty() { String::new() } else { identifier("table", &options.table)? },
            login: login.map(|user| (user, password)),
            read: Consistency::from_property(read, options.get(read), false)?,
            write: Consistency::from_property(write, options.get(write), true)?,
            connections: number(options, "cassandra.coreconnections", enough as u64, CONNECTIONS_MAX)? as usize,
            connections_max: number(options, "cassandra.maxconnections", u64::MAX, CONNECTIONS_MAX)? as usize,
            per_client,
            connect_timeout: milliseconds("cassandra.connecttimeoutmillis", CONNECT_MS)?,
            request_timeout: milliseconds("cassandra.readtimeoutmillis", REQUEST_MS)?,
            local_dc: options.get("cassandra.localdc").unwrap_or_default().to_owned(),
            whitelist: truth(options, "cassandra.whitelist")?,
            tracing: truth(options, "cassandra.tracing")?,
            reconnect: Reconnect::read(options)?,
            protocol,
            compression,
            tls,
        })
    }
}

fn number(options: &Options, name: &str, default: u64, max: u64) -> Result<u64, EngineError> {
    let Some(text) = options.get(name) else { return Ok(default) };
    text.parse::<u64>().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| {
        let hint =
            if default <= max { format!("the default is {default}") } else { "the default is no limit".to_owned() };
        EngineError::usage(format!("{name} must be a whole number from 1 to {max}, got \"{text}\"")).hint(hint)
    })
}

fn protocol(options: &Options) -> Result<Option<Version>, EngineError> {
    match options.get("cassandra.protocol") {
        None | Some("auto") => Ok(None),
        Some(text) => text.parse().ok().and_then(Version::from_number).map(Some).ok_or_else(|| {
            EngineError::usage(format!("cassandra.protocol must be a version of the native protocol, got \"{text}\""))
                .hint("the versions are 3, 4 and 5; auto, the default, is the latest that the server supports")
        }),
    }
}

fn compression(options: &Options) -> Result<Option<Algorithm>, EngineError> {
    match options.get("cassandra.compression") {
        None | Some("none") => Ok(None),
        Some(text) => Algorithm::ALL.into_iter().find(|known| known.name() == text).map(Some).ok_or_else(|| {
            EngineError::usage(format!("cassandra.compression must be none, lz4 or snappy, got \"{text}\""))
                .hint("the default is none")
        }),
    }
}

fn truth(options: &Options, name: &str) -> Result<bool, EngineError> {
    match options.get(name).map(str::to_ascii_lowercase).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            Err(EngineError::usage(format!("{name} must be true or false, got \"{other}\""))
                .hint("the default is false"))
        }
    }
}

/// A name that is valid in CQL without quotes. As in YCSB's binding, a name such as `usertableSplit` is folded to lower
/// case.
fn identifier(property: &str, text: &str) -> Result<String, EngineError> {
    if !is_plain(text) {
        return Err(EngineError::usage(format!("{property} \"{text}\" is not a valid CQL identifier"))
            .hint("use letters, digits and _, a letter first"));
    }
    Ok(text.to_ascii_lowercase())
}

/// Whether a name is valid in CQL without quotes.
pub fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, EngineError> {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        let properties = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Settings::from_options(&Options {
            properties,
            table: "usertableSplit".to_owned(),
            clients: 40_000,
            ..Options::default()
        })
    }

    #[test]
    fn defaults_are_ycsbs() {
        let parsed = settings("hosts=a,b").unwrap();
        assert_eq!((parsed.hosts.len(), parsed.port), (2, 9042));
        assert_eq!((parsed.keyspace.as_str(), parsed.table.as_str()), ("ycsb", "usertablesplit"));
        assert_eq!((parsed.read.name, parsed.write.name), ("ONE", "ONE"));
        assert_eq!((parsed.connect_timeout.as_secs(), parsed.request_timeout.as_secs()), (5, 12));
        assert_eq!(parsed.connections, 3, "as many as the clients need");
        assert_eq!(settings("hosts=a cassandra.connections=client").unwrap().connections, 1);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in [
            "",
            "hosts=,",
            "hosts=a port=0",
            "hosts=a,b:9042",
            "hosts=a cassandra.password=secret",
            "hosts=a cassandra.useSSL=yes",
            "hosts=a cassandra.useSSL=true",
            "hosts=a cassandra.useSSL=true cassandra.tls.ca=/no/file",
            "hosts=a cassandra.tls.ca=ca.pem",
            "hosts=a cassandra.keyspace=my-keyspace",
            "hosts=a cassandra.connections=many",
            "hosts=a cassandra.readtimeoutmillis=never",
            "hosts=a cassandra.readconsistencylevel=ANY",
            "hosts=a cassandra.protocol=2",
            "hosts=a cassandra.protocol=v4",
            "hosts=a cassandra.compression=zstd",
            "hosts=a cassandra.compression=snappy cassandra.protocol=5",
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.is_usage() && error.hint.is_some(), "{text}");
        }
    }
}
