//! Detects a pooler in front of the server, such as `PgBouncer`. A pooler poses as the server, so only its effects can
//! be detected: clients share a server connection, or a statement was prepared on a different server connection.
//!
//! <https://www.pgbouncer.org/config.html> (`pool_mode`, `max_prepared_statements`)

use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::link::Link;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::EngineError;

/// Whether there is a pooler that may use a different server connection for a client's next transaction. A pooler that
/// then loses the client's prepared statements is refused.
pub async fn find_pooler(link: &Link, settings: &Settings) -> Result<bool, EngineError> {
    // If no second connection can be opened, there is no pooler, because a pooler accepts many clients.
    let Ok(partner) = Link::open(settings).await else { return Ok(false) };
    let mut deadline = Deadline::new(settings.timeout);
    let (own, other) = (&link.client, &partner.client);
    let is_pooled = deadline.keep_deadline(are_shared(own, other)).await.unwrap_or_default();
    let outcome = if is_pooled { deadline.keep_deadline(execute_elsewhere(own, other)).await } else { Ok(Ok(())) };
    partner.close(settings.timeout).await;
    let reason = match outcome {
        Ok(Ok(())) => return Ok(is_pooled),
        Ok(Err(error)) => error.as_db_error().map_or_else(|| error.to_string(), |answer| answer.message().to_owned()),
        Err(late) => late.to_string(),
    };
    let server = &settings.server;
    Err(EngineError::failed(format!("postgres at {server} is a pooler that loses prepared statements: {reason}")).hint(
        "connect to the server, or set pool_mode=session or max_prepared_statements (PgBouncer 1.21) in the pooler",
    ))
}

/// Whether two clients are served by the same process, or a single client by two processes.
async fn are_shared(own: &Client, other: &Client) -> bool {
    let (Some(first), Some(second), Some(of_other)) =
        (read_process(own).await, read_process(own).await, read_process(other).await)
    else {
        return false;
    };
    first != second || first == of_other
}

/// The number of the server process that answers. A server without separate processes reports no number, or the same
/// number for all clients.
async fn read_process(client: &Client) -> Option<i64> {
    // A simple query, because a prepared statement might fail behind a pooler.
    let answers = client.simple_query("SELECT pg_backend_pid()").await.ok()?;
    answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok().filter(|&number| number > 0),
        _ => None,
    })
}

/// Executes a statement after a different client has taken the server connection on which the statement was prepared.
async fn execute_elsewhere(own: &Client, other: &Client) -> Result<(), Error> {
    let statement = own.prepare("SELECT 1").await?;
    other.batch_execute("BEGIN").await?;
    let executed = own.query(&statement, &[]).await;
    other.batch_execute("ROLLBACK").await?;
    executed.map(drop)
}
