//! What a node answers: a result, or an error that becomes a status.

use std::cell::Cell;

use loadstone_load::Status;

use super::wire::{Body, Short, opcode};
use crate::error::Failure;

/// The node no longer knows a prepared statement.
pub const UNPREPARED: i32 = 0x2500;

const ROWS: i32 = 2;
const PREPARED: i32 = 4;
const GLOBAL_TABLE: i32 = 0x01;
const MORE_PAGES: i32 = 0x02;
const NO_METADATA: i32 = 0x04;

/// An error of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: i32,
    pub message: String,
}

impl Refusal {
    fn name(&self) -> &'static str {
        match self.code {
            0x0000 => "ServerError",
            0x000A => "ProtocolError",
            0x0100 => "BadCredentials",
            0x1000 => "Unavailable",
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
            0x2400 => "AlreadyExists",
            UNPREPARED => "Unprepared",
            _ => "error",
        }
    }

    /// As an operation counts it.
    pub fn failure(self) -> Failure {
        let message = format!("{}: {}", self.name(), self.message);
        let refused = self.refuses_writes();
        let failure = match self.code {
            0x0100 | 0x2100 => Failure::new(Status::Forbidden, message),
            0x1000..=0x1002 => Failure::new(Status::ServiceUnavailable, message),
            0x1100 | 0x1200 => Failure::new(Status::Timeout, message),
            0x2000 | 0x2200 | 0x2300 => Failure::new(Status::BadRequest, message),
            // A full device is a server error with the operating system's message.
            _ => Failure::from_text(message),
        };
        if refused { failure.refusal() } else { failure }
    }

    /// Whether a write that ends with this was not begun: `native_protocol_v4.spec`, section 9. `Unavailable` is sent before
    /// anything is sent to a replica; the others reject the request or the user, or come from with a node that does not
    /// serve yet. A node may call itself `Overloaded` at any time (drivers repeat such a write only if that does no harm),
    /// and a protocol error on a connection that many share need not be this request's.
    fn refuses_writes(&self) -> bool {
        matches!(self.code, 0x0100 | 0x1000 | 0x1002 | 0x2000 | 0x2100 | 0x2200 | 0x2300 | 0x2400 | UNPREPARED)
    }
}

/// An answer that violates the protocol.
pub fn malformed(_: Short) -> Failure {
    Failure::new(Status::UnexpectedState, "an answer that ends early")
}

/// The error in an answer, if any. An answer that is neither a result nor an error is one, too.
#[inline]
pub fn check(code: u8, body: Body<'_>) -> Result<(), Refusal> {
    if code == opcode::RESULT { Ok(()) } else { Err(refusal(code, body)) }
}

/// The error that an answer is.
#[cold]
pub fn refusal(code: u8, mut body: Body<'_>) -> Refusal {
    if code != opcode::ERROR {
        return Refusal { code: -1, message: format!("an answer of kind {code:#04x} instead of a result") };
    }
    let read = body.int().and_then(|code| Ok((code, body.string()?)));
    match read {
        Ok((code, words)) => Refusal { code, message: String::from_utf8_lossy(words).into_owned() },
        Err(Short) => Refusal { code: -1, message: "an error that ends early".to_owned() },
    }
}

/// A statement as one node knows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared {
    /// What it is called there.
    pub id: Vec<u8>,
    /// The columns of its rows.
    pub columns: Vec<Vec<u8>>,
    /// It must be prepared again: the node has forgotten it, or its rows have other columns now.
    pub stale: Cell<bool>,
}

/// The metadata of rows.
struct Metadata<'a> {
    count: usize,
    columns: Vec<Vec<u8>>,
    more: Option<&'a [u8]>,
}

fn metadata<'a>(body: &mut Body<'a>, keys: bool) -> Result<Metadata<'a>, Short> {
    let flags = body.int()?;
    let count = usize::try_from(body.int()?).map_err(|_| Short)?;
    if keys {
        for _ in 0..body.int()? {
            body.short()?;
        }
    }
    let more = if flags & MORE_PAGES == 0 { None } else { Some(body.bytes()?.ok_or(Short)?) };
    let mut columns = Vec::new();
    if flags & NO_METADATA == 0 {
        if flags & GLOBAL_TABLE != 0 {
            body.string()?;
            body.string()?;
        }
        for _ in 0..count {
            if flags & GLOBAL_TABLE == 0 {
                body.string()?;
                body.string()?;
            }
            columns.push(body.string()?.to_vec());
            body.skip_type()?;
        }
    }
    Ok(Metadata { count, columns, more })
}

/// The answer to PREPARE.
pub fn prepared(mut body: Body<'_>) -> Result<Prepared, Short> {
    if body.int()? != PREPARED {
        return Err(Short);
    }
    let id = body.string()?.to_vec();
    metadata(&mut body, true)?;
    Ok(Prepared { id, columns: metadata(&mut body, false)?.columns, stale: Cell::new(false) })
}

/// The rows of an answer: what is left of it, how many there are, and how many values each has. `None` for a result
/// that has no rows.
#[inline]
pub fn rows(mut body: Body<'_>) -> Result<Option<Table<'_>>, Short> {
    if body.int()? != ROWS {
        return Ok(None);
    }
    let metadata = metadata(&mut body, false)?;
    let rows = usize::try_from(body.int()?).map_err(|_| Short)?;
    Ok(Some(Table { body, rows, width: metadata.count, more: metadata.more }))
}

/// Rows, not yet read.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// Their values, one after the other.
    pub body: Body<'a>,
    /// How many there are.
    pub rows: usize,
    /// Values of each.
    pub width: usize,
    /// Set if more rows follow: what the next request must send.
    pub more: Option<&'a [u8]>,
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
            assert!(!Refusal { code, message: String::new() }.failure().refused, "{code:#06x} may have been done");
        }
        for code in [0x0100, 0x1000, 0x1002, 0x2000, 0x2100, 0x2200, 0x2300, 0x2400, UNPREPARED] {
            assert!(Refusal { code, message: String::new() }.failure().refused, "{code:#06x} was not begun");
        }
        let full = Refusal { code: 0, message: "java.io.IOException: No space left on device".to_owned() };
        assert_eq!(full.failure().status, Status::NoSpace);
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
    fn a_prepared_statement_has_an_id_and_columns() {
        let mut body = Vec::new();
        body.extend_from_slice(b"\0\0\0\x04\0\x02id");
        body.extend_from_slice(b"\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01k\0\x01t\0\x04y_id\0\x0D");
        body.extend_from_slice(b"\0\0\0\x01\0\0\0\x02\0\x01k\0\x01t\0\x01a\0\x0D\0\x01b\0\x21\0\x0D\0\x20\0\x0D");
        let prepared = prepared(Body(&body)).unwrap();
        assert_eq!((prepared.id, prepared.columns), (b"id".to_vec(), vec![b"a".to_vec(), b"b".to_vec()]));
    }
}
