//! The traits of a store.

use std::future::Future;

use loadstone_load::{Projection, Row, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::about::About;
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::Options;
use crate::placement::Placement;

/// How a store's sessions are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// A thread per client: calls block, and futures are always ready.
    Thread,
    /// A few executors with many clients each: calls wait for a network.
    Task,
    /// Calls neither block nor wait: a thread per client for a few clients, executors for many.
    Either,
}

/// A consistency level for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLevel {
    /// The level's name, which is also the property's value.
    pub name: &'static str,
    /// The property that sets the level.
    pub property: &'static str,
}

/// An open store.
pub trait Store: std::fmt::Debug + Send + Sync + Sized + 'static {
    /// One client's session.
    type Session: Connection;
    /// The store's description, which includes its name and properties.
    const ABOUT: About;
    /// How the store's sessions are driven.
    const DRIVE: Drive;
    /// Stack size of a client's thread. Embedded stores need more than 128 KiB, but with ten thousand threads
    /// the default of 2 MiB each is too much.
    const STACK_BYTES: usize = 512 << 10;
    /// Number of clients that share an executor before another executor is started. Clients of most servers mostly
    /// wait: with a second executor, each executor would wake up for fewer clients at a time, and waking up costs more
    /// than the work itself.
    const CLIENTS_PER_EXECUTOR: u64 = 32;

    /// Opens the store. Called once per trial.
    fn open(options: &Options) -> Result<Self, EngineError>;

    /// The store's guarantee.
    fn guarantee(&self) -> Guarantee;

    /// The levels at which records can be read, strongest first; empty if reads have no level. A read-back starts at
    /// the first level, and falls back to the next level if servers that a level needs are unavailable.
    fn read_levels() -> &'static [ReadLevel] {
        &[]
    }

    /// Creates a session on the thread that will use it (for an executor: within its runtime). The session connects
    /// only when `connect` is called.
    fn session(&self) -> Result<Self::Session, EngineError>;

    /// Waits until the store is idle: buffers written, compactions finished. Called outside the measured window.
    fn settle(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Closes the store cleanly; a store without buffers only has to be dropped. Called after all sessions have ended.
    fn close(self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Whether operations cross a network; if they do, the engine's processors must not be the bottleneck.
    fn is_networked(&self) -> bool {
        Self::ABOUT.networked
    }

    /// Number of connections for this number of clients. Each connection takes a file descriptor of this process.
    fn connections(&self, _clients: u64) -> u64 {
        0
    }

    /// The activity of garbage collectors in this process since its start; empty if there are none.
    fn collections(&self) -> Vec<Collections> {
        Vec::new()
    }

    /// The number of attempts to connect so far; `None` if a client library makes the connections, or there are no
    /// connections.
    fn connection_attempts(&self) -> Option<ConnectionAttempts> {
        None
    }

    /// Events since the store was opened that the store's servers reported or that the store observed, such as nodes
    /// that went down and tables that were altered.
    fn server_events(&self) -> Vec<ServerEvent> {
        Vec::new()
    }

    /// The placement of the keys on servers at present; `None` if it is unknown.
    fn placement(&self) -> Option<Placement> {
        None
    }

    /// The reason why the store is permanently lost; `None` if it is not. Calls to a lost store do not return, so the
    /// trial ends with the results so far. Called every few milliseconds.
    fn describe_loss(&self) -> Option<String> {
        None
    }
}

/// A store of records.
pub trait RecordStore: Store<Session: Session> {}

impl<S: Store<Session: Session>> RecordStore for S {}

/// The activity of a garbage collector in the engine's process, since the process started or while measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Collection")]
pub struct Collections {
    /// The name of the collector in the JVM, such as `G1 Young Generation`.
    pub collector: String,
    /// Number of runs.
    pub count: u64,
    /// Total time of the collections, ms.
    pub time_ms: u64,
}

/// An event that a server reported, or that the load generator observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerEvent {
    /// The instant of its arrival, ns since the Unix epoch.
    pub unix_ns: u64,
    /// The server concerned; empty for the whole cluster.
    pub server: String,
    /// Reported by a server: `up`, `down`, `joined`. Observed by the load generator: `unusable` (no open connection on
    /// which the server responds), `usable`. Other events are described by a sentence.
    pub event: String,
}

/// Methods of any session, whatever operations it supports.
///
/// Every method may be called again after any status. A failure's message is stored until [`last_error`] returns it.
///
/// [`last_error`]: Connection::last_error
pub trait Connection {
    /// Connects. Called once, before any clock runs, and before any other method.
    fn connect(&mut self) -> impl Future<Output = Result<(), EngineError>> {
        std::future::ready(Ok(()))
    }

    /// Pauses after a failed operation in a closed loop: clients of a server that is down must not retry ten thousand
    /// times a second. Called after the operation is measured, so no latency includes the pause.
    fn pause(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Whether the last operation failed without being sent, because no server could be reached.
    fn is_unsent(&self) -> bool {
        false
    }

    /// The message of the last failure, unless it has already been returned.
    fn last_error(&mut self) -> Option<String> {
        None
    }

    /// Whether the write that has just finished with this status was certainly refused: nothing was or will be written.
    /// Called only after a write that is not `Ok`. A store that does not know returns `false`, because a write that is
    /// reported as refused but found later counts as a fault of the system.
    fn is_refusal(&self, _status: Status) -> bool {
        false
    }

    /// Closes the session and writes any buffered data.
    fn cleanup(&mut self) -> impl Future<Output = Status> {
        std::future::ready(Status::Ok)
    }
}

/// One client's session on a store of records. Keys are bytes; rows are named fields.
pub trait Session: Connection {
    /// Whether the store may know the placement of its keys. If not, loops that are compiled for this type omit the code
    /// that counts operations by key range.
    const MAY_PLACE_KEYS: bool = false;

    /// Reads one record into `row`, which is cleared first.
    fn read(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> impl Future<Output = Status>;

    /// Reads up to `count` records in key order, starting at `key`.
    fn scan(
        &mut self,
        key: &[u8],
        count: usize,
        projection: Projection<'_>,
        rows: &mut Rows,
    ) -> impl Future<Output = Status>;

    /// Writes a whole record.
    fn insert(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status>;

    /// Merges fields into a record: reads it, merges the fields, writes it. `NotFound` if there is no such record.
    fn update(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status>;

    /// Removes a record; returns `Ok` even if it did not exist.
    fn delete(&mut self, key: &[u8]) -> impl Future<Output = Status>;
}

/// The records of a scan, in reused buffers.
#[derive(Debug, Default)]
pub struct Rows {
    entries: Vec<(Vec<u8>, Row)>,
    len: usize,
}

impl Rows {
    /// Removes the records but keeps the buffers.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no records.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a record with this key and returns its row, which is empty.
    #[inline]
    pub fn push(&mut self, key: &[u8]) -> &mut Row {
        if self.len == self.entries.len() {
            self.entries.push((Vec::with_capacity(key.len()), Row::default()));
        }
        let (own, row) = &mut self.entries[self.len];
        self.len += 1;
        own.clear();
        own.extend_from_slice(key);
        row.clear_fields();
        row
    }

    /// Removes the last record, if any.
    #[inline]
    pub fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// The row of the last record.
    #[inline]
    pub fn last(&mut self) -> Option<&mut Row> {
        self.entries[..self.len].last_mut().map(|(_, row)| row)
    }

    /// Keys and rows, in the order of the scan.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Row)> {
        self.entries[..self.len].iter().map(|(key, row)| (key.as_slice(), row))
    }
}

/// Attempts to connect to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionAttempts {
    /// All attempts, including the first attempt of each session.
    pub attempted: u64,
    /// Attempts that failed.
    pub failed: u64,
}

impl ConnectionAttempts {
    /// Adds two counts.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self { attempted: self.attempted + more.attempted, failed: self.failed + more.failed }
    }

    /// The attempts since an earlier count.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { attempted: self.attempted - earlier.attempted, failed: self.failed - earlier.failed }
    }
}
