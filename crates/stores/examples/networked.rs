//! A complete networked store: memcached, through its text protocol.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::about::{About, setting};
use loadstone_stores::{Drive, Durability, EngineError, Guarantee, Options, Rows, Session, Store};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

/// Time limit of each wait.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after an operation that could not reach the server: a closed loop must not spin.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// A memcached server.
#[derive(Debug)]
pub struct Memcached {
    address: SocketAddr,
}

/// One client's connection to the server, with reused buffers.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: Option<BufStream<TcpStream>>,
    line: Vec<u8>,
    value: Vec<u8>,
    merged: Vec<u8>,
    error: Option<String>,
    rests: bool,
}

impl Store for Memcached {
    type Session = Connection;
    const ABOUT: About = About {
        name: "memcached",
        line: "memcached (memcached.address)",
        networked: true,
        properties: &[setting("memcached.address")],
    };
    // The clients share a few single-threaded executors, with thousands of clients each.
    const DRIVE: Drive = Drive::Task;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let text = options.get("memcached.address").unwrap_or("127.0.0.1:11211");
        let address = text.parse().map_err(|_| {
            EngineError::usage(format!("memcached.address must be an address and a port, got \"{text}\""))
                .hint("write 127.0.0.1:11211")
        })?;
        Ok(Self { address })
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::new(Durability::None, "kept in the server's memory").fact("address", self.address.to_string())
    }

    // This is called on the executor that will use the session. The session connects only when `connect` is called.
    fn session(&self) -> Result<Self::Session, EngineError> {
        let (line, value, merged) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Connection { address: self.address, stream: None, line, value, merged, error: None, rests: false })
    }
}

impl Connection {
    /// Returns the connection; a broken connection is replaced.
    async fn stream(&mut self) -> Result<&mut BufStream<TcpStream>, Error> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(BufStream::new(stream));
        }
        self.stream.as_mut().ok_or(ErrorKind::NotConnected.into())
    }

    /// Sends a request and reads the first line of the response.
    async fn ask(&mut self, request: &[&[u8]]) -> Result<(), Error> {
        let stream = self.stream().await?;
        for part in request {
            stream.write_all(part).await?;
        }
        stream.flush().await?;
        self.next_line().await
    }

    async fn next_line(&mut self) -> Result<(), Error> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        self.stream().await?.read_until(b'\n', &mut line).await?;
        self.line = line;
        if self.line.ends_with(b"\r\n") { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    async fn get(&mut self, key: &[u8]) -> Result<Status, Error> {
        self.ask(&[b"get ", key, b"\r\n"]).await?;
        if self.line == b"END\r\n" {
            return Ok(Status::NotFound);
        }
        // The line is VALUE <key> <flags> <bytes>.
        let text = String::from_utf8_lossy(&self.line);
        let len = text.trim_end().rsplit(' ').next().and_then(|len| len.parse::<usize>().ok());
        let Some(len) = len.filter(|_| text.starts_with("VALUE ")) else {
            return Ok(self.fail_unexpected());
        };
        let mut value = std::mem::take(&mut self.value);
        value.resize(len + 2, 0);
        self.stream().await?.read_exact(&mut value).await?;
        value.truncate(len);
        self.value = value;
        self.next_line().await?;
        Ok(Status::Ok)
    }

    async fn set(&mut self, key: &[u8], value: &[u8]) -> Result<Status, Error> {
        let len = value.len().to_string();
        self.ask(&[b"set ", key, b" 0 0 ", len.as_bytes(), b"\r\n", value, b"\r\n"]).await?;
        Ok(if self.line == b"STORED\r\n" { Status::Ok } else { self.fail_unexpected() })
    }

    async fn merge(&mut self, key: &[u8], row: &Row) -> Result<Status, Error> {
        let status = self.get(key).await?;
        if status != Status::Ok {
            return Ok(status);
        }
        let mut merged = std::mem::take(&mut self.merged);
        let set = match row.merge_into(&self.value, &mut merged) {
            Ok(()) => self.set(key, &merged).await,
            Err(_) => Ok(Status::UnexpectedState),
        };
        self.merged = merged;
        set
    }

    fn fail_unexpected(&mut self) -> Status {
        self.error = Some(format!("memcached answers: {}", String::from_utf8_lossy(&self.line).trim_end()));
        Status::Error
    }

    /// The status of an exchange. The reason for a failure is stored for `last_error` and never printed. A failed
    /// connection is dropped, because a late response must not be read as the response to the next request.
    fn done(&mut self, result: Result<Result<Status, Error>, Elapsed>) -> Status {
        let (status, message) = match result {
            Ok(Ok(status)) => return status,
            Ok(Err(error)) => {
                self.rests = true;
                (Status::ServiceUnavailable, error.to_string())
            }
            Err(late) => (Status::Timeout, late.to_string()),
        };
        self.stream = None;
        self.error = Some(message);
        status
    }
}

impl loadstone_stores::Connection for Connection {
    async fn connect(&mut self) -> Result<(), EngineError> {
        let connected = timeout(TIMEOUT, self.stream()).await;
        connected.map_err(Error::from).and_then(|result| result.map(|_| ())).map_err(|error| {
            EngineError::failed(format!("cannot reach memcached at {}: {error}", self.address))
                .hint("start it, or set memcached.address")
        })
    }

    /// Prevents a client from querying a dead server a million times a second. This wait is not part of any latency.
    async fn pause(&mut self) {
        if std::mem::take(&mut self.rests) {
            sleep(FAILURE_PAUSE).await;
        }
    }

    fn last_error(&mut self) -> Option<String> {
        self.error.take()
    }
}

impl Session for Connection {
    async fn read(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> Status {
        row.clear_fields();
        let got = timeout(TIMEOUT, self.get(key)).await;
        let status = self.done(got);
        if status == Status::Ok && row.decode_fields(&self.value, projection).is_err() {
            return Status::UnexpectedState;
        }
        status
    }

    async fn scan(&mut self, _key: &[u8], _count: usize, _projection: Projection<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        Status::NotImplemented
    }

    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        let set = timeout(TIMEOUT, self.set(key, row.bytes())).await;
        self.done(set)
    }

    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        let merged = timeout(TIMEOUT, self.merge(key, row)).await;
        self.done(merged)
    }

    async fn delete(&mut self, key: &[u8]) -> Status {
        // The reply is DELETED or NOT_FOUND; in both cases the record no longer exists.
        let answered = timeout(TIMEOUT, self.ask(&[b"delete ", key, b"\r\n"])).await;
        self.done(answered.map(|reply| reply.map(|()| Status::Ok)))
    }
}

fn main() -> Result<(), EngineError> {
    Memcached::open(&Options::default())?.close()
}
