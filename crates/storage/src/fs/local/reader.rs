//! Reads a local file.

use super::file::{FileEngine, LocalFile, Pooled, resize_buffer};
use crate::fs::{ALIGNMENT, FsError, Reader};

/// Reader of a local file.
#[derive(Debug)]
pub struct LocalReader {
    // This field must precede the file, because I/O in flight must finish before the file is closed.
    pub(super) engine: Pooled,
    pub(super) file: LocalFile,
    pub(super) len: u64,
}

impl LocalReader {
    /// The aligned range to read for `bytes` bytes at an offset: its start, its length, and the number of bytes before
    /// the offset.
    fn span(&self, offset: u64, bytes: usize) -> (u64, usize, usize) {
        if !self.file.is_direct() {
            return (offset, bytes, 0);
        }
        let before = (offset % ALIGNMENT as u64) as usize;
        (offset - before as u64, (before + bytes).next_multiple_of(ALIGNMENT), before)
    }
}

impl Reader for LocalReader {
    fn len(&self) -> u64 {
        self.len
    }

    fn depth(&self) -> usize {
        match &*self.engine {
            FileEngine::Uring(ring) => ring.depth(),
            FileEngine::Calls(_) => 0,
        }
    }

    fn announce_read(&mut self, offset: u64, bytes: usize) {
        let (from, whole, _) = self.span(offset, bytes);
        if let FileEngine::Uring(ring) = &mut *self.engine {
            ring.release_slots(None);
            // A read that cannot be queued is executed by `fetch_bytes`.
            let _ = ring.read(&self.file.file, from, whole);
        }
    }

    async fn fetch_bytes(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        let (from, whole, before) = self.span(offset, bytes);
        let (buffer, read) = match &mut *self.engine {
            FileEngine::Uring(ring) => {
                ring.release_slots(None);
                let fetched = ring.fetch_bytes(&self.file.file, from, whole);
                let (slot, read) = fetched.map_err(|(at, error)| self.file.error_at("read", at, &error))?;
                (&*ring.bytes(slot), read)
            }
            FileEngine::Calls(buffer) => {
                let into = resize_buffer(buffer, whole)?;
                let read = self.file.read_full(from, into)?;
                (&*into, read)
            }
        };
        Ok(&buffer[before.min(read)..(before + bytes).min(read)])
    }

    async fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, FsError> {
        // Reads without a copy, unless io_uring may have read the range ahead.
        if self.depth() == 0 && self.file.is_direct_possible(into.as_ptr(), offset, into.len())? {
            return self.file.read_full(offset, into);
        }
        let read = self.fetch_bytes(offset, into.len()).await?;
        into[..read.len()].copy_from_slice(read);
        Ok(read.len())
    }
}
