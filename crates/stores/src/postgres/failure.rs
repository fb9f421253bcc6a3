//! Converts PostgreSQL's errors to failures with a status.

use std::error::Error as _;
use std::fmt;
use std::io;

use loadstone_load::Status;
use tokio_postgres::error::{Severity, SqlState};

use crate::error::{ConnectError, Failure, TlsFault};

/// The errors for a prepared statement that the server has forgotten, or whose table now has different columns.
const STALE: [SqlState; 2] = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::FEATURE_NOT_SUPPORTED];

/// The failure for an error, with the message of the server or of the client library, and whether the connection is
/// still usable.
pub fn failure_of(error: &tokio_postgres::Error, server: &dyn fmt::Display) -> (Failure, bool) {
    if let Some(answer) = error.as_db_error() {
        let (code, message) = (answer.code(), answer.message());
        // Not every server sends the untranslated severity. Without it, only the severity in the server's language is
        // known.
        let ends = match answer.parsed_severity() {
            Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
            None => matches!(answer.severity(), "FATAL" | "PANIC"),
        };
        let text = format!("postgres answers: {message} (SQLSTATE {})", code.code());
        let failure = Failure::new(status_of(code.code(), message), text);
        let failure = if !ends && rolls_back(code.code()) { failure.refusal() } else { failure };
        return (failure, !ends && !STALE.contains(code));
    }
    if let Some(failure) = error.source().and_then(|source| source.downcast_ref::<Failure>()) {
        return (failure.clone(), false);
    }
    let text = error_text(error);
    if text.contains("server does not support TLS") {
        let failure = Failure::new(Status::ServiceUnavailable, format!("{server} does not support TLS"));
        return (failure.connecting(ConnectError::Tls(TlsFault::Plain)), false);
    }
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let (status, usable) = match io {
        Some(io) if io.kind() == io::ErrorKind::TimedOut => (Status::Timeout, false),
        Some(_) => (Status::ServiceUnavailable, false),
        None if error.is_closed() => (Status::ServiceUnavailable, false),
        // The library could not encode a parameter, so nothing was sent.
        None if text.starts_with("error serializing") || text.starts_with("error encoding") => {
            return (Failure::new(Status::BadRequest, format!("{text} ({server})")).refusal(), true);
        }
        None if text.starts_with("authentication error") => (Status::Forbidden, false),
        None => (Status::Error, false),
    };
    (Failure::new(status, format!("{text} ({server})")), usable)
}

/// The reason why a connection could not be made.
pub fn connect_error(error: &tokio_postgres::Error) -> ConnectError {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    match (error.code(), io) {
        (Some(&SqlState::INVALID_CATALOG_NAME), _) => ConnectError::NoDatabase,
        (Some(&SqlState::TOO_MANY_CONNECTIONS), _) => ConnectError::ClientsExhausted,
        // The message is in PostgreSQL's `auth.c`; it is different if the server uses another language.
        (Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION), _) if error_text(error).contains("no encryption") => {
            ConnectError::Tls(TlsFault::Required)
        }
        (Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION), _)
            if error_text(error).contains("client certificate") =>
        {
            ConnectError::Tls(TlsFault::ClientCertificate)
        }
        // The library reports a mismatch with `target_session_attrs` this way; a refusal by the operating system has a
        // number.
        (_, Some(io)) if io.kind() == io::ErrorKind::PermissionDenied && io.raw_os_error().is_none() => {
            ConnectError::ServerRole
        }
        (_, Some(io)) => ConnectError::from_io(io),
        // The library does not expose the types of its errors.
        _ if error_text(error).contains("password missing") => ConnectError::NoPassword,
        _ => ConnectError::Other,
    }
}

/// Whether an error with this SQLSTATE, after which the session continues, means that the statement was rolled back. An
/// error aborts the transaction (see "Message Flow" in the protocol's documentation). Once a transaction is committed,
/// the server raises no more errors, because "the latter would lead the client to believe that the transaction aborted"
/// (`syncrep.c`). The exceptions are codes for an unknown outcome (40003 and 08007, see the table of error codes),
/// errors from a pooler that lost its connection to the server (class 08), errors during a shutdown (57P0x), and
/// internal errors (class XX). Other servers that speak the protocol report timeouts as internal errors.
fn rolls_back(code: &str) -> bool {
    code != "40003" && !["08", "57P0", "XX"].iter().any(|class| code.starts_with(class))
}

/// The library's message, with its cause.
fn error_text(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Derives the status from the SQLSTATE's class; a few codes have their own status.
fn status_of(code: &str, message: &str) -> Status {
    match code {
        "42501" => Status::Forbidden,
        "53100" => Status::NoSpace,
        "58030" if message.contains("No space left") => Status::NoSpace,
        "57014" => Status::Timeout,
        "23505" => Status::UnexpectedState,
        "25006" => Status::ServiceUnavailable,
        "42703" => Status::BadRequest,
        _ => match code.get(..2).unwrap_or_default() {
            "28" => Status::Forbidden,
            "08" | "53" | "57" => Status::ServiceUnavailable,
            "22" | "54" => Status::BadRequest,
            _ => Status::Error,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_status() {
        for (code, status) in [
            ("28P01", Status::Forbidden),
            ("42501", Status::Forbidden),
            ("53100", Status::NoSpace),
            ("53300", Status::ServiceUnavailable),
            ("57P01", Status::ServiceUnavailable),
            ("57P03", Status::ServiceUnavailable),
            ("08006", Status::ServiceUnavailable),
            ("57014", Status::Timeout),
            ("23505", Status::UnexpectedState),
            ("22001", Status::BadRequest),
            ("22021", Status::BadRequest),
            ("42703", Status::BadRequest),
            ("42P01", Status::Error),
            ("40001", Status::Error),
        ] {
            assert_eq!(status_of(code, "words"), status, "{code}");
        }
        assert_eq!(status_of("58030", "could not write: No space left on device"), Status::NoSpace);
    }

    #[test]
    fn an_unknown_outcome_is_not_a_rollback() {
        for code in ["23505", "22001", "25006", "40001", "40P01", "42501", "42P01", "53100", "53300", "57014", "58030"]
        {
            assert!(rolls_back(code), "{code}");
        }
        for code in ["08006", "08007", "08P01", "40003", "57P01", "57P02", "57P05", "XX000"] {
            assert!(!rolls_back(code), "{code}");
        }
    }
}
