//! The bytes that were read from a connection but not yet processed.

use std::cell::RefCell;

/// Buffers that no connection of the thread is using. A connection has a buffer only while the buffer contains bytes,
/// so ten thousand idle connections have none.
pub struct FreeBuffers(RefCell<Vec<Vec<u8>>>);

impl FreeBuffers {
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Takes a buffer, which may be empty.
    #[inline]
    pub fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns a buffer.
    #[inline]
    pub fn give_back(&self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            self.0.borrow_mut().push(buffer);
        }
    }
}

thread_local! {
    static FREE: FreeBuffers = const { FreeBuffers::new() };
}

/// Bytes that were read but not yet processed, in a reused buffer.
#[derive(Default)]
pub struct Inbox {
    pub bytes: Vec<u8>,
    pub from: usize,
    pub to: usize,
}

impl Inbox {
    /// Takes a buffer of at least `room` bytes, unless the inbox already has a buffer.
    #[inline]
    pub fn take_buffer(&mut self, room: usize) {
        if self.bytes.is_empty() {
            self.bytes = FREE.with(FreeBuffers::take);
            if self.bytes.len() < room {
                self.bytes.resize(room, 0);
            }
        }
    }

    /// Returns the buffer if it contains no bytes.
    #[inline]
    pub fn give_back_empty(&mut self) {
        if self.from == self.to {
            let Self { bytes, .. } = std::mem::take(self);
            FREE.with(|free| free.give_back(bytes));
        }
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Makes room for more bytes, so that the first `size` bytes will be contiguous.
    #[inline]
    pub fn make_room(&mut self, size: usize) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        if self.from + size > self.bytes.len() || self.to == self.bytes.len() {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            if size > self.bytes.len() {
                self.bytes.resize(size.next_power_of_two(), 0);
            }
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room(self.to - self.from + bytes.len());
        self.bytes[self.to..self.to + bytes.len()].copy_from_slice(bytes);
        self.to += bytes.len();
    }
}
