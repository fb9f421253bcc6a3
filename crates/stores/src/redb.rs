//! redb, compiled in: a copy-on-write B+ tree in one file, with one writer at a time.
//!
//! redb itself has two durability levels: a commit is either synced or stays in memory. The intermediate level, `os`,
//! uses a storage back end that leaves syncing to the kernel. Each commit still writes its pages, so they are in the
//! page cache and survive the end of the process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::path::PathBuf;

use ::redb::backends::FileBackend;
use ::redb::{BackendError, Builder, Database, Error, ReadableDatabase, StorageBackend, TableDefinition, TableError};

use crate::about::{About, directory, setting};
use crate::embedded::{self, Cause, Engine, Space};
use crate::error::{EngineError, Failure};
use crate::guarantee::Guarantee;
use crate::key_value::{KeyValue, KeyValueStore};
use crate::options::{Durability, Options};

/// The version of redb that is compiled in.
pub const VERSION: &str = "4.5.0";

/// The redb store.
pub type Redb = KeyValueStore<RedbEngine>;

const ENGINE: Engine = embedded::REDB;

/// redb's default, repeated here because redb cannot be queried for it.
const CACHE_BYTES_DEFAULT: u64 = 1 << 30;

/// A file whose writes reach the page cache and are synced only by the kernel.
#[derive(Debug)]
struct Unsynced(FileBackend);

/// Defines methods that call the file's method of the same name.
macro_rules! forward_to_file {
    ($(fn $method:ident(&self $(, $argument:ident: $type:ty)*) -> $output:ty;)*) => {
        $(fn $method(&self $(, $argument: $type)*) -> $output {
            self.0.$method($($argument),*)
        })*
    };
}

impl StorageBackend for Unsynced {
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    forward_to_file! {
        fn len(&self) -> io::Result<u64>;
        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
        fn set_len(&self, len: u64) -> io::Result<()>;
        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
        fn close(&self) -> io::Result<()>;
        // Without the following six functions, two processes could open the same file.
        fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError>;
        fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError>;
        fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError>;
        fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError>;
        fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError>;
        fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError>;
    }
}

/// An open redb database.
pub struct RedbEngine {
    database: Database,
    table: String,
    durability: Durability,
    directory: PathBuf,
    cache_bytes: u64,
    space: Space,
}

impl fmt::Debug for RedbEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbEngine").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The cause of an error.
fn cause(error: &Error) -> Cause {
    match error {
        Error::DatabaseAlreadyOpen => Cause::Locked,
        Error::PreviousIo => Cause::Earlier,
        Error::Io(error) => Cause::from_io(error),
        _ => Cause::Other,
    }
}

impl RedbEngine {
    fn definition(&self) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
        TableDefinition::new(&self.table)
    }

    fn failure(&self, error: impl Into<Error>) -> Failure {
        let error = error.into();
        self.space.failure(error.to_string(), cause(&error))
    }

    /// A failure before the commit. Aborting a transaction rolls it back ("All writes performed in this transaction
    /// will be rolled back"), and dropping a transaction aborts it. A commit that failed, however, may have written.
    fn failure_before_commit(&self, error: impl Into<Error>) -> Failure {
        self.failure(error).refusal()
    }

    /// Commits a change with the requested durability.
    fn commit(
        &self,
        change: impl FnOnce(&mut ::redb::Table<'_, &'static [u8], &'static [u8]>) -> Result<(), ::redb::StorageError>,
    ) -> Result<(), Failure> {
        let mut transaction = self.database.begin_write().map_err(|error| self.failure_before_commit(error))?;
        if self.durability == Durability::None {
            transaction.set_durability(::redb::Durability::None).map_err(|error| self.failure_before_commit(error))?;
        }
        let mut table = transaction.open_table(self.definition()).map_err(|error| self.failure_before_commit(error))?;
        change(&mut table).map_err(|error| self.failure_before_commit(error))?;
        drop(table);
        transaction.commit().map_err(|error| self.failure(error))
    }

    /// Creates the table if it is missing and `create` is set. Without `create`, a missing table is an error.
    fn check_table(&self, create: bool) -> Result<(), EngineError> {
        let failed = |error: Error| ENGINE.cannot_open(&self.directory, &error.to_string(), cause(&error));
        let opened = self.database.begin_read().map_err(|e| failed(e.into()))?.open_table(self.definition()).map(drop);
        match opened {
            Ok(()) => Ok(()),
            Err(TableError::TableDoesNotExist(_)) if create => {
                let transaction = self.database.begin_write().map_err(|e| failed(e.into()))?;
                transaction.open_table(self.definition()).map(drop).map_err(|e| failed(e.into()))?;
                transaction.commit().map_err(|e| failed(e.into()))
            }
            Err(TableError::TableDoesNotExist(_)) => Err(ENGINE.missing_table(&self.directory, &self.table)),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn cannot_write(&self, error: &dyn fmt::Display) -> EngineError {
        EngineError::failed(format!("redb cannot write to {}: {error}", self.directory.display()))
    }
}

impl KeyValue for RedbEngine {
    const ABOUT: About = About {
        name: "redb",
        line: "redb (redb.dir)",
        networked: false,
        properties: &[directory("redb.dir"), setting("redb.cachesize")],
    };

    type Client = ();

    fn open(options: &Options) -> Result<Self, EngineError> {
        let cache_bytes = options.bytes("redb.cachesize", CACHE_BYTES_DEFAULT)?;
        let directory = ENGINE.directory(options)?;
        let failed = |error: Error| ENGINE.cannot_open(&directory, &error.to_string(), cause(&error));
        let path = directory.join(ENGINE.marker);
        let file = OpenOptions::new().read(true).write(true).create(options.create).truncate(false).open(&path);
        let file = file.map_err(|error| ENGINE.cannot_open(&directory, &error.to_string(), Cause::from_io(&error)))?;
        let backend = FileBackend::new(file).map_err(|error| failed(error.into()))?;
        let mut builder = Builder::new();
        builder.set_cache_size(cache_bytes as usize);
        let database = match options.durability {
            Durability::Os => builder.create_with_backend(Unsynced(backend)),
            Durability::None | Durability::Device => builder.create_with_backend(backend),
        };
        let engine = Self {
            database: database.map_err(|error| failed(error.into()))?,
            table: options.table.clone(),
            durability: options.durability,
            directory: directory.clone(),
            cache_bytes,
            space: Space::new(&directory),
        };
        engine.check_table(options.create)?;
        Ok(engine)
    }

    fn guarantee(&self) -> Guarantee {
        let how = match self.durability {
            Durability::None => "commits kept in memory until the store settles or closes",
            Durability::Os => "pages written at each commit, not synced",
            Durability::Device => "pages written and synced at each commit",
        };
        Guarantee::new(self.durability, how)
            .fact("version", VERSION)
            .fact("directory", self.directory.display().to_string())
            .fact("cache_bytes", self.cache_bytes.to_string())
            .fact("compression", "none")
    }

    #[inline]
    fn get(&self, (): &mut (), key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, Failure> {
        let reader = self.database.begin_read().map_err(|error| self.failure(error))?;
        let table = reader.open_table(self.definition()).map_err(|error| self.failure(error))?;
        let value = table.get(key).map_err(|error| self.failure(error))?;
        Ok(value.map(|value| visit(value.value())).is_some())
    }

    #[inline]
    fn put(&self, (): &mut (), key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.commit(|table| table.insert(key, value).map(drop))
    }

    fn remove(&self, (): &mut (), key: &[u8]) -> Result<(), Failure> {
        self.commit(|table| table.remove(key).map(drop))
    }

    fn scan(&self, (): &mut (), from: &[u8], count: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let reader = self.database.begin_read().map_err(|error| self.failure(error))?;
        let table = reader.open_table(self.definition()).map_err(|error| self.failure(error))?;
        for entry in table.range(from..).map_err(|error| self.failure(error))?.take(count) {
            let (key, value) = entry.map_err(|error| self.failure(error))?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), EngineError> {
        // A durable commit also writes earlier commits that are in memory, even if it changes nothing.
        let committed = self.database.begin_write().map_err(Error::from).and_then(|t| t.commit().map_err(Error::from));
        committed.map_err(|error| self.cannot_write(&self.failure(error).message))?;
        // redb's locks belong to its open file, so opening and closing the file again does not release any lock.
        let synced = File::open(self.directory.join(ENGINE.marker)).and_then(|file| file.sync_all());
        synced.map_err(|error| self.cannot_write(&error))
    }

    fn close(self) -> Result<(), EngineError> {
        self.settle()?;
        let directory = self.directory;
        self.database
            .close()
            .map_err(|error| EngineError::failed(format!("redb cannot close {}: {error}", directory.display())))
    }
}
