//! An open local file, and the engine that transfers its bytes.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use super::uring::Ring;
use crate::fs::{ALIGNMENT, AlignedBuffer, FsError};

/// Whether a file bypasses the page cache (`O_DIRECT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direct {
    /// The file uses the page cache.
    #[default]
    Off,
    /// The file bypasses the page cache if the file system supports it, until the first unaligned access.
    IfPossible,
    /// The file bypasses the page cache, or opening it is an error.
    Required,
}

/// The mechanism that transfers the bytes of one file.
#[derive(Debug)]
pub enum FileEngine {
    /// Blocking calls, with one buffer that is allocated on first use.
    Calls(Option<AlignedBuffer>),
    /// io_uring, with several buffers.
    Uring(Box<Ring>),
}

/// The engines of closed files, for reuse.
pub type EnginePool = Arc<Mutex<Vec<FileEngine>>>;

/// An engine that returns to the pool when its file is closed.
#[derive(Debug)]
pub struct Pooled {
    engine: FileEngine,
    pool: EnginePool,
}

impl Pooled {
    /// An engine of this pool.
    pub fn new(engine: FileEngine, pool: &EnginePool) -> Self {
        Self { engine, pool: Arc::clone(pool) }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut engine = std::mem::replace(&mut self.engine, FileEngine::Calls(None));
        if let FileEngine::Uring(ring) = &mut engine {
            ring.abandon_requests();
        }
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(engine);
    }
}

impl Deref for Pooled {
    type Target = FileEngine;

    fn deref(&self) -> &FileEngine {
        &self.engine
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut FileEngine {
        &mut self.engine
    }
}

/// Returns the first `bytes` bytes of a buffer. A buffer that is too small is replaced first.
pub fn resize_buffer(buffer: &mut Option<AlignedBuffer>, bytes: usize) -> Result<&mut [u8], FsError> {
    let own = match buffer.take() {
        Some(own) if own.len() >= bytes => own,
        _ => AlignedBuffer::new(bytes)?,
    };
    Ok(&mut buffer.insert(own)[..bytes])
}

/// An open file.
#[derive(Debug)]
pub struct LocalFile {
    pub file: File,
    pub path: String,
    /// The current mode: `Off` once the file uses the page cache.
    pub direct: Direct,
}

impl LocalFile {
    /// Whether accesses must be aligned.
    pub fn is_direct(&self) -> bool {
        self.direct != Direct::Off
    }

    /// Whether bytes can be transferred between this memory and this offset of the file. If O_DIRECT is not required,
    /// the first unaligned access switches the file to the page cache.
    pub fn is_direct_possible(&mut self, memory: *const u8, offset: u64, bytes: usize) -> Result<bool, FsError> {
        let aligned = [memory.addr(), offset as usize, bytes].iter().all(|number| number.is_multiple_of(ALIGNMENT));
        match self.direct {
            _ if aligned => Ok(true),
            Direct::Off => Ok(true),
            Direct::Required => Ok(false),
            Direct::IfPossible => {
                // SAFETY: the arguments are plain numbers and an owned descriptor. The descriptor can have no other
                // flag.
                if unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFL, 0) } != 0 {
                    return Err(FsError::io("clear O_DIRECT of", &self.path, &io::Error::last_os_error()));
                }
                self.direct = Direct::Off;
                Ok(true)
            }
        }
    }

    /// Reads until the buffer is full or the file ends.
    pub fn read_full(&self, offset: u64, into: &mut [u8]) -> Result<usize, FsError> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // O_DIRECT does not read from an unaligned offset, so the file ended before this offset.
                Err(error) if done % ALIGNMENT != 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(self.error_at("read", offset + done as u64, &error)),
            }
        }
        Ok(done)
    }

    /// An error at an offset of the file.
    pub fn error_at(&self, action: &'static str, offset: u64, error: &io::Error) -> FsError {
        FsError::io(action, &self.path, error).with_offset(offset)
    }
}
