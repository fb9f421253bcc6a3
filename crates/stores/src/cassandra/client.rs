//! One client: its operations, as statements and answers.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use loadstone_load::{Row, Status, Wanted};
use tokio::runtime::{Handle, Id};

use super::answer::{self, Prepared, malformed};
use super::cluster::Cluster;
use super::consistency::Consistency;
use super::pool::Pool;
use super::slot::Slot;
use super::statements::{self, KEY, Verb};
use super::wire::{TRACING, opcode, put_bytes};
use crate::error::{Failure, StoreError};
use crate::remote::LastFailure;
use crate::session::{Connection, Rows, Session};

const VALUES: u8 = 0x01;
const SKIP_METADATA: u8 = 0x02;
const PAGE_SIZE: u8 = 0x04;
const PAGING_STATE: u8 = 0x08;
const TIMESTAMP: u8 = 0x20;

/// Whose pool it is: a store's, on an executor.
type Place = (usize, Id);

thread_local! {
    static POOLS: RefCell<Vec<(Place, Weak<Pool>)>> = const { RefCell::new(Vec::new()) };
}

/// A client.
#[derive(Debug)]
pub struct Client {
    cluster: Arc<Cluster>,
    pool: Option<Rc<Pool>>,
    slot: Rc<Slot>,
    last: LastFailure,
}

/// The names of the columns that are asked for.
enum Names<'a> {
    None,
    One(std::iter::Once<&'a [u8]>),
    Many(std::slice::Iter<'a, String>),
    Fields(loadstone_load::Fields<'a>),
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::None => None,
            Self::One(name) => name.next(),
            Self::Many(names) => names.next().map(String::as_bytes),
            Self::Fields(fields) => fields.next()?.ok().map(|(name, _)| name),
        }
    }
}

/// A statement with what it is given.
#[derive(Clone, Copy)]
struct Request<'a> {
    verb: Verb,
    key: &'a [u8],
    wanted: Wanted<'a>,
    row: Option<&'a Row>,
    /// Rows that are asked for.
    count: i32,
    page: Option<&'a Page>,
}

/// Where the server cut an answer.
struct Page {
    rows: i32,
    state: Vec<u8>,
}

impl<'a> Request<'a> {
    fn names(&self) -> Names<'a> {
        match (self.row, self.wanted) {
            (Some(row), _) => Names::Fields(row.fields()),
            (None, Wanted::All) => Names::None,
            (None, Wanted::One(name)) => Names::One(std::iter::once(name)),
            (None, Wanted::Names(names)) => Names::Many(names.iter()),
        }
    }

    fn level(&self, cluster: &Cluster) -> Consistency {
        let reads = matches!(self.verb, Verb::Read | Verb::Scan);
        if reads { cluster.settings.read } else { cluster.settings.write }
    }

    /// The body of EXECUTE.
    #[inline]
    fn write(&self, out: &mut Vec<u8>, id: &[u8], level: Consistency, stamp: Option<i64>) {
        out.extend_from_slice(&(id.len() as u16).to_be_bytes());
        out.extend_from_slice(id);
        out.extend_from_slice(&level.code.to_be_bytes());
        let paged = if self.page.is_some() { PAGE_SIZE | PAGING_STATE } else { 0 };
        out.push(VALUES | SKIP_METADATA | paged | if stamp.is_some() { TIMESTAMP } else { 0 });
        let counted = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut count = 1u16;
        if self.verb != Verb::Update {
            put_bytes(out, self.key);
        }
        for (_, value) in self.row.iter().flat_map(|row| row.fields()).flatten() {
            put_bytes(out, value);
            count += 1;
        }
        if self.verb == Verb::Update {
            put_bytes(out, self.key);
        }
        if self.verb == Verb::Scan {
            put_bytes(out, &self.count.to_be_bytes());
            count += 1;
        }
        out[counted..counted + 2].copy_from_slice(&count.to_be_bytes());
        if let Some(page) = self.page {
            // Cassandra looks at the state only if it is to answer in pages, and those are smaller than the LIMIT.
            out.extend_from_slice(&page.rows.to_be_bytes());
            put_bytes(out, &page.state);
        }
        if let Some(stamp) = stamp {
            out.extend_from_slice(&stamp.to_be_bytes());
        }
    }
}

impl Client {
    /// One that is not connected.
    pub fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, pool: None, slot: Rc::default(), last: LastFailure::default() }
    }

    /// The connections of this executor.
    fn shared(&self) -> Rc<Pool> {
        let place = (Arc::as_ptr(&self.cluster).addr(), Handle::current().id());
        POOLS.with_borrow_mut(|pools| {
            pools.retain(|(_, pool)| pool.strong_count() > 0);
            let found = pools.iter().find(|(own, _)| *own == place).and_then(|(_, pool)| pool.upgrade());
            found.unwrap_or_else(|| {
                let pool = Pool::new(Arc::clone(&self.cluster));
                pools.push((place, Rc::downgrade(&pool)));
                pool
            })
        })
    }

    /// Asks; the answer is a result, in the slot.
    #[inline]
    async fn ask(&self, request: Request<'_>) -> Result<Rc<Prepared>, Failure> {
        let Some(pool) = &self.pool else {
            return Err(Failure::new(Status::ServiceUnavailable, "the client is not connected").refusal());
        };
        let settings = &self.cluster.settings;
        let number = pool.statements.number(request.verb, request.names());
        let text = || {
            let table = format!("{}.{}", settings.keyspace, settings.table);
            statements::text(request.verb, &table, request.names())
        };
        let level = request.level(&self.cluster);
        let writes = !matches!(request.verb, Verb::Read | Verb::Scan);
        let flags = if settings.tracing { TRACING } else { 0 };
        let mut again = true;
        loop {
            // Nothing is written before it is executed.
            let link = pool.link(request.key).await.map_err(Failure::refusal)?;
            let prepared = link.prepared(number, text, &self.slot).await.map_err(Failure::refusal)?;
            let stamp = writes.then(|| pool.stamp());
            let body = |out: &mut Vec<u8>| request.write(out, &prepared.id, level, stamp);
            link.connection().ask(&self.slot, flags, opcode::EXECUTE, body).await?;
            if self.slot.opcode() == opcode::RESULT {
                return Ok(prepared);
            }
            let bytes = self.slot.bytes();
            let refusal = answer::refusal(self.slot.opcode(), self.slot.body_of(&bytes).map_err(malformed)?);
            // Nothing was done: this is the one request that is sent again.
            if refusal.code != answer::UNPREPARED || !again {
                return Err(refusal.failure());
            }
            again = false;
            prepared.stale.set(true);
        }
    }

    async fn write(&mut self, verb: Verb, key: &[u8], row: Option<&Row>) -> Status {
        let asked = self.ask(Request { verb, key, wanted: Wanted::All, row, count: 0, page: None }).await;
        self.last.status(asked.map(|_| Status::Ok))
    }

    /// Asks for rows until all are there; how many there were. We ask for no pages, but a server may still answer in some.
    #[inline]
    async fn select(&self, request: Request<'_>, sink: &mut impl Sink) -> Result<usize, Failure> {
        let prepared = self.ask(request).await?;
        let (mut count, mut more) = self.rows(&prepared, sink)?;
        while let Some(page) = more.filter(|_| count < request.count as usize) {
            let prepared = self.ask(Request { page: Some(&page), ..request }).await?;
            let (rows, next) = self.rows(&prepared, sink)?;
            if next.as_ref().is_some_and(|next| next.state == page.state) {
                return Err(Failure::new(Status::UnexpectedState, "the same page again and again"));
            }
            (count, more) = (count + rows, next);
        }
        Ok(count)
    }

    /// Reads the rows of the answer; how many there were, and where it was cut.
    #[inline]
    fn rows(&self, prepared: &Prepared, sink: &mut impl Sink) -> Result<(usize, Option<Page>), Failure> {
        let bytes = self.slot.bytes();
        let body = self.slot.body_of(&bytes).map_err(malformed)?;
        let Some(mut table) = answer::rows(body).map_err(malformed)? else {
            return Err(Failure::new(Status::UnexpectedState, "a SELECT was answered by a result without rows"));
        };
        if table.width != prepared.columns.len() {
            // Another client prepared it again after the table was altered, so the node did not refuse ours.
            prepared.stale.set(true);
            let words = format!("rows of {} columns, {} were announced", table.width, prepared.columns.len());
            return Err(Failure::new(Status::UnexpectedState, words));
        }
        // The key comes first wherever it is asked for.
        let (key, fields) = match prepared.columns.split_first() {
            Some((first, fields)) if first == KEY.as_bytes() => (Some(first), fields),
            _ => (None, prepared.columns.as_slice()),
        };
        for _ in 0..table.rows {
            let key = if key.is_some() { table.body.bytes().map_err(malformed)? } else { None };
            let row = sink.begin(key.unwrap_or_default());
            for name in fields {
                // A field without a value is not there.
                if let Some(value) = table.body.bytes().map_err(malformed)? {
                    row.push(name, value);
                }
            }
        }
        let more = table.more.map(|state| Page { rows: table.rows.max(1) as i32, state: state.to_vec() });
        Ok((table.rows, more))
    }
}

/// Where rows go.
trait Sink {
    /// The empty row of a key.
    fn begin(&mut self, key: &[u8]) -> &mut Row;
}

impl Sink for Row {
    #[inline]
    fn begin(&mut self, _key: &[u8]) -> &mut Row {
        self
    }
}

impl Sink for Rows {
    #[inline]
    fn begin(&mut self, key: &[u8]) -> &mut Row {
        self.push(key)
    }
}

impl Connection for Client {
    async fn connect(&mut self) -> Result<(), StoreError> {
        let own = self.cluster.settings.per_client;
        let pool = if own { Pool::new(Arc::clone(&self.cluster)) } else { self.shared() };
        pool.open().await?;
        self.pool = Some(pool);
        Ok(())
    }

    async fn pause(&mut self) {
        self.last.pause().await;
    }

    fn unsent(&self) -> bool {
        self.last.unsent()
    }

    fn last_error(&mut self) -> Option<String> {
        self.last.message()
    }
}

impl Session for Client {
    #[inline]
    async fn read(&mut self, key: &[u8], wanted: Wanted<'_>, row: &mut Row) -> Status {
        row.clear();
        let read = self.select(Request { verb: Verb::Read, key, wanted, row: None, count: 1, page: None }, row).await;
        self.last.status(read.map(|rows| if rows == 0 { Status::NotFound } else { Status::Ok }))
    }

    async fn scan(&mut self, key: &[u8], count: usize, wanted: Wanted<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let read = self.select(Request { verb: Verb::Scan, key, wanted, row: None, count, page: None }, rows).await;
        self.last.status(read.map(|_| Status::Ok))
    }

    #[inline]
    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        self.write(Verb::Insert, key, Some(row)).await
    }

    #[inline]
    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        self.write(Verb::Update, key, Some(row)).await
    }

    async fn delete(&mut self, key: &[u8]) -> Status {
        self.write(Verb::Delete, key, None).await
    }

    fn refused(&self, status: Status) -> bool {
        self.last.refused(status)
    }
}

#[cfg(test)]
mod tests;
