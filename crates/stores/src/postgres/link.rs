//! A connection to PostgreSQL, and the statements that are prepared on it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use loadstone_load::Status;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, Socket, Statement};
use tokio_rustls::client::TlsStream;

use super::failure::{connect_error, failure_of};
use super::layout::Verb;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::{ConnectError, Failure};
use crate::remote::Server;
use crate::tls::{Tls, encryption};

/// A connection. The client library drives it in a separate task, which ends when this value is dropped.
#[derive(Debug)]
pub struct Link {
    /// The client library's handle.
    pub client: Client,
    driver: JoinHandle<()>,
    /// The prepared statements, by verb and field names. There are only a few, so they are searched linearly.
    statements: Vec<(Vec<u8>, Statement)>,
    /// The TLS version and the cipher suite, if the connection is encrypted.
    pub encryption: Option<String>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Link {
    /// Connects to the first server that is suitable, and logs in. Must be called within a
    /// [`tokio::task::LocalSet`].
    pub async fn open(settings: &Settings) -> Result<Self, Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        for (server, config) in settings.server.iter() {
            match Self::open_at(settings, server, config).await {
                Ok(link) => return Ok(link),
                Err(failure) => failures.push(failure),
            }
        }
        let message = failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; ");
        let last = failures.pop().unwrap_or_else(|| Failure::new(Status::ServiceUnavailable, ""));
        Err(Failure { message, ..last })
    }

    async fn open_at(settings: &Settings, server: &Server, config: &Config) -> Result<Self, Failure> {
        let session = Arc::new(OnceLock::new());
        let connected = async {
            // A request that is waiting for an answer receives the connection's error.
            Ok(match &settings.tls {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    (client, tokio::task::spawn_local(async move { drop(connection.await) }))
                }
                Some(tls) => {
                    let connector = Connector {
                        tls: tls.clone(),
                        host: String::new(),
                        place: server.to_string(),
                        session: Arc::clone(&session),
                    };
                    let (client, connection) = config.connect(connector).await?;
                    (client, tokio::task::spawn_local(async move { drop(connection.await) }))
                }
            })
        };
        match Deadline::new(settings.connect_timeout).keep_deadline(connected).await {
            Ok(Ok((client, driver))) => {
                Ok(Self { client, driver, statements: Vec::new(), encryption: session.get().cloned() })
            }
            Ok(Err(error)) => {
                let (failure, _) = failure_of(&error, server);
                if matches!(failure.connect, Some(ConnectError::Tls(_))) {
                    return Err(failure);
                }
                let message = format!("cannot connect to {server}: {}", failure.message);
                Err(Failure { message, ..failure }.connecting(connect_error(&error)))
            }
            Err(late) => Err(Failure::new(Status::Timeout, format!("cannot connect to {server}: {late}"))),
        }
    }

    /// The statement with this name, if it is prepared.
    #[inline]
    pub fn find_statement(&self, name: &[u8]) -> Option<&Statement> {
        self.statements.iter().find(|(own, _)| own == name).map(|(_, statement)| statement)
    }

    /// Stores a prepared statement under its name.
    pub fn keep(&mut self, name: Vec<u8>, statement: Statement) {
        self.statements.push((name, statement));
    }

    /// Closes the connection cleanly, but waits for the server no longer than `limit`.
    pub async fn close(mut self, limit: Duration) {
        // The connection's task ends when the last client is dropped. Dropping the other fields of this value sends
        // nothing.
        let driver = std::mem::replace(&mut self.driver, tokio::task::spawn_local(async {}));
        drop(self);
        let _ = Deadline::new(limit).keep_deadline(driver).await;
    }
}

/// Encrypts the client library's connections.
#[derive(Clone)]
struct Connector {
    tls: Tls,
    host: String,
    place: String,
    /// The TLS version and the cipher suite of the last handshake.
    session: Arc<OnceLock<String>>,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Self;
    type Error = Failure;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self, Failure> {
        Ok(Self { host: host.to_owned(), ..self.clone() })
    }
}

impl TlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, Failure>>>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.tls.connect(socket, &self.host, &self.place).await?;
            self.session.get_or_init(|| encryption(stream.get_ref().1));
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

/// An encrypted connection of the client library.
struct Encrypted(Box<TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Writes the name of a statement to a buffer. The name consists of the statement's verb and fields.
#[inline]
pub fn name_statement<'a>(name: &mut Vec<u8>, verb: Verb, fields: impl Iterator<Item = &'a [u8]>) {
    name.clear();
    name.push(verb as u8);
    for field in fields {
        name.extend_from_slice(&(field.len() as u32).to_be_bytes());
        name.extend_from_slice(field);
    }
}

#[cfg(test)]
mod tests;
