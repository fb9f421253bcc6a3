//! PostgreSQL's properties, under the names of YCSB's bindings `jdbc` and `postgrenosql`.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::layout::Layout;
use super::url::Url;
use crate::error::EngineError;
use crate::options::{Durability, Options};
use crate::reconnect::Reconnect;
use crate::remote::{Server, boolean, milliseconds};
use crate::tls::{Tls, TlsProperties, TlsRequest, Verify};

/// The properties for TLS.
pub const TLS: TlsProperties = TlsProperties { prefix: "postgres", switch: "sslmode=verify-full in the URL" };
const DRIVER: &str = "org.postgresql.Driver";
/// The default of the Java driver's `connectTimeout`.
const CONNECT_TIMEOUT_MS: u64 = 10_000;
/// The Java driver has no limit by default (`socketTimeout=0`), but here every wait has a limit.
const TIMEOUT_MS: u64 = 10_000;

/// The server's address, and the settings of the client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How records are stored.
    pub layout: Layout,
    /// The possible servers. The first suitable server is used.
    pub server: Servers,
    /// The table's name, as it is written in every statement.
    pub table: String,
    /// Time limit for connecting, including authentication.
    pub connect_timeout: Duration,
    /// Time limit for each answer.
    pub timeout: Duration,
    /// The delays between attempts to connect.
    pub reconnect: Reconnect,
    /// How connections are encrypted; `None` if they are not.
    pub tls: Option<Tls>,
}

/// The servers of a URL. Each has addresses, a user, a password and a database.
#[derive(Clone, Debug)]
pub struct Servers(Vec<(Server, Config)>);

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|(server, _)| server.to_string()).collect();
        f.write_str(&names.join(","))
    }
}

impl Servers {
    /// The servers, in the order in which they are tried.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Server, Config)> {
        self.0.iter()
    }
}

/// The names of a binding's properties.
struct Names {
    url: &'static str,
    user: &'static str,
    password: &'static str,
    autocommit: &'static str,
}

impl Layout {
    fn names(self) -> Names {
        match self {
            Self::Columns => {
                Names { url: "db.url", user: "db.user", password: "db.passwd", autocommit: "jdbc.autocommit" }
            }
            Self::Json => Names {
                url: "postgrenosql.url",
                user: "postgrenosql.user",
                password: "postgrenosql.passwd",
                autocommit: "postgrenosql.autocommit",
            },
        }
    }

    /// The names of the properties for user and password, for hints.
    pub fn credentials(self) -> String {
        let names = self.names();
        format!("{} and {}", names.user, names.password)
    }

    /// The name of the property for the URL, for hints.
    pub fn url(self) -> &'static str {
        self.names().url
    }
}

impl Settings {
    /// The time limit for trying to connect to all servers, one after the other.
    pub fn connect_limit(&self) -> Duration {
        self.connect_timeout * self.server.iter().len() as u32
    }

    /// Reads the properties.
    pub fn read(layout: Layout, options: &Options) -> Result<Self, EngineError> {
        let names = layout.names();
        refuse_what_is_not_done(options, &names)?;
        let table = table(&options.table)?;
        let Some(text) = options.get(names.url) else {
            return Err(EngineError::usage(format!("{} is not set", names.url))
                .hint(format!("add -p {}=jdbc:postgresql://127.0.0.1:5432/DATABASE", names.url)));
        };
        let url = Url::parse(text, names.url)?;
        let timeout = milliseconds(options, "postgres.timeout", url.limit("socketTimeout", TIMEOUT_MS)?)?;
        let connect_timeout =
            milliseconds(options, "postgres.connecttimeout", url.limit("connectTimeout", CONNECT_TIMEOUT_MS)?)?;
        let mut config = Config::new();
        let tls = url.tls(options)?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        let parameter = |name: &str| url.parameters.get(name).map(String::as_str);
        config.target_session_attrs(match parameter("target_session_attrs") {
            Some("read-write") => TargetSessionAttrs::ReadWrite,
            Some("read-only") => TargetSessionAttrs::ReadOnly,
            _ => TargetSessionAttrs::Any,
        });
        config.application_name(parameter("ApplicationName").unwrap_or("loadstone"));
        if let Some(user) = options.get(names.user).or(parameter("user")) {
            config.user(user);
        }
        if let Some(password) = options.get(names.password).or(parameter("password")) {
            config.password(password);
        }
        if let Some(database) = &url.database {
            config.dbname(database);
        }
        let mut started: Vec<String> = parameter("options").map(str::to_owned).into_iter().collect();
        if let Some(schema) = parameter("currentSchema") {
            started.push(format!("-c search_path={}", schema.replace('\\', "\\\\").replace(' ', "\\ ")));
        }
        // The server's own setting is used for `os`, because the server has no level between `none` and `device`.
        match options.durability {
            Durability::None => started.push("-c synchronous_commit=off".to_owned()),
            Durability::Os => {}
            Durability::Device => started.push("-c synchronous_commit=on".to_owned()),
        }
        if !started.is_empty() {
            config.options(started.join(" "));
        }
        let servers: Result<_, EngineError> = url
            .hosts
            .iter()
            .map(|(host, port)| {
                let (server, mut config) = (Server::find(host, *port, names.url)?, config.clone());
                for address in server.addresses() {
                    // The addresses are known, so the library needs the name only for its checks.
                    config.host(host).hostaddr(address.ip()).port(*port);
                }
                Ok((server, config))
            })
            .collect();
        let reconnect = Reconnect::read(options)?;
        Ok(Self { layout, server: Servers(servers?), table, connect_timeout, timeout, reconnect, tls })
    }
}

impl Url {
    /// A time limit in ms, read from a URL parameter in seconds, as in the Java driver. There, 0 means no limit; here,
    /// it means the default.
    fn limit(&self, name: &str, default: u64) -> Result<u64, EngineError> {
        match self.parameters.get(name).map(|text| text.parse::<u32>()) {
            None | Some(Ok(0)) => Ok(default),
            Some(Ok(seconds)) => Ok(u64::from(seconds) * 1_000),
            Some(Err(_)) => Err(EngineError::usage(format!("{name} in the URL must be a whole number of seconds"))
                .hint("or omit it and set postgres.timeout and postgres.connecttimeout (ms)")),
        }
    }
}

impl Url {
    /// Reads the TLS settings as libpq does (see "SSL Support" in its documentation): `require` verifies nothing
    /// without `sslrootcert`, and verifies the CA with it. Files in the home directory are not used.
    fn tls(&self, options: &Options) -> Result<Option<Tls>, EngineError> {
        let TlsRequest { ca, certificate, key, name, verify } = TlsRequest::read(options, TLS)?;
        let parameter = |name: &str| self.parameters.get(name).cloned();
        let ca = ca.or_else(|| parameter("sslrootcert"));
        let mode = self.parameters.get("sslmode").map(String::as_str);
        let of_mode = match mode {
            None => None,
            Some("verify-full") => Some(Verify::Full),
            Some("require") if ca.is_none() => Some(Verify::None),
            Some(_) => Some(Verify::Ca),
        };
        let certificate = certificate.or_else(|| parameter("sslcert"));
        let key = key.or_else(|| parameter("sslkey"));
        TlsRequest { ca, certificate, key, name, verify: verify.or(of_mode) }.configure(mode.is_some(), TLS, &[])
    }
}

fn refuse_what_is_not_done(options: &Options, names: &Names) -> Result<(), EngineError> {
    if let Some(driver) = options.get("db.driver").filter(|&driver| driver != DRIVER) {
        return Err(EngineError::usage(format!("db.driver={driver}: this store is for PostgreSQL ({DRIVER})"))
            .hint("for another database, use its driver with YCSB's binding in the store jvm (-db CLASS -cp PATH)"));
    }
    if !boolean(options, names.autocommit, true)? {
        return Err(EngineError::usage(format!(
            "{}=false: in this store, each operation is a separate transaction",
            names.autocommit
        ))
        .hint("leave it out"));
    }
    let batches = options.get("db.batchsize").is_some_and(|size| size.parse().map_or(true, |size: i64| size > 0));
    if batches || boolean(options, "jdbc.batchupdateapi", false)? {
        return Err(EngineError::usage("db.batchsize and jdbc.batchupdateapi: this store does not batch inserts")
            .hint("leave them out, or use YCSB's binding in the store jvm"));
    }
    Ok(())
}

/// A table name that is valid in SQL without quotes, optionally with a schema.
fn table(name: &str) -> Result<String, EngineError> {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
    };
    if name.split('.').count() <= 2 && name.split('.').all(part) {
        return Ok(name.to_owned());
    }
    Err(EngineError::usage(format!("\"{name}\" is not a valid table name"))
        .hint("a name consists of letters, digits and _, optionally after a schema and a dot: -p table=usertable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: (&str, &str) = ("db.url", "jdbc:postgresql://127.0.0.1:5433/test?user=u&connectTimeout=3");

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, EngineError> {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::read(Layout::Columns, &Options { properties, table: "usertable".to_owned(), ..Options::default() })
    }

    #[test]
    fn properties_win_over_the_url() {
        let first = |settings: &Settings| settings.server.iter().next().unwrap().1.clone();
        let settings = read(&[URL]).unwrap();
        assert_eq!((first(&settings).get_user(), first(&settings).get_dbname()), (Some("u"), Some("test")));
        assert_eq!((settings.connect_timeout.as_secs(), settings.timeout.as_secs()), (3, 10));
        assert_eq!(settings.server.to_string(), "127.0.0.1:5433");
        let several = read(&[("db.url", "jdbc:postgresql://127.0.0.1:1,[::1]:2/d?targetServerType=primary")]).unwrap();
        assert_eq!(several.server.to_string(), "127.0.0.1:1,[::1]:2");
        for ((_, config), port) in several.server.iter().zip([1, 2]) {
            assert_eq!((config.get_ports(), config.get_hostaddrs().len()), (&[port][..], 1));
            assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
        let settings = read(&[URL, ("db.user", "v"), ("db.passwd", "p"), ("postgres.connecttimeout", "70")]).unwrap();
        assert_eq!((first(&settings).get_user(), first(&settings).get_password()), (Some("v"), Some(&b"p"[..])));
        assert_eq!(settings.connect_timeout.as_millis(), 70);
    }

    #[test]
    fn only_ineffective_retired_settings_are_accepted() {
        let fine = [
            URL,
            ("db.driver", DRIVER),
            ("jdbc.autocommit", "true"),
            ("jdbc.batchupdateapi", "false"),
            ("db.batchsize", "0"),
            ("jdbc.fetchsize", "10"),
        ];
        read(&fine).unwrap();
        for (name, value) in [
            ("db.driver", "com.mysql.jdbc.Driver"),
            ("jdbc.autocommit", "false"),
            ("jdbc.batchupdateapi", "true"),
            ("db.batchsize", "1000"),
            ("postgres.timeout", "0"),
        ] {
            let error = read(&[URL, (name, value)]).unwrap_err();
            assert!(error.is_usage() && error.message.contains(name) && error.hint.is_some(), "{error}");
        }
        assert!(read(&[]).unwrap_err().message.contains("db.url is not set"));
    }

    #[test]
    fn the_mode_of_tls_is_libpqs() {
        let directory = tempfile::tempdir().unwrap();
        crate::certificates::write(directory.path(), &["localhost".to_owned()], "u").unwrap();
        let ca = directory.path().join("ca.pem").display().to_string();
        let verify = |query: &str| {
            let url = format!("jdbc:postgresql://127.0.0.1/d?{}", query.replace("CA", &ca));
            Ok::<_, EngineError>(read(&[("db.url", &url)])?.tls.map(|tls| tls.verify()))
        };
        for (query, expected) in [
            ("", None),
            ("sslmode=disable", None),
            ("sslmode=require", Some(Verify::None)),
            ("sslmode=require&sslrootcert=CA", Some(Verify::Ca)),
            ("sslmode=verify-ca&sslrootcert=CA", Some(Verify::Ca)),
            ("sslmode=verify-full&sslrootcert=CA", Some(Verify::Full)),
            ("ssl=true&sslrootcert=CA", Some(Verify::Full)),
        ] {
            assert_eq!(verify(query), Ok(expected), "{query}");
        }
        for query in ["sslmode=verify-full", "sslmode=verify-ca", "sslrootcert=CA", "sslmode=require&sslcert=CA"] {
            let error = verify(query).unwrap_err();
            assert!(error.is_usage() && error.hint.is_some(), "{query}: {error}");
        }
    }

    #[test]
    fn tables_are_names() {
        assert_eq!(table("ycsb.usertable"), Ok("ycsb.usertable".to_owned()));
        for bad in ["", "a b", "a;DROP TABLE x", "1a", "a.b.c", "\"a\"", "."] {
            assert!(table(bad).unwrap_err().is_usage(), "{bad}");
        }
    }
}
