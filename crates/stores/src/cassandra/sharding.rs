//! `ScyllaDB`'s extensions of the protocol: shards, and errors that report a rate limit (`protocol-extensions.md`
//! in scylladb/scylladb).

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

use super::wire::{Body, Short};

/// The ports from which a client may connect to a shard-aware port: IANA's dynamic ports.
const SOURCE_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// The only algorithm that is defined.
const ALGORITHM: &str = "biased-token-round-robin";
/// The option that makes the server report rate limits with a separate error code.
pub const RATE_LIMIT: &str = "SCYLLA_RATE_LIMIT_ERROR";

/// The shards of a node. Each shard serves a part of the node's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The number of shards, at least 1.
    pub shards: u16,
    /// The number of the token's most significant bits that do not determine the shard.
    ignored_bits: u8,
    /// The shard-aware port, where the client's own port determines the shard of a connection.
    port: Option<u16>,
    /// The corresponding port for encrypted connections.
    tls_port: Option<u16>,
}

/// The extensions that a node supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The shards; `None` if the node does not state how tokens are assigned to shards.
    pub sharding: Option<Sharding>,
    /// The shard to which the connection leads.
    pub shard: u16,
    /// The error code for an operation that exceeds a rate limit.
    pub rate_limit: Option<i32>,
}

impl Extensions {
    /// Parses the body of SUPPORTED. Apache Cassandra states no extensions.
    pub fn read(mut body: Body<'_>) -> Result<Self, Short> {
        let mut options = Vec::new();
        for _ in 0..body.short()? {
            let name = body.text()?;
            for _ in 0..body.short()? {
                options.push((name.clone(), body.text()?));
            }
        }
        let text = |name: &str| options.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let number = |name: &str| text(name).and_then(|text| text.parse::<u16>().ok());
        let rate_limit = text(RATE_LIMIT).and_then(|value| value.strip_prefix("ERROR_CODE=")?.parse().ok());
        let is_known = text("SCYLLA_SHARDING_ALGORITHM") == Some(ALGORITHM)
            && text("SCYLLA_PARTITIONER").is_some_and(|name| name.ends_with("Murmur3Partitioner"));
        let sharding = match (number("SCYLLA_NR_SHARDS"), number("SCYLLA_SHARDING_IGNORE_MSB")) {
            (Some(shards @ 1..), Some(bits @ 0..64)) if is_known => Some(Sharding {
                shards,
                ignored_bits: bits as u8,
                port: number("SCYLLA_SHARD_AWARE_PORT"),
                tls_port: number("SCYLLA_SHARD_AWARE_PORT_SSL"),
            }),
            _ => None,
        };
        Ok(Self { sharding, shard: number("SCYLLA_SHARD").unwrap_or(0), rate_limit })
    }
}

impl Sharding {
    /// The shard of a token.
    #[inline]
    pub fn shard_of(&self, token: i64) -> usize {
        let biased = (token as u64).wrapping_add(1 << 63) << self.ignored_bits;
        ((u128::from(biased) * u128::from(self.shards)) >> 64) as usize
    }

    /// The shard-aware port.
    pub fn port(&self, has_tls: bool) -> Option<u16> {
        if has_tls { self.tls_port } else { self.port }
    }

    /// Connects to a shard, from the first port that leads to it and is free.
    pub async fn connect(&self, shard: u16, address: SocketAddr) -> io::Result<TcpStream> {
        let (local, open): (IpAddr, fn() -> io::Result<TcpSocket>) = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), TcpSocket::new_v4),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), TcpSocket::new_v6),
        };
        let mut used = io::Error::from(io::ErrorKind::AddrInUse);
        for port in self.source_ports(shard) {
            let socket = open()?;
            // A port can be used again while an earlier connection from it is in TIME_WAIT or leads to another server.
            socket.set_reuseaddr(true)?;
            let connected = match socket.bind(SocketAddr::new(local, port)) {
                Ok(()) => socket.connect(address).await,
                Err(error) => Err(error),
            };
            match connected {
                Err(error) if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable) => {
                    used = error;
                }
                decided => return decided,
            }
        }
        Err(used)
    }

    /// The ports that lead to a shard, in an order that starts at a random port.
    fn source_ports(&self, shard: u16) -> impl Iterator<Item = u16> + use<> {
        let shards = self.shards;
        let ports = move || SOURCE_PORTS.filter(move |port| port % shards == shard);
        let start = RandomState::new().hash_one(shard) as usize % ports().count().max(1);
        ports().skip(start).chain(ports().take(start))
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::wire::put_string;
    use super::*;

    /// The sharding of a node with this number of shards, in which every bit of a token counts.
    pub fn sharding(shards: u16) -> Sharding {
        Sharding { shards, ignored_bits: 0, port: None, tls_port: None }
    }

    /// A SUPPORTED message with these options.
    fn encode_options(options: &[(&str, &str)]) -> Vec<u8> {
        let mut out = (options.len() as u16).to_be_bytes().to_vec();
        for (name, value) in options {
            put_string(&mut out, name);
            out.extend_from_slice(&[0, 1]);
            put_string(&mut out, value);
        }
        out
    }

    const SCYLLA: [(&str, &str); 8] = [
        ("CQL_VERSION", "3.3.1"),
        ("SCYLLA_SHARD", "3"),
        ("SCYLLA_NR_SHARDS", "4"),
        ("SCYLLA_SHARDING_IGNORE_MSB", "12"),
        ("SCYLLA_SHARDING_ALGORITHM", ALGORITHM),
        ("SCYLLA_PARTITIONER", "org.apache.cassandra.dht.Murmur3Partitioner"),
        ("SCYLLA_SHARD_AWARE_PORT", "19042"),
        (RATE_LIMIT, "ERROR_CODE=61440"),
    ];

    fn read(options: &[(&str, &str)]) -> Extensions {
        Extensions::read(Body(&encode_options(options))).unwrap()
    }

    #[test]
    fn supported_options_describe_the_shards() {
        let extensions = read(&SCYLLA);
        let sharding = Sharding { shards: 4, ignored_bits: 12, port: Some(19_042), tls_port: None };
        assert_eq!(extensions, Extensions { sharding: Some(sharding), shard: 3, rate_limit: Some(61_440) });
        assert_eq!((sharding.port(false), sharding.port(true)), (Some(19_042), None));
        assert_eq!(read(&[("COMPRESSION", "lz4"), ("CQL_VERSION", "3.4.7")]), Extensions::default());
        let body = encode_options(&SCYLLA);
        assert!((0..body.len()).all(|len| Extensions::read(Body(&body[..len])) == Err(Short)));
    }

    #[test]
    fn unusable_sharding_is_ignored() {
        for (name, value) in [
            ("SCYLLA_NR_SHARDS", "0"),
            ("SCYLLA_NR_SHARDS", "many"),
            ("SCYLLA_SHARDING_IGNORE_MSB", "64"),
            ("SCYLLA_SHARDING_ALGORITHM", "another"),
            ("SCYLLA_PARTITIONER", "org.apache.cassandra.dht.RandomPartitioner"),
        ] {
            let options = SCYLLA.map(|(own, old)| (own, if own == name { value } else { old }));
            let extensions = read(&options);
            assert_eq!((extensions.sharding, extensions.rate_limit), (None, Some(61_440)), "{name}={value}");
        }
    }

    /// The first two tokens are in the tests of several drivers (gocql, scylla-rust-driver); the remaining tokens follow
    /// from the definition.
    #[test]
    fn tokens_have_the_drivers_shards() {
        let ignoring = Sharding { ignored_bits: 12, ..sharding(4) };
        assert_eq!(ignoring.shard_of(-9_219_783_007_514_621_794), 3);
        assert_eq!(ignoring.shard_of(9_222_582_454_147_032_830), 3);
        for (token, shard) in [(i64::MIN, 0), (-1, 1), (0, 2), (i64::MAX, 3)] {
            assert_eq!(sharding(4).shard_of(token), shard, "{token}");
            assert_eq!(sharding(1).shard_of(token), 0);
        }
    }

    #[test]
    fn source_ports_lead_to_their_shard() {
        for shards in [1, 3, 64] {
            let sharding = sharding(shards);
            let mut all: Vec<u16> = (0..shards).flat_map(|shard| sharding.source_ports(shard)).collect();
            assert!((0..shards).all(|shard| sharding.source_ports(shard).all(|port| port % shards == shard)));
            all.sort_unstable();
            assert!(all.into_iter().eq(SOURCE_PORTS));
        }
    }
}
