//! The file-system layer: a single trait, with static dispatch and no allocation per buffer.
//!
//! Paths are paths on the file system, without a scheme: [`Location`] parses a URI. The local file system's futures
//! block, and are ready at the first poll; HDFS futures need a tokio runtime.

mod buffer;
mod error;
pub mod hdfs;
pub mod local;
mod location;
pub mod null;

use std::future::Future;

pub use buffer::{ALIGNMENT, AlignedBuffer};
pub use error::{FsError, FsErrorKind};
pub use location::{Location, Scheme};

/// The settings with which a file is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// Number of copies that the file system stores; `None`: the file system's default. Local file systems refuse more
    /// than one copy.
    pub replication: Option<u32>,
    /// Size of the file's blocks, in bytes; `None`: the file system's default.
    pub block_bytes: Option<u64>,
    /// Whether an existing file is replaced; otherwise it causes an error.
    pub overwrite: bool,
    /// Whether missing parent directories are created; otherwise they cause an error.
    pub parents: bool,
    /// The size of the largest buffer that will be written.
    pub buffer_bytes: usize,
    /// The final length of the file, if known. With O_DIRECT, all its space is allocated in advance.
    pub file_bytes: Option<u64>,
    /// Whether each block is synced when it is complete, on file systems where a sync covers only the current block.
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
    pub access: AccessHint,
    /// The size of the largest buffer that will be read.
    pub buffer_bytes: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { access: AccessHint::Sequential, buffer_bytes: 1 << 20 }
    }
}

/// The order in which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessHint {
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
    /// A socket, a device, a dangling symbolic link and the like.
    Other,
}

/// The metadata of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// The full path of the file or directory.
    pub path: String,
    /// The type of file.
    pub kind: FileKind,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// Number of copies; `None` on a file system without replication.
    pub replication: Option<u32>,
    /// Block size in bytes; `None` if files have no blocks.
    pub block_bytes: Option<u64>,
}

impl FileStat {
    /// The name of the file or directory, without its path.
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }
}

/// A file system. Every error names the path.
pub trait FileSystem: Send + Sync {
    /// The reader of a file.
    type Reader: Reader;
    /// The writer of a file.
    type Writer: Writer;
    /// Whether the file system stores the bytes written. A file system that stores nothing is used only to measure the
    /// engine, without verification.
    const KEEPS: bool = true;

    /// Creates a file.
    fn create(&self, path: &str, options: &CreateOptions)
    -> impl Future<Output = Result<Self::Writer, FsError>> + Send;

    /// Opens a file for append. Of the options, only the buffer size is used.
    fn append(&self, path: &str, options: &CreateOptions)
    -> impl Future<Output = Result<Self::Writer, FsError>> + Send;

    /// Opens a file for reading.
    fn open(&self, path: &str, options: OpenOptions) -> impl Future<Output = Result<Self::Reader, FsError>> + Send;

    /// Returns the metadata of a file or directory; fails with [`FsErrorKind::NotFound`] if it does not exist.
    fn read_stat(&self, path: &str) -> impl Future<Output = Result<FileStat, FsError>> + Send;

    /// Returns the entries of a directory, sorted by path. Symbolic links are followed.
    fn list_folder(&self, path: &str) -> impl Future<Output = Result<Vec<FileStat>, FsError>> + Send;

    /// Renames a file or directory. Fails if the new name exists, even if two processes rename at the same time.
    fn rename(&self, from: &str, to: &str) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Deletes a file, or a directory and everything in it; returns `false` if it did not exist.
    fn delete(&self, path: &str) -> impl Future<Output = Result<bool, FsError>> + Send;

    /// Creates a directory and its missing parents.
    fn create_folders(&self, path: &str) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Truncates a file to this length.
    fn truncate(&self, path: &str, bytes: u64) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Makes the entries of a directory durable, on file systems where changes are not already durable when a call
    /// returns.
    fn sync_directory(&self, _path: &str) -> impl Future<Output = Result<(), FsError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Reads one file.
pub trait Reader: Send + std::fmt::Debug {
    /// The file's length when it was opened.
    fn len(&self) -> u64;

    /// Whether the file was empty when it was opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of repeated requests after all servers of some part of the file had failed.
    fn retry_count(&self) -> u64 {
        0
    }

    /// Number of reads that can be started ahead of the caller.
    fn depth(&self) -> usize {
        0
    }

    /// Announces a later read. A file system that reads ahead starts the read if a buffer is free.
    fn announce_read(&mut self, _offset: u64, _bytes: usize) {}

    /// Reads `bytes` bytes at an offset into a buffer of the reader. Returns fewer bytes only at the end of the file.
    fn fetch_bytes(&mut self, offset: u64, bytes: usize) -> impl Future<Output = Result<&[u8], FsError>> + Send;

    /// Reads into the caller's buffer. Returns fewer bytes than its length only at the end of the file.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> impl Future<Output = Result<usize, FsError>> + Send {
        async move {
            let read = self.fetch_bytes(offset, into.len()).await?;
            into[..read.len()].copy_from_slice(read);
            Ok(read.len())
        }
    }
}

/// Writes one file, starting at its beginning or, for an append, at its end.
///
/// The guarantee for written bytes increases step by step: returned ([`submit_buffer`](Writer::submit_buffer)), passed to the file
/// system ([`flush`](Writer::flush)), on the device ([`sync`](Writer::sync)), complete ([`close`](Writer::close)).
pub trait Writer: Send + Sized + std::fmt::Debug {
    /// Returns a buffer of `bytes` bytes to fill; waits until a buffer is free.
    fn reserve_buffer(&mut self, bytes: usize) -> impl Future<Output = Result<&mut [u8], FsError>> + Send;

    /// Writes the filled buffer. If this fails, a later call may return the error.
    fn submit_buffer(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Writes a copy of `data`.
    fn write_copy(&mut self, data: &[u8]) -> impl Future<Output = Result<(), FsError>> + Send {
        async move {
            self.reserve_buffer(data.len()).await?.copy_from_slice(data);
            self.submit_buffer().await
        }
    }

    /// The offset of the next byte.
    fn position(&self) -> u64;

    /// Number of times that the file was reopened after a failure.
    fn retry_count(&self) -> u64 {
        0
    }

    /// Sets the offset of the next buffer, for file systems with random writes.
    fn seek_to(&mut self, offset: u64) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Waits until the file system has received all written bytes, which then survive the end of this process.
    fn flush(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Waits until the device has all written bytes (fsync, hsync).
    fn sync(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Completes the file, so that closing it loses nothing. After an [`FsErrorKind::Rewound`] error, the writer is
    /// still open.
    fn complete_file(&mut self) -> impl Future<Output = Result<(), FsError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Closes the file. Returns any failure that has not been returned yet.
    fn close(self) -> impl Future<Output = Result<(), FsError>> + Send;
}
