//! `redis`: Redis and servers that speak its protocol, with the data layout of YCSB's binding.
//!
//! A record is a hash. All keys are in the sorted set `_indices`, ordered by their hash codes, which is also the order
//! of scans. The client is Loadstone's own: each request is a single write from a reused buffer, and replies are parsed
//! in the buffer in which they were received.

mod cluster;
mod connection;
mod failure;
mod reply;
mod request;
mod server;
mod session;
mod settings;

use std::sync::Arc;

use loadstone_session::Placement;

use cluster::{Cluster, ask_slots};
use server::ServerInfo;
pub use session::RedisSession;
use settings::Settings;

use crate::about::{About, hosts, port, secret, setting};
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::{Durability, Options};
use crate::reconnect::{FAILURE_PAUSE, RECONNECT};
use crate::remote::asking;
use crate::session::ConnectionAttempts;
use crate::session::{Drive, Store};
use crate::tls;

/// A Redis server or cluster.
#[derive(Debug)]
pub struct Redis {
    settings: Arc<Settings>,
    cluster: Arc<Cluster>,
    info: ServerInfo,
    clients: usize,
}

impl Store for Redis {
    type Session = RedisSession;
    const ABOUT: About = About {
        name: "redis",
        line: "Redis and servers that speak its protocol (redis.host, redis.port)",
        networked: true,
        properties: &[
            hosts("redis.host"),
            port("redis.port"),
            secret("redis.password"),
            setting("redis.cusername"),
            secret("redis.cpassword"),
            setting("redis.timeout"),
            setting("redis.cluster"),
            setting("redis.pipeline"),
            setting("redis.tls"),
            setting("redis.tls.ca"),
            setting("redis.tls.certificate"),
            setting("redis.tls.key"),
            setting("redis.tls.name"),
            setting("redis.tls.verify"),
            RECONNECT,
        ],
    };
    const DRIVE: Drive = Drive::Task;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let settings = Settings::read(options)?;
        let info = asking(ServerInfo::ask(&settings))?;
        let Guarantee { durability, how, .. } = info.guarantee();
        if options.durability == Durability::Device && durability != Durability::Device {
            return Err(EngineError::failed(format!(
                "redis at {} cannot provide durability=device: {how}",
                settings.server
            ))
            .hint("redis-cli CONFIG SET appendfsync always, then CONFIG SET appendonly yes"));
        }
        let settings = Arc::new(settings);
        let ranges = if settings.cluster {
            asking(async {
                ask_slots(&settings).await.map_err(|failure| server::explain_refusal(&settings, &failure))
            })?
        } else {
            Vec::new()
        };
        if settings.cluster && ranges.is_empty() {
            return Err(EngineError::failed(format!("the cluster of redis at {} has no slots", settings.server))
                .hint("redis-cli --cluster create assigns them to nodes"));
        }
        let cluster =
            Cluster::new(&settings, &ranges).map_err(|failure| server::explain_refusal(&settings, &failure))?;
        Ok(Self { settings, cluster, info, clients: options.clients })
    }

    fn guarantee(&self) -> Guarantee {
        let nodes = self.cluster.members().len();
        let setting = |name: &str| self.info.get(name).unwrap_or("unknown").to_owned();
        self.info
            .guarantee()
            .fact("version", self.info.version())
            .fact("data_in", "memory")
            .fact("address", self.settings.server.to_string())
            .fact("client", concat!("loadstone ", env!("CARGO_PKG_VERSION"), ", RESP 2"))
            .fact("connections", (self.clients * nodes).to_string())
            .fact("pipeline", self.settings.pipeline.to_string())
            .fact("encryption", tls::fact(self.settings.tls.as_ref(), self.info.encryption()))
            .fact("timeout_ms", self.settings.timeout.as_millis().to_string())
            .fact("reconnect", self.settings.reconnect.to_string())
            .fact("pause_after_failure_ms", FAILURE_PAUSE.as_millis().to_string())
            .fact("consistency", if self.settings.cluster { "one server for each key" } else { "one server" })
            .fact("nodes", nodes.to_string())
            .fact("replication", self.info.replication())
            .fact("replication_acknowledged", "1")
            .fact("appendonly", setting("appendonly"))
            .fact("appendfsync", setting("appendfsync"))
            .fact("no_appendfsync_on_rewrite", setting("no-appendfsync-on-rewrite"))
            .fact("maxmemory", setting("maxmemory"))
            .fact("maxmemory_policy", setting("maxmemory-policy"))
            .fact("io_threads", setting("io-threads"))
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        Ok(RedisSession::new(Arc::clone(&self.cluster), &self.settings))
    }

    fn connections(&self, clients: u64) -> u64 {
        clients * self.cluster.members().len() as u64
    }

    fn placement(&self) -> Option<Placement> {
        self.cluster.placement()
    }

    fn connection_attempts(&self) -> Option<ConnectionAttempts> {
        Some(self.cluster.attempts())
    }
}
