//! A connection, on which a request takes one write and its replies usually take one read.

use std::cell::Cell;
use std::io;

use loadstone_load::Status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::failure;
use super::reply::{Replies, Reply};
use super::request::Request;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::Failure;
use crate::reconnect::Node;
use crate::remote::unreachable;
use crate::tls::{Stream, Tls, explain_close};

/// Initial size of the read buffer, in bytes: one page, which holds the reply to a read of a YCSB record. Ten thousand
/// such buffers take little memory.
const BUFFER_BYTES: usize = 4 << 10;

/// A connection on which a request can be sent. It is unusable after its first failure, because a late answer would be
/// read as the answer to the next operation.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    received: Vec<u8>,
    /// The node's number of losses when this connection was last known to be open.
    losses: Cell<u64>,
}

impl Connection {
    /// Connects and logs in.
    pub async fn open(settings: &Settings, deadline: &mut Deadline) -> Result<Self, Failure> {
        let server = &settings.server;
        let mut last = None;
        for &address in server.addresses() {
            let stream = match deadline.keep_deadline(TcpStream::connect(address)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    last = Some(unreachable(server, &error));
                    continue;
                }
                Err(late) => {
                    last = Some(Failure::new(Status::Timeout, format!("cannot connect to {server}: {late}")));
                    continue;
                }
            };
            stream.set_nodelay(true).map_err(|error| unreachable(server, &error))?;
            let place = server.to_string();
            let encrypted = Stream::new(stream, settings.tls.as_ref(), server.host(), &place);
            let stream =
                deadline.keep_deadline(encrypted).await.unwrap_or_else(|late| Err(Tls::timeout(&place, &late)))?;
            let mut connection =
                Self { stream, received: Vec::with_capacity(BUFFER_BYTES), losses: Cell::new(u64::MAX) };
            if !settings.credentials.is_empty() {
                connection.authenticate(settings, deadline).await?;
            }
            return Ok(connection);
        }
        Err(last.unwrap_or_else(|| Failure::new(Status::ServiceUnavailable, format!("{server} has no address"))))
    }

    /// The TLS version and the cipher suite, if the connection is encrypted.
    pub fn encryption(&self) -> Option<String> {
        self.stream.encryption()
    }

    /// Whether a request can be sent, given the node's number of losses. A server that was killed has also closed the
    /// connections of idle clients. A request on such a connection would fail even though the server is running again.
    #[inline]
    pub fn is_usable(&self, node: &Node, losses: u64) -> bool {
        self.losses.get() == losses || self.check(node, losses)
    }

    #[cold]
    fn check(&self, node: &Node, losses: u64) -> bool {
        self.losses.set(losses);
        let open = self.stream.is_open();
        if open {
            node.confirm_connection(losses);
        }
        open
    }

    async fn authenticate(&mut self, settings: &Settings, deadline: &mut Deadline) -> Result<(), Failure> {
        let mut arguments: Vec<&[u8]> = vec![b"AUTH"];
        arguments.extend(settings.credentials.iter().map(String::as_bytes));
        let mut request = Request::default();
        request.command(&arguments);
        let exchanged = self.exchange(&request, settings, deadline).await;
        exchanged.map_err(|failure| explain_close(failure, settings.tls.as_ref()))?;
        match self.replies().next()? {
            Some(Reply::Simple(b"OK")) => Ok(()),
            Some(Reply::Error(reply)) => Err(failure::parse_login_error(reply)),
            other => Err(failure::reply_failure(other)),
        }
    }

    /// Sends a request, and waits until all replies have arrived.
    #[inline]
    pub async fn exchange(
        &mut self,
        request: &Request,
        settings: &Settings,
        deadline: &mut Deadline,
    ) -> Result<(), Failure> {
        let server = &settings.server;
        match deadline.keep_deadline(self.round_trip(request)).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(failure))) => Err(failure),
            Ok(Err(error)) => {
                let broken = || format!("the connection to {server} was lost: {error}");
                let message = self.stream.explain(&error, &server.to_string()).unwrap_or_else(broken);
                Err(Failure::new(Status::ServiceUnavailable, message))
            }
            Err(late) => Err(Failure::new(Status::Timeout, format!("{late} from {server}"))),
        }
    }

    /// The replies of the last exchange, which are complete.
    #[inline]
    pub fn replies(&self) -> Replies<'_> {
        Replies::new(&self.received)
    }

    async fn round_trip(&mut self, request: &Request) -> io::Result<Result<(), Failure>> {
        self.stream.write_all(request.bytes()).await?;
        self.stream.flush().await?;
        self.received.clear();
        let (mut left, mut at) = (request.commands(), 0);
        while left > 0 {
            let free = self.received.capacity() - self.received.len();
            if free < BUFFER_BYTES / 4 {
                self.received.reserve(self.received.capacity());
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the server"));
            }
            let mut replies = Replies::from(&self.received, at);
            loop {
                match replies.skip() {
                    Ok(true) if left > 0 => left -= 1,
                    // There are more replies than commands, so they cannot be matched.
                    Ok(true) => return Ok(Err(failure::reply_failure(None))),
                    Ok(false) => break,
                    Err(malformed) => return Ok(Err(malformed.into())),
                }
            }
            at = replies.position();
        }
        if at < self.received.len() {
            return Ok(Err(failure::reply_failure(None)));
        }
        Ok(Ok(()))
    }
}
