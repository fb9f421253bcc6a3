//! A node's answer: a result, or an error that is converted to a status.

use std::cell::Cell;

use loadstone_load::Status;

use super::types::Type;
use super::wire::{Body, Short, Version, opcode};
use crate::error::Failure;

/// The error code for a prepared statement that the node no longer knows.
pub const UNPREPARED: i32 = 0x2500;
/// The error code for an unsupported protocol version, or for a frame that violates the protocol.
pub const PROTOCOL_ERROR: i32 = 0x000A;

/// The error code if too few replicas are alive for the consistency level.
const UNAVAILABLE: i32 = 0x1000;
/// The error code if the keyspace or table to be created already exists.
pub const ALREADY_EXISTS: i32 = 0x2400;

const ROWS: i32 = 2;
const PREPARED: i32 = 4;
const GLOBAL_TABLE: i32 = 0x01;
const MORE_PAGES: i32 = 0x02;
const NO_METADATA: i32 = 0x04;
const METADATA_CHANGED: i32 = 0x08;

/// Each server chooses its own code for a rate limit (`ScyllaDB`'s `protocol-extensions.md`). This client replaces the
/// server's code with one of two codes. The first means that the coordinator rejected the operation. The second means
/// that replicas rejected it, and other replicas may have executed it.
const RATE_LIMITED: i32 = -2;
const RATE_LIMITED_BY_REPLICAS: i32 = -3;

/// An error that a node reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: i32,
    pub message: String,
}

impl Refusal {
    fn name(&self) -> &'static str {
        match self.code {
            0x0000 => "ServerError",
            PROTOCOL_ERROR => "ProtocolError",
            0x0100 => "BadCredentials",
            UNAVAILABLE => "Unavailable",
            0x1001 => "Overloaded",
            0x1002 => "IsBootstrapping",
            0x1003 => "TruncateError",
            0x1100 => "WriteTimeout",
            0x1200 => "ReadTimeout",
            0x1300 => "ReadFailure",
            0x1400 => "FunctionFailure",
            0x1500 => "WriteFailure",
            0x2000 => "SyntaxError",
            0x2100 => "Unauthorized",
            0x2200 => "Invalid",
            0x2300 => "ConfigError",
            ALREADY_EXISTS => "AlreadyExists",
            UNPREPARED => "Unprepared",
            RATE_LIMITED | RATE_LIMITED_BY_REPLICAS => "RateLimitError",
            _ => "error",
        }
    }

    /// Converts the error to the failure that is recorded for an operation.
    pub fn failure(self) -> Failure {
        let message = format!("{}: {}", self.name(), self.message);
        let refused = self.refuses_writes();
        let failure = match self.code {
            0x0100 | 0x2100 => Failure::new(Status::Forbidden, message),
            0x1000..=0x1002 | RATE_LIMITED | RATE_LIMITED_BY_REPLICAS => {
                Failure::new(Status::ServiceUnavailable, message)
            }
            0x1100 | 0x1200 => Failure::new(Status::Timeout, message),
            0x2000 | 0x2200 | 0x2300 => Failure::new(Status::BadRequest, message),
            // A full device is reported as a server error that contains the operating system's message.
            _ => Failure::from_text(message),
        };
        if refused { failure.refusal() } else { failure }
    }

    /// Whether the node rejects the statement, whatever the state of the cluster.
    pub fn rejects_statement(&self) -> bool {
        matches!(self.code, 0x2000 | 0x2200 | 0x2300)
    }

    /// Whether a write that fails with this error was never started (`native_protocol_v4.spec`, section 9).
    /// `Unavailable` is sent before anything is sent to a replica. The other errors in the list reject the request or
    /// the user, or come from a node that is still starting. `Overloaded` is not in the list, because a node may report
    /// it at any time (drivers repeat such a write only if repetition is harmless). Protocol errors are not in the list
    /// either, because on a shared connection another request may have caused them.
    fn refuses_writes(&self) -> bool {
        matches!(
            self.code,
            0x0100 | 0x1000 | 0x1002 | 0x2000 | 0x2100 | 0x2200 | 0x2300 | 0x2400 | UNPREPARED | RATE_LIMITED
        )
    }
}

/// The failure for an answer that violates the protocol.
pub fn protocol_failure(_: Short) -> Failure {
    Failure::new(Status::UnexpectedState, "a truncated answer")
}

/// The error in an answer, if there is an error. An answer that is neither a result nor an error counts as an error.
#[inline]
pub fn check(code: u8, body: Body<'_>, rate_limit: Option<i32>) -> Result<(), Refusal> {
    if code == opcode::RESULT { Ok(()) } else { Err(refusal(code, body, rate_limit)) }
}

/// Parses the error in an answer. `rate_limit` is the server's code for a rate limit.
#[cold]
pub fn refusal(code: u8, mut body: Body<'_>, rate_limit: Option<i32>) -> Refusal {
    if code != opcode::ERROR {
        return Refusal { code: -1, message: format!("an answer with opcode {code:#04x} instead of a result") };
    }
    let read = body.int().and_then(|code| Ok((code, body.string()?)));
    match read {
        Ok((code, text)) => {
            let mut message = String::from_utf8_lossy(text).into_owned();
            if code == UNAVAILABLE
                && let Ok((required, alive)) = read_replicas(body)
            {
                message.push_str(&format!(" ({required} required but only {alive} alive)"));
            }
            if Some(code) == rate_limit {
                let [kind, by_coordinator] = body.array().unwrap_or_default();
                let operation = if kind == 0 { "read" } else { "write" };
                let (place, code) = match by_coordinator {
                    0 => ("replicas", RATE_LIMITED_BY_REPLICAS),
                    _ => ("the coordinator", RATE_LIMITED),
                };
                message.push_str(&format!(" ({operation} rejected by {place})"));
                return Refusal { code, message };
            }
            Refusal { code, message }
        }
        Err(Short) => Refusal { code: -1, message: "a truncated error".to_owned() },
    }
}

/// The numbers of required and alive replicas in an `Unavailable` error (`native_protocol_v4.spec`, section 9).
fn read_replicas(mut body: Body<'_>) -> Result<(i32, i32), Short> {
    let _level = body.short()?;
    Ok((body.int()?, body.int()?))
}

/// A column of rows, or a marker in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: Vec<u8>,
    pub kind: Type,
}

/// A statement as one node prepared it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The statement's id on the node.
    pub id: Vec<u8>,
    /// The id of the result's columns (protocol 5 only).
    pub columns_id: Vec<u8>,
    pub markers: Vec<Column>,
    /// The indexes of the markers that make up the partition key, in the key's order; empty if the statement does not
    /// set the whole key.
    pub key: Vec<usize>,
    /// The columns of the result's rows.
    pub columns: Vec<Column>,
    /// Whether the statement must be prepared again, because the node has forgotten it or the result's columns have
    /// changed.
    pub stale: Cell<bool>,
}

/// The metadata of markers or rows.
#[derive(Default)]
struct Metadata<'a> {
    count: usize,
    columns: Vec<Column>,
    key: Vec<usize>,
    more: Option<&'a [u8]>,
    new_id: Option<&'a [u8]>,
}

#[inline]
fn metadata<'a>(body: &mut Body<'a>, has_key: bool) -> Result<Metadata<'a>, Short> {
    let flags = body.int()?;
    let mut metadata = Metadata { count: usize::try_from(body.int()?).map_err(|_| Short)?, ..Metadata::default() };
    if has_key {
        metadata.key = (0..body.int()?).map(|_| body.short().map(usize::from)).collect::<Result<_, Short>>()?;
    }
    if flags & MORE_PAGES != 0 {
        metadata.more = Some(body.bytes()?.ok_or(Short)?);
    }
    if flags & METADATA_CHANGED != 0 {
        metadata.new_id = Some(body.string()?);
    }
    if flags & NO_METADATA == 0 {
        metadata.columns = columns(body, metadata.count, flags & GLOBAL_TABLE != 0)?;
    }
    Ok(metadata)
}

#[cold]
fn columns(body: &mut Body<'_>, count: usize, one_table: bool) -> Result<Vec<Column>, Short> {
    let skip_table = |body: &mut Body<'_>| body.string().and_then(|_| body.string()).map(|_| ());
    if one_table {
        skip_table(body)?;
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        if !one_table {
            skip_table(body)?;
        }
        columns.push(Column { name: body.string()?.to_vec(), kind: Type::read(body, 0)? });
    }
    Ok(columns)
}

/// Parses the answer to PREPARE.
pub fn parse_prepared(mut body: Body<'_>, version: Version) -> Result<Prepared, Short> {
    if body.int()? != PREPARED {
        return Err(Short);
    }
    let id = body.string()?.to_vec();
    let columns_id = if version < Version::V5 { Vec::new() } else { body.string()?.to_vec() };
    let markers = metadata(&mut body, version > Version::V3)?;
    if markers.key.iter().any(|marker| *marker >= markers.columns.len()) {
        return Err(Short);
    }
    let columns = metadata(&mut body, false)?.columns;
    Ok(Prepared { id, columns_id, markers: markers.columns, key: markers.key, columns, stale: Cell::new(false) })
}

/// The rows of an answer; `None` if the result has no rows.
#[inline]
pub fn rows(mut body: Body<'_>) -> Result<Option<Table<'_>>, Short> {
    if body.int()? != ROWS {
        return Ok(None);
    }
    let Metadata { count, columns, more, new_id, .. } = metadata(&mut body, false)?;
    let rows = usize::try_from(body.int()?).map_err(|_| Short)?;
    // Rows without columns take no bytes, so a short answer could announce any number of rows.
    if count == 0 && rows > 0 {
        return Err(Short);
    }
    Ok(Some(Table { body, rows, width: count, more, changed: new_id.map(|id| (id, columns)) }))
}

/// Rows that have not been parsed yet.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// The values of the rows, one after the other.
    pub body: Body<'a>,
    /// The number of rows.
    pub rows: usize,
    /// Number of values per row.
    pub width: usize,
    /// The paging state to send with the next request, if more rows follow.
    pub more: Option<&'a [u8]>,
    /// The new columns and their id, if the table was altered since the statement was prepared (protocol 5 only).
    pub changed: Option<(&'a [u8], Vec<Column>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_statuses() {
        for (code, status) in [
            (0x1000, Status::ServiceUnavailable),
            (0x1001, Status::ServiceUnavailable),
            (0x1100, Status::Timeout),
            (0x1200, Status::Timeout),
            (0x0100, Status::Forbidden),
            (0x2100, Status::Forbidden),
            (0x2200, Status::BadRequest),
            (0x1500, Status::Error),
        ] {
            let failure = Refusal { code, message: "words".to_owned() }.failure();
            assert_eq!(failure.status, status, "{code:#06x}");
            assert!(failure.message.ends_with(": words"));
        }
        for code in [0x0000, 0x000A, 0x1001, 0x1003, 0x1100, 0x1500, -1] {
            assert!(!Refusal { code, message: String::new() }.failure().refused, "{code:#06x} may have been executed");
        }
        for code in [0x0100, 0x1000, 0x1002, 0x2000, 0x2100, 0x2200, 0x2300, 0x2400, UNPREPARED] {
            assert!(Refusal { code, message: String::new() }.failure().refused, "{code:#06x} was not executed");
        }
        let full = Refusal { code: 0, message: "java.io.IOException: No space left on device".to_owned() };
        assert_eq!(full.failure().status, Status::NoSpace);
    }

    #[test]
    fn unavailable_names_required_and_alive_replicas() {
        let body = |fields: &[u8]| [b"\0\0\x10\0\0\x04text\0\x04".as_slice(), fields].concat();
        let whole = refusal(opcode::ERROR, Body(&body(b"\0\0\0\x02\0\0\0\x01")), None);
        assert_eq!(whole.message, "text (2 required but only 1 alive)");
        // Without these fields, only the text is known.
        assert_eq!(refusal(opcode::ERROR, Body(&body(b"\0\0")), None).message, "text");
    }

    #[test]
    fn rate_limits_have_a_name() {
        let body = |fields: &[u8]| [b"\0\0\xF0\0\0\x04text".as_slice(), fields].concat();
        let failure = |fields, code| refusal(opcode::ERROR, Body(&body(fields)), code).failure();
        for (fields, message, refused) in [
            (b"\x01\x01", "RateLimitError: text (write rejected by the coordinator)", true),
            (b"\x01\0", "RateLimitError: text (write rejected by replicas)", false),
            (b"\0\x01", "RateLimitError: text (read rejected by the coordinator)", true),
        ] {
            let failure = failure(fields, Some(0xF000));
            assert_eq!((failure.message.as_str(), failure.refused), (message, refused));
            assert_eq!(failure.status, Status::ServiceUnavailable);
        }
        assert_eq!(failure(b"\x01\x01", None).message, "error: text");
    }

    #[test]
    fn rows_without_metadata_are_read() {
        let body = b"\0\0\0\x02\0\0\0\x04\0\0\0\x02\0\0\0\x01\0\0\0\x01k\xFF\xFF\xFF\xFF";
        let mut table = rows(Body(body)).unwrap().unwrap();
        assert_eq!((table.rows, table.width), (1, 2));
        assert_eq!(table.body.bytes(), Ok(Some(&b"k"[..])));
        assert_eq!(table.body.bytes(), Ok(None));
        assert!(rows(Body(&body[..9])).is_err());
        assert!(rows(Body(b"\0\0\0\x01")).unwrap().is_none());
    }

    #[test]
    fn rows_that_are_not_all_say_so() {
        let body = b"\0\0\0\x02\0\0\0\x06\0\0\0\x01\0\0\0\x02go\0\0\0\x01\0\0\0\x01k";
        let table = rows(Body(body)).unwrap().unwrap();
        assert_eq!((table.rows, table.width, table.more), (1, 1, Some(&b"go"[..])));
        assert!(rows(Body(b"\0\0\0\x02\0\0\0\x06\0\0\0\x01\xFF\xFF\xFF\xFF\0\0\0\0")).is_err());
    }

    #[test]
    fn prepared_statements_have_markers_and_columns() {
        const MARKERS: &[u8] = b"\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\x01\0\x01k\0\x01t\0\x01a\0\x0D\0\x04y_id\0\x0D";
        const COLUMNS: &[u8] = b"\0\0\0\x01\0\0\0\x02\0\x01k\0\x01t\0\x01a\0\x0D\0\x01b\0\x21\0\x0D\0\x20\0\x09";
        let body = |ids: &[u8]| [b"\0\0\0\x04", ids, MARKERS, COLUMNS].concat();
        let four = parse_prepared(Body(&body(b"\0\x02id")), Version::V4).unwrap();
        assert_eq!((four.id.as_slice(), four.columns_id.as_slice()), (&b"id"[..], &b""[..]));
        let list = Type::Map(Box::new(Type::Text), Box::new(Type::List(Box::new(Type::Int))));
        let column = |name: &[u8], kind| Column { name: name.to_vec(), kind };
        assert_eq!(four.markers, [column(b"a", Type::Text), column(b"y_id", Type::Text)]);
        assert_eq!(
            (four.key.as_slice(), &four.columns),
            (&[1][..], &vec![column(b"a", Type::Text), column(b"b", list)])
        );
        let five = parse_prepared(Body(&body(b"\0\x02id\0\x03new")), Version::V5).unwrap();
        assert_eq!(five, Prepared { columns_id: b"new".to_vec(), ..four });
    }

    #[test]
    fn changed_columns_come_with_the_rows() {
        let body = b"\0\0\0\x02\0\0\0\x09\0\0\0\x01\0\x02id\0\x01k\0\x01t\0\x01a\0\x09\0\0\0\0";
        let table = rows(Body(body)).unwrap().unwrap();
        assert_eq!(table.changed, Some((&b"id"[..], vec![Column { name: b"a".to_vec(), kind: Type::Int }])));
    }
}
