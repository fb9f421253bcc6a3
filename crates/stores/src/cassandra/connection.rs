//! One connection: the concurrent requests of many clients, each on its own stream.
//!
//! A client appends its frame to what is to be sent and wakes the connection's task. That task has its turn after the
//! clients that are ready now, so their requests leave in one call of the system, and the answers that arrived together
//! are read in one.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use loadstone_load::Status;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::slot::Slot;
use super::wire::{HEADER, Header, frame};
use crate::error::Failure;

/// The protocol's: stream numbers are 15 bits.
const STREAMS_MAX: usize = 1 << 15;
/// Sweeps that an answer may take. A request is given up between 16 and 17 of them after it was sent.
pub const SWEEPS: u32 = 16;

struct Entry {
    /// `None` once no request waits any more. The stream is not used again before its answer has come.
    slot: Option<Rc<Slot>>,
    serial: u32,
    sent: u32,
}

#[derive(Default)]
struct Streams {
    entries: Vec<Option<Entry>>,
    free: Vec<u16>,
    orphans: usize,
}

struct Shared {
    address: SocketAddr,
    out: RefCell<Vec<u8>>,
    streams: RefCell<Streams>,
    task: RefCell<Option<Waker>>,
    /// Counts sweeps: the clock of requests, which costs nothing to read.
    now: Cell<u32>,
    heard: Cell<u32>,
    lost: RefCell<Option<String>>,
    closing: Cell<bool>,
}

/// A connection. Its task ends when it is dropped.
pub struct Connection(Rc<Shared>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.0.address).finish()
    }
}

impl Connection {
    /// Opens one, with a buffer of `room` bytes that grows as answers do. Must be called on an executor.
    pub async fn open(address: SocketAddr, room: usize) -> Result<Self, Failure> {
        let opened = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true).map(|()| stream)
        };
        let stream = opened.await.map_err(|error| {
            Failure::new(Status::ServiceUnavailable, format!("cannot connect to {address}: {error}"))
        })?;
        let shared = Rc::new(Shared {
            address,
            out: RefCell::default(),
            streams: RefCell::default(),
            task: RefCell::default(),
            now: Cell::default(),
            heard: Cell::default(),
            lost: RefCell::default(),
            closing: Cell::default(),
        });
        let sent = Vec::new();
        let mut task =
            Task { shared: Rc::clone(&shared), stream, inbox: vec![0; room], from: 0, to: 0, sending: sent, sent: 0 };
        tokio::task::spawn_local(async move {
            let message = poll_fn(|context| task.poll(context)).await;
            task.shared.lose(&message);
        });
        Ok(Self(shared))
    }

    /// Where it leads.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Whether it can be asked.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.lost.borrow().is_none()
    }

    /// Sends a request; the answer is in the slot then.
    #[inline]
    pub async fn ask(
        &self,
        slot: &Rc<Slot>,
        flags: u8,
        opcode: u8,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Failure> {
        self.0.send(slot, flags, opcode, body)?;
        poll_fn(|context| slot.poll(context)).await
    }

    /// Gives up what has waited too long. Called [`SWEEPS`] times in `timeout`, which is what a request may take.
    pub fn sweep(&self, timeout: Duration) {
        let shared = &*self.0;
        let now = shared.now.get().wrapping_add(1);
        shared.now.set(now);
        let mut streams = shared.streams.borrow_mut();
        let Streams { entries, orphans, .. } = &mut *streams;
        for entry in entries.iter_mut().flatten() {
            if now.wrapping_sub(entry.sent) > SWEEPS
                && let Some(slot) = entry.slot.take()
            {
                *orphans += 1;
                let message = format!("no answer from {} within {} ms", shared.address, timeout.as_millis());
                slot.fail(entry.serial, Status::Timeout, &message);
            }
        }
        if *orphans == 0 {
            shared.heard.set(now);
        }
        drop(streams);
        // The node is gone silently: the next operation tries a new connection.
        if now.wrapping_sub(shared.heard.get()) > 2 * SWEEPS {
            shared.lose(&format!("{} has been silent for too long", shared.address));
            shared.close();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Streams {
    /// A stream for a slot's next request.
    #[inline]
    fn take(&mut self, slot: &Rc<Slot>, now: u32) -> Option<u16> {
        let stream = match self.free.pop() {
            Some(stream) => stream,
            None if self.entries.len() < STREAMS_MAX => {
                self.entries.push(None);
                (self.entries.len() - 1) as u16
            }
            None => return None,
        };
        let entry = Entry { slot: Some(Rc::clone(slot)), serial: slot.begin(), sent: now };
        self.entries[usize::from(stream)] = Some(entry);
        Some(stream)
    }

    /// The request that is answered, whose stream is free from now on.
    #[inline]
    fn give_back(&mut self, stream: u16) -> Option<Entry> {
        let entry = self.entries.get_mut(usize::from(stream))?.take()?;
        self.free.push(stream);
        self.orphans -= usize::from(entry.slot.is_none());
        Some(entry)
    }
}

impl Shared {
    /// Queues a request to be sent; one that fails here is not sent.
    #[inline]
    fn send(&self, slot: &Rc<Slot>, flags: u8, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        if let Some(message) = &*self.lost.borrow() {
            return Err(Failure::new(Status::ServiceUnavailable, message).refusal());
        }
        let stream = self.streams.borrow_mut().take(slot, self.now.get()).ok_or_else(|| {
            let message = format!("{STREAMS_MAX} requests to {} have no answer", self.address);
            Failure::new(Status::ServiceUnavailable, message).refusal()
        })?;
        let mut out = self.out.borrow_mut();
        // The task is awake already if there was something to send.
        let first = out.is_empty();
        frame(&mut out, flags, stream, opcode, body);
        drop(out);
        if first {
            self.wake();
        }
        Ok(())
    }

    #[inline]
    fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    fn close(&self) {
        self.closing.set(true);
        self.wake();
    }

    /// Every request under way fails.
    #[cold]
    fn lose(&self, message: &str) {
        self.lost.borrow_mut().get_or_insert_with(|| message.to_owned());
        let entries = std::mem::take(&mut self.streams.borrow_mut().entries);
        for entry in entries.into_iter().flatten() {
            if let Some(slot) = entry.slot {
                slot.fail(entry.serial, Status::ServiceUnavailable, message);
            }
        }
    }
}

/// What reads and writes.
struct Task {
    shared: Rc<Shared>,
    stream: TcpStream,
    /// What was read and not yet understood is in `from..to`.
    inbox: Vec<u8>,
    from: usize,
    to: usize,
    sending: Vec<u8>,
    sent: usize,
}

impl Task {
    /// Ends with the reason.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<String> {
        let mut task = self.shared.task.borrow_mut();
        if !task.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *task = Some(context.waker().clone());
        }
        drop(task);
        if self.shared.closing.get() {
            return Poll::Ready("the connection is closed".to_owned());
        }
        if let Poll::Ready(message) = self.read(context) {
            return Poll::Ready(message);
        }
        match self.write(context) {
            Poll::Ready(Err(error)) => Poll::Ready(format!("{} broke off: {error}", self.shared.address)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }

    /// Reads the available bytes.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<String> {
        loop {
            let mut buffer = ReadBuf::new(&mut self.inbox[self.to..]);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            let len = buffer.filled().len();
            let address = self.shared.address;
            if let Err(error) = read {
                return Poll::Ready(format!("{address}: the connection was lost: {error}"));
            }
            if len == 0 {
                return Poll::Ready(format!("{address} closed the connection"));
            }
            self.to += len;
            self.shared.heard.set(self.shared.now.get());
            if let Err(message) = self.understand() {
                return Poll::Ready(format!("{address} cannot be understood: {message}"));
            }
        }
    }

    /// Hands out the whole frames in the inbox and makes room for the rest of one.
    fn understand(&mut self) -> Result<(), String> {
        let mut wanted = HEADER;
        while let Some(bytes) = self.inbox[self.from..self.to].first_chunk::<HEADER>() {
            let header = Header::read(*bytes)?;
            wanted = HEADER + header.len;
            if self.to - self.from < wanted {
                break;
            }
            let body = &self.inbox[self.from + HEADER..self.from + wanted];
            // Streams below 0 are events, which were not requested.
            if let Ok(stream) = u16::try_from(header.stream)
                && let Some(Entry { slot: Some(slot), serial, .. }) = self.shared.streams.borrow_mut().give_back(stream)
            {
                slot.answer(serial, header, body);
            }
            self.from += wanted;
            wanted = HEADER;
        }
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        if self.from + wanted > self.inbox.len() || self.to == self.inbox.len() {
            self.inbox.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            if wanted > self.inbox.len() {
                self.inbox.resize(wanted.next_power_of_two(), 0);
            }
        }
        Ok(())
    }

    /// Sends the queued bytes.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        loop {
            if self.sent == self.sending.len() {
                self.sending.clear();
                self.sent = 0;
                std::mem::swap(&mut self.sending, &mut self.shared.out.borrow_mut());
                if self.sending.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            self.sent += ready!(Pin::new(&mut self.stream).poll_write(context, &self.sending[self.sent..]))?;
        }
    }
}

#[cfg(test)]
mod tests;
