//! One connection to PostgreSQL, and the statements that are prepared on it.

use std::time::Duration;

use loadstone_load::Status;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, Statement};

use super::failure::{connect_error, of_error};
use super::layout::Verb;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::Failure;

/// A connection. The client library drives it in a separate task, which lives as long as this.
#[derive(Debug)]
pub struct Link {
    /// The library's handle.
    pub client: Client,
    driver: JoinHandle<()>,
    /// By verb and fields' names: few, so they are walked through.
    statements: Vec<(Vec<u8>, Statement)>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Link {
    /// Connects and authenticates. Must be called within a [`tokio::task::LocalSet`].
    pub async fn open(settings: &Settings) -> Result<Self, Failure> {
        let server = &settings.server;
        match Deadline::new(settings.connect_timeout).keep(settings.config.connect(NoTls)).await {
            Ok(Ok((client, connection))) => {
                // The request that waits for an answer gets the error of its connection.
                let driver = tokio::task::spawn_local(async move {
                    let _ = connection.await;
                });
                Ok(Self { client, driver, statements: Vec::new() })
            }
            Ok(Err(error)) => {
                let (failure, _) = of_error(&error, server);
                let message = format!("cannot connect to {server}: {}", failure.message);
                Err(Failure { message, ..failure }.connecting(connect_error(&error)))
            }
            Err(late) => Err(Failure::new(Status::Timeout, format!("cannot connect to {server}: {late}"))),
        }
    }

    /// The statement of this name, if it is prepared.
    #[inline]
    pub fn prepared(&self, name: &[u8]) -> Option<&Statement> {
        self.statements.iter().find(|(own, _)| own == name).map(|(_, statement)| statement)
    }

    /// Keeps a prepared statement by its name.
    pub fn keep(&mut self, name: Vec<u8>, statement: Statement) {
        self.statements.push((name, statement));
    }

    /// Says goodbye; a server that does not answer is left after `limit`.
    pub async fn close(mut self, limit: Duration) {
        // The task ends when the last client is dropped; what remains of this one sends nothing.
        let driver = std::mem::replace(&mut self.driver, tokio::task::spawn_local(async {}));
        drop(self);
        let _ = Deadline::new(limit).keep(driver).await;
    }
}

/// Writes the name of a statement into a buffer: its verb and its fields.
#[inline]
pub fn name_statement<'a>(name: &mut Vec<u8>, verb: Verb, fields: impl Iterator<Item = &'a [u8]>) {
    name.clear();
    name.push(verb as u8);
    for field in fields {
        name.extend_from_slice(&(field.len() as u32).to_be_bytes());
        name.extend_from_slice(field);
    }
}
