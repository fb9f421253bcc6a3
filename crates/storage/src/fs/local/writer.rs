//! Writes a local file.

use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;

use super::file::{FileEngine, LocalFile, Pooled, resize_buffer};
use crate::fs::{ALIGNMENT, FsError, FsErrorKind, Writer};

/// Writer of a local file.
#[derive(Debug)]
pub struct LocalWriter {
    // This field must precede the file, because I/O in flight must finish before the file is closed.
    engine: Pooled,
    file: LocalFile,
    at: u64,
    filled: usize,
    /// The io_uring buffer that is being filled.
    slot: usize,
    /// The length to which the file must be truncated, if its last block was padded for O_DIRECT.
    cut: Option<u64>,
}

impl LocalWriter {
    /// A writer that starts at this offset.
    pub(super) fn new(engine: Pooled, file: LocalFile, at: u64) -> Self {
        Self { engine, file, at, filled: 0, slot: 0, cut: None }
    }

    /// Waits for I/O in flight, and then truncates the file if its last block was padded.
    fn drain_ring(&mut self, action: &'static str) -> Result<(), FsError> {
        let drained = match &mut *self.engine {
            FileEngine::Uring(ring) => ring.drain_writes(&self.file.file),
            FileEngine::Calls(_) => Ok(()),
        };
        drained.map_err(|(at, error)| self.file.error_at(action, at, &error))?;
        match self.cut {
            Some(bytes) => self.file.file.set_len(bytes).map_err(|error| self.file.error_at("truncate", bytes, &error)),
            None => Ok(()),
        }
    }
}

impl Writer for LocalWriter {
    async fn reserve_buffer(&mut self, bytes: usize) -> Result<&mut [u8], FsError> {
        self.filled = bytes;
        match &mut *self.engine {
            FileEngine::Uring(ring) => {
                ring.release_slots(None);
                let slot = ring.take_slot(&self.file.file);
                self.slot = slot.map_err(|(at, error)| self.file.error_at("write", at, &error))?;
                Ok(&mut ring.bytes(self.slot)[..bytes])
            }
            FileEngine::Calls(buffer) => resize_buffer(buffer, bytes),
        }
    }

    async fn submit_buffer(&mut self) -> Result<(), FsError> {
        if self.cut.is_some() {
            return Err(FsError::new(
                FsErrorKind::Invalid,
                "write",
                &self.file.path,
                "with O_DIRECT only the last buffer may have an unaligned length",
            ));
        }
        // The writer's own buffers are aligned.
        self.file.is_direct_possible(std::ptr::null(), self.at, self.filled)?;
        let whole = if self.file.is_direct() { self.filled.next_multiple_of(ALIGNMENT) } else { self.filled };
        if whole > self.filled {
            self.cut = Some(self.at + self.filled as u64);
        }
        let written = match &mut *self.engine {
            FileEngine::Uring(ring) => {
                ring.bytes(self.slot)[self.filled..whole].fill(0);
                ring.write(&self.file.file, self.slot, self.at, whole)
            }
            FileEngine::Calls(buffer) => {
                let bytes = resize_buffer(buffer, whole)?;
                bytes[self.filled..].fill(0);
                self.file.file.write_all_at(bytes, self.at).map_err(|error| (self.at, error))
            }
        };
        written.map_err(|(at, error)| self.file.error_at("write", at, &error))?;
        self.at += self.filled as u64;
        Ok(())
    }

    async fn write_copy(&mut self, data: &[u8]) -> Result<(), FsError> {
        let whole = if self.file.is_direct() { data.len() / ALIGNMENT * ALIGNMENT } else { data.len() };
        for bytes in [&data[..whole], &data[whole..]] {
            if bytes.is_empty() {
                continue;
            }
            let calls = matches!(*self.engine, FileEngine::Calls(_)) && self.cut.is_none();
            if calls && self.file.is_direct_possible(bytes.as_ptr(), self.at, bytes.len())? {
                let written = self.file.file.write_all_at(bytes, self.at);
                written.map_err(|error| self.file.error_at("write", self.at, &error))?;
                self.at += bytes.len() as u64;
            } else {
                self.reserve_buffer(bytes.len()).await?.copy_from_slice(bytes);
                self.submit_buffer().await?;
            }
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        self.at
    }

    async fn seek_to(&mut self, offset: u64) -> Result<(), FsError> {
        self.at = offset;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), FsError> {
        // Writes that are not in flight have already been passed to the kernel by write(2).
        self.drain_ring("write")
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        self.drain_ring("write")?;
        self.file.file.sync_all().map_err(|error| self.file.error_at("sync", self.at, &error))
    }

    async fn close(mut self) -> Result<(), FsError> {
        self.drain_ring("write")?;
        let Self { file: LocalFile { file, path, .. }, at, .. } = self;
        // `File` ignores the result of close(2), through which NFS and quotas report failed writes.
        // SAFETY: the descriptor is owned here and closed only once.
        match unsafe { libc::close(file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(FsError::io("close", &path, &io::Error::last_os_error()).with_offset(at)),
        }
    }
}
