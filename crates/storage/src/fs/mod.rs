//! The file-system layer: one trait, static dispatch, no allocation per buffer.
//!
//! Paths are those of the file system, without a scheme: [`Location`] takes a URI apart. Futures of the local file system are ready
//! at the first poll, and block; those of HDFS need a tokio runtime.

mod buffer;
mod error;
pub mod hdfs;
pub mod local;
mod location;
pub mod null;
mod uring;

use std::future::Future;

pub use buffer::{ALIGNMENT, AlignedBuffer};
pub use error::{ErrorKind, FsError};
pub use location::{Location, Scheme};

/// How a file is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// How many copies the file system keeps; `None`: its default. Refused where it keeps none of its own.
    pub replication: Option<u32>,
    /// Bytes of a block of the file system; `None`: its default.
    pub block_bytes: Option<u64>,
    /// Whether a file that is there is replaced; else it is an error.
    pub overwrite: bool,
    /// The largest buffer that is written at once.
    pub buffer_bytes: usize,
    /// How long the file will be, if that is known: with O_DIRECT it gets its space at once.
    pub file_bytes: Option<u64>,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { replication: None, block_bytes: None, overwrite: true, buffer_bytes: 1 << 20, file_bytes: None }
    }
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// In which order.
    pub access: Access,
    /// The largest buffer that is read at once.
    pub buffer_bytes: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { access: Access::Sequential, buffer_bytes: 1 << 20 }
    }
}

/// In which order a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From an offset to the end: what comes next may be fetched ahead.
    Sequential,
    /// Here and there: nothing but what is asked for is fetched.
    Random,
}

/// What a file system knows of a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its whole path.
    pub path: String,
    /// Whether it is a directory.
    pub directory: bool,
    /// Its length.
    pub bytes: u64,
    /// Copies that are kept; `None` where the file system does not replicate.
    pub replication: Option<u32>,
    /// Bytes of a block; `None` where files have none.
    pub block_bytes: Option<u64>,
}

/// A file system. Every error names the path.
pub trait FileSystem: Send + Sync {
    /// Reads one file.
    type Reader: Reader;
    /// Writes one file.
    type Writer: Writer;

    /// Creates a file, with the directories above it.
    fn create(&self, path: &str, options: &CreateOptions)
    -> impl Future<Output = Result<Self::Writer, FsError>> + Send;

    /// Opens a file to write at its end. Of the options only the buffer counts.
    fn append(&self, path: &str, options: &CreateOptions)
    -> impl Future<Output = Result<Self::Writer, FsError>> + Send;

    /// Opens a file for reading.
    fn open(&self, path: &str, options: OpenOptions) -> impl Future<Output = Result<Self::Reader, FsError>> + Send;

    /// Looks at a file or directory; an error of kind [`ErrorKind::NotFound`] if it is not there.
    fn stat(&self, path: &str) -> impl Future<Output = Result<FileStat, FsError>> + Send;

    /// What is in a directory, by path.
    fn list(&self, path: &str) -> impl Future<Output = Result<Vec<FileStat>, FsError>> + Send;

    /// Renames a file or directory; what has the new name is an error.
    fn rename(&self, from: &str, to: &str) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Deletes a file, or a directory and all below it; `false` if it was not there.
    fn delete(&self, path: &str) -> impl Future<Output = Result<bool, FsError>> + Send;

    /// Makes a directory and those above it.
    fn mkdirs(&self, path: &str) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Cuts a file to a length.
    fn truncate(&self, path: &str, bytes: u64) -> impl Future<Output = Result<(), FsError>> + Send;
}

/// Reads one file.
pub trait Reader: Send + std::fmt::Debug {
    /// The file's length when it was opened.
    fn len(&self) -> u64;

    /// Whether it was empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many reads it begins ahead of its caller.
    fn depth(&self) -> usize {
        0
    }

    /// Announces a read that comes later: a file system that reads ahead of its caller begins it, as far as it has room.
    fn ahead(&mut self, _offset: u64, _bytes: usize) {}

    /// Reads `bytes` at an offset into a buffer of the reader's: fewer only at the end of the file.
    fn fetch(&mut self, offset: u64, bytes: usize) -> impl Future<Output = Result<&[u8], FsError>> + Send;

    /// Reads into a buffer of the caller's; fewer bytes than it holds only at the end of the file.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> impl Future<Output = Result<usize, FsError>> + Send {
        async move {
            let read = self.fetch(offset, into.len()).await?;
            into[..read.len()].copy_from_slice(read);
            Ok(read.len())
        }
    }
}

/// Writes one file, from its beginning (or its end, if it was appended to) on.
///
/// What is written is guaranteed step by step: returned ([`submit`](Writer::submit)), handed over to the file system
/// ([`flush`](Writer::flush)), on the device ([`sync`](Writer::sync)), complete ([`close`](Writer::close)).
pub trait Writer: Send + Sized + std::fmt::Debug {
    /// A buffer of `bytes`, to be filled; waits until one is free.
    fn buffer(&mut self, bytes: usize) -> impl Future<Output = Result<&mut [u8], FsError>> + Send;

    /// Writes the buffer that was filled. Its failure may show in a later call.
    fn submit(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Writes a copy of `data`.
    fn write(&mut self, data: &[u8]) -> impl Future<Output = Result<(), FsError>> + Send {
        async move {
            self.buffer(data.len()).await?.copy_from_slice(data);
            self.submit().await
        }
    }

    /// Where the next byte goes.
    fn position(&self) -> u64;

    /// Where the next buffer goes, for file systems that write anywhere.
    fn seek(&mut self, offset: u64) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Waits until the file system has everything that was written: the end of this process loses nothing.
    fn flush(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Waits until the device has it: fsync, hsync.
    fn sync(&mut self) -> impl Future<Output = Result<(), FsError>> + Send;

    /// Brings the file to where closing it can lose nothing. An error of kind [`ErrorKind::Rewound`] leaves the writer open.
    fn complete(&mut self) -> impl Future<Output = Result<(), FsError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Closes the file. Whatever failed and was not told before is told now.
    fn close(self) -> impl Future<Output = Result<(), FsError>> + Send;
}
