//! Embedded key-value engines: their interface, and the store and session that they all share.
//!
//! A record is one value in YCSB's stored form; a table is whatever the engine uses as a table. As in YCSB's bindings,
//! an update reads, merges and writes without a lock: if two clients update a record at the same time, one of the
//! updates may be lost.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use loadstone_load::{Projection, Row, Status};

use crate::about::About;
use crate::error::{EngineError, Failure};
use crate::guarantee::Guarantee;
use crate::options::Options;
use crate::session::{Connection, Drive, Rows, Session, Store};

/// An embedded engine with one open table.
pub trait KeyValue: Send + Sync + Sized + 'static {
    /// See [`Store::ABOUT`].
    const ABOUT: About;

    /// State that a client keeps between operations, such as an iterator or a read buffer; `()` for most engines.
    type Client: Default;

    /// See [`Store::open`].
    fn open(options: &Options) -> Result<Self, EngineError>;

    /// See [`Store::guarantee`].
    fn guarantee(&self) -> Guarantee;

    /// Passes the value of `key` to `visit`; returns `false` if the key does not exist.
    fn get(&self, client: &mut Self::Client, key: &[u8], visit: impl FnMut(&[u8])) -> Result<bool, Failure>;

    /// Writes a value with the requested durability. If the engine documents that nothing was written, a failure of
    /// this method or of `remove` is a [refusal](Failure::refusal).
    fn put(&self, client: &mut Self::Client, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Removes a key if it exists.
    fn remove(&self, client: &mut Self::Client, key: &[u8]) -> Result<(), Failure>;

    /// Passes up to `count` keys and values to `visit`, in byte order of the keys, starting at `from` (inclusive).
    fn scan(
        &self,
        client: &mut Self::Client,
        from: &[u8],
        count: usize,
        visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Failure>;

    /// See [`Store::settle`].
    fn settle(&self) -> Result<(), EngineError>;

    /// See [`Store::close`].
    fn close(self) -> Result<(), EngineError>;
}

/// The store for an engine.
pub struct KeyValueStore<K>(Arc<K>);

impl<K: KeyValue> fmt::Debug for KeyValueStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyValueStore").field(&K::ABOUT.name).finish()
    }
}

impl<K: KeyValue> Store for KeyValueStore<K> {
    type Session = KeyValueSession<K>;
    const ABOUT: About = K::ABOUT;
    const DRIVE: Drive = Drive::Thread;

    fn open(options: &Options) -> Result<Self, EngineError> {
        Ok(Self(Arc::new(K::open(options)?)))
    }

    fn guarantee(&self) -> Guarantee {
        self.0.guarantee()
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        Ok(KeyValueSession {
            engine: Arc::clone(&self.0),
            client: K::Client::default(),
            merged: Vec::new(),
            error: None,
            refused: false,
        })
    }

    fn settle(&self) -> Result<(), EngineError> {
        self.0.settle()
    }

    fn close(self) -> Result<(), EngineError> {
        match Arc::try_unwrap(self.0) {
            Ok(engine) => engine.close(),
            Err(_) => Err(EngineError::failed("a session is still in use, so the store was not closed cleanly")),
        }
    }
}

/// One client of an engine.
#[derive(Debug)]
pub struct KeyValueSession<K: KeyValue> {
    engine: Arc<K>,
    client: K::Client,
    merged: Vec<u8>,
    error: Option<String>,
    refused: bool,
}

impl<K: KeyValue> KeyValueSession<K> {
    #[inline]
    fn finish_write(&mut self, result: Result<(), Failure>) -> Status {
        match result {
            Ok(()) => Status::Ok,
            Err(failure) => {
                self.refused = failure.refused;
                self.error = Some(failure.message);
                failure.status
            }
        }
    }

    #[expect(clippy::inline_always, reason = "reads fill much of the timing loop, which is compiled more than once")]
    #[inline(always)]
    fn read_now(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> Result<(), Failure> {
        row.clear_fields();
        let mut shape = Ok(());
        let visit = self.engine.get(&mut self.client, key, |stored| shape = row.decode_fields(stored, projection))?;
        if !visit {
            return Err(Failure::new(Status::NotFound, missing_record(key)));
        }
        shape.map_err(|error| Failure::new(Status::UnexpectedState, format!("key {}: {error}", text(key))))
    }

    fn scan_now(
        &mut self,
        key: &[u8],
        count: usize,
        projection: Projection<'_>,
        rows: &mut Rows,
    ) -> Result<(), Failure> {
        rows.clear();
        let mut shape = Ok(());
        self.engine.scan(&mut self.client, key, count, |key, stored| {
            if let Err(error) = rows.push(key).decode_fields(stored, projection) {
                shape = Err(Failure::new(Status::UnexpectedState, format!("key {}: {error}", text(key))));
            }
        })?;
        shape
    }

    fn update_now(&mut self, key: &[u8], row: &Row) -> Result<(), Failure> {
        self.merge_row(key, row).map_err(Failure::refusal)?;
        self.engine.put(&mut self.client, key, &self.merged)
    }

    /// Reads a record and merges fields into it. Nothing is written yet.
    #[inline]
    fn merge_row(&mut self, key: &[u8], row: &Row) -> Result<(), Failure> {
        let merged = &mut self.merged;
        let mut shape = Ok(());
        let visit = self.engine.get(&mut self.client, key, |stored| shape = row.merge_into(stored, merged))?;
        if !visit {
            return Err(Failure::new(Status::NotFound, missing_record(key)));
        }
        shape.map_err(|error| Failure::new(Status::UnexpectedState, format!("key {}: {error}", text(key))))
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn missing_record(key: &[u8]) -> String {
    format!("no record with key {}", text(key))
}

impl<K: KeyValue> Connection for KeyValueSession<K> {
    fn last_error(&mut self) -> Option<String> {
        self.error.take()
    }

    fn is_refusal(&self, _status: Status) -> bool {
        self.refused
    }
}

// The methods do their work when they are called, so their futures are ready. The future of an `async fn` would keep
// its arguments in memory until it is polled.
impl<K: KeyValue> Session for KeyValueSession<K> {
    #[expect(clippy::inline_always, reason = "as `read_now`")]
    #[inline(always)]
    fn read(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> impl Future<Output = Status> {
        let result = self.read_now(key, projection, row);
        ready(self.finish_write(result))
    }

    #[inline]
    fn scan(
        &mut self,
        key: &[u8],
        count: usize,
        projection: Projection<'_>,
        rows: &mut Rows,
    ) -> impl Future<Output = Status> {
        let result = self.scan_now(key, count, projection, rows);
        ready(self.finish_write(result))
    }

    #[inline]
    fn insert(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status> {
        let result = self.engine.put(&mut self.client, key, row.bytes());
        ready(self.finish_write(result))
    }

    #[inline]
    fn update(&mut self, key: &[u8], row: &Row) -> impl Future<Output = Status> {
        let result = self.update_now(key, row);
        ready(self.finish_write(result))
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> impl Future<Output = Status> {
        let result = self.engine.remove(&mut self.client, key);
        ready(self.finish_write(result))
    }
}
