//! Converts Redis's error replies to failures with a status.

use loadstone_load::Status;

use super::reply::{Malformed, Replies, Reply};
use crate::error::{ConnectError, Failure};

/// The failure for an error reply, derived from the first word of its message.
pub fn parse_error(message: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(message).into_owned();
    let status = match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Status::Forbidden,
        "OOM" => Status::NoSpace,
        "MISCONF" if text.contains("No space left") => Status::NoSpace,
        "LOADING" | "BUSY" | "MISCONF" | "MASTERDOWN" | "READONLY" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            Status::ServiceUnavailable
        }
        "WRONGTYPE" => Status::UnexpectedState,
        _ if text.contains(CLIENTS_EXHAUSTED) => Status::ServiceUnavailable,
        _ if text.contains("wrong number of arguments") || text.contains("Protocol error") => Status::BadRequest,
        _ => Status::Error,
    };
    let mut failure = Failure::new(status, format!("redis answers: {text}"));
    if text.contains(CLIENTS_EXHAUSTED) {
        failure = failure.connecting(ConnectError::ClientsExhausted);
    }
    if is_refusal(&text) { failure.refusal() } else { failure }
}

/// The failure for an error reply to AUTH. Since version 6.0, Redis has an error code for a refused login. In earlier
/// versions, and if no password is set, only the message shows that the login was refused.
pub fn parse_login_error(reply: &[u8]) -> Failure {
    let failure = parse_error(reply);
    let text = String::from_utf8_lossy(reply);
    if text.contains("password") || text.contains("AUTH") {
        return Failure { status: Status::Forbidden, ..failure };
    }
    failure
}

/// Part of the error message from a server that has reached its maximum number of clients. The error code is only
/// `ERR`, as for most errors.
const CLIENTS_EXHAUSTED: &str = "max number of clients";

/// Whether an error reply means that its command, which is a write, changed nothing.
///
/// `processCommand` in Redis's `server.c` sends these replies, through `rejectCommand`, before it calls the command;
/// INFO counts them in each command's `rejected_calls`. HMSET, ZADD, DEL and ZREM check the type of the key before they
/// change anything. A server with too many clients reads no command from a new client (`networking.c`). Other messages
/// may come from a proxy, which does not know the outcome of a command that it has forwarded.
fn is_refusal(text: &str) -> bool {
    match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "NOPERM" | "OOM" | "MISCONF" | "NOREPLICAS" | "READONLY" | "MASTERDOWN" | "LOADING" | "BUSY"
        | "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" | "WRONGTYPE" => true,
        "ERR" => {
            let known = ["ERR unknown command", "ERR wrong number of arguments", "ERR max number of clients reached"];
            known.iter().any(|start| text.starts_with(start))
        }
        _ => false,
    }
}

/// The failure for a reply that does not have the type that the command requires.
pub fn reply_failure(reply: Option<Reply<'_>>) -> Failure {
    match reply {
        Some(Reply::Error(message)) => parse_error(message),
        other => Failure::new(Status::UnexpectedState, format!("redis's reply has the wrong type: {other:?}")),
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::new(
            Status::UnexpectedState,
            format!("the answer does not follow Redis's protocol (byte {})", malformed.at),
        )
    }
}

/// The next reply, which must be an integer.
#[inline]
pub fn expect_integer(replies: &mut Replies<'_>) -> Result<i64, Failure> {
    match replies.next()? {
        Some(Reply::Integer(number)) => Ok(number),
        other => Err(reply_failure(other)),
    }
}

/// The length of the array that must come next.
#[inline]
pub fn expect_array(replies: &mut Replies<'_>) -> Result<usize, Failure> {
    match replies.next()? {
        Some(Reply::Array(count)) => Ok(count),
        other => Err(reply_failure(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_status() {
        for (message, status) in [
            ("NOAUTH Authentication required.", Status::Forbidden),
            ("WRONGPASS invalid username-password pair or user is disabled.", Status::Forbidden),
            ("OOM command not allowed when used memory > 'maxmemory'.", Status::NoSpace),
            ("MISCONF Errors writing to the AOF file: No space left on device", Status::NoSpace),
            ("MISCONF Redis is configured to save RDB snapshots", Status::ServiceUnavailable),
            ("LOADING Redis is loading the dataset in memory", Status::ServiceUnavailable),
            ("ERR max number of clients reached", Status::ServiceUnavailable),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Status::UnexpectedState),
            ("ERR wrong number of arguments for 'hmset' command", Status::BadRequest),
            ("ERR unknown command 'HMSET'", Status::Error),
        ] {
            let failure = reply_failure(Some(Reply::Error(message.as_bytes())));
            assert_eq!(failure.status, status, "{message}");
            assert!(failure.message.ends_with(message));
        }
        assert_eq!(reply_failure(Some(Reply::Nil)).status, Status::UnexpectedState);
    }

    #[test]
    fn a_refusal_is_known_by_its_code() {
        for (message, refused) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", true),
            ("READONLY You can't write against a read only replica.", true),
            ("NOREPLICAS Not enough good replicas to write.", true),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", true),
            ("MOVED 3999 127.0.0.1:6381", true),
            ("ERR max number of clients reached", true),
            // Errors of a proxy, and other unknown errors.
            ("ERR Connection timed out", false),
            ("ERR scripted", false),
            ("upstream failure", false),
            ("UNKILLABLE", false),
        ] {
            assert_eq!(parse_error(message.as_bytes()).refused, refused, "{message}");
        }
        assert!(!reply_failure(Some(Reply::Nil)).refused);
    }
}
