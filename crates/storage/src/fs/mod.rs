//! The file-system layer: one trait, static dispatch, no allocation per buffer.
//!
//! Paths are paths on the file system, without a scheme: [`Location`] parses a URI. Futures of the local file system
//! block and are ready at the first poll; futures of HDFS need a tokio runtime.

mod buffer;
mod error;
pub mod hdfs;
pub mod local;
mod location;
pub mod null;

use std::future::Future;

pub use buffer::{ALIGNMENT, AlignedBuffer};
pub use error::{ErrorKind, FsError};
pub use location::{Location, Scheme};

/// The settings with which a file is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// Number of copies that the file system stores; `None`: its default. Refused by file systems without replication.
    pub replication: Option<u32>,
    /// Bytes of a block of the file system; `None`: its default.
    pub block_bytes: Option<u64>,
    /// Whether an existing file is replaced; otherwise it is an error.
    pub overwrite: bool,
    /// Whether missing parent directories are created; otherwise it is an error.
    pub parents: bool,
    /// The largest buffer of a write.
    pub buffer_bytes: usize,
    /// The final length of the file, if known: with O_DIRECT its space is allocated at once.
    pub file_bytes: Option<u64>,
    /// Whether each block is synced when it is complete, on file systems where a sync only covers the present block.
    pub sync_blocks: bool,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            replication: None,
            block_bytes: None,
            overwrite: true,
            parents: true,
            buffer_bytes: 1 << 20,
            file_bytes: None,
            sync_blocks: false,
        }
    }
}

/// The settings with which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The order of access.
    pub access: Access,
    /// The largest buffer of a read.
    pub buffer_bytes: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { access: Access::Sequential, buffer_bytes: 1 << 20 }
    }
}

/// The order in which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From an offset to the end: read-ahead is allowed.
    Sequential,
    /// At arbitrary offsets: only the requested bytes are fetched.
    Random,
}

/// The type of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A socket, a device, a dangling symbolic link …
    Other,
}

/// The metadata of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its full path.
    pub path: String,
    /// Its type.
    pub kind: FileKind,
    /// Its length.
    pub bytes: u64,
    /// Number of copies; `None` if the file system does not replicate.
    pub replication: Option<u32>,
    /// Bytes of a block; `None` if files have no blocks.
    pub block_bytes: Option<u64>,
}

impl FileStat {
    /// Its name within its directory.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }
}

/// A file system. Every error names the path.
pub trait FileSystem: Send + Sync {
    /// Reads one file.
    type Reader: Reader;
    /// Writes one file.
    type Writer: Writer;

    /// Creates a file.
    fn create(&self, path: &str, options: &CreateOptions)
    -> impl Future<Output = Result<Self::Writer, FsError>> + Send;

    /// Opens a file to append to it. Only the buffer size in the options is used.
    fn append(&self, path: &str, options: &CreateOptions)
    -> impl Future<Output = Result<Self::Writer, FsError>> + Send;

    /// Opens a file for reading.
    fn open(&self, path: &str, options: OpenOptions) -> impl Future<Output = Result<Self::Reader, FsError>> + Send;

    /// The metadata of a file or directory; fails with [`ErrorKind::NotFound`] if it does not exist.
    fn stat(&self, path: &str) -> impl Future<Output = Result<FileStat, FsError>> + Send;

    /// The entries of a directory, sorted by path. Symbolic links are followed.
    fn list(&self, path: &str) -> impl Future<Output = Result<Vec<FileStat>, FsError>> + Send;

    /// Renames a file or directory; fails if the new name exists, even if two processes rename at the same time.
    fn rename(&self, from: &str, to: &str) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Deletes a file, or a directory and everything below it; `false` if it did not exist.
    fn delete(&self, path: &str) -> impl Future<Output = Result<bool, FsError>> + Send;

    /// Creates a directory and its parents.
    fn mkdirs(&self, path: &str) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Truncates a file to a length.
    fn truncate(&self, path: &str, bytes: u64) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Makes the entries of a directory durable, if changes are not durable when a call returns.
    fn sync_directory(&self, _path: &str) -> impl Future<Output = Result<(), FsError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Reads one file.
pub trait Reader: Send + std::fmt::Debug {
    /// The file's length when it was opened.
    fn len(&self) -> u64;

    /// Whether it was empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of repeated requests after all servers of a part of the file had failed.
    fn retries(&self) -> u64 {
        0
    }

    /// Number of reads that it can start ahead of its caller.
    fn depth(&self) -> usize {
        0
    }

    /// Announces a later read: a file system that reads ahead starts it if a buffer is free.
    fn ahead(&mut self, _offset: u64, _bytes: usize) {}

    /// Reads `bytes` at an offset into a buffer of the reader; fewer only at the end of the file.
    fn fetch(&mut self, offset: u64, bytes: usize) -> impl Future<Output = Result<&[u8], FsError>> + Send;

    /// Reads into the caller's buffer; fewer bytes than its length only at the end of the file.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> impl Future<Output = Result<usize, FsError>> + Send {
        async move {
            let read = self.fetch(offset, into.len()).await?;
            into[..read.len()].copy_from_slice(read);
            Ok(read.len())
        }
    }
}

/// Writes one file, starting at its beginning, or at its end for an append.
///
/// The guarantee for written bytes grows step by step: returned ([`submit`](Writer::submit)), passed to the file system
/// ([`flush`](Writer::flush)), on the device ([`sync`](Writer::sync)), complete ([`close`](Writer::close)).
pub trait Writer: Send + Sized + std::fmt::Debug {
    /// A buffer of `bytes` to fill; waits until one is free.
    fn buffer(&mut self, bytes: usize) -> impl Future<Output = Result<&mut [u8], FsError>> + Send;

    /// Writes the filled buffer. A later call may return its failure.
    fn submit(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Writes a copy of `data`.
    fn write(&mut self, data: &[u8]) -> impl Future<Output = Result<(), FsError>> + Send {
        async move {
            self.buffer(data.len()).await?.copy_from_slice(data);
            self.submit().await
        }
    }

    /// The offset of the next byte.
    fn position(&self) -> u64;

    /// Number of times that it reopened the file after a failure.
    fn retries(&self) -> u64 {
        0
    }

    /// Sets the offset of the next buffer, for file systems with random writes.
    fn seek(&mut self, offset: u64) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Waits until the file system has all written bytes, which then survive the end of this process.
    fn flush(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Waits until the device has all written bytes: fsync, hsync.
    fn sync(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Completes the file so that closing it loses nothing. After an [`ErrorKind::Rewound`] error the writer is still open.
    fn complete(&mut self) -> impl Future<Output = Result<(), FsError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Closes the file. Returns any failure that was not yet returned.
    fn close(self) -> impl Future<Output = Result<(), FsError>> + Send;
}
