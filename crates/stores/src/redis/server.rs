//! The facts that a server reports about itself when a store is opened: its version, and how it stores writes.

use std::collections::BTreeMap;

use loadstone_load::Status;

use super::connection::Connection;
use super::failure;
use super::reply::{Replies, Reply};
use super::request::Request;
use super::settings::{PORT, Settings, TLS};
use crate::deadline::Deadline;
use crate::error::{ConnectError, EngineError, Failure};
use crate::guarantee::Guarantee;
use crate::options::Durability;
use crate::remote::{connect_hint, start_hint};
use crate::tls::explain_close;

/// The server's settings that affect the meaning of a result.
const CONFIGURED: [&str; 6] =
    ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy", "io-threads"];

/// A server's settings by name. Settings that the server does not report are missing.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    settings: BTreeMap<String, String>,
    encryption: Option<String>,
}

impl ServerInfo {
    /// Queries the server.
    pub async fn ask(settings: &Settings) -> Result<Self, EngineError> {
        let mut deadline = Deadline::new(settings.timeout);
        let answer = async {
            let mut connection = Connection::open(settings, &mut deadline).await?;
            let mut info = Self { encryption: connection.encryption(), ..Self::default() };
            let mut request = Request::default();
            for section in ["server", "replication"] {
                request.clear();
                request.command(&[b"INFO", section.as_bytes()]);
                let answer = connection.exchange(&request, settings, &mut deadline).await;
                answer.map_err(|failure| explain_close(failure, settings.tls.as_ref()))?;
                info.information(connection.replies())?;
            }
            for name in CONFIGURED {
                request.clear();
                request.command(&[b"CONFIG", b"GET", name.as_bytes()]);
                connection.exchange(&request, settings, &mut deadline).await?;
                info.setting(name, connection.replies())?;
            }
            Ok(info)
        };
        let info = answer.await.map_err(|failure| explain_refusal(settings, &failure))?;
        match (info.get("redis_mode"), settings.cluster) {
            (Some("cluster"), false) => {
                Err(EngineError::failed(format!("redis at {} is a node of a cluster", settings.server))
                    .hint("add redis.cluster=true"))
            }
            (Some("standalone" | "sentinel"), true) => {
                Err(EngineError::failed(format!("redis at {} is not a node of a cluster", settings.server))
                    .hint("leave out redis.cluster"))
            }
            _ => Ok(info),
        }
    }

    /// Reads the reply to `INFO`. If the server does not allow the command, the facts are unknown. Any other error
    /// would also affect every operation.
    fn information(&mut self, mut replies: Replies<'_>) -> Result<(), Failure> {
        match replies.next()? {
            Some(Reply::Bulk(text)) => {
                let text = String::from_utf8_lossy(text);
                let pairs = text.lines().filter_map(|line| line.split_once(':'));
                self.settings.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
                Ok(())
            }
            Some(Reply::Error(text)) => tolerate(text),
            other => Err(failure::reply_failure(other)),
        }
    }

    fn setting(&mut self, name: &str, mut replies: Replies<'_>) -> Result<(), Failure> {
        match replies.next()? {
            Some(Reply::Array(2)) => {
                if let (Some(Reply::Bulk(_)), Some(Reply::Bulk(value))) = (replies.next()?, replies.next()?) {
                    self.settings.insert(name.to_owned(), String::from_utf8_lossy(value).into_owned());
                }
                Ok(())
            }
            // This version does not have the setting.
            Some(Reply::Array(_)) => Ok(()),
            Some(Reply::Error(text)) => tolerate(text),
            other => Err(failure::reply_failure(other)),
        }
    }

    /// The TLS version and the cipher suite, if connections are encrypted.
    pub fn encryption(&self) -> Option<&str> {
        self.encryption.as_deref()
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The name and version of the server. Valkey answers in the same way as Redis.
    pub fn version(&self) -> String {
        match (self.get("valkey_version"), self.get("redis_version")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// The durability of acknowledged writes, and the reason.
    pub fn guarantee(&self) -> Guarantee {
        match (self.get("appendonly"), self.get("appendfsync")) {
            (Some("no"), _) => {
                Guarantee::new(Durability::None, "no append-only log: writes are in the server's memory")
            }
            (Some("yes"), Some("always")) if self.get("no-appendfsync-on-rewrite") == Some("no") => {
                Guarantee::new(Durability::Device, "append-only log, synced before each answer")
            }
            (Some("yes"), Some("always")) => Guarantee::new(
                Durability::Os,
                "append-only log, synced before each answer except while it is rewritten",
            ),
            (Some("yes"), Some("no")) => {
                Guarantee::new(Durability::Os, "append-only log, written before each answer, not synced")
            }
            // During a sync, acknowledged writes may wait in the server's memory for up to two seconds.
            (Some("yes"), Some("everysec")) => Guarantee::periodic(
                "append-only log, synced each second; during a sync, writes wait in the server's memory",
            )
            // While a sync is delayed, Redis postpones writes for at most two seconds (`aof.c`, flushAppendOnlyFile).
            .losing_at_most(2_000_000_000),
            _ => Guarantee::unknown("unknown: the server refuses CONFIG GET"),
        }
    }

    /// The replicas that also store each write.
    pub fn replication(&self) -> String {
        match (self.get("role"), self.get("connected_slaves")) {
            (Some("slave"), _) => "this server is a replica".to_owned(),
            (Some(_), Some("0")) => "none".to_owned(),
            (Some(_), Some("1")) => "1 replica, after the answer".to_owned(),
            (Some(_), Some(replicas)) => format!("{replicas} replicas, after the answer"),
            _ => "unknown".to_owned(),
        }
    }
}

fn tolerate(text: &[u8]) -> Result<(), Failure> {
    let failure = failure::parse_error(text);
    let hidden = text.starts_with(b"NOPERM") || text.starts_with(b"ERR unknown command");
    if hidden { Ok(()) } else { Err(failure) }
}

/// The error for a server that cannot be used, with a hint.
pub fn explain_refusal(settings: &Settings, failure: &Failure) -> EngineError {
    let text = &failure.message;
    let server = settings.server.to_string();
    let message = if text.contains(&server) { text.clone() } else { format!("{text} (at {server})") };
    if let Some(ConnectError::Tls(fault)) = failure.connect {
        return EngineError::failed(message).hint(TLS.hint(fault));
    }
    let hint = match failure.status {
        Status::Forbidden if settings.credentials.is_empty() => "set redis.password".to_owned(),
        Status::Forbidden => "check redis.password, or redis.cusername and redis.cpassword".to_owned(),
        Status::Timeout => "it may be paused or overloaded; redis.timeout sets the limit (ms)".to_owned(),
        _ if failure.connect == Some(ConnectError::ClientsExhausted) => {
            "raise the server's maxclients (redis-cli CONFIG SET maxclients …) and its open-file limit".to_owned()
        }
        Status::UnexpectedState => {
            "check redis.port: a server other than Redis answers, or it requires TLS (redis.tls=true)".to_owned()
        }
        _ => {
            let start = start_hint("redis", settings.server.port(), PORT);
            connect_hint(failure, &format!("{start}, or set redis.host and redis.port"))
        }
    };
    EngineError::failed(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pairs: &[(&str, &str)]) -> ServerInfo {
        let settings = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerInfo { settings, encryption: None }
    }

    #[test]
    fn durability_is_what_the_log_does() {
        for (appendonly, appendfsync, rewrite, survives) in [
            ("no", "everysec", "no", "none"),
            ("yes", "everysec", "no", "interval"),
            ("yes", "no", "no", "os"),
            ("yes", "always", "no", "device"),
            ("yes", "always", "yes", "os"),
        ] {
            let info = info(&[
                ("appendonly", appendonly),
                ("appendfsync", appendfsync),
                ("no-appendfsync-on-rewrite", rewrite),
            ]);
            assert_eq!(info.guarantee().survives(), survives, "{appendonly} {appendfsync}");
        }
        assert_eq!(info(&[]).guarantee().survives(), "unknown");
    }

    #[test]
    fn replicas_and_versions_are_named() {
        assert_eq!(info(&[("role", "master"), ("connected_slaves", "0")]).replication(), "none");
        assert_eq!(
            info(&[("role", "master"), ("connected_slaves", "2")]).replication(),
            "2 replicas, after the answer"
        );
        assert_eq!(info(&[("role", "slave")]).replication(), "this server is a replica");
        assert_eq!(info(&[("redis_version", "7.0.15")]).version(), "Redis 7.0.15");
        assert_eq!(info(&[("redis_version", "7.2.4"), ("valkey_version", "8.1.0")]).version(), "Valkey 8.1.0");
        assert_eq!(info(&[]).version(), "unknown");
    }
}
