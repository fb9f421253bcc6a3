//! The traits of a store.

use std::future::Future;

use loadstone_load::{Row, Status, Wanted};

use crate::about::About;
use crate::error::EngineError;
use crate::guarantee::Guarantee;
use crate::options::Options;

/// What drives a store's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// A thread per client: calls block, futures are always ready.
    Thread,
    /// A few executors, many clients each: calls wait for a network.
    Task,
    /// Calls neither block nor wait; threads for a few clients, executors for many.
    Either,
}

/// A consistency level of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLevel {
    /// Its name, which is the property's value.
    pub name: &'static str,
    /// The property that sets it.
    pub property: &'static str,
}

/// A system, opened.
pub trait Store: std::fmt::Debug + Send + Sync + Sized + 'static {
    /// One client's way to it.
    type Session: Connection;
    /// Its name, its properties, what kind of system it is.
    const ABOUT: About;
    /// What drives its sessions.
    const DRIVE: Drive;
    /// Stack of a client's thread. Engines that are called in-process want more than 128 KiB, ten thousand threads less
    /// than the default 2 MiB.
    const STACK_BYTES: usize = 512 << 10;
    /// So many clients share an executor before there is another one. Clients of most servers wait for most of the time: a second
    /// executor would only share their wake-ups out, and a wake-up costs more than what is done in it.
    const CLIENTS_PER_EXECUTOR: u64 = 32;

    /// Opens it. Called once per trial.
    fn open(options: &Options) -> Result<Self, EngineError>;

    /// What it guarantees.
    fn guarantee(&self) -> Guarantee;

    /// The levels at which records can be read, the strongest first; empty where a read has no level. A read-back begins with
    /// the first, and continues with the next if servers that it needs are unavailable.
    fn read_levels() -> &'static [ReadLevel] {
        &[]
    }

    /// A session, made on the thread that will use it (on an executor: within its runtime). It connects when it is asked
    /// to.
    fn session(&self) -> Result<Self::Session, EngineError>;

    /// Waits until it is idle: buffers written, compactions done. Called outside the measured window.
    fn settle(&self) -> Result<(), EngineError>;

    /// Closes it cleanly. Sessions are gone by then.
    fn close(self) -> Result<(), EngineError>;

    /// Whether operations cross a network: then the engine's processors must not be what limits them.
    fn networked(&self) -> bool {
        Self::ABOUT.networked
    }

    /// Connections that this many clients open, each of which takes a file descriptor of this process.
    fn connections(&self, _clients: u64) -> u64 {
        0
    }

    /// What garbage collectors within this process have done since it began; empty where there is none.
    fn collections(&self) -> Vec<Collections> {
        Vec::new()
    }

    /// Attempts to connect so far; `None` where another client library connects, or nothing does.
    fn connection_attempts(&self) -> Option<ConnectionAttempts> {
        None
    }

    /// What its servers reported of themselves since it was opened: nodes that went down, tables that were altered.
    fn server_events(&self) -> Vec<ServerEvent> {
        Vec::new()
    }

    /// Why it is gone for good, if it is: then its calls do not return, and the trial ends with what there is. Asked
    /// every few milliseconds.
    fn lost(&self) -> Option<String> {
        None
    }
}

/// A store of records.
pub trait RecordStore: Store<Session: Session> {}

impl<S: Store<Session: Session>> RecordStore for S {}

/// What a garbage collector within this process has done since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collections {
    /// Its name, as the JVM gives it: `G1 Young Generation`.
    pub collector: String,
    /// Collections.
    pub count: u64,
    /// What they took, ms.
    pub time_ms: u64,
}

/// A report of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// When it arrived, ns since the Unix epoch.
    pub unix_ns: u64,
    /// The server that it is about; empty: the whole cluster.
    pub server: String,
    /// `up`, `down`, `joined`, or a sentence.
    pub event: String,
}

/// What any session has, whatever is done in it.
///
/// Every method may be called again after any status. A failure's message is kept until [`last_error`] takes it.
///
/// [`last_error`]: Connection::last_error
pub trait Connection {
    /// Connects. Called once, before any clock runs, and before any other method.
    fn connect(&mut self) -> impl Future<Output = Result<(), EngineError>> {
        std::future::ready(Ok(()))
    }

    /// Pauses after an operation that failed, in a closed loop: clients of a server that is gone must not ask ten thousand
    /// times a second whether it is back. Called once the operation is measured, so the pause is in no latency.
    fn pause(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Whether nothing was sent in the last operation, which failed, because no server could be reached.
    fn unsent(&self) -> bool {
        false
    }

    /// The message of the last failure, if it has not been taken.
    fn last_error(&mut self) -> Option<String>;

    /// Closes the session; what it held back is written.
    fn cleanup(&mut self) -> impl Future<Output = Status> {
        std::future::ready(Status::Ok)
    }
}

/// One client's way to a store of records. Keys are bytes, rows are fields with names.
pub trait Session: Connection {
    /// Reads one record into `row` (cleared first).
    fn read(&mut self, key: &[u8], wanted: Wanted<'_>, row: &mut Row) -> impl Future<Output = Status>;

    /// Reads up to `count` records in key order, from `key` on.
    fn scan(&mut self, key: &[u8], count: usize, wanted: Wanted<'_>, rows: &mut Rows) -> impl Future<Output = Status>;

    /// Writes a whole record.
    fn insert(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status>;

    /// Merges fields into a record: read, merge, write. `NotFound` if there is none.
    fn update(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status>;

    /// Removes a record; `Ok` also when there was none.
    fn delete(&mut self, key: &[u8]) -> impl Future<Output = Status>;

    /// Whether the write that has just ended with this status was refused for certain: nothing was written, and nothing
    /// will be. Asked only after a write that is not `Ok`. A store that does not know says `false`: a write that is called
    /// refused and is found afterwards counts as a fault of the system.
    fn refused(&self, _status: Status) -> bool {
        false
    }
}

/// The records of a scan, in buffers that are used again.
#[derive(Debug, Default)]
pub struct Rows {
    entries: Vec<(Vec<u8>, Row)>,
    len: usize,
}

impl Rows {
    /// Forgets the records, keeps the buffers.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a record with this key and hands out its (empty) row.
    #[inline]
    pub fn push(&mut self, key: &[u8]) -> &mut Row {
        if self.len == self.entries.len() {
            self.entries.push((Vec::with_capacity(key.len()), Row::default()));
        }
        let (own, row) = &mut self.entries[self.len];
        self.len += 1;
        own.clear();
        own.extend_from_slice(key);
        row.clear();
        row
    }

    /// Takes the last one back, if there is one.
    #[inline]
    pub fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// The last one's row.
    #[inline]
    pub fn last(&mut self) -> Option<&mut Row> {
        self.entries[..self.len].last_mut().map(|(_, row)| row)
    }

    /// Keys and rows, in the order of the scan.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Row)> {
        self.entries[..self.len].iter().map(|(key, row)| (key.as_slice(), row))
    }
}

/// Attempts to connect since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionAttempts {
    /// All attempts, the first ones of all sessions included.
    pub attempted: u64,
    /// Attempts that failed.
    pub failed: u64,
}

impl ConnectionAttempts {
    /// The attempts to both.
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
