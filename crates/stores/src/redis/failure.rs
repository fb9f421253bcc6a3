//! What Redis's error replies are counted as.

use loadstone_load::Status;

use super::reply::{Malformed, Reply};
use crate::error::Failure;

/// The failure in an error reply. Redis's first word says which it is.
pub fn of_error(words: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(words).into_owned();
    let status = match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Status::Forbidden,
        "OOM" => Status::NoSpace,
        "MISCONF" if text.contains("No space left") => Status::NoSpace,
        "LOADING" | "BUSY" | "MISCONF" | "MASTERDOWN" | "READONLY" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            Status::ServiceUnavailable
        }
        "WRONGTYPE" => Status::UnexpectedState,
        _ if text.contains("max number of clients") => Status::ServiceUnavailable,
        _ if text.contains("wrong number of arguments") || text.contains("Protocol error") => Status::BadRequest,
        _ => Status::Error,
    };
    Failure::new(status, format!("redis answers: {text}"))
}

/// A reply that is not of the kind that the command has.
pub fn unexpected(reply: Option<Reply<'_>>) -> Failure {
    match reply {
        Some(Reply::Error(words)) => of_error(words),
        other => Failure::new(Status::UnexpectedState, format!("redis's reply is of another kind: {other:?}")),
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::new(
            Status::UnexpectedState,
            format!("this is not Redis's protocol (byte {} of the answer)", malformed.at),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_status() {
        for (words, status) in [
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
            let failure = unexpected(Some(Reply::Error(words.as_bytes())));
            assert_eq!(failure.status, status, "{words}");
            assert!(failure.message.ends_with(words));
        }
        assert_eq!(unexpected(Some(Reply::Nil)).status, Status::UnexpectedState);
    }
}
