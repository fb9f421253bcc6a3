//! Writes a file on a separate thread, so that the producer of its bytes does not wait for the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use crate::fs::{ALIGNMENT, AlignedBuffer};
use crate::sort::SortError;
use crate::sort::files::{Append, Files};
use crate::sort::progress::Progress;
use crate::sort::rows::ROW_BYTES;

/// Number of buffers per file: one being filled, one being written, and one in between.
pub const BUFFERS: usize = 3;

/// The purpose of a file, which determines its durability and replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The file is read once by this job, and need not be durable. It has this number of replicas if the file system
    /// replicates.
    Scratch(u16),
    /// The file is part of the output and must be durable. It has this number of replicas if the file system
    /// replicates.
    Output(Option<u16>),
}

/// The buffers of a file, reused for consecutive files.
#[derive(Debug)]
pub struct Buffers(Vec<AlignedBuffer>);

impl Buffers {
    /// Allocates buffers of this many bytes each.
    pub fn new(bytes: usize) -> Result<Self, SortError> {
        Ok(Self((0..BUFFERS).map(|_| AlignedBuffer::new(bytes)).collect::<Result<_, _>>()?))
    }

    /// Bytes per buffer.
    pub fn bytes(&self) -> usize {
        self.0.first().map_or(0, |buffer| buffer.len())
    }
}

/// A file that is being written.
pub struct Spool<'s> {
    writer: ScopedJoinHandle<'s, Result<(), SortError>>,
    complete: Arc<AtomicBool>,
    full: SyncSender<(AlignedBuffer, usize)>,
    empty: Receiver<AlignedBuffer>,
    current: AlignedBuffer,
    used: usize,
    /// Number of bytes so far, including those in the current buffer.
    bytes: u64,
}

impl<'s> Spool<'s> {
    /// Creates the file.
    pub fn create<'e: 's>(
        scope: &'s Scope<'s, 'e>,
        files: &'e dyn Files,
        path: &str,
        keep: Keep,
        buffers: Buffers,
        progress: &'e Progress,
    ) -> Result<Self, SortError> {
        let (replicas, durable) = match keep {
            Keep::Scratch(replicas) => (Some(replicas), false),
            Keep::Output(replicas) => (replicas, true),
        };
        let mut file: Box<dyn Append> = files.create_file(path, replicas)?;
        let (full, to_write) = sync_channel::<(AlignedBuffer, usize)>(BUFFERS);
        let (give_back, empty) = sync_channel(BUFFERS);
        let mut all = buffers.0.into_iter();
        let Some(current) = all.next() else { return Err(SortError::new("internal error: a file has no buffers")) };
        for buffer in all {
            let _ = give_back.send(buffer);
        }
        let complete = Arc::new(AtomicBool::new(false));
        let is_complete = Arc::clone(&complete);
        let writer = scope.spawn(move || {
            for (buffer, used) in to_write {
                file.write_bytes(&buffer[..used])?;
                progress.add_written(used)?;
                let _ = give_back.send(buffer);
            }
            // An abandoned file need not be flushed.
            if is_complete.load(Acquire) { file.finish_file(durable) } else { Ok(()) }
        });
        Ok(Self { writer, complete, full, empty, current, used: 0, bytes: 0 })
    }

    /// Returns space for the next row.
    #[inline]
    pub fn row(&mut self) -> Result<&mut [u8; ROW_BYTES], SortError> {
        if self.used + ROW_BYTES > self.current.len() {
            self.flush()?;
        }
        let at = self.used;
        self.used += ROW_BYTES;
        self.bytes += ROW_BYTES as u64;
        // The slice is as long as a row.
        self.current[at..]
            .first_chunk_mut()
            .ok_or_else(|| SortError::new("internal error: a buffer is shorter than a row"))
    }

    /// Returns space for up to `rows` consecutive rows, and at least one row.
    pub fn rows(&mut self, rows: usize) -> Result<&mut [u8], SortError> {
        if self.used + ROW_BYTES > self.current.len() {
            self.flush()?;
        }
        let at = self.used;
        let rows = rows.min((self.current.len() - at) / ROW_BYTES);
        self.used += rows * ROW_BYTES;
        self.bytes += (rows * ROW_BYTES) as u64;
        Ok(&mut self.current[at..at + rows * ROW_BYTES])
    }

    /// Pads the file to the alignment that direct I/O needs, and returns its length.
    pub fn align(&mut self) -> Result<u64, SortError> {
        let end = self.used.next_multiple_of(ALIGNMENT);
        self.current[self.used..end].fill(0);
        self.bytes += (end - self.used) as u64;
        self.used = end;
        self.flush()?;
        Ok(self.bytes)
    }

    fn flush(&mut self) -> Result<(), SortError> {
        if self.used == 0 {
            return Ok(());
        }
        // If the writing thread has ended, it has failed, and `finish` returns its error.
        let next = self.empty.recv().map_err(|_| SortError::stop())?;
        let full = std::mem::replace(&mut self.current, next);
        self.full.send((full, self.used)).map_err(|_| SortError::stop())?;
        self.used = 0;
        Ok(())
    }

    /// Closes the file and returns the buffers or the first error. `so_far` is the producer's result.
    pub fn finish(mut self, so_far: Result<(), SortError>) -> Result<Buffers, SortError> {
        let flushed = so_far.and_then(|()| self.flush());
        self.complete.store(flushed.is_ok(), Release);
        drop(self.full);
        let written = match self.writer.join() {
            Ok(written) => written,
            Err(_) => Err(SortError::new("internal error: a writing thread panicked")),
        };
        // If the writer has an error, it is the cause: the producer noticed only that the writer had ended.
        written.and(flushed)?;
        let mut all = vec![self.current];
        all.extend(self.empty.try_iter());
        Ok(Buffers(all))
    }
}
