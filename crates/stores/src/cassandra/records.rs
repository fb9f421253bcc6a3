//! YCSB's records, translated to statements.

mod text;

use loadstone_load::{Projection, Row, Status};

use super::answer::{Prepared, Table, protocol_failure};
use super::client::{Client, Execution, Page};
use super::settings::KEY;
use super::wire::put_bytes;
use crate::error::Failure;
use crate::session::{Rows, Session};
use text::Verb;

/// The names of the columns that a statement uses.
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

/// A statement with its arguments.
#[derive(Clone, Copy)]
struct Request<'a> {
    verb: Verb,
    key: &'a [u8],
    fields: Projection<'a>,
    row: Option<&'a Row>,
    /// The number of rows requested.
    count: i32,
    page: Option<&'a Page>,
}

impl<'a> Request<'a> {
    fn names(&self) -> Names<'a> {
        match (self.row, self.fields) {
            (Some(row), _) => Names::Fields(row.fields()),
            (None, Projection::All) => Names::None,
            (None, Projection::One(name)) => Names::One(std::iter::once(name)),
            (None, Projection::Names(names)) => Names::Many(names.iter()),
        }
    }

    fn reads(&self) -> bool {
        matches!(self.verb, Verb::Read | Verb::Scan)
    }

    /// Appends the identity of the statement: its verb and columns.
    #[inline]
    fn identify(&self, out: &mut Vec<u8>) {
        out.push(self.verb as u8);
        for column in self.names() {
            out.extend_from_slice(&(column.len() as u32).to_ne_bytes());
            out.extend_from_slice(column);
        }
    }

    /// Appends the values of the markers, and returns their number.
    #[inline]
    fn values(&self, out: &mut Vec<u8>) -> u16 {
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
        count
    }
}

impl Client {
    /// Plans the execution of a request's statement.
    #[inline]
    fn plan<'a>(&self, request: &Request<'a>) -> Result<Execution<'a>, Failure> {
        let settings = &self.cluster().settings;
        let text = || text::text(request.verb, &format!("{}.{}", settings.keyspace, settings.table), request.names());
        let number = self.pool()?.texts().number(|out| request.identify(out), text);
        let (level, writes) = if request.reads() { (settings.read, false) } else { (settings.write, true) };
        Ok(Execution { number, level, writes, key: Some(request.key), stamp: None, page: request.page })
    }

    async fn write(&mut self, verb: Verb, key: &[u8], row: Option<&Row>) -> Status {
        let request = Request { verb, key, fields: Projection::All, row, count: 0, page: None };
        let reply = match self.plan(&request) {
            Ok(execution) => self.execute(execution, |out| request.values(out)).await.map(|_| Status::Ok),
            Err(failure) => Err(failure),
        };
        self.keep(reply)
    }

    /// Requests rows until all have arrived, and returns their number. The first request does not ask for pages, but a
    /// server may answer in pages.
    #[inline]
    async fn select(&self, request: Request<'_>, sink: &mut impl Sink) -> Result<usize, Failure> {
        let (mut count, mut more) = self.select_page(request, sink).await?;
        while let Some(page) = more.filter(|_| count < request.count as usize) {
            let (rows, next) = self.select_page(Request { page: Some(&page), ..request }, sink).await?;
            page.check_progress(next.as_ref())?;
            (count, more) = (count + rows, next);
        }
        Ok(count)
    }

    /// Requests a page of rows. Returns the number of rows and the end of the page.
    #[inline]
    async fn select_page(&self, request: Request<'_>, sink: &mut impl Sink) -> Result<(usize, Option<Page>), Failure> {
        let read = |table: Table<'_>, prepared: &Prepared| read_rows(table, prepared, sink);
        self.execute_select(self.plan(&request)?, |out| request.values(out), read).await
    }
}

/// Reads the rows of an answer. Returns the number of rows and the end of the page.
#[inline]
fn read_rows(
    mut table: Table<'_>,
    prepared: &Prepared,
    sink: &mut impl Sink,
) -> Result<(usize, Option<Page>), Failure> {
    let changed = table.changed.take();
    // The key is the first column if it was requested.
    let columns = changed.as_ref().map_or(prepared.columns.as_slice(), |(_, columns)| columns);
    let (key, fields) = match columns.split_first() {
        Some((first, fields)) if first.name == KEY.as_bytes() => (Some(first), fields),
        _ => (None, columns),
    };
    for _ in 0..table.rows {
        let key = if key.is_some() { table.body.bytes().map_err(protocol_failure)? } else { None };
        let row = sink.begin(key.unwrap_or_default());
        for field in fields {
            // A field without a value is missing from the row.
            if let Some(value) = table.body.bytes().map_err(protocol_failure)? {
                row.push_field(&field.name, value);
            }
        }
    }
    Ok((table.rows, Page::after(&table)))
}

/// A receiver of rows.
trait Sink {
    /// Returns an empty row for a key.
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

impl Session for Client {
    #[inline]
    async fn read(&mut self, key: &[u8], fields: Projection<'_>, row: &mut Row) -> Status {
        row.clear_fields();
        let read = self.select(Request { verb: Verb::Read, key, fields, row: None, count: 1, page: None }, row).await;
        self.keep(read.map(|rows| if rows == 0 { Status::NotFound } else { Status::Ok }))
    }

    async fn scan(&mut self, key: &[u8], count: usize, fields: Projection<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let read = self.select(Request { verb: Verb::Scan, key, fields, row: None, count, page: None }, rows).await;
        self.keep(read.map(|_| Status::Ok))
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
}

#[cfg(test)]
pub mod tests;
