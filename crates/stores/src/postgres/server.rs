//! The facts that a server reports about itself and the table when a store is opened.

use std::collections::BTreeMap;

use loadstone_load::Status;
use tokio_postgres::Client;

use super::failure::failure_of;
use super::layout::{KEY, Layout, VALUE};
use super::link::Link;
use super::pooler::find_pooler;
use super::settings::{Settings, TLS};
use super::url::PORT;
use crate::deadline::Deadline;
use crate::error::{ConnectError, EngineError, Failure, TlsFault};
use crate::guarantee::Guarantee;
use crate::options::Durability;
use crate::remote::{connect_hint, start_hint};

/// The server's settings that affect the meaning of a result, with their units as `SHOW` prints them.
const SETTINGS: &str = "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ('server_version', \
    'synchronous_commit', 'fsync', 'full_page_writes', 'wal_sync_method', 'synchronous_standby_names', 'shared_buffers', \
    'default_transaction_isolation', 'max_connections', 'transaction_read_only', 'wal_writer_delay')";
const COLUMNS: &str = "SELECT attname::text, format_type(atttypid, NULL), coalesce(c.collname::text, ''), \
    t.relpersistence::text FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid \
    LEFT JOIN pg_collation c ON c.oid = a.attcollation \
    WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
const COLLATION: &str = "SELECT datcollate::text FROM pg_database WHERE datname = current_database()";

/// A server's settings, and the properties of the table.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    settings: BTreeMap<String, String>,
    /// The table's columns except the key, in the table's order.
    pub columns: Vec<String>,
    /// The collation, which determines the order of keys in scans.
    pub collation: String,
    /// Whether a pooler shares server connections between clients.
    pub is_pooled: bool,
    /// Whether the table is unlogged, so that its changes are not in the write-ahead log.
    pub unlogged: bool,
    /// The TLS version and the cipher suite, if connections are encrypted.
    pub encryption: Option<String>,
}

impl ServerInfo {
    /// Queries the server. It is an error if the table is missing or lacks the columns of the layout.
    pub async fn ask(settings: &Settings) -> Result<Self, EngineError> {
        let link = Link::open(settings).await.map_err(|failure| explain_refusal(settings, &failure))?;
        let is_pooled = find_pooler(&link, settings).await?;
        let answers = Deadline::new(settings.timeout).keep_deadline(Self::answers(&link.client, settings)).await;
        let info = match answers {
            Ok(Ok(info)) => info,
            Ok(Err(error)) => return Err(explain_refusal(settings, &failure_of(&error, &settings.server).0)),
            Err(late) => {
                let failure = Failure::new(Status::Timeout, format!("{late} from {}", settings.server));
                return Err(explain_refusal(settings, &failure));
            }
        };
        let encryption = link.encryption.clone();
        link.close(settings.timeout).await;
        let info = info.ok_or_else(|| unfit(settings))?;
        Ok(Self { is_pooled, encryption, ..info })
    }

    async fn answers(client: &Client, settings: &Settings) -> Result<Option<Self>, tokio_postgres::Error> {
        let mut info = Self::default();
        for row in client.query(SETTINGS, &[]).await? {
            info.settings.insert(row.try_get(0)?, row.try_get(1)?);
        }
        let mut key = false;
        let mut value = false;
        for row in client.query(COLUMNS, &[&settings.table]).await? {
            let (name, kind): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            info.unlogged = row.try_get::<_, String>(3)? == "u";
            if name.eq_ignore_ascii_case(KEY) {
                key = true;
                info.collation = row.try_get(2)?;
            } else {
                value |= match settings.layout {
                    Layout::Columns => true,
                    Layout::Json => name.eq_ignore_ascii_case(VALUE) && kind == "jsonb",
                };
                info.columns.push(name);
            }
        }
        if info.collation == "default" {
            info.collation = client.query_one(COLLATION, &[]).await?.try_get(0)?;
        }
        Ok((key && value).then_some(info))
    }

    /// The value of a setting.
    pub fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("unknown", String::as_str)
    }

    /// The durability of acknowledged writes, and the reason.
    pub fn guarantee(&self) -> Guarantee {
        let (commit, sync) = (self.setting("synchronous_commit"), self.setting("fsync"));
        let how = format!("synchronous_commit={commit}, fsync={sync}");
        match (commit, sync) {
            _ if self.unlogged => Guarantee::new(Durability::None, "unlogged table, which is emptied after a crash"),
            // A loss of up to three times wal_writer_delay is possible (see "Asynchronous Commit" in PostgreSQL's
            // documentation). The default is 200 ms.
            ("off", _) => {
                let delay = milliseconds(self.setting("wal_writer_delay"));
                Guarantee::periodic(how).losing_at_most(3 * delay.unwrap_or(200) * 1_000_000)
            }
            ("unknown", _) => Guarantee::unknown(how),
            (_, "on") => Guarantee::new(Durability::Device, how),
            (_, "off") => Guarantee::new(Durability::Os, how),
            _ => Guarantee::unknown(how),
        }
    }

    /// The copies that have received a write when it is acknowledged.
    pub fn acknowledgement(&self) -> String {
        let standbys = self.setting("synchronous_standby_names");
        let waits = !matches!(self.setting("synchronous_commit"), "off" | "local");
        if standbys.is_empty() || standbys == "unknown" || !waits {
            return "1".to_owned();
        }
        format!("1 and {standbys} ({})", self.setting("synchronous_commit"))
    }
}

/// The value of a duration setting, in ms. `SHOW` prints it in the largest unit that leaves no remainder.
fn milliseconds(setting: &str) -> Option<u64> {
    let (number, scale) = match setting.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (setting.strip_suffix('s')?, 1_000),
    };
    number.parse::<u64>().ok().map(|number| number * scale)
}

/// The error for a table that is missing or lacks the layout's columns.
fn unfit(settings: &Settings) -> EngineError {
    let (table, server) = (&settings.table, &settings.server);
    let (columns, option) = match settings.layout {
        Layout::Columns => (format!("{KEY} and a column for each field"), ""),
        Layout::Json => (format!("{KEY} and {VALUE} JSONB"), " --set layout=postgrenosql"),
    };
    EngineError::failed(format!("postgres at {server} has no table {table} with {columns}")).hint(format!(
        "loadstone systems fresh postgres {table}{option}, or with psql: {};",
        settings.layout.ddl(table)
    ))
}

/// The error for a server that cannot be used, with a hint.
pub fn explain_refusal(settings: &Settings, failure: &Failure) -> EngineError {
    let text = &failure.message;
    let server = settings.server.to_string();
    let message = if text.contains(&server) { text.clone() } else { format!("{text} (at {server})") };
    let layout = settings.layout;
    if let Some(ConnectError::Tls(fault)) = failure.connect {
        let hint = match fault {
            TlsFault::Plain => format!("set ssl = on in postgresql.conf, or sslmode=disable in {}", layout.url()),
            fault => TLS.hint(fault),
        };
        return EngineError::failed(message).hint(hint);
    }
    let hint = match failure.status {
        Status::Forbidden => format!("check {}, and the server's pg_hba.conf", layout.credentials()),
        Status::Timeout => {
            "it may be paused or overloaded; postgres.timeout and postgres.connecttimeout set the limits (ms)".into()
        }
        _ => match failure.connect {
            Some(ConnectError::NoDatabase) => format!("create it with createdb, or change {}", layout.url()),
            Some(ConnectError::ClientsExhausted) => {
                "raise the server's max_connections: each client has a connection".into()
            }
            Some(ConnectError::NoPassword) => format!("set {}", layout.credentials()),
            Some(ConnectError::ServerRole) => format!("change target_session_attrs in {}", layout.url()),
            _ => {
                let port = settings.server.iter().next().map_or(PORT, |(server, _)| server.port());
                let start = start_hint("postgres", port, PORT);
                connect_hint(failure, &format!("{start}, or set {}", layout.url()))
            }
        },
    };
    EngineError::failed(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pairs: &[(&str, &str)]) -> ServerInfo {
        let settings = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerInfo { settings, ..ServerInfo::default() }
    }

    #[test]
    fn durability_is_what_the_log_does() {
        for (commit, sync, survives) in [
            ("on", "on", "device"),
            ("local", "on", "device"),
            ("remote_apply", "on", "device"),
            ("off", "on", "interval"),
            ("on", "off", "os"),
            ("off", "off", "interval"),
        ] {
            let info = info(&[("synchronous_commit", commit), ("fsync", sync)]);
            assert_eq!(info.guarantee().survives(), survives, "{commit} {sync}");
            let unlogged = ServerInfo { unlogged: true, ..info };
            assert_eq!(unlogged.guarantee().survives(), "none");
        }
        assert_eq!(info(&[]).guarantee().survives(), "unknown");
    }

    #[test]
    fn losses_are_three_times_the_writers_delay() {
        for (delay, milliseconds) in [("200ms", 600), ("10ms", 30), ("1s", 3_000), ("10s", 30_000), ("unknown", 600)] {
            let info = info(&[("synchronous_commit", "off"), ("wal_writer_delay", delay)]);
            assert_eq!(info.guarantee().loss_ns_max(), Some(milliseconds * 1_000_000), "{delay}");
        }
    }

    #[test]
    fn standbys_count_when_they_are_waited_for() {
        let with = |commit, names| info(&[("synchronous_commit", commit), ("synchronous_standby_names", names)]);
        assert_eq!(with("on", "").acknowledgement(), "1");
        assert_eq!(with("local", "b").acknowledgement(), "1");
        assert_eq!(with("remote_apply", "ANY 1 (b, c)").acknowledgement(), "1 and ANY 1 (b, c) (remote_apply)");
    }
}
