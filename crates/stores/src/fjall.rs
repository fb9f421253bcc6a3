//! fjall, compiled in: a log-structured merge tree with a journal.
//!
//! A table is a keyspace. Every write is a batch of one record, because a batch sets its durability in one step under
//! one lock. Such a batch costs as much as `Keyspace::insert`. Batches also keep the durability level out of the files:
//! fjall stores `manual_journal_persist` with a keyspace, so a keyspace that was created for `none` would silently keep
//! this level in an `os` run.

use std::error::Error as _;
use std::fmt;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::fjall::{Database, Error, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use crate::about::{About, directory, setting};
use crate::embedded::{self, Cause, Engine, Space};
use crate::error::{EngineError, Failure};
use crate::guarantee::Guarantee;
use crate::key_value::{KeyValue, KeyValueStore};
use crate::options::{Durability, Options};

/// The version of fjall that is compiled in.
pub const VERSION: &str = "3.1.13";

/// The fjall store.
pub type Fjall = KeyValueStore<FjallEngine>;

const ENGINE: Engine = embedded::FJALL;

/// Maximum length of a key in bytes: fjall panics if a longer key is written.
const KEY_LEN_MAX: usize = 65_535;
/// Compactions throttle themselves with pauses of 1 ms. After this time without activity, no compaction is running.
const IDLE_TIME: Duration = Duration::from_millis(100);
/// Maximum time that `settle` waits for compactions.
const SETTLE_MAX: Duration = Duration::from_secs(600);

/// An open fjall database.
pub struct FjallEngine {
    database: Database,
    table: Keyspace,
    durability: Durability,
    directory: PathBuf,
    space: Space,
}

impl fmt::Debug for FjallEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallEngine").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The message of an error. fjall formats its errors as Rust data; the innermost error states the cause.
fn message(error: &Error) -> String {
    match error {
        Error::Locked => return "it is locked".to_owned(),
        Error::Poisoned => return "fjall has refused all writes since an earlier write failed".to_owned(),
        _ => {}
    }
    let Some(mut inner) = error.source() else {
        return format!("{error:?}");
    };
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}

/// The cause of an error: the innermost error is the error of the operating system.
fn cause(error: &Error) -> Cause {
    match error {
        Error::Locked => return Cause::Locked,
        Error::Poisoned => return Cause::Earlier,
        _ => {}
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.downcast_ref().map_or(Cause::Other, Cause::from_io)
}

impl FjallEngine {
    fn failure(&self, error: &Error) -> Failure {
        self.space.failure(message(error), cause(error))
    }

    fn commit(&self, key: &[u8], fill: impl FnOnce(&mut OwnedWriteBatch)) -> Result<(), Failure> {
        ENGINE.check_key(key, KEY_LEN_MAX)?;
        let persist = match self.durability {
            Durability::None => None,
            Durability::Os => Some(PersistMode::Buffer),
            Durability::Device => Some(PersistMode::SyncData),
        };
        let mut batch = OwnedWriteBatch::with_capacity(self.database.clone(), 1).durability(persist);
        fill(&mut batch);
        batch.commit().map_err(|error| self.failure(&error))
    }

    fn persist(&self, mode: PersistMode) -> Result<(), EngineError> {
        self.database.persist(mode).map_err(|error| self.open_error(&error))
    }

    fn open_error(&self, error: &Error) -> EngineError {
        let message = self.failure(error).message;
        EngineError::failed(format!("fjall cannot write to {}: {message}", self.directory.display()))
    }
}

impl KeyValue for FjallEngine {
    const ABOUT: About = About {
        name: "fjall",
        line: "fjall (fjall.dir)",
        networked: false,
        properties: &[directory("fjall.dir"), setting("fjall.cachesize")],
    };

    type Client = ();

    fn open(options: &Options) -> Result<Self, EngineError> {
        let cache = options.get("fjall.cachesize").map(|_| options.bytes("fjall.cachesize", 0)).transpose()?;
        let directory = ENGINE.directory(options)?;
        let failed = |error: Error| ENGINE.cannot_open(&directory, &message(&error), cause(&error));
        let mut builder = Database::builder(&directory);
        if let Some(bytes) = cache {
            builder = builder.cache_size(bytes);
        }
        let database = builder.open().map_err(failed)?;
        if !options.create && !database.keyspace_exists(&options.table) {
            return Err(ENGINE.missing_table(&directory, &options.table));
        }
        let table = database.keyspace(&options.table, KeyspaceCreateOptions::default).map_err(failed)?;
        Ok(Self { database, table, durability: options.durability, space: Space::new(&directory), directory })
    }

    fn guarantee(&self) -> Guarantee {
        let how = match self.durability {
            Durability::None => "journal, written when its buffer of 8 KiB is full",
            Durability::Os => "journal, written at each write, not synced",
            Durability::Device => "journal, synced at each write",
        };
        Guarantee::new(self.durability, how)
            .fact("version", VERSION)
            .fact("directory", self.directory.display().to_string())
            .fact("cache_bytes", self.database.cache_capacity().to_string())
            // This is fjall's default policy: the two newest levels are not compressed, but in the journal, values of
            // at least 4 KiB are compressed.
            .fact("compression", "none, then lz4")
    }

    #[inline]
    fn get(&self, (): &mut (), key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, Failure> {
        ENGINE.check_key(key, KEY_LEN_MAX)?;
        let value = self.table.get(key).map_err(|error| self.failure(&error))?;
        Ok(value.map(|value| visit(&value)).is_some())
    }

    #[inline]
    fn put(&self, (): &mut (), key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.commit(key, |batch| batch.insert(&self.table, key, value))
    }

    fn remove(&self, (): &mut (), key: &[u8]) -> Result<(), Failure> {
        self.commit(key, |batch| batch.remove(&self.table, key))
    }

    fn scan(&self, (): &mut (), from: &[u8], count: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        // If `from` is too long for a key, the scan begins after its longest possible prefix.
        let first = match from.get(..KEY_LEN_MAX) {
            Some(part) if part.len() < from.len() => Bound::Excluded(part),
            _ => Bound::Included(from),
        };
        for entry in self.table.range::<&[u8], _>((first, Bound::Unbounded)).take(count) {
            let (key, value) = entry.into_inner().map_err(|error| self.failure(&error))?;
            visit(&key, &value);
        }
        Ok(())
    }

    /// Flushes the memtable, and waits until flushes and compactions are complete. fjall has no call that waits for
    /// compactions, and its `rotate_memtable_and_wait` never returns once fjall's workers have failed, so `settle`
    /// polls fjall's counters.
    fn settle(&self) -> Result<(), EngineError> {
        self.table.rotate_memtable().map_err(|error| self.open_error(&error))?;
        let start = Instant::now();
        let mut idle_since = start;
        let mut completed = self.database.compactions_completed();
        while start.elapsed() < SETTLE_MAX {
            self.persist(PersistMode::Buffer)?;
            let now = self.database.compactions_completed();
            let busy = self.database.outstanding_flushes() + self.table.sealed_memtable_count();
            if busy > 0 || self.database.active_compactions() > 0 || now != completed {
                completed = now;
                idle_since = Instant::now();
            } else if idle_since.elapsed() >= IDLE_TIME {
                return self.persist(PersistMode::SyncAll);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(EngineError::failed(format!("fjall is still compacting after {} s", SETTLE_MAX.as_secs())))
    }

    fn close(self) -> Result<(), EngineError> {
        // Dropping the database also syncs it, but ignores any errors.
        self.persist(PersistMode::SyncAll)
    }
}
