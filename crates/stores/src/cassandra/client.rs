//! A client, which sends statements and receives answers.

use std::rc::Rc;
use std::sync::Arc;

use loadstone_load::Status;
use loadstone_session::statements::PageRequest;

use super::answer::{self, Prepared, Refusal, Table, protocol_failure};
use super::cluster::Cluster;
use super::consistency::Consistency;
use super::login::Link;
use super::pool::Pool;
use super::slot::Slot;
use super::wire::{TRACING, Version, opcode, put_bytes, put_flags};
use crate::error::{EngineError, Failure};
use crate::remote::{LastFailure, answer_by_last_failure};
use crate::session::Connection;

const VALUES: u8 = 0x01;
const SKIP_METADATA: u8 = 0x02;
const PAGE_SIZE: u8 = 0x04;
const PAGING_STATE: u8 = 0x08;
const TIMESTAMP: u8 = 0x20;

/// A client.
#[derive(Debug)]
pub struct Client {
    cluster: Arc<Cluster>,
    pool: Option<Rc<Pool>>,
    slot: Rc<Slot>,
    pub(super) last: LastFailure,
}

impl Client {
    /// Creates a client without connections.
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, pool: None, slot: Rc::default(), last: LastFailure::default() }
    }

    /// Registers the texts of statements, in order, and returns their numbers. It must be called before the client
    /// connects, because connections prepare the registered statements.
    pub fn register<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> Vec<usize> {
        let pool = Pool::find(&self.cluster);
        let numbers = texts.map(|text| {
            let identify = |out: &mut Vec<u8>| {
                out.push(u8::MAX);
                out.extend_from_slice(text.as_bytes());
            };
            pool.texts().number(identify, || text.to_owned())
        });
        let numbers = numbers.collect();
        self.pool = Some(pool);
        numbers
    }

    /// Opens the connections.
    pub async fn open(&self) -> Result<(), EngineError> {
        let pool = self.pool().map_err(|failure| EngineError::failed(failure.message))?;
        pool.open().await
    }

    /// The cluster of the client.
    #[inline]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The pool of connections; a refusal if the connections are not open.
    #[inline]
    pub fn pool(&self) -> Result<&Rc<Pool>, Failure> {
        let unconnected = || Failure::new(Status::ServiceUnavailable, "the client is not connected").refusal();
        self.pool.as_ref().ok_or_else(unconnected)
    }

    /// The slot that holds the last answer.
    #[inline]
    pub fn slot(&self) -> &Rc<Slot> {
        &self.slot
    }

    /// Returns the status of an operation, and stores a failure for `last_error`.
    #[inline]
    pub fn keep(&mut self, result: Result<Status, Failure>) -> Status {
        self.last.status(result)
    }

    /// Executes a prepared statement. The answer is a result, which is stored in the slot. `values` appends the values
    /// of the markers and returns their number.
    #[inline]
    pub async fn execute(
        &self,
        execution: Execution<'_>,
        values: impl Fn(&mut Vec<u8>) -> u16,
    ) -> Result<Rc<Prepared>, Failure> {
        let pool = self.pool()?;
        let mut again = true;
        loop {
            // Nothing is written before the execution, so these failures are refusals.
            let link = pool.link(execution.key).await.map_err(Failure::refusal)?;
            let prepared =
                link.ensure_prepared(execution.number, pool.texts(), &self.slot).await.map_err(Failure::refusal)?;
            let version = link.connection().version();
            let stamp = execution.stamp.or_else(|| execution.writes.then(|| pool.stamp()));
            let body = |out: &mut Vec<u8>| {
                put_id(out, &prepared.id);
                if version >= Version::V5 {
                    put_id(out, &prepared.columns_id);
                }
                let parameters = Parameters { version, stamp, skip_metadata: true, level: execution.level };
                parameters.put(out, execution.page, &values);
            };
            self.send(&link, opcode::EXECUTE, body).await?;
            let Some(refusal) = self.refusal(&link)? else { return Ok(prepared) };
            // A request is sent again only if the node no longer knows the prepared statement, and so has not executed
            // it.
            if refusal.code != answer::UNPREPARED || !again {
                return Err(refusal.failure());
            }
            again = false;
            prepared.stale.set(true);
        }
    }

    /// Executes a statement that is not prepared. The answer is a result, which is stored in the slot.
    pub async fn query(
        &self,
        text: &str,
        execution: Execution<'_>,
        values: impl Fn(&mut Vec<u8>) -> u16,
    ) -> Result<(), Failure> {
        let pool = self.pool()?;
        let link = pool.link(execution.key).await.map_err(Failure::refusal)?;
        let stamp = execution.stamp.or_else(|| execution.writes.then(|| pool.stamp()));
        let version = link.connection().version();
        let body = |out: &mut Vec<u8>| {
            put_bytes(out, text.as_bytes());
            let parameters = Parameters { version, stamp, skip_metadata: false, level: execution.level };
            parameters.put(out, execution.page, &values);
        };
        self.send(&link, opcode::QUERY, body).await?;
        self.refusal(&link)?.map_or(Ok(()), |refusal| Err(refusal.failure()))
    }

    /// Sends a request and waits for the answer.
    #[inline]
    pub async fn send(&self, link: &Link, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        let flags = if self.cluster.settings.tracing { TRACING } else { 0 };
        link.connection().ask(&self.slot, flags, opcode, body).await
    }

    /// The error in the answer, if the answer is an error.
    #[inline]
    pub fn refusal(&self, link: &Link) -> Result<Option<Refusal>, Failure> {
        if self.slot.opcode() == opcode::RESULT {
            return Ok(None);
        }
        let bytes = self.slot.bytes();
        let body = self.slot.body_of(&bytes).map_err(protocol_failure)?;
        Ok(Some(answer::refusal(self.slot.opcode(), body, link.extensions().rate_limit)))
    }

    /// Executes a prepared SELECT and passes its rows to `read`. If the table was altered, the statement is prepared
    /// and executed again, but only once.
    #[inline]
    pub async fn execute_select<T>(
        &self,
        execution: Execution<'_>,
        values: impl Fn(&mut Vec<u8>) -> u16,
        mut read: impl FnMut(Table<'_>, &Prepared) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        for _ in 0..2 {
            let prepared = self.execute(execution, &values).await?;
            let bytes = self.slot.bytes();
            if let Some(table) = self.table(&bytes, Some(&prepared))? {
                return read(table, &prepared);
            }
        }
        Err(Failure::new(Status::UnexpectedState, "the columns of the rows differ from the announced columns"))
    }

    /// The rows in an answer's bytes. `None` if they have more or fewer columns than the prepared statement, which is
    /// then prepared again before its next execution.
    #[inline]
    pub fn table<'a>(&self, bytes: &'a [u8], prepared: Option<&Prepared>) -> Result<Option<Table<'a>>, Failure> {
        let body = self.slot.body_of(bytes).map_err(protocol_failure)?;
        let Some(table) = answer::rows(body).map_err(protocol_failure)? else {
            return Err(Failure::new(Status::UnexpectedState, "a SELECT was answered by a result without rows"));
        };
        let Some(prepared) = prepared else { return Ok(Some(table)) };
        if table.changed.is_some() {
            prepared.stale.set(true);
        } else if table.width != prepared.columns.len() {
            prepared.stale.set(true);
            return Ok(None);
        }
        Ok(Some(table))
    }
}

/// One execution of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// The number of the statement's text.
    pub number: usize,
    pub level: Consistency,
    /// Whether the statement is a write. A write has a timestamp.
    pub writes: bool,
    /// The partition key, which determines the nodes to contact.
    pub key: Option<&'a [u8]>,
    /// The timestamp of a write, µs since 1970, if the caller sets it.
    pub stamp: Option<i64>,
    /// The preceding page, unless this is the first page.
    pub page: Option<&'a Page>,
}

/// A page that a request continues: its number of rows, and the paging state that the server returned at its end.
#[derive(Debug)]
pub struct Page {
    rows: i32,
    state: Vec<u8>,
}

impl Page {
    /// The page that precedes a requested page.
    pub fn before(request: &PageRequest) -> Self {
        Self { rows: request.rows.try_into().unwrap_or(i32::MAX), state: request.state.clone() }
    }

    /// The paging state, which a request for the following page must send.
    pub fn into_state(self) -> Vec<u8> {
        self.state
    }

    /// The page that consists of this table's rows; `None` if no rows follow it.
    #[inline]
    pub fn after(table: &Table<'_>) -> Option<Self> {
        table.more.map(|state| Self { rows: table.rows.max(1) as i32, state: state.to_vec() })
    }

    /// Refuses a page that repeats the previous page: the sequence would never end.
    pub fn check_progress(&self, next: Option<&Self>) -> Result<(), Failure> {
        match next {
            Some(next) if next.state == self.state => {
                Err(Failure::new(Status::UnexpectedState, "the server returns the same page repeatedly"))
            }
            _ => Ok(()),
        }
    }
}

/// The parameters of EXECUTE and QUERY, except the values.
#[derive(Clone, Copy)]
struct Parameters {
    version: Version,
    level: Consistency,
    stamp: Option<i64>,
    skip_metadata: bool,
}

impl Parameters {
    #[inline]
    fn put(self, out: &mut Vec<u8>, page: Option<&Page>, values: impl Fn(&mut Vec<u8>) -> u16) {
        out.extend_from_slice(&self.level.code.to_be_bytes());
        let mut flags = VALUES | if self.skip_metadata { SKIP_METADATA } else { 0 };
        flags |= match page {
            Some(page) if page.state.is_empty() => PAGE_SIZE,
            Some(_) => PAGE_SIZE | PAGING_STATE,
            None => 0,
        };
        flags |= if self.stamp.is_some() { TIMESTAMP } else { 0 };
        put_flags(out, self.version, flags);
        let counted = out.len();
        out.extend_from_slice(&[0, 0]);
        let count = values(out);
        out[counted..counted + 2].copy_from_slice(&count.to_be_bytes());
        if let Some(page) = page {
            // Cassandra uses the paging state only if it must answer in pages that are smaller than the LIMIT.
            out.extend_from_slice(&page.rows.to_be_bytes());
            if !page.state.is_empty() {
                put_bytes(out, &page.state);
            }
        }
        if let Some(stamp) = self.stamp {
            out.extend_from_slice(&stamp.to_be_bytes());
        }
    }
}

/// Appends a `[short bytes]`.
#[inline]
pub fn put_id(out: &mut Vec<u8>, id: &[u8]) {
    out.extend_from_slice(&(id.len() as u16).to_be_bytes());
    out.extend_from_slice(id);
}

impl Connection for Client {
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.register(std::iter::empty());
        self.open().await
    }

    answer_by_last_failure!(last);
}
