//! The bytes that were read from a connection but not yet processed.

/// Bytes that were read but not yet processed, in a reused buffer.
#[derive(Default)]
pub struct Inbox {
    pub bytes: Vec<u8>,
    pub from: usize,
    pub to: usize,
}

impl Inbox {
    pub fn with_room(room: usize) -> Self {
        Self { bytes: vec![0; room], from: 0, to: 0 }
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
