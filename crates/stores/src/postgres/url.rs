//! JDBC URLs for PostgreSQL: `jdbc:postgresql://host:port/database?name=value&…`.

use std::collections::BTreeMap;

use crate::error::EngineError;

const SCHEME: &str = "jdbc:postgresql:";
const HOST: &str = "localhost";
pub const PORT: u16 = 5432;

/// Parameters of the Java driver that have no effect here, because they concern its batches, cursors, cache and log.
const IDLE: &[&str] = &[
    "binaryTransfer",
    "defaultRowFetchSize",
    "loggerFile",
    "loggerLevel",
    "loginTimeout",
    "preparedStatementCacheQueries",
    "preparedStatementCacheSizeMiB",
    "prepareThreshold",
    "reWriteBatchedInserts",
    "tcpKeepAlive",
    "tcpNoDelay",
];

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The servers, in the order in which they are tried.
    pub hosts: Vec<(String, u16)>,
    /// The database. By default, the driver uses the database with the same name as the user.
    pub database: Option<String>,
    /// The parameters that have an effect: `user`, `password`, `connectTimeout`, `socketTimeout`, `ApplicationName`,
    /// `currentSchema`, `options`, `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `target_session_attrs`.
    pub parameters: BTreeMap<String, String>,
}

impl Url {
    /// Parses the value of `property`. Error messages do not repeat the value, because it may contain a password.
    pub fn parse(text: &str, property: &str) -> Result<Self, EngineError> {
        let example = || format!("{property}=jdbc:postgresql://127.0.0.1:5432/DATABASE");
        let bad = |what: String| EngineError::usage(format!("{property}: {what}")).hint(format!("write {}", example()));
        let Some(rest) = text.strip_prefix(SCHEME) else {
            let scheme = text.split(['/', '?', '@']).next().unwrap_or_default();
            return Err(EngineError::usage(format!("{property} is not a PostgreSQL URL: \"{scheme}\"")).hint(
                "for another database, use its driver with YCSB's binding in the store jvm (-db CLASS -cp PATH)",
            ));
        };
        if text.contains(';') {
            return Err(bad("several URLs separated by ; (shards) are not supported".to_owned()));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = match place.strip_prefix("//") {
            Some(place) => place.split_once('/').unwrap_or((place, "")),
            None => ("", place),
        };
        let mut hosts = Vec::new();
        for place in authority.split(',') {
            let (host, port) = match place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
                Some((host, port)) => {
                    let number = port.parse().ok().filter(|&port: &u16| port > 0);
                    (host, number.ok_or_else(|| bad(format!("\"{port}\" is not a port")))?)
                }
                None => (place, PORT),
            };
            let host = host.trim_start_matches('[').trim_end_matches(']');
            hosts.push((if host.is_empty() { HOST } else { host }.to_owned(), port));
        }
        let mut url = Self {
            hosts,
            database: Some(decode_form(database)).filter(|name| !name.is_empty()),
            parameters: BTreeMap::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            url.parameter(name, decode_form(value)).map_err(bad)?;
        }
        Ok(url)
    }

    fn parameter(&mut self, name: &str, value: String) -> Result<(), String> {
        match (name, value.as_str()) {
            ("ssl", "false") | ("sslmode", "disable") => {}
            ("ssl", "true" | "") => {
                self.parameters.entry("sslmode".to_owned()).or_insert_with(|| "verify-full".to_owned());
            }
            ("ssl" | "sslmode", mode)
                if !matches!((name, mode), ("sslmode", "require" | "verify-ca" | "verify-full")) =>
            {
                let problem = match mode {
                    "allow" | "prefer" => "does not determine whether connections are encrypted",
                    _ => "is not a mode",
                };
                return Err(format!("{name}={value} {problem}; use disable, require, verify-ca or verify-full"));
            }
            // The first is the Java driver's name, the second is libpq's. Both select the same servers.
            ("targetServerType" | "target_session_attrs", target) => {
                let attributes = match target {
                    "any" => "any",
                    "primary" | "master" | "read-write" => "read-write",
                    "secondary" | "slave" | "read-only" => "read-only",
                    _ => return Err(format!("{name}={target} is not supported; it must be any, primary or secondary")),
                };
                self.parameters.insert("target_session_attrs".to_owned(), attributes.to_owned());
            }
            (
                "user" | "password" | "connectTimeout" | "socketTimeout" | "ApplicationName" | "currentSchema"
                | "options" | "sslmode" | "sslrootcert" | "sslcert" | "sslkey",
                _,
            ) => {
                self.parameters.insert(name.to_owned(), value);
            }
            (name, _) if IDLE.contains(&name) => {}
            (name, _) => return Err(format!("the parameter {name} is not supported")),
        }
        Ok(())
    }
}

/// Decodes `%xx`, and `+` as a space: the Java driver decodes URLs in the same way as forms.
fn decode_form(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (bytes[at], code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Url, EngineError> {
        Url::parse(text, "db.url")
    }

    fn place(text: &str) -> (String, u16, Option<String>) {
        let url = parse(text).unwrap();
        let (host, port) = url.hosts[0].clone();
        (host, port, url.database)
    }

    #[test]
    fn urls_are_the_java_drivers() {
        let test = Some("test".to_owned());
        assert_eq!(place("jdbc:postgresql://10.0.0.1:5433/test"), ("10.0.0.1".to_owned(), 5433, test.clone()));
        assert_eq!(place("jdbc:postgresql://db/test"), ("db".to_owned(), 5432, test.clone()));
        assert_eq!(place("jdbc:postgresql://[::1]:1/test"), ("::1".to_owned(), 1, test.clone()));
        assert_eq!(place("jdbc:postgresql://[::1]/test"), ("::1".to_owned(), 5432, test.clone()));
        assert_eq!(place("jdbc:postgresql:test"), ("localhost".to_owned(), 5432, test));
        let several = parse("jdbc:postgresql://db1,[::1]:7,db2:6/test").unwrap();
        assert_eq!(several.hosts, [("db1".to_owned(), 5432), ("::1".to_owned(), 7), ("db2".to_owned(), 6)]);
        for (query, attributes) in [
            ("targetServerType=primary", "read-write"),
            ("targetServerType=secondary", "read-only"),
            ("target_session_attrs=read-write", "read-write"),
            ("target_session_attrs=any", "any"),
        ] {
            let url = parse(&format!("jdbc:postgresql://a,b/d?{query}")).unwrap();
            assert_eq!(url.parameters["target_session_attrs"], attributes, "{query}");
        }
        assert_eq!(place("jdbc:postgresql:///"), ("localhost".to_owned(), 5432, None));
    }

    #[test]
    fn parameters_are_taken_ignored_or_refused() {
        let spaced = parse("jdbc:postgresql://h/d?options=-c+a=1%2B1").unwrap();
        assert_eq!(spaced.parameters["options"], "-c a=1+1");
        let url = parse("jdbc:postgresql://h/d?user=u&password=a%26b%3D&ssl=false&reWriteBatchedInserts=true").unwrap();
        let parameters: Vec<(&str, &str)> =
            url.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(parameters, [("password", "a&b="), ("user", "u")]);
        let encrypted = parse("jdbc:postgresql://h/d?ssl=true&sslrootcert=%2Fca.pem").unwrap();
        assert_eq!(
            (&*encrypted.parameters["sslmode"], &*encrypted.parameters["sslrootcert"]),
            ("verify-full", "/ca.pem")
        );
        for (text, expected) in [
            ("jdbc:postgresql://h/d?sslmode=always", "not a mode"),
            ("jdbc:postgresql://h/d?sslmode=prefer", "does not determine whether connections are encrypted"),
            ("jdbc:postgresql://h/d?targetServerType=preferSecondary", "targetServerType"),
            ("jdbc:postgresql://h:x/d", "not a port"),
            ("jdbc:postgresql://h,i:x/d", "not a port"),
            ("jdbc:postgresql://h/d;jdbc:postgresql://i/d", "shards"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.is_usage() && error.message.contains(expected) && error.hint.is_some(), "{error}");
        }
    }

    #[test]
    fn foreign_url_names_the_jvm_without_its_password() {
        let error = parse("jdbc:mysql://root:secret@127.0.0.1/test?password=secret").unwrap_err();
        assert_eq!(error.message, "db.url is not a PostgreSQL URL: \"jdbc:mysql:\"");
        assert!(error.hint.unwrap().contains("store jvm"));
        assert!(!parse("jdbc:postgresql://h:x/d?password=secret").unwrap_err().message.contains("secret"));
    }
}
