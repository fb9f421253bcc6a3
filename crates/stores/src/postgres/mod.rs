//! PostgreSQL, with the data layouts of YCSB's bindings: `postgres` (a column for each field, as in `jdbc`) and
//! `postgrenosql` (one JSON object).

mod failure;
mod layout;
mod link;
mod pooler;
mod server;
mod session;
mod settings;
mod url;
mod values;

use std::sync::Arc;

use layout::Layout;
use server::ServerInfo;
pub use session::PostgresSession;
use settings::Settings;

use crate::about::{About, secret, setting};
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::{Durability, Options};
use crate::reconnect::{FAILURE_PAUSE, Node, RECONNECT};
use crate::remote::asking;
use crate::session::ConnectionAttempts;
use crate::session::{Drive, Store};
use crate::tls;

/// The name of the client library in facts.
const LIBRARY: &str = "tokio-postgres 0.7";

/// A PostgreSQL server and one table on it.
#[derive(Debug)]
pub struct Sql<const JSON: bool> {
    plan: Arc<Plan>,
    clients: usize,
}

const COLUMNS_ABOUT: About = About {
    name: "postgres",
    line: "PostgreSQL, a column for each field (db.url)",
    networked: true,
    properties: &[
        setting("db.url"),
        setting("db.user"),
        secret("db.passwd"),
        setting("db.driver"),
        setting("db.batchsize"),
        setting("jdbc.autocommit"),
        setting("jdbc.batchupdateapi"),
        setting("jdbc.fetchsize"),
        setting("postgres.timeout"),
        setting("postgres.connecttimeout"),
        setting("postgres.tls.ca"),
        setting("postgres.tls.certificate"),
        setting("postgres.tls.key"),
        setting("postgres.tls.name"),
        setting("postgres.tls.verify"),
        RECONNECT,
    ],
};
const JSON_ABOUT: About = About {
    name: "postgrenosql",
    line: "PostgreSQL, one JSON object per record (postgrenosql.url)",
    networked: true,
    properties: &[
        setting("postgrenosql.url"),
        setting("postgrenosql.user"),
        secret("postgrenosql.passwd"),
        setting("postgrenosql.autocommit"),
        setting("db.driver"),
        setting("postgres.timeout"),
        setting("postgres.connecttimeout"),
        setting("postgres.tls.ca"),
        setting("postgres.tls.certificate"),
        setting("postgres.tls.key"),
        setting("postgres.tls.name"),
        setting("postgres.tls.verify"),
        RECONNECT,
    ],
};

/// A store with a column for each field, as in YCSB's binding `jdbc`.
pub type Postgres = Sql<false>;
/// A store with one JSON object per record, as in YCSB's binding `postgrenosql`.
pub type PostgreNoSql = Sql<true>;

/// The state that all sessions share.
#[derive(Debug)]
struct Plan {
    settings: Settings,
    info: ServerInfo,
    node: Arc<Node>,
}

impl<const JSON: bool> Store for Sql<JSON> {
    type Session = PostgresSession;
    const ABOUT: About = if JSON { JSON_ABOUT } else { COLUMNS_ABOUT };
    const DRIVE: Drive = Drive::Task;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let settings = Settings::read(if JSON { Layout::Json } else { Layout::Columns }, options)?;
        let info = asking(ServerInfo::ask(&settings))?;
        let Guarantee { durability, how, .. } = info.guarantee();
        if options.durability == Durability::Device && durability != Durability::Device {
            return Err(EngineError::failed(format!(
                "postgres at {} cannot provide durability=device: {how}",
                settings.server
            ))
            .hint("set fsync=on in postgresql.conf, and use a logged table"));
        }
        let node = Node::new(settings.reconnect);
        Ok(Self { plan: Arc::new(Plan { settings, info, node }), clients: options.clients })
    }

    fn guarantee(&self) -> Guarantee {
        let Plan { settings, info, .. } = &*self.plan;
        let limit = |limit: std::time::Duration| limit.as_millis().to_string();
        let guarantee = if info.is_pooled {
            info.guarantee().fact("pooler", "shares server connections, keeps prepared statements")
        } else {
            info.guarantee()
        };
        guarantee
            .fact("version", format!("PostgreSQL {}", info.setting("server_version")))
            .fact("address", settings.server.to_string())
            .fact("client", LIBRARY)
            .fact("encryption", tls::fact(settings.tls.as_ref(), info.encryption.as_deref()))
            .fact("connections", self.clients.to_string())
            .fact("timeout_ms", limit(settings.timeout))
            .fact("connect_timeout_ms", limit(settings.connect_timeout))
            .fact("reconnect", settings.reconnect.to_string())
            .fact("pause_after_failure_ms", limit(FAILURE_PAUSE))
            .fact("consistency", if settings.server.iter().len() > 1 { "one of several servers" } else { "one server" })
            .fact("replication_acknowledged", info.acknowledgement())
            .fact("isolation", info.setting("default_transaction_isolation"))
            .fact("collation", info.collation.as_str())
            .fact("fsync", info.setting("fsync"))
            .fact("synchronous_commit", info.setting("synchronous_commit"))
            .fact("wal_writer_delay", info.setting("wal_writer_delay"))
            .fact("wal_sync_method", info.setting("wal_sync_method"))
            .fact("full_page_writes", info.setting("full_page_writes"))
            .fact("shared_buffers", info.setting("shared_buffers"))
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        Ok(PostgresSession::new(Arc::clone(&self.plan)))
    }

    fn connections(&self, clients: u64) -> u64 {
        clients
    }

    fn connection_attempts(&self) -> Option<ConnectionAttempts> {
        Some(self.plan.node.attempts())
    }
}
