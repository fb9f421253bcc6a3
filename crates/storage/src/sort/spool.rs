//! Writes a file from a thread of its own, so that whoever makes the bytes need not wait for the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use crate::sort::SortError;
use crate::sort::arena::{ALIGNMENT, Arena};
use crate::sort::files::{Append, Files};
use crate::sort::progress::Progress;
use crate::sort::rows::ROW_BYTES;

/// How many buffers a file has: one that is filled, one that is written, one between them.
pub const BUFFERS: usize = 3;

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is read once more by this job, and need not outlive the machine.
    Scratch,
    /// It is part of the output, with so many copies where the file system has such.
    Output(Option<u16>),
}

/// Buffers to fill and to write, used again for one file after another.
#[derive(Debug)]
pub struct Buffers(Vec<Arena>);

impl Buffers {
    /// Buffers of this many bytes each.
    pub fn new(bytes: usize) -> Result<Self, SortError> {
        (0..BUFFERS).map(|_| Arena::new(bytes)).collect::<Result<_, _>>().map(Self)
    }
}

/// A file that is being written.
pub struct Spool<'s> {
    writer: ScopedJoinHandle<'s, Result<(), SortError>>,
    complete: Arc<AtomicBool>,
    full: SyncSender<(Arena, usize)>,
    empty: Receiver<Arena>,
    current: Arena,
    used: usize,
    /// Bytes so far, the current buffer's included.
    bytes: u64,
}

impl<'s> Spool<'s> {
    /// Makes the file.
    pub fn create<'e: 's>(
        scope: &'s Scope<'s, 'e>,
        files: &'e dyn Files,
        path: &str,
        keep: Keep,
        buffers: Buffers,
        progress: &'e Progress,
    ) -> Result<Self, SortError> {
        let (replicas, durable) = match keep {
            Keep::Scratch => (Some(1), false),
            Keep::Output(replicas) => (replicas, true),
        };
        let mut file: Box<dyn Append> = files.create(path, replicas)?;
        let (full, to_write) = sync_channel::<(Arena, usize)>(BUFFERS);
        let (give_back, empty) = sync_channel(BUFFERS);
        let mut all = buffers.0.into_iter();
        let Some(current) = all.next() else { return Err(SortError::new("a file needs buffers")) };
        for buffer in all {
            let _ = give_back.send(buffer);
        }
        let complete = Arc::new(AtomicBool::new(false));
        let is_complete = Arc::clone(&complete);
        let writer = scope.spawn(move || {
            for (buffer, used) in to_write {
                file.write(&buffer[..used])?;
                progress.written(used)?;
                let _ = give_back.send(buffer);
            }
            // What is given up need not be flushed to the disk.
            if is_complete.load(Acquire) { file.finish(durable) } else { Ok(()) }
        });
        Ok(Self { writer, complete, full, empty, current, used: 0, bytes: 0 })
    }

    /// Room for the next row.
    #[inline]
    pub fn row(&mut self) -> Result<&mut [u8; ROW_BYTES], SortError> {
        if self.used + ROW_BYTES > self.current.len() {
            self.flush()?;
        }
        let at = self.used;
        self.used += ROW_BYTES;
        self.bytes += ROW_BYTES as u64;
        // The slice is as long as a row.
        self.current[at..].first_chunk_mut().ok_or_else(|| SortError::new("a buffer holds less than a row"))
    }

    /// Room for up to `rows` rows, at least one, that follow each other.
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

    /// Fills up to a multiple of what direct I/O needs, and returns where that is.
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
        // A writer that has ended has an error, which `finish` returns.
        let next = self.empty.recv().map_err(|_| SortError::stopped())?;
        let full = std::mem::replace(&mut self.current, next);
        self.full.send((full, self.used)).map_err(|_| SortError::stopped())?;
        self.used = 0;
        Ok(())
    }

    /// Ends the file, and returns the buffers, or what went wrong while it was written: `so_far` is what its maker says.
    pub fn finish(mut self, so_far: Result<(), SortError>) -> Result<Buffers, SortError> {
        let flushed = so_far.and_then(|()| self.flush());
        self.complete.store(flushed.is_ok(), Release);
        drop(self.full);
        let written = match self.writer.join() {
            Ok(written) => written,
            Err(_) => Err(SortError::new("internal error: a writing thread panicked")),
        };
        // The writer's own error is the cause, where there is one: the maker only saw that it had ended.
        written.and(flushed)?;
        let mut all = vec![self.current];
        all.extend(self.empty.try_iter());
        Ok(Buffers(all))
    }
}
