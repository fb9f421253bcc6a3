//! `cassandra`: Apache Cassandra and ScyllaDB, through CQL's native protocol, with the table of YCSB's `cassandra-cql`.
//!
//! Each executor uses Loadstone's own client. Operations need no lock, no channel and no allocation, and requests that
//! an executor's clients send at the same time share one system call.

mod answer;
mod client;
mod cluster;
mod compression;
mod connection;
mod consistency;
mod control;
mod describe;
#[cfg(test)]
mod fuzz_tests;
mod lines;
mod login;
mod murmur3;
mod pool;
mod records;
mod ring;
mod schema;
mod segments;
mod settings;
mod sharding;
mod slot;
mod statements;
mod texts;
mod topology;
pub mod types;
mod wire;

use std::sync::Arc;

pub use client::Client;
pub use describe::{ColumnDescription, StatementDescription, describe_statements, describe_tables};
pub use ring::Node;
pub use schema::{Description, count_rows, execute_numbered, execute_script};
pub use statements::StatementClient;

use cluster::{Cluster, CommitLog};
use compression::Algorithm;
use control::Control;
use loadstone_session::Placement;
use loadstone_session::statements::{Statement, StatementStore};
use settings::Settings;

use crate::about::{About, hosts, port, secret, setting};
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::{Durability, Options};
use crate::reconnect::{FAILURE_PAUSE, RECONNECT};
use crate::remote::asking;
use crate::session::{ConnectionAttempts, Drive, ReadLevel, ServerEvent, Store};
use crate::tls;

/// Interval between markers of a periodic commit log. Data after the last marker is not replayed after a kill.
const MARKER_NS: u64 = 100_000_000;

/// A cluster.
#[derive(Debug)]
pub struct Cassandra {
    cluster: Arc<Cluster>,
    /// Tracks the cluster's nodes.
    _control: Option<Control>,
}

impl Cassandra {
    /// What each node that acknowledged a write guarantees for that write.
    fn node_guarantee(&self) -> Guarantee {
        let cluster = &self.cluster;
        match &cluster.commit_log {
            _ if !cluster.durable_writes => {
                Guarantee::new(Durability::None, "in the nodes' memory: the keyspace has no commit log")
            }
            Some(CommitLog { sync, .. }) if sync == "batch" => {
                Guarantee::new(Durability::Device, "commit log, synced before a write is acknowledged")
            }
            Some(CommitLog { sync, .. }) if sync == "group" => {
                let how = "commit log, synced for a group of writes before they are acknowledged";
                Guarantee::new(Durability::Device, how)
            }
            // Data after the last marker is not replayed, even though the kernel has it (CASSANDRA-13987).
            Some(log) if log.format == "mapped" => Guarantee::periodic(format!(
                "mapped commit log, synced every {}: os, except for the last 100 ms of a killed node",
                log.period
            ))
            .losing_at_most(MARKER_NS),
            Some(log) => {
                let how =
                    format!("commit log ({}), synced every {}, except for the time since", log.format, log.period);
                let guarantee = Guarantee::periodic(how);
                match log.period_ns() {
                    Some(ns) => guarantee.losing_at_most(ns),
                    None => guarantee,
                }
            }
            None => Guarantee::unknown("commit log; its sync mode is unknown"),
        }
    }
}

impl StatementStore for Cassandra {
    type Statements = StatementClient;

    fn define(options: &Options, definitions: &[String]) -> Result<(), EngineError> {
        execute_script(options, definitions).map(drop)
    }

    fn statements(&self, statements: &Arc<[Statement]>) -> StatementClient {
        StatementClient::new(Arc::clone(&self.cluster), Arc::clone(statements))
    }
}

impl Store for Cassandra {
    type Session = Client;
    const ABOUT: About = About {
        name: "cassandra",
        line: "Cassandra and ScyllaDB over CQL (hosts)",
        networked: true,
        properties: &[
            hosts("hosts"),
            port("port"),
            setting("cassandra.keyspace"),
            setting("cassandra.username"),
            secret("cassandra.password"),
            setting("cassandra.readconsistencylevel"),
            setting("cassandra.writeconsistencylevel"),
            setting("cassandra.maxconnections"),
            setting("cassandra.coreconnections"),
            setting("cassandra.connecttimeoutmillis"),
            setting("cassandra.readtimeoutmillis"),
            setting("cassandra.tracing"),
            setting("cassandra.useSSL"),
            setting("cassandra.tls.ca"),
            setting("cassandra.tls.certificate"),
            setting("cassandra.tls.key"),
            setting("cassandra.tls.name"),
            setting("cassandra.tls.verify"),
            setting("cassandra.localdc"),
            setting("cassandra.whitelist"),
            setting("cassandra.connections"),
            setting("cassandra.protocol"),
            setting("cassandra.compression"),
            RECONNECT,
        ],
    };
    const DRIVE: Drive = Drive::Task;
    // Many answers arrive at once on one connection. An executor serves 300,000 operations per second.
    const CLIENTS_PER_EXECUTOR: u64 = 256;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let settings = Settings::from_options(options)?;
        // A separate thread is needed, because the caller may run within a runtime.
        let discover = || asking(Cluster::discover(settings));
        let discovered = std::thread::scope(|threads| threads.spawn(discover).join());
        let cluster = discovered
            .map_err(|_| EngineError::failed("internal error: the thread that reads the cluster panicked"))??;
        let cluster = Arc::new(cluster);
        let control = Control::start(&cluster);
        let control = control.map_err(|error| EngineError::failed(format!("cannot start a thread: {error}")))?;
        let store = Self { cluster, _control: Some(control) };
        let Guarantee { durability, how, .. } = store.node_guarantee();
        if options.durability == Durability::Device && durability != Durability::Device {
            return Err(EngineError::usage(format!("durability=device, but {} has {how}", store.cluster.contact))
                .hint("set commitlog_sync: batch in cassandra.yaml, or set durability=none"));
        }
        Ok(store)
    }

    fn guarantee(&self) -> Guarantee {
        let Cluster { settings, replication, local_dc, .. } = &*self.cluster;
        let (nodes, shards) = (self.cluster.local_nodes(), self.cluster.shards());
        let connections = if settings.per_client { "of each client" } else { "of each executor" };
        let has_shards = shards.iter().any(|shards| *shards > 1);
        let target = if has_shards { "shard" } else { "node" };
        let mut guarantee = self
            .node_guarantee()
            .fact("version", self.cluster.version.clone())
            .fact("client", format!("loadstone {}", env!("CARGO_PKG_VERSION")))
            .fact("protocol", self.cluster.protocol.to_string())
            .fact("compression", settings.compression.map_or("none", Algorithm::name))
            .fact("address", self.cluster.contact.to_string())
            .fact("encryption", tls::fact(settings.tls.as_ref(), self.cluster.encryption.as_deref()))
            .fact("keyspace", settings.keyspace.clone())
            .fact("consistency", format!("read {}, write {}", settings.read.name, settings.write.name))
            .fact("replication_class", replication.class())
            .fact("durable_writes", if self.cluster.durable_writes { "yes" } else { "no" })
            .fact("local_dc", local_dc.clone())
            .fact("nodes", nodes.to_string())
            .fact("connections", format!("{} to each {target}, {connections}", self.cluster.connections()))
            .fact("request_timeout_ms", settings.request_timeout.as_millis().to_string())
            .fact("reconnect", settings.reconnect.to_string())
            .fact("pause_after_failure_ms", FAILURE_PAUSE.as_millis().to_string());
        if !self.cluster.compaction.is_empty() {
            guarantee = guarantee.fact("compaction", self.cluster.compaction.clone());
        }
        if let Some(copies) = replication.copies() {
            guarantee = guarantee.fact("replication", copies.to_string());
        }
        if let Some(copies) = replication.count_acknowledged(settings.write.name, local_dc) {
            guarantee = guarantee.fact("replication_acknowledged", copies.to_string());
        }
        if let Some(log) = &self.cluster.commit_log {
            guarantee = guarantee.fact("commitlog_sync", log.sync.clone()).fact("commitlog_format", log.format);
            if !log.period.is_empty() {
                guarantee = guarantee.fact("commitlog_sync_period", log.period.clone());
            }
        }
        if has_shards {
            let counts: Vec<String> = shards.iter().map(u16::to_string).collect();
            guarantee = guarantee
                .fact("shards", counts.join(", "))
                .fact("connections_per_executor", self.cluster.lines().to_string());
        }
        if self.cluster.has_tablets {
            guarantee = guarantee.fact("routing", "to all nodes in turn: the keyspace has tablets");
        }
        if settings.tracing {
            guarantee = guarantee.fact("tracing", "yes");
        }
        guarantee
    }

    fn read_levels() -> &'static [ReadLevel] {
        const PROPERTY: &str = "cassandra.readconsistencylevel";
        &[ReadLevel { name: "ALL", property: PROPERTY }, ReadLevel { name: "QUORUM", property: PROPERTY }]
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        Ok(Client::new(Arc::clone(&self.cluster)))
    }

    fn connections(&self, clients: u64) -> u64 {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let holders = if self.cluster.settings.per_client { clients } else { clients.min(processors) };
        holders * self.cluster.lines() as u64
    }

    fn connection_attempts(&self) -> Option<ConnectionAttempts> {
        let (topology, _) = self.cluster.topology.current();
        let attempts = topology.reach.iter().map(|node| node.attempts());
        Some(attempts.fold(ConnectionAttempts::default(), ConnectionAttempts::plus))
    }

    fn placement(&self) -> Option<Placement> {
        self.cluster.topology.current().0.ring.placement()
    }

    fn server_events(&self) -> Vec<ServerEvent> {
        self.cluster.topology.events()
    }
}

#[cfg(test)]
mod tests {
    use super::ring::{Node, Replication};
    use super::topology::Latest;
    use super::*;

    /// A cluster with three nodes in the local data centre and one node in another data centre.
    fn cluster(properties: &str) -> Cluster {
        let pairs = properties.split_whitespace().filter_map(|pair| pair.split_once('='));
        let properties = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let table = "usertable".to_owned();
        let settings = Settings::from_options(&Options { properties, table, ..Options::default() }).unwrap();
        let contact = std::net::SocketAddr::from(([127, 0, 0, 1], 9042));
        let node = |dc: &str| Node { address: contact, dc: dc.to_owned(), rack: String::new(), tokens: Vec::new() };
        let nodes = vec![node("near"), node("near"), node("near"), node("far")];
        Cluster {
            settings,
            topology: Latest::new(nodes, None, crate::reconnect::Reconnect::default()),
            local_dc: "near".to_owned(),
            allowed: Vec::new(),
            replication: Replication::Simple(1),
            durable_writes: true,
            compaction: String::new(),
            commit_log: None,
            version: String::new(),
            contact,
            protocol: wire::Version::V4,
            encryption: None,
            extensions: sharding::Extensions::default(),
            has_tablets: false,
        }
    }

    #[test]
    fn guarantee_never_exceeds_a_killed_node() {
        const PERIOD_NS: u64 = 7_000_000_000;
        for (sync, format, durable_writes, survives, loss_ns) in [
            (Some("batch"), "mapped", true, "device", Some(0)),
            (Some("group"), "mapped", true, "device", Some(0)),
            (Some("periodic"), "mapped", true, "interval", Some(MARKER_NS)),
            (Some("periodic"), "compressed", true, "interval", Some(PERIOD_NS)),
            (None, "", true, "unknown", None),
            (Some("batch"), "mapped", false, "none", Some(u64::MAX)),
        ] {
            let log = |sync: &str| CommitLog { sync: sync.to_owned(), period: "7s".to_owned(), format };
            let cluster = Arc::new(Cluster { durable_writes, commit_log: sync.map(log), ..cluster("hosts=a") });
            let guarantee = Cassandra { cluster, _control: None }.node_guarantee();
            assert_eq!(guarantee.survives(), survives, "{sync:?}");
            assert_eq!(guarantee.loss_ns_max(), loss_ns, "{sync:?} {format}");
        }
    }

    #[test]
    fn file_limit_includes_client_connections() {
        let connections = |property: &str| {
            let cluster = cluster(&format!("hosts=a cassandra.coreconnections=2 {property}"));
            Cassandra { cluster: Arc::new(cluster), _control: None }.connections(10_000)
        };
        assert_eq!(connections("cassandra.connections=client"), 10_000 * 3 * 2);
        let shared = connections("cassandra.connections=shared");
        assert!((6..60_000).contains(&shared) && shared.is_multiple_of(6), "{shared}");
    }
}
