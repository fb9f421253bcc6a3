//! A connection as operations use it: logged in, with the statements that it has prepared.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use loadstone_load::Status;

use super::answer::{self, Prepared, malformed};
use super::connection::Connection;
use super::settings::Settings;
use super::slot::Slot;
use super::wire::{Body, Short, opcode, put_bytes, put_string};
use crate::error::Failure;

/// Bytes of a shared connection's buffer, and of a client's own.
const ROOM_SHARED: usize = 128 << 10;
const ROOM_OWN: usize = 4 << 10;

/// A connection that has logged in.
#[derive(Debug)]
pub struct Link {
    connection: Connection,
    prepared: RefCell<Vec<Option<Rc<Prepared>>>>,
    preparing: tokio::sync::Mutex<()>,
    patience: Duration,
}

impl Link {
    /// Connects and logs in.
    pub async fn open(address: SocketAddr, settings: &Settings) -> Result<Self, Failure> {
        let opened = tokio::time::timeout(settings.connect_timeout, Self::log_in(address, settings)).await;
        opened.unwrap_or_else(|_| {
            let ms = settings.connect_timeout.as_millis();
            Err(Failure::new(Status::Timeout, format!("{address} did not open a connection within {ms} ms")))
        })
    }

    async fn log_in(address: SocketAddr, settings: &Settings) -> Result<Self, Failure> {
        let room = if settings.per_client { ROOM_OWN } else { ROOM_SHARED };
        let connection = Connection::open(address, room).await?;
        let slot = Rc::new(Slot::default());
        let options = [("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "loadstone")];
        let startup = |out: &mut Vec<u8>| {
            out.extend_from_slice(&(options.len() as u16).to_be_bytes());
            for (name, value) in options {
                put_string(out, name);
                put_string(out, value);
            }
        };
        connection.ask(&slot, 0, opcode::STARTUP, startup).await?;
        if slot.opcode() == opcode::AUTHENTICATE {
            let Some((user, password)) = &settings.login else {
                return Err(Failure::new(Status::Forbidden, format!("{address} wants a user name and a password")));
            };
            // SASL PLAIN (RFC 4616) without an authorization identity.
            let token = format!("\0{user}\0{password}");
            connection.ask(&slot, 0, opcode::AUTH_RESPONSE, |out| put_bytes(out, token.as_bytes())).await?;
        }
        match slot.opcode() {
            opcode::READY | opcode::AUTH_SUCCESS => Ok(Self {
                connection,
                prepared: RefCell::default(),
                preparing: tokio::sync::Mutex::default(),
                patience: settings.request_timeout,
            }),
            opcode::AUTH_CHALLENGE => {
                Err(Failure::new(Status::Forbidden, format!("{address} wants more than a user name and a password")))
            }
            other => {
                let bytes = slot.bytes();
                let mut failure = answer::refusal(other, slot.body_of(&bytes).unwrap_or(Body(&[]))).failure();
                failure.message = format!("{address} refuses the connection: {}", failure.message);
                Err(failure)
            }
        }
    }

    /// The connection.
    #[inline]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A statement's name on this connection.
    #[inline]
    pub async fn prepared(
        &self,
        number: usize,
        text: impl FnOnce() -> String,
        slot: &Rc<Slot>,
    ) -> Result<Rc<Prepared>, Failure> {
        match self.known(number) {
            Some(prepared) => Ok(prepared),
            None => self.prepare(number, text(), slot).await,
        }
    }

    #[inline]
    fn known(&self, number: usize) -> Option<Rc<Prepared>> {
        self.prepared.borrow().get(number).cloned().flatten().filter(|prepared| !prepared.stale.get())
    }

    /// Prepares a statement, once for all clients that wait for it.
    #[cold]
    async fn prepare(&self, number: usize, text: String, slot: &Rc<Slot>) -> Result<Rc<Prepared>, Failure> {
        let late = |_| Failure::new(Status::Timeout, format!("{} prepares no statement", self.connection.address()));
        let _turn = tokio::time::timeout(self.patience, self.preparing.lock()).await.map_err(late)?;
        if let Some(prepared) = self.known(number) {
            return Ok(prepared);
        }
        self.connection.ask(slot, 0, opcode::PREPARE, |out| put_bytes(out, text.as_bytes())).await?;
        let bytes = slot.bytes();
        let body = slot.body_of(&bytes).map_err(malformed)?;
        answer::check(slot.opcode(), body).map_err(answer::Refusal::failure)?;
        let prepared = Rc::new(answer::prepared(body).map_err(malformed)?);
        let mut all = self.prepared.borrow_mut();
        let len = all.len().max(number + 1);
        all.resize(len, None);
        all[number] = Some(Rc::clone(&prepared));
        Ok(prepared)
    }

    /// The rows of a statement that is asked once, each value as it comes.
    pub async fn query(&self, text: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, answer::Refusal> {
        const ONE: u16 = 1;
        let slot = Rc::new(Slot::default());
        let request = |out: &mut Vec<u8>| {
            put_bytes(out, text.as_bytes());
            out.extend_from_slice(&ONE.to_be_bytes());
            out.push(0);
        };
        let asked = self.connection.ask(&slot, 0, opcode::QUERY, request);
        let words = |message: String| answer::Refusal { code: -1, message };
        let late = |_| words(format!("{} does not answer", self.connection.address()));
        tokio::time::timeout(self.patience, asked).await.map_err(late)?.map_err(|failure| words(failure.message))?;
        let bytes = slot.bytes();
        let short = |_: Short| words("an answer that ends early".to_owned());
        let body = slot.body_of(&bytes).map_err(short)?;
        answer::check(slot.opcode(), body)?;
        let Some(mut table) = answer::rows(body).map_err(short)? else { return Ok(Vec::new()) };
        if table.more.is_some() {
            return Err(words("it answers in pages, which were not requested".to_owned()));
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
