//! The task of a connection, which sends the queued requests and passes on the answers.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::inbox::{FreeBuffers, Inbox};
use super::{Entry, Health, Shared};
use crate::cassandra::segments::{self, Segment};
use crate::cassandra::wire::{Body, COMPRESSED, HEADER, Header, opcode};
use crate::tls::Stream;

thread_local! {
    static FREE: FreeBuffers = const { FreeBuffers::new() };
}

/// The task that reads from and writes to a connection.
pub struct Task {
    pub shared: Rc<Shared>,
    stream: Stream,
    /// Initial size of the read buffer, in bytes. The buffer grows with the answers.
    room: usize,
    inbox: Inbox,
    /// The frames that were unwrapped from segments.
    frames: Inbox,
    sending: Vec<u8>,
    sent: usize,
}

impl Task {
    /// Creates the task.
    pub fn new(shared: Rc<Shared>, stream: Stream, room: usize) -> Self {
        let (inbox, frames) = (Inbox::default(), Inbox::default());
        Self { shared, stream, room, inbox, frames, sending: Vec::new(), sent: 0 }
    }

    /// Completes when the connection is lost, with the reason.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<String> {
        let mut task = self.shared.task.borrow_mut();
        if !task.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *task = Some(context.waker().clone());
        }
        drop(task);
        if self.shared.closing.get() {
            return Poll::Ready("the connection is closed".to_owned());
        }
        self.inbox.take_buffer(self.room);
        let read = self.read(context);
        self.inbox.give_back_empty();
        self.frames.give_back_empty();
        if let Poll::Ready(message) = read {
            return Poll::Ready(message);
        }
        match self.write(context) {
            Poll::Ready(Err(error)) => Poll::Ready(format!("{}: connection lost: {error}", self.shared.address)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }

    /// Reads the available bytes.
    fn read(&mut self, context: &mut Context<'_>) -> Poll<String> {
        loop {
            let Inbox { bytes, to, .. } = &mut self.inbox;
            let mut buffer = ReadBuf::new(&mut bytes[*to..]);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            let len = buffer.filled().len();
            let address = self.shared.address;
            if let Err(error) = read {
                let lost = || format!("{address}: the connection was lost: {error}");
                return Poll::Ready(self.stream.explain(&error, &address.to_string()).unwrap_or_else(lost));
            }
            if len == 0 {
                return Poll::Ready(format!("{address} closed the connection"));
            }
            self.inbox.to += len;
            self.shared.heard.set(self.shared.now.get());
            self.shared.read.set(self.shared.now.get());
            if self.shared.health.get() == Health::Silent {
                self.shared.set_health(Health::Recovering);
            }
            if let Err(message) = self.understand() {
                return Poll::Ready(format!("invalid data from {address}: {message}"));
            }
        }
    }

    /// Passes on the complete frames in the inbox and makes room for the next frame.
    fn understand(&mut self) -> Result<(), String> {
        if !self.shared.segmented.get() {
            return hand_out(&self.shared, &mut self.inbox);
        }
        self.frames.take_buffer(self.room);
        loop {
            let mut compressor = self.shared.compressor.borrow_mut();
            match segments::unwrap(self.inbox.as_bytes(), compressor.is_some())? {
                Ok(Segment { payload, text_len, len }) => {
                    match &mut *compressor {
                        Some(compressor) if text_len > 0 => {
                            self.frames.push(compressor.read_block(payload, text_len)?);
                        }
                        _ => self.frames.push(payload),
                    }
                    self.inbox.from += len;
                }
                Err(size) => {
                    self.inbox.make_room(size);
                    break;
                }
            }
        }
        hand_out(&self.shared, &mut self.frames)
    }

    /// Sends the queued bytes.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        loop {
            if self.sent == self.sending.len() {
                self.sending.clear();
                self.sent = 0;
                let mut out = self.shared.out.borrow_mut();
                if out.is_empty() {
                    FREE.with(|free| free.give_back(std::mem::take(&mut self.sending)));
                    // TLS may still hold the last bytes in its buffer.
                    return Pin::new(&mut self.stream).poll_flush(context);
                }
                if self.sending.capacity() == 0 {
                    self.sending = FREE.with(FreeBuffers::take);
                }
                if self.shared.segmented.get() {
                    segments::wrap(&out, self.shared.compressor.borrow_mut().as_deref_mut(), &mut self.sending);
                    out.clear();
                } else {
                    std::mem::swap(&mut self.sending, &mut out);
                }
            }
            self.sent += ready!(Pin::new(&mut self.stream).poll_write(context, &self.sending[self.sent..]))?;
        }
    }
}

/// Passes on the complete frames and makes room for the next frame.
fn hand_out(shared: &Shared, frames: &mut Inbox) -> Result<(), String> {
    let mut size = HEADER;
    while let Some(bytes) = frames.as_bytes().first_chunk::<HEADER>() {
        let header = Header::read(*bytes, shared.version)?;
        size = HEADER + header.len;
        if frames.as_bytes().len() < size {
            break;
        }
        let mut body = &frames.as_bytes()[HEADER..size];
        let mut compressor = shared.compressor.borrow_mut();
        if header.flags & COMPRESSED != 0 && !shared.segmented.get() {
            body = compressor.as_mut().ok_or("an unrequested compressed answer")?.read_body(body)?;
        }
        if header.opcode == opcode::EVENT
            && let Some(events) = &*shared.events.borrow()
        {
            Body::behind(header.flags, body).map(events).map_err(|_| "a truncated event")?;
        }
        // Events have negative stream numbers.
        if let Ok(stream) = u16::try_from(header.stream)
            && let Some(Entry { slot, serial, .. }) = shared.streams.borrow_mut().give_back(stream)
        {
            let is_probe = slot.as_ref().is_some_and(|slot| Rc::ptr_eq(slot, &shared.probe));
            if !is_probe && shared.health.get() != Health::Responsive {
                shared.set_health(Health::Responsive);
            }
            if let Some(slot) = slot {
                slot.answer(serial, header, body);
            }
        }
        frames.from += size;
        size = HEADER;
    }
    frames.make_room(size);
    Ok(())
}
