//! A store under test, on a server that is already running.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::{Durability, EngineError, Options, RecordStore, Rows, Session, Store};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// An entry in the list of stores: the store's server and abilities.
#[allow(clippy::struct_excessive_bools, reason = "a list of abilities, each with its name")]
pub struct Subject {
    /// The environment variable that contains the store's properties, such as `redis.host=127.0.0.1 redis.port=6379`.
    pub variable: &'static str,
    /// Whether scans return records in byte order of the keys.
    pub ordered: bool,
    /// Whether the store supports scans.
    pub scans: bool,
    /// Whether values may consist of any bytes, not only of text.
    pub bytes: bool,
    /// Whether an update of a missing record is reported.
    pub tells_missing: bool,
    /// Whether an insert of a record that already exists is refused, as in SQL.
    pub refuses_second: bool,
    /// Whether a field without a value is returned with an empty value, rather than omitted.
    pub pads: bool,
    /// Whether the store has tables, which the store does not create.
    pub tables: bool,
    /// The property that limits a wait, in ms, if the store uses only the given address; the store can then be tested
    /// behind a relay. Cassandra uses only this address if its cluster has a single node.
    pub timeout: &'static str,
    /// The property that contains the password.
    pub password: &'static str,
}

impl Subject {
    /// A subject without any abilities.
    pub const NONE: Self = Self {
        variable: "",
        ordered: false,
        scans: false,
        bytes: false,
        tells_missing: false,
        refuses_second: false,
        pads: false,
        tables: false,
        timeout: "",
        password: "",
    };

    /// The options with which the store is opened.
    pub fn options(&self) -> Options {
        let text = std::env::var(self.variable).unwrap_or_else(|_| panic!("{} is not set", self.variable));
        let properties: BTreeMap<String, String> = text
            .split_whitespace()
            .map(|pair| pair.split_once('=').expect("NAME=VALUE"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Options { properties, durability: Durability::Os, table: "usertable".to_owned(), create: true, clients: 4 }
    }

    /// The options, with the host and the port of every address replaced.
    pub fn options_at(&self, host: &str, port: &str) -> Options {
        let mut options = self.options();
        for (name, value) in &mut options.properties {
            if name.ends_with("url") {
                let (scheme, rest) = value.split_once("://").expect("a URL");
                let (_, path) = rest.split_once('/').expect("a path");
                *value = format!("{scheme}://{host}:{port}/{path}");
            } else if ["hosts", "host", "quorum"].iter().any(|end| name.ends_with(end)) {
                host.clone_into(value);
            } else if name.to_ascii_lowercase().ends_with("port") {
                port.clone_into(value);
            }
        }
        options
    }

    /// The host and the port in the options.
    pub fn address(&self) -> (String, String) {
        let properties = self.options().properties;
        let of = |end: &str| properties.iter().find(|(name, _)| name.ends_with(end)).map(|(_, value)| value.clone());
        let Some(url) = of("url") else {
            let hosts = of("host").or_else(|| of("hosts")).expect("a host");
            let first = hosts.split(',').next().unwrap_or_default();
            return (first.to_owned(), of("port").expect("a port"));
        };
        let place = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a place");
        let (host, port) = place.split_once(':').expect("a port");
        (host.to_owned(), port.to_owned())
    }

    /// Opens a store, and connects one client.
    pub fn open<S: RecordStore>(&self, case: &str) -> Opened<S> {
        Opened::new(S::open(&self.options()).unwrap_or_else(|error| panic!("{error}: {:?}", error.hint)), case)
    }
}

/// An open store with one client, and keys that no other case uses.
pub struct Opened<S: RecordStore> {
    pub session: Sync<S::Session>,
    pub store: S,
    prefix: String,
}

impl<S: RecordStore> Opened<S> {
    fn new(store: S, case: &str) -> Self {
        static CASES: AtomicU64 = AtomicU64::new(0);
        let number = CASES.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("{case}-{}-{number}-", std::process::id());
        Self { session: Sync::connect(&store).expect("a session"), store, prefix }
    }

    /// A key that belongs to this case.
    pub fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    /// Closes the store as the engine does: sessions first.
    pub fn close(self) {
        drop(self.session);
        self.store.close().expect("a clean close");
    }
}

/// A session with its own executor, whose calls block.
pub struct Sync<S> {
    // The session is dropped before its runtime.
    session: S,
    tasks: LocalSet,
    runtime: Runtime,
}

impl<S: Session> Sync<S> {
    /// Creates a session and connects it.
    pub fn connect<T: Store<Session = S>>(store: &T) -> Result<Self, EngineError> {
        let runtime = runtime();
        let tasks = LocalSet::new();
        let session = tasks.block_on(&runtime, async {
            let mut session = store.session()?;
            session.connect().await?;
            Ok::<_, EngineError>(session)
        })?;
        Ok(Self { session, tasks, runtime })
    }

    fn wait<'a, F: Future>(&'a mut self, call: impl FnOnce(&'a mut S) -> F) -> F::Output {
        self.tasks.block_on(&self.runtime, call(&mut self.session))
    }

    pub fn read_row(&mut self, key: &[u8], projection: Projection<'_>) -> (Status, Row) {
        let mut row = row(&[("left over", "from before")]);
        let status = self.wait(|session| session.read(key, projection, &mut row));
        (status, row)
    }

    pub fn insert_row(&mut self, key: &[u8], row: &Row) -> Status {
        self.wait(|session| session.insert(key, row))
    }

    pub fn update_row(&mut self, key: &[u8], row: &Row) -> Status {
        self.wait(|session| session.update(key, row))
    }

    pub fn delete_row(&mut self, key: &[u8]) -> Status {
        let status = self.wait(|session| session.delete(key));
        // In HBase, a delete also hides writes of the same millisecond (HBASE-2256).
        std::thread::sleep(Duration::from_millis(2));
        status
    }

    pub fn scan_rows(&mut self, from: &[u8], count: usize) -> (Status, Vec<(Vec<u8>, Row)>) {
        let mut rows = Rows::default();
        rows.push(b"left over");
        let status = self.wait(|session| session.scan(from, count, Projection::All, &mut rows));
        (status, rows.iter().map(|(key, row)| (key.to_vec(), row.clone())).collect())
    }

    /// The message of the last failure.
    pub fn message(&mut self) -> String {
        self.session.last_error().unwrap_or_default()
    }
}

/// A runtime like the runtime of an engine's executor.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().expect("an executor")
}

/// Creates a row with these fields.
pub fn row(fields: &[(&str, &str)]) -> Row {
    let mut row = Row::default();
    for (name, value) in fields {
        row.push_field(name.as_bytes(), value.as_bytes());
    }
    row
}

/// A record's fields as the store returns them: if the store pads, all ten fields of the table.
pub fn pad_record(subject: &Subject, fields: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    if subject.pads {
        all.extend((0..10).map(|n| (format!("field{n}"), Vec::new())));
    }
    all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())));
    all
}

/// The fields of a record, in any order.
pub fn fields(row: &Row) -> BTreeMap<String, Vec<u8>> {
    row.fields()
        .map(|field| field.expect("a row in our format"))
        .map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.to_vec()))
        .collect()
}
