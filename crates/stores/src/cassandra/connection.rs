//! A connection that carries the concurrent requests of many clients, each on a separate stream.
//!
//! A client appends its frame to the send queue and wakes the connection's task. The task runs after all clients that
//! are ready at that moment, so one system call sends their requests, and one system call reads all answers that
//! arrived together.

mod inbox;
mod task;

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use loadstone_load::Status;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::compression::{Algorithm, Compressor};
use super::slot::Slot;
use super::wire::{Body, COMPRESSED, HEADER, Head, Version, frame, opcode};
use crate::error::Failure;
use crate::tls::{Stream, Tls};
use task::Task;

/// The protocol's limit, because stream numbers have 15 bits.
const STREAMS_MAX: usize = 1 << 15;
/// Number of sweeps within which an answer must arrive. A request is abandoned 16 to 17 sweeps after it was sent.
pub const SWEEPS: u32 = 16;

struct Entry {
    /// `None` if no request is waiting any more. The stream is not reused until its answer has arrived.
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
    version: Version,
    encryption: Option<String>,
    /// Whether frames are sent in segments, as in protocol 5 after the answer to STARTUP.
    segmented: Cell<bool>,
    /// Compresses and decompresses bodies or the payloads of segments. It is boxed, because it takes 2 KiB and most
    /// connections have none.
    compressor: RefCell<Option<Box<Compressor>>>,
    out: RefCell<Vec<u8>>,
    streams: RefCell<Streams>,
    task: RefCell<Option<Waker>>,
    /// Number of sweeps so far. It serves as the clock for requests, because reading it costs nothing.
    now: Cell<u32>,
    heard: Cell<u32>,
    /// The sweep in which bytes last arrived.
    read: Cell<u32>,
    health: Cell<Health>,
    /// The request that probes a silent server.
    probe: Rc<Slot>,
    /// Receives messages from the server that do not answer a request.
    events: RefCell<Option<EventSink>>,
    /// Is called whenever the connection becomes usable or unusable.
    usage: OnceCell<UsageSink>,
    lost: RefCell<Option<String>>,
    loss: Notify,
    closing: Cell<bool>,
}

/// Whether a server responds to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Health {
    #[default]
    Responsive,
    /// A request was not answered in time, and nothing else arrived in that time. The server is probed.
    Silent,
    /// The server has answered the probe. It may still be unable to execute requests, so one request is sent as a test.
    Recovering,
    /// The test request is in flight.
    Tested,
}

/// A function that receives the body of an event.
type EventSink = Box<dyn Fn(Body<'_>)>;
/// A function that receives the address of the server, and whether the connection is usable: open and responsive.
type UsageSink = Box<dyn Fn(SocketAddr, bool)>;

/// A connection. Its task ends when the connection is dropped.
pub struct Connection(Rc<Shared>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.0.address).finish()
    }
}

impl Connection {
    /// Opens a connection that reads with buffers of `room` bytes, which grow with the answers. Must be called on an
    /// executor.
    pub async fn open(address: SocketAddr, version: Version, room: usize, tls: Option<&Tls>) -> Result<Self, Failure> {
        Self::start_on(TcpStream::connect(address).await, address, version, room, tls).await
    }

    /// Like [`open`](Self::open), but on an existing TCP connection.
    pub async fn start_on(
        stream: io::Result<TcpStream>,
        address: SocketAddr,
        version: Version,
        room: usize,
        tls: Option<&Tls>,
    ) -> Result<Self, Failure> {
        let stream = stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
        let stream = stream.map_err(|error| {
            Failure::new(Status::ServiceUnavailable, format!("cannot connect to {address}: {error}"))
        })?;
        let stream = Stream::new(stream, tls, &address.ip().to_string(), &address.to_string()).await?;
        let shared = Rc::new(Shared {
            address,
            version,
            encryption: stream.encryption(),
            segmented: Cell::default(),
            compressor: RefCell::default(),
            out: RefCell::default(),
            streams: RefCell::default(),
            task: RefCell::default(),
            now: Cell::default(),
            heard: Cell::default(),
            read: Cell::default(),
            health: Cell::default(),
            probe: Rc::default(),
            events: RefCell::default(),
            usage: OnceCell::new(),
            lost: RefCell::default(),
            loss: Notify::new(),
            closing: Cell::default(),
        });
        let mut task = Task::new(Rc::clone(&shared), stream, room);
        tokio::task::spawn_local(async move {
            let message = poll_fn(|context| task.poll(context)).await;
            task.shared.lose(&message);
        });
        Ok(Self(shared))
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The protocol version.
    #[inline]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The TLS version and the cipher suite, if the connection is encrypted.
    pub fn encryption(&self) -> Option<&str> {
        self.0.encryption.as_deref()
    }

    /// Sets the compression. Called before STARTUP is sent, because the answer to STARTUP may already be compressed;
    /// STARTUP itself never is.
    pub fn set_compression(&self, compression: Option<Algorithm>) {
        *self.0.compressor.borrow_mut() = compression.map(|algorithm| Box::new(Compressor::new(algorithm)));
    }

    /// Called when the server has accepted STARTUP: from now on, protocol 5 sends frames in segments.
    pub fn start(&self) {
        self.0.segmented.set(self.0.version >= Version::V5);
    }

    /// Whether the connection can be used.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.lost.borrow().is_none()
    }

    /// Whether a request may be sent. A server that has been silent for a whole timeout receives no requests until it
    /// answers a probe. It then receives a single request, and the answer to that request ends the silence.
    #[inline]
    pub fn admit(&self) -> bool {
        match self.0.health.get() {
            Health::Responsive => true,
            Health::Silent | Health::Tested => false,
            Health::Recovering => {
                self.0.set_health(Health::Tested);
                true
            }
        }
    }

    /// Sets the function that receives the server's events.
    pub fn listen(&self, events: EventSink) {
        *self.0.events.borrow_mut() = Some(events);
    }

    /// Sets the function that is called whenever the connection becomes usable or unusable, and immediately if the
    /// connection is usable now. The function can be set only once.
    pub fn track(&self, usage: UsageSink) {
        let _ = self.0.usage.set(usage);
        if self.is_open() && self.0.health.get() == Health::Responsive {
            self.0.report_usage(true);
        }
    }

    /// Waits until the connection is lost.
    pub async fn wait_for_loss(&self) {
        // The notification is requested before the check, so that a loss after the check is not missed.
        let lost = self.0.loss.notified();
        if self.is_open() {
            lost.await;
        }
    }

    /// Sends a request and waits for the answer, which is stored in the slot.
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

    /// Abandons requests that have waited too long. Called [`SWEEPS`] times per `timeout`, the time limit of a request.
    pub fn sweep(&self, timeout: Duration) {
        let shared = &*self.0;
        let now = shared.now.get().wrapping_add(1);
        shared.now.set(now);
        let mut streams = shared.streams.borrow_mut();
        let Streams { entries, orphans, .. } = &mut *streams;
        let (mut late, mut waiting) = (false, false);
        for entry in entries.iter_mut().flatten() {
            waiting |= entry.slot.as_ref().is_some_and(|slot| !Rc::ptr_eq(slot, &shared.probe));
            if now.wrapping_sub(entry.sent) > SWEEPS
                && let Some(slot) = entry.slot.take()
            {
                *orphans += 1;
                late = true;
                let message = format!("no answer from {} within {} ms", shared.address, timeout.as_millis());
                slot.fail(entry.serial, Status::Timeout, &message);
            }
        }
        if *orphans == 0 {
            shared.heard.set(now);
        }
        drop(streams);
        match shared.health.get() {
            Health::Tested if late => shared.set_health(Health::Silent),
            // The test request was admitted but not sent.
            Health::Tested if !waiting => shared.set_health(Health::Recovering),
            _ if late && now.wrapping_sub(shared.read.get()) >= SWEEPS => shared.set_health(Health::Silent),
            _ => {}
        }
        if shared.health.get() == Health::Silent && !shared.probe.is_waiting() {
            // If the probe cannot be sent because too many requests are in flight, it is not needed.
            let _ = shared.send(&shared.probe, 0, opcode::OPTIONS, |_| ());
        }
        // The node has disappeared silently, so the next operation tries a new connection.
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
    /// Reserves a stream for the next request of a slot.
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

    /// Returns the request that was answered. Its stream is free from now on.
    #[inline]
    fn give_back(&mut self, stream: u16) -> Option<Entry> {
        let entry = self.entries.get_mut(usize::from(stream))?.take()?;
        self.free.push(stream);
        self.orphans -= usize::from(entry.slot.is_none());
        Some(entry)
    }
}

impl Shared {
    /// Queues a request. A request that fails here is not sent.
    #[inline]
    fn send(&self, slot: &Rc<Slot>, flags: u8, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        if let Some(message) = &*self.lost.borrow() {
            return Err(Failure::new(Status::ServiceUnavailable, message).refusal());
        }
        let stream = self.streams.borrow_mut().take(slot, self.now.get()).ok_or_else(|| {
            let message = format!("{STREAMS_MAX} requests to {} are waiting for an answer", self.address);
            Failure::new(Status::ServiceUnavailable, message).refusal()
        })?;
        let mut out = self.out.borrow_mut();
        // The task is already awake if other requests are queued.
        let first = out.is_empty();
        let start = out.len();
        frame(&mut out, self.version, Head { flags, stream, opcode }, body);
        let is_whole = self.segmented.get() || opcode == super::wire::opcode::STARTUP;
        if let (false, Some(compressor)) = (is_whole, &mut *self.compressor.borrow_mut()) {
            compress_frame(compressor, &mut out, start);
        }
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

    #[cold]
    fn set_health(&self, health: Health) {
        let was = self.health.replace(health);
        if (was == Health::Responsive) != (health == Health::Responsive) {
            self.report_usage(health == Health::Responsive);
        }
    }

    fn report_usage(&self, is_usable: bool) {
        if let Some(usage) = self.usage.get() {
            usage(self.address, is_usable);
        }
    }

    /// Marks the connection as lost and fails every request in flight.
    #[cold]
    fn lose(&self, message: &str) {
        // A connection that the client itself closes does not count as unusable.
        let is_usable = self.lost.borrow().is_none() && self.health.get() == Health::Responsive;
        if is_usable && !self.closing.get() {
            self.report_usage(false);
        }
        self.lost.borrow_mut().get_or_insert_with(|| message.to_owned());
        self.loss.notify_waiters();
        let entries = std::mem::take(&mut self.streams.borrow_mut().entries);
        for entry in entries.into_iter().flatten() {
            if let Some(slot) = entry.slot {
                slot.fail(entry.serial, Status::ServiceUnavailable, message);
            }
        }
    }
}

/// Compresses the body of the frame that begins at `start`, if compression makes the body shorter.
fn compress_frame(compressor: &mut Compressor, out: &mut Vec<u8>, start: usize) {
    if let Some(body) = compressor.compress_body(&out[start + HEADER..]) {
        out.truncate(start + HEADER);
        out.extend_from_slice(body);
        out[start + 1] |= COMPRESSED;
        out[start + HEADER - 4..start + HEADER].copy_from_slice(&(body.len() as u32).to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
