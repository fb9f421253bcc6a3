//! The properties of a cluster that are read before the first operation: the nodes, the table and the guarantee.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use futures::{StreamExt, stream};
use loadstone_load::Status;

use super::answer::Refusal;
use super::login::{Entry, Link};
use super::ring::{Node, Replication};
use super::settings::{KEY, PORT, Settings, TLS};
use super::sharding::{Extensions, Sharding};
use super::topology::Latest;
use super::wire::Version;
use crate::error::{ConnectError, EngineError, Failure};
use crate::remote::start_hint;

type Cells = Vec<Vec<Option<Vec<u8>>>>;

/// A cluster, as reported by the first node that responded.
#[derive(Debug)]
pub struct Cluster {
    /// The settings for connections to the nodes.
    pub settings: Settings,
    /// The cluster's nodes.
    pub topology: Latest,
    /// The data centre whose nodes the client contacts.
    pub local_dc: String,
    /// The addresses of the nodes that the client contacts; empty for all nodes of the data centre.
    pub allowed: Vec<IpAddr>,
    /// The replication of the keyspace.
    pub replication: Replication,
    /// Whether writes to the keyspace reach the commit log.
    pub durable_writes: bool,
    /// The compaction of the table, or the different compactions of the keyspace's tables; empty if unknown.
    pub compaction: String,
    /// The commit log of the node to which the client is connected, if known.
    pub commit_log: Option<CommitLog>,
    /// The product and the release that the node runs.
    pub version: String,
    /// The node to which the client is connected.
    pub contact: SocketAddr,
    /// The protocol version that the node supports.
    pub protocol: Version,
    /// The TLS version and the cipher suite, if connections are encrypted.
    pub encryption: Option<String>,
    /// The extensions of the protocol that the contact node supports.
    pub extensions: Extensions,
    /// Whether the keyspace is divided into tablets, whose replicas cannot be derived from the ring of tokens.
    pub has_tablets: bool,
}

impl Cluster {
    /// Whether the client contacts a node.
    pub fn uses(&self, node: &Node) -> bool {
        node.dc == self.local_dc && (self.allowed.is_empty() || self.allowed.contains(&node.address.ip()))
    }

    /// The number of nodes that the client contacts.
    pub fn local_nodes(&self) -> usize {
        self.shards().len()
    }

    /// The number of shards of each node that the client contacts; 1 for a node without shards, or if each client has
    /// separate connections.
    pub fn shards(&self) -> Vec<u16> {
        let (topology, _) = self.topology.current();
        let nodes = topology.nodes.iter().zip(&topology.shardings).filter(|(node, _)| self.uses(node));
        let is_shared = |_: &Sharding| !self.settings.per_client;
        nodes.map(|(_, sharding)| sharding.filter(is_shared).map_or(1, |sharding| sharding.shards)).collect()
    }

    /// Number of connections per executor, or per client if each client has separate connections.
    pub fn lines(&self) -> usize {
        self.shards().into_iter().map(usize::from).sum::<usize>() * self.connections()
    }

    /// Number of connections to each shard, or to each node without shards, per executor or per client.
    pub fn connections(&self) -> usize {
        let shards = self.shards().into_iter().max().map_or(1, usize::from);
        self.settings.connections.min((self.settings.connections_max / shards).max(1))
    }

    /// Whether the cluster's nodes support extensions of the protocol.
    pub fn is_extended(&self) -> bool {
        self.extensions != Extensions::default()
    }

    /// Queries the first contact point that responds.
    pub async fn discover(settings: Settings) -> Result<Self, EngineError> {
        let (contact, link) = connect(&settings).await?;
        let ask = async |text: &str| link.query(text).await.map_err(|refusal| explain_refusal(contact, refusal));
        let nodes = Self::read_nodes(&link, contact, settings.port)
            .await
            .map_err(|refusal| explain_refusal(contact, refusal))?;
        let mut facts = ask("SELECT release_version, partitioner FROM system.local").await?.into_iter().flatten();
        let (mut version, partitioner) = (text(facts.next().flatten()), text(facts.next().flatten()));
        version.insert_str(0, "Cassandra ");
        let own_dc = nodes.iter().find(|node| node.address == contact).map(|node| node.dc.clone()).unwrap_or_default();
        let local_dc = if settings.local_dc.is_empty() { own_dc } else { settings.local_dc.clone() };
        if !nodes.iter().any(|node| node.dc == local_dc) {
            let dcs: Vec<&str> = nodes.iter().map(|node| node.dc.as_str()).collect();
            return Err(EngineError::usage(format!("no node of the cluster at {contact} is in {local_dc}"))
                .hint(format!("cassandra.localdc can be {}", dcs.join(", "))));
        }
        let where_keyspace = format!("WHERE keyspace_name = '{}'", settings.keyspace);
        let keyspace = format!("SELECT durable_writes, replication FROM system_schema.keyspaces {where_keyspace}");
        let mut values = ask(&keyspace).await?.into_iter().flatten();
        let durable_writes = values.next().flatten().as_deref() != Some(&[0]);
        let replication = Replication::from_pairs(&pairs(values.next().flatten()));
        let mut of_tables = format!("SELECT compaction FROM system_schema.tables {where_keyspace}");
        if !settings.table.is_empty() {
            let table = format!("AND table_name = '{}'", settings.table);
            of_tables = format!("{of_tables} {table}");
            let columns = format!("SELECT column_name, kind FROM system_schema.columns {where_keyspace} {table}");
            check_table(&settings, contact, &ask(&columns).await?, link.extensions())?;
        }
        let compactions = link.query(&of_tables).await.unwrap_or_default().into_iter().flatten();
        let compactions: BTreeSet<String> = compactions.map(|options| name_compaction(pairs(options))).collect();
        // Cassandra has had the table `system_views.settings` since 4.0; ScyllaDB does not have it.
        let reported = link.query("SELECT name, value FROM system_views.settings").await.unwrap_or_default();
        let extensions = *link.extensions();
        let mut has_tablets = false;
        if extensions != Extensions::default() {
            if let Some(own) = first_value(&link, "SELECT version FROM system.versions WHERE key = 'local'").await {
                version = format!("ScyllaDB {}", text(Some(own)));
            }
            let tablets = format!("SELECT initial_tablets FROM system_schema.scylla_keyspaces {where_keyspace}");
            has_tablets = first_value(&link, &tablets).await.is_some();
        }
        let hashed = partitioner.ends_with("Murmur3Partitioner") && !has_tablets;
        let allowed = if settings.whitelist { find_addresses(&settings, contact).await } else { Vec::new() };
        let cluster = Self {
            topology: Latest::new(nodes, hashed.then(|| replication.clone()), settings.reconnect),
            settings,
            local_dc,
            allowed,
            replication,
            durable_writes,
            compaction: Vec::from_iter(compactions).join("; "),
            commit_log: CommitLog::from_settings(reported),
            version,
            contact,
            protocol: link.connection().version(),
            encryption: link.connection().encryption().map(str::to_owned),
            extensions,
            has_tablets,
        };
        if cluster.local_nodes() == 0 {
            let message = format!("no node of {} has the address of a contact point", cluster.local_dc);
            return Err(EngineError::usage(message)
                .hint("list the addresses that nodes announce to clients, or omit cassandra.whitelist"));
        }
        cluster.topology.update_sharding(contact, extensions.sharding);
        if cluster.is_extended() {
            cluster.discover_shards().await;
        }
        Ok(cluster)
    }

    /// Asks each remaining node of the local data centre for its shards. A node that cannot be reached now is asked when
    /// the client connects to it.
    async fn discover_shards(&self) {
        let (topology, _) = self.topology.current();
        let nodes = topology.nodes.iter().filter(|node| self.uses(node) && node.address != self.contact);
        let ask = async |node: &Node| {
            if let Ok(link) = Link::open(node.address, self.protocol, &self.settings, Entry::Extended).await {
                self.topology.update_sharding(node.address, link.extensions().sharding);
            }
        };
        stream::iter(nodes).for_each_concurrent(None, ask).await;
    }

    /// The nodes listed in the tables of one node, sorted by address.
    pub async fn read_nodes(link: &Link, contact: SocketAddr, port: u16) -> Result<Vec<Node>, Refusal> {
        let mut nodes = Vec::new();
        let mut own = link.query("SELECT data_center, rack, tokens FROM system.local").await?.into_iter().flatten();
        let mut next = || own.next().flatten();
        let (dc, rack, own_tokens) = (text(next()), text(next()), tokens(next()));
        nodes.push(Node { address: contact, dc, rack, tokens: own_tokens });
        for peer in link.query("SELECT data_center, rack, tokens, rpc_address, peer FROM system.peers").await? {
            let mut values = peer.into_iter();
            let mut next = || values.next().flatten();
            let (dc, rack, tokens) = (text(next()), text(next()), tokens(next()));
            let (rpc, peer) = (address(next()), address(next()));
            // A node that listens on all interfaces is contacted at the address that its peers use.
            let ip = rpc.filter(|ip| !ip.is_unspecified()).or(peer);
            if let Some(ip) = ip.filter(|_| !tokens.is_empty()) {
                nodes.push(Node { address: SocketAddr::new(ip, port), dc, rack, tokens });
            }
        }
        // Each node lists itself first. Sorting makes the list independent of the node that is asked.
        nodes.sort_by_key(|node| node.address);
        Ok(nodes)
    }
}

/// The settings of a node's commit log, which determine the acknowledged writes that a fault may lose.
#[derive(Clone, Debug)]
pub struct CommitLog {
    /// The mode: `periodic`, `batch` or `group`.
    pub sync: String,
    /// The period of `periodic` or the window of `group`, as the node reports it; empty if there is none.
    pub period: String,
    /// `mapped`, or the reason why the log has markers only at syncs: `compressed`, `encrypted`, `direct I/O`.
    pub format: &'static str,
}

impl CommitLog {
    /// Reads the rows of `system_views.settings`.
    pub fn from_settings(rows: Cells) -> Option<Self> {
        let mut settings = BTreeMap::new();
        for row in rows {
            let mut values = row.into_iter();
            let mut next = || text(values.next().flatten());
            // Cassandra 4.0 joins the names of nested settings with `_`; later versions use `.`.
            settings.insert(next().replace('.', "_"), next());
        }
        let value = |name: &str| settings.get(name).map_or("", String::as_str);
        let sync = value("commitlog_sync").to_owned();
        let period = match sync.as_str() {
            "" => return None,
            "periodic" => "commitlog_sync_period",
            "group" => "commitlog_sync_group_window",
            _ => "none",
        };
        // Cassandra 4.0 reports milliseconds without the unit.
        let period = match (value(period), value(&format!("{period}_in_ms")).trim_end_matches(".0")) {
            ("", "") => String::new(),
            ("", milliseconds) => format!("{milliseconds}ms"),
            (period, _) => period.to_owned(),
        };
        let is_compressed = |(name, value): (&String, &String)| {
            name.starts_with("commitlog_compression") && !matches!(value.as_str(), "" | "null")
        };
        let format = if settings.iter().any(is_compressed) {
            "compressed"
        } else if value("transparent_data_encryption_options_enabled") == "true" {
            "encrypted"
        } else if matches!(value("commitlog_disk_access_mode"), "direct" | "auto") {
            // `auto` chooses direct I/O if the file system supports it.
            "direct I/O"
        } else {
            "mapped"
        };
        Some(Self { sync, period, format })
    }

    /// The period, ns; `None` if the node does not report it in a known unit.
    pub fn period_ns(&self) -> Option<u64> {
        let unit = self.period.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, unit) = self.period.split_at(unit);
        let ns = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(ns)
    }
}

/// Connects to the first contact point that responds. If none responds, returns the first failure.
pub async fn connect(settings: &Settings) -> Result<(SocketAddr, Link), EngineError> {
    let mut first: Option<Failure> = None;
    for host in &settings.hosts {
        let place = format!("{host}:{}", settings.port);
        let unknown = |error: &dyn std::fmt::Display| {
            Failure::new(Status::ServiceUnavailable, format!("cannot find {place}: {error}"))
        };
        let lookup = tokio::time::timeout(settings.connect_timeout, tokio::net::lookup_host(&place)).await;
        let addresses: Vec<SocketAddr> = match lookup {
            Ok(Ok(addresses)) => addresses.collect(),
            Ok(Err(error)) => {
                first.get_or_insert(unknown(&error));
                continue;
            }
            Err(late) => {
                first.get_or_insert(unknown(&late));
                continue;
            }
        };
        for address in addresses {
            match Link::negotiate(address, settings).await {
                Ok(link) => return Ok((address, link)),
                Err(mut failure) => {
                    if !failure.message.contains(&place) {
                        failure.message = format!("{place}: {}", failure.message);
                    }
                    first.get_or_insert(failure);
                }
            }
        }
    }
    let failure = first.unwrap_or_else(|| Failure::new(Status::ServiceUnavailable, "no contact point"));
    Err(unreachable(&failure, settings.port))
}

/// The addresses of all contact points whose names can be resolved, and of the contact point that responded.
async fn find_addresses(settings: &Settings, contact: SocketAddr) -> Vec<IpAddr> {
    let mut addresses = vec![contact.ip()];
    for host in &settings.hosts {
        let lookup = tokio::net::lookup_host(format!("{host}:{}", settings.port));
        if let Ok(Ok(all)) = tokio::time::timeout(settings.connect_timeout, lookup).await {
            addresses.extend(all.map(|address| address.ip()));
        }
    }
    addresses
}

/// The error for a cluster that the client cannot use at this port.
pub fn unreachable(failure: &Failure, port: u16) -> EngineError {
    if let Some(ConnectError::Tls(fault)) = failure.connect {
        return EngineError::failed(failure.message.clone()).hint(TLS.hint(fault));
    }
    let hint = match failure.status {
        Status::Forbidden => "set cassandra.username and cassandra.password for a role that may log in",
        Status::Timeout => {
            "it may be paused or overloaded; otherwise, check port and cassandra.useSSL, which must match the server"
        }
        _ => &format!("{}, or set hosts and port", start_hint("cassandra", port, PORT)),
    };
    EngineError::failed(failure.message.clone()).hint(hint)
}

fn explain_refusal(contact: SocketAddr, refusal: Refusal) -> EngineError {
    let failure = refusal.failure();
    let message = format!("{contact} does not answer a query of its system tables: {}", failure.message);
    unreachable(&Failure::new(failure.status, message), contact.port())
}

fn check_table(
    settings: &Settings,
    contact: SocketAddr,
    columns: &Cells,
    extensions: &Extensions,
) -> Result<(), EngineError> {
    let Settings { keyspace, table, .. } = settings;
    // ScyllaDB's tablets require `NetworkTopologyStrategy`. With this class, Cassandra before 4.0 requires the names of
    // the data centres.
    let class = if *extensions == Extensions::default() { "SimpleStrategy" } else { "NetworkTopologyStrategy" };
    let make = format!("CREATE KEYSPACE {keyspace} WITH replication = {{'class': '{class}', 'replication_factor': 1}}");
    let hint = format!(
        "run {make}; CREATE TABLE {keyspace}.{table} ({KEY} varchar PRIMARY KEY, field0 varchar, … field9 varchar)"
    );
    if columns.is_empty() {
        return Err(EngineError::failed(format!("there is no table {keyspace}.{table} at {contact}")).hint(hint));
    }
    let key: Vec<&str> = columns
        .iter()
        .filter(|column| column.get(1).and_then(Option::as_deref) == Some(b"partition_key"))
        .filter_map(|column| column.first().and_then(Option::as_deref))
        .filter_map(|name| std::str::from_utf8(name).ok())
        .collect();
    if key != [KEY] {
        let message = format!("the key of {keyspace}.{table} at {contact} is ({}), not ({KEY})", key.join(", "));
        return Err(EngineError::failed(message).hint(hint));
    }
    Ok(())
}

/// The first value that a query returns; `None` if it returns nothing or is refused.
async fn first_value(link: &Link, query: &str) -> Option<Vec<u8>> {
    link.query(query).await.ok()?.into_iter().flatten().next().flatten()
}

fn text(value: Option<Vec<u8>>) -> String {
    String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()
}

fn address(value: Option<Vec<u8>>) -> Option<IpAddr> {
    let bytes = value?;
    let four = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from)).ok()
}

/// The elements of a set, or the keys and values of a map in alternation.
fn elements(value: Option<Vec<u8>>, width: usize) -> Vec<String> {
    let bytes = value.unwrap_or_default();
    let mut body = super::wire::Body(&bytes);
    let Ok(count) = body.int() else { return Vec::new() };
    (0..count.max(0) as usize * width).map_while(|_| body.bytes().ok()).map(|v| text(v.map(<[u8]>::to_vec))).collect()
}

fn tokens(value: Option<Vec<u8>>) -> Vec<i64> {
    elements(value, 1).iter().filter_map(|token| token.parse().ok()).collect()
}

fn pairs(value: Option<Vec<u8>>) -> Vec<(String, String)> {
    elements(value, 2).chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// A table's compaction: the strategy, and the options that differ from the defaults that Cassandra uses for every
/// strategy.
fn name_compaction(mut options: Vec<(String, String)>) -> String {
    options.sort_unstable();
    let is_class = |(name, _): &&(String, String)| name == "class";
    let class = options.iter().find(is_class).map_or("", |(_, class)| class.rsplit('.').next().unwrap_or(class));
    let is_usual = |name: &str, value: &str| {
        matches!((name, value), ("class", _) | ("min_threshold", "4") | ("max_threshold", "32"))
    };
    let set =
        options.iter().filter(|(name, value)| !is_usual(name, value)).map(|(name, value)| format!("{name}={value}"));
    std::iter::once(class.to_owned()).chain(set).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_has_its_strategy_and_unusual_options() {
        let text = |options: &[(&str, &str)]| {
            name_compaction(options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
        };
        let usual =
            [("max_threshold", "32"), ("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy")];
        assert_eq!(text(&usual), "SizeTieredCompactionStrategy");
        let levelled = [("sstable_size_in_mb", "10"), ("min_threshold", "4"), ("class", "LeveledCompactionStrategy")];
        assert_eq!(text(&levelled), "LeveledCompactionStrategy sstable_size_in_mb=10");
    }

    #[test]
    fn commit_log_settings_have_every_versions_names() {
        for (settings, sync, period, ns, format) in [
            ("commitlog_sync=periodic commitlog_sync_period=10000ms", "periodic", "10000ms", Some(10_000), "mapped"),
            ("commitlog_sync=periodic commitlog_sync_period_in_ms=5000", "periodic", "5000ms", Some(5_000), "mapped"),
            ("commitlog_sync=periodic commitlog_sync_period=2m", "periodic", "2m", Some(120_000), "mapped"),
            ("commitlog_sync=periodic commitlog_sync_period=2w", "periodic", "2w", None, "mapped"),
            ("commitlog_sync=group commitlog_sync_group_window_in_ms=15.0", "group", "15ms", Some(15), "mapped"),
            ("commitlog_sync=batch commitlog_sync_period=0ms", "batch", "", None, "mapped"),
            ("commitlog_sync=batch commitlog_compression.class_name=LZ4", "batch", "", None, "compressed"),
            ("commitlog_sync=batch commitlog_compression=null", "batch", "", None, "mapped"),
            ("commitlog_sync=batch transparent_data_encryption_options_enabled=true", "batch", "", None, "encrypted"),
            ("commitlog_sync=batch commitlog_disk_access_mode=direct", "batch", "", None, "direct I/O"),
        ] {
            let pairs = settings.split(' ').filter_map(|pair| pair.split_once('='));
            let rows = pairs.map(|(name, value)| vec![Some(name.into()), Some(value.into())]).collect();
            let log = CommitLog::from_settings(rows).unwrap();
            assert_eq!((log.sync.as_str(), log.period.as_str(), log.format), (sync, period, format), "{settings}");
            assert_eq!(log.period_ns(), ns.map(|ms: u64| ms * 1_000_000), "{settings}");
        }
        assert!(CommitLog::from_settings(Vec::new()).is_none());
    }
}
