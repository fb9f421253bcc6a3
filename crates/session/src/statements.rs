//! Statements of a query language, the values for their markers, and the rows of their results.

use std::future::Future;
use std::sync::Arc;

use loadstone_load::Status;

use crate::error::EngineError;
use crate::options::Options;
use crate::session::{Connection, Store};

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The statement's text, with a `?` in place of each value.
    pub text: String,
    /// Whether the statement is a write. Writes have their own consistency level, and a timestamp.
    pub writes: bool,
    /// Whether the server prepares the statement when the client connects; otherwise the text is sent with each
    /// execution.
    pub prepared: bool,
}

/// The values of a statement's markers, in a reused buffer.
///
/// Values are encoded for the server. In CQL, each is a `[value]`: a length of 4 bytes, then the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    bytes: Vec<u8>,
    /// The start of each value.
    starts: Vec<usize>,
    /// The timestamp of a write, µs since 1970; `None`: taken from the client's clock.
    pub timestamp_us: Option<i64>,
    /// The page of rows that is requested; `None`: all rows.
    pub page: Option<PageRequest>,
}

/// A request for one page of a statement's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Maximum number of rows.
    pub rows: u32,
    /// The end of the previous page, as the server reported it; empty for the first page.
    pub state: Vec<u8>,
}

impl Values {
    const LENGTH: usize = 4;
    const NULL: i32 = -1;
    const UNSET: i32 = -2;

    /// Removes the values but keeps the buffer.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.timestamp_us = None;
        self.page = None;
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.push_with(|out| out.extend_from_slice(value));
    }

    /// Appends a value. `write` appends the value's bytes to the buffer.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.starts.push(start);
        self.bytes.extend_from_slice(&[0; Self::LENGTH]);
        write(&mut self.bytes);
        let len = (self.bytes.len() - start - Self::LENGTH) as u32;
        self.bytes[start..start + Self::LENGTH].copy_from_slice(&len.to_be_bytes());
    }

    /// Appends a null.
    #[inline]
    pub fn push_null(&mut self) {
        self.push_length(Self::NULL);
    }

    /// Appends a value that leaves the column unchanged.
    #[inline]
    pub fn push_unset(&mut self) {
        self.push_length(Self::UNSET);
    }

    fn push_length(&mut self, length: i32) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(&length.to_be_bytes());
    }

    /// The number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The bytes of a value; `None` if it is null, unset or beyond the last.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let bytes = self.bytes.get(*self.starts.get(at)?..)?;
        let (length, rest) = bytes.split_first_chunk()?;
        usize::try_from(i32::from_be_bytes(*length)).ok().and_then(|length| rest.get(..length))
    }

    /// All values, in the encoding in which they are sent.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The rows of a result, in a reused buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    bytes: Vec<u8>,
    /// The end of each cell, and whether the cell has a value.
    ends: Vec<(usize, bool)>,
    width: usize,
    /// The end of the requested page; `None` if no rows follow it.
    pub more: Option<Vec<u8>>,
}

impl Cells {
    /// Removes the rows but keeps the buffers. Rows added from now on have `width` cells.
    #[inline]
    pub fn clear(&mut self, width: usize) {
        self.bytes.clear();
        self.ends.clear();
        self.width = width;
        self.more = None;
    }

    /// Appends a cell, row by row; `None` means null.
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// The number of cells per row.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.ends.len().checked_div(self.width).unwrap_or(0)
    }

    /// A cell; `None` means null.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[inline]
    pub fn get(&self, row: usize, column: usize) -> Option<&[u8]> {
        let at = row * self.width + column;
        let (end, present) = self.ends[at];
        let start = if at == 0 { 0 } else { self.ends[at - 1].0 };
        present.then(|| &self.bytes[start..end])
    }

    /// The total size of all cells, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// How the statements of a batch are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Either all statements are executed or none, even if the coordinator fails.
    Logged,
    /// The statements are sent as one request, but a failure may leave only some of them executed.
    Unlogged,
    /// The statements increment counters.
    Counter,
}

/// One client's session on a store of statements. The statements are fixed when the session is created.
pub trait Statements: Connection {
    /// Executes a statement by its number, and stores the result's rows in `cells`, which is cleared first.
    fn execute(&mut self, statement: usize, values: &Values, cells: &mut Cells) -> impl Future<Output = Status>;

    /// Executes several statements, each with its values, as one request.
    fn execute_batch(&mut self, kind: BatchKind, parts: &[(usize, Values)]) -> impl Future<Output = Status>;
}

/// A store of statements.
pub trait StatementStore: Store {
    /// One client's session.
    type Statements: Statements + 'static;

    /// Executes schema definitions, one after the other, before the store is opened.
    fn define(options: &Options, definitions: &[String]) -> Result<(), EngineError>;

    /// Creates a session with these statements, on the thread that will use it.
    fn statements(&self, statements: &Arc<[Statement]>) -> Self::Statements;
}

/// Sessions that return immediately without doing anything, to measure the driver's own cost.
#[derive(Debug, Default)]
pub struct NullStatements;

impl Connection for NullStatements {}

impl Statements for NullStatements {
    #[inline]
    async fn execute(&mut self, _statement: usize, _values: &Values, cells: &mut Cells) -> Status {
        cells.clear(0);
        Status::Ok
    }

    async fn execute_batch(&mut self, _kind: BatchKind, _parts: &[(usize, Values)]) -> Status {
        Status::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_with_their_lengths() {
        let mut values = Values::default();
        values.push(b"ab");
        values.push_null();
        values.push_unset();
        values.push_with(|out| out.push(7));
        assert_eq!(values.as_bytes(), b"\0\0\0\x02ab\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE\0\0\0\x01\x07");
        assert_eq!((values.get(0), values.get(1), values.get(2)), (Some(&b"ab"[..]), None, None));
        assert_eq!((values.get(3), values.get(4), values.len()), (Some(&[7][..]), None, 4));
        values.clear();
        assert!(values.is_empty() && values.as_bytes().is_empty());
    }

    #[test]
    fn cells_are_found_by_row_and_column() {
        let mut cells = Cells::default();
        cells.clear(2);
        for value in [Some(&b"a"[..]), None, Some(b""), Some(b"bc")] {
            cells.push(value);
        }
        assert_eq!((cells.rows(), cells.get(0, 0), cells.get(0, 1)), (2, Some(&b"a"[..]), None));
        assert_eq!((cells.get(1, 0), cells.get(1, 1), cells.bytes()), (Some(&b""[..]), Some(&b"bc"[..]), 3));
        cells.clear(0);
        assert_eq!(cells.rows(), 0);
    }
}
