//! A connection that is ready for operations: it has logged in, and its statements are prepared.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use futures::{StreamExt, stream};
use loadstone_load::Status;

use super::answer::{self, Prepared, protocol_failure};
use super::connection::Connection;
use super::consistency::ONE;
use super::settings::Settings;
use super::sharding::{Extensions, RATE_LIMIT, Sharding};
use super::slot::Slot;
use super::texts::{NodeStatements, Texts};
use super::wire::{Body, Short, Version, opcode, put_bytes, put_flags, put_string};
use crate::error::Failure;
use crate::tls::explain_close;

/// Buffer sizes of a shared connection and of a client's own connection, in bytes.
const ROOM_SHARED: usize = 128 << 10;
const ROOM_OWN: usize = 4 << 10;

/// Maximum number of PREPARE requests in flight on a connection. A node executes up to 128 requests at the same time
/// (`native_transport_max_threads`).
const PREPARES_MAX: usize = 64;

/// A connection that has logged in.
#[derive(Debug)]
pub struct Link {
    connection: Connection,
    extensions: Extensions,
    statements: Rc<NodeStatements>,
    patience: Duration,
}

/// The way in which a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Connects to a server, and does not request its extensions.
    Plain,
    /// Connects to a server, and requests its extensions.
    Extended,
    /// Connects to a shard, through the node's shard-aware port.
    Shard { sharding: Sharding, shard: u16, port: u16 },
}

/// The reason why a login failed.
enum LoginError {
    /// The server does not support the protocol version.
    Version(Failure),
    Other(Failure),
}

impl LoginError {
    fn new(address: SocketAddr, refusal: answer::Refusal) -> Self {
        let of_version = refusal.code == answer::PROTOCOL_ERROR;
        let mut failure = refusal.failure();
        failure.message = format!("{address} refuses the connection: {}", failure.message);
        if of_version { Self::Version(failure) } else { Self::Other(failure) }
    }
}

impl From<Failure> for LoginError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl Link {
    /// Connects and logs in with the latest protocol version that the server supports.
    pub async fn negotiate(address: SocketAddr, settings: &Settings) -> Result<Self, Failure> {
        let mut version = settings.protocol.unwrap_or(Version::V5);
        loop {
            match Self::attempt(address, version, settings, Entry::Extended).await {
                Ok(link) => return Ok(link),
                Err(LoginError::Other(failure)) => return Err(failure),
                Err(LoginError::Version(failure)) => match version.previous() {
                    Some(previous) if settings.protocol.is_none() => version = previous,
                    _ => return Err(failure),
                },
            }
        }
    }

    /// Connects and logs in with this protocol version.
    pub async fn open(
        address: SocketAddr,
        version: Version,
        settings: &Settings,
        entry: Entry,
    ) -> Result<Self, Failure> {
        let (LoginError::Version(failure) | LoginError::Other(failure)) =
            match Self::attempt(address, version, settings, entry).await {
                Ok(link) => return Ok(link),
                Err(error) => error,
            };
        Err(failure)
    }

    async fn attempt(
        address: SocketAddr,
        version: Version,
        settings: &Settings,
        entry: Entry,
    ) -> Result<Self, LoginError> {
        let login = Self::log_in(address, version, settings, entry);
        let opened = tokio::time::timeout(settings.connect_timeout, login).await;
        opened.unwrap_or_else(|_| {
            let ms = settings.connect_timeout.as_millis();
            Err(Failure::new(Status::Timeout, format!("{address} did not open a connection within {ms} ms")).into())
        })
    }

    async fn log_in(
        address: SocketAddr,
        version: Version,
        settings: &Settings,
        entry: Entry,
    ) -> Result<Self, LoginError> {
        let room = if settings.per_client { ROOM_OWN } else { ROOM_SHARED };
        let tls = settings.tls.as_ref();
        let connection = match entry {
            Entry::Shard { sharding, shard, port } => {
                let address = SocketAddr::new(address.ip(), port);
                Connection::start_on(sharding.connect(shard, address).await, address, version, room, tls).await?
            }
            Entry::Plain | Entry::Extended => Connection::open(address, version, room, tls).await?,
        };
        let slot = Rc::new(Slot::default());
        let extensions = match entry {
            Entry::Plain => Extensions::default(),
            Entry::Extended | Entry::Shard { .. } => read_extensions(&connection, &slot, settings).await?,
        };
        let mut options = vec![("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "loadstone")];
        options.extend(extensions.rate_limit.map(|_| (RATE_LIMIT, "")));
        options.extend(settings.compression.map(|algorithm| ("COMPRESSION", algorithm.name())));
        let startup = |out: &mut Vec<u8>| {
            out.extend_from_slice(&(options.len() as u16).to_be_bytes());
            for (name, value) in &options {
                put_string(out, name);
                put_string(out, value);
            }
        };
        connection.set_compression(settings.compression);
        let reply = connection.ask(&slot, 0, opcode::STARTUP, startup).await;
        reply.map_err(|failure| explain_close(failure, settings.tls.as_ref()))?;
        if matches!(slot.opcode(), opcode::READY | opcode::AUTHENTICATE) {
            connection.start();
        }
        if slot.opcode() == opcode::AUTHENTICATE {
            let Some((user, password)) = &settings.login else {
                let message = format!("{address} requires a user name and a password");
                return Err(Failure::new(Status::Forbidden, message).into());
            };
            // SASL PLAIN (RFC 4616) without an authorization identity.
            let token = format!("\0{user}\0{password}");
            connection.ask(&slot, 0, opcode::AUTH_RESPONSE, |out| put_bytes(out, token.as_bytes())).await?;
        }
        match slot.opcode() {
            opcode::READY | opcode::AUTH_SUCCESS => {
                Ok(Self { connection, extensions, statements: Rc::default(), patience: settings.request_timeout })
            }
            opcode::AUTH_CHALLENGE => {
                let message = format!("{address} requires more than a user name and a password");
                Err(Failure::new(Status::Forbidden, message).into())
            }
            other => {
                let bytes = slot.bytes();
                let refusal = answer::refusal(other, slot.body_of(&bytes).unwrap_or(Body(&[])), None);
                Err(LoginError::new(address, refusal))
            }
        }
    }

    /// The connection.
    #[inline]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The extensions that the server stated.
    #[inline]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Uses the statements that other connections to the node have prepared.
    pub fn share_statements(&mut self, statements: Rc<NodeStatements>) {
        self.statements = statements;
    }

    /// Returns a statement as the server prepared it. The text is sent only once.
    #[inline]
    pub async fn ensure_prepared(
        &self,
        number: usize,
        texts: &Texts,
        slot: &Rc<Slot>,
    ) -> Result<Rc<Prepared>, Failure> {
        match self.statements.find(number) {
            Some(prepared) => Ok(prepared),
            None => self.prepare(number, &texts.text(number), slot).await,
        }
    }

    /// One more than the highest number of a prepared statement; 0 if there is none.
    pub fn count_prepared(&self) -> usize {
        self.statements.count()
    }

    /// Prepares the registered statements, so that operations need not prepare them: all of them if the node has been
    /// unreachable since they were prepared, otherwise only new ones. A statement that the server refuses, or that is
    /// not prepared within the time limit of a request, is left to the first operation that uses it, which reports the
    /// failure.
    pub async fn prepare_all(&self, texts: &Texts, generation: u64) {
        let prepare = async {
            let _turn = self.statements.preparing.lock().await;
            let again = self.statements.generation.replace(generation) != generation;
            let required = (0..texts.len()).filter(|number| again || self.statements.find(*number).is_none());
            let request =
                async |number| drop(self.request_statement(number, &texts.text(number), &Rc::default()).await);
            stream::iter(required).for_each_concurrent(PREPARES_MAX, request).await;
        };
        let _ = tokio::time::timeout(self.patience, prepare).await;
    }

    /// Prepares a statement once for all clients that are waiting for it.
    #[cold]
    async fn prepare(&self, number: usize, text: &str, slot: &Rc<Slot>) -> Result<Rc<Prepared>, Failure> {
        let late = |_| Failure::new(Status::Timeout, format!("{} did not answer PREPARE", self.connection.address()));
        let _turn = tokio::time::timeout(self.patience, self.statements.preparing.lock()).await.map_err(late)?;
        match self.statements.find(number) {
            Some(prepared) => Ok(prepared),
            None => self.request_statement(number, text, slot).await,
        }
    }

    async fn request_statement(&self, number: usize, text: &str, slot: &Rc<Slot>) -> Result<Rc<Prepared>, Failure> {
        let version = self.connection.version();
        let body = |out: &mut Vec<u8>| {
            put_bytes(out, text.as_bytes());
            if version >= Version::V5 {
                out.extend_from_slice(&[0; 4]);
            }
        };
        self.connection.ask(slot, 0, opcode::PREPARE, body).await?;
        let bytes = slot.bytes();
        let body = slot.body_of(&bytes).map_err(protocol_failure)?;
        answer::check(slot.opcode(), body, self.extensions.rate_limit).map_err(answer::Refusal::failure)?;
        let prepared = Rc::new(answer::parse_prepared(body, version).map_err(protocol_failure)?);
        self.statements.insert(number, &prepared);
        Ok(prepared)
    }

    /// Executes a statement that is needed only once, and returns its rows with unparsed values.
    pub async fn query(&self, text: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, answer::Refusal> {
        let slot = Rc::new(Slot::default());
        let request = |out: &mut Vec<u8>| {
            put_bytes(out, text.as_bytes());
            out.extend_from_slice(&ONE.code.to_be_bytes());
            put_flags(out, self.connection.version(), 0);
        };
        let reply = self.connection.ask(&slot, 0, opcode::QUERY, request);
        let refuse = |message: String| answer::Refusal { code: -1, message };
        let late = |_| refuse(format!("{} did not answer in time", self.connection.address()));
        tokio::time::timeout(self.patience, reply).await.map_err(late)?.map_err(|failure| refuse(failure.message))?;
        let bytes = slot.bytes();
        let short = |_: Short| refuse("a truncated answer".to_owned());
        let body = slot.body_of(&bytes).map_err(short)?;
        answer::check(slot.opcode(), body, self.extensions.rate_limit)?;
        let Some(mut table) = answer::rows(body).map_err(short)? else { return Ok(Vec::new()) };
        if table.more.is_some() {
            return Err(refuse("the answer is split into pages, which were not requested".to_owned()));
        }
        let mut rows = Vec::new();
        for _ in 0..table.rows {
            let values: Result<Vec<_>, Short> =
                (0..table.width).map(|_| table.body.bytes().map(|value| value.map(<[u8]>::to_vec))).collect();
            rows.push(values.map_err(short)?);
        }
        Ok(rows)
    }
}

/// Asks the server for its extensions. A server that refuses the request has none.
async fn read_extensions(
    connection: &Connection,
    slot: &Rc<Slot>,
    settings: &Settings,
) -> Result<Extensions, LoginError> {
    let reply = connection.ask(slot, 0, opcode::OPTIONS, |_| ()).await;
    reply.map_err(|failure| explain_close(failure, settings.tls.as_ref()))?;
    let bytes = slot.bytes();
    let body = slot.body_of(&bytes).unwrap_or(Body(&[]));
    if slot.opcode() == opcode::SUPPORTED {
        return Ok(Extensions::read(body).unwrap_or_default());
    }
    match LoginError::new(connection.address(), answer::refusal(slot.opcode(), body, None)) {
        LoginError::Version(failure) => Err(LoginError::Version(failure)),
        LoginError::Other(_) => Ok(Extensions::default()),
    }
}
