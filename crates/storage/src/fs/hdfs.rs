//! HDFS, through the crate `hdfs-native`: no JVM. Replication and block size per file.
//!
//! It lacks hflush (its flush is an hsync, which guarantees more) and truncate.

#![expect(clippy::large_futures, reason = "the client's futures; they stay within the executor's")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use hdfs_native::client::FileStatus;
use hdfs_native::file::{FileReader, FileWriter};
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};

use super::error::{ErrorKind, FsError};
use super::{Access, CreateOptions, FileKind, FileStat, FileSystem, OpenOptions, Reader, Writer};

/// How long a name node may take to accept a connection.
const REACH: Duration = Duration::from_secs(5);
/// For how long a write is retried when a block cannot be begun: if a name node has a dead data node recover a block, it tries
/// another one after 30 heartbeats (`BlockManager.getBlockRecoveryTimeout`), 90 s by default …
const RESUME: Duration = Duration::from_secs(150);
/// … and how long it waits between retries.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
const BEST_EFFORT: &str = "dfs.client.block.write.replace-datanode-on-failure.best-effort";
/// Bytes of sent buffers kept to reuse their memory: more than the client has in flight.
const SENT_BYTES: usize = 16 << 20;
/// The mode of directories that we create.
const DIRECTORY_MODE: u32 = 0o755;

/// A name node.
#[derive(Clone, Debug)]
pub struct Hdfs {
    client: Client,
}

impl Hdfs {
    /// The file system of a name node (`host:port`), with Hadoop's settings. Must be created within the tokio runtime that
    /// drives it; nothing is sent before the first call.
    pub fn new(authority: &str, settings: &BTreeMap<String, String>) -> Result<Self, FsError> {
        let url = format!("hdfs://{authority}");
        let mut settings = settings.clone();
        // For a block of 3 copies, Hadoop's own client replaces a lost node only after an append or a flush; this one does so
        // for any block with bytes, and gives up without a fourth node.
        settings.entry(BEST_EFFORT.to_owned()).or_insert_with(|| "true".to_owned());
        let built = ClientBuilder::new()
            .with_url(&url)
            .with_config(settings)
            .with_io_runtime(tokio::runtime::Handle::current())
            .build();
        built.map(|client| Self { client }).map_err(|error| failed("open", &url, &error))
    }
}

/// Checks that a name node accepts connections: the client itself retries for minutes. An address without a port may be a
/// name service, whose hosts are only in the client's settings.
pub fn reach(authority: &str) -> Result<(), FsError> {
    let url = format!("hdfs://{authority}");
    if !authority.contains(':') {
        return Ok(());
    }
    let failed = |error: &io::Error| FsError::new(ErrorKind::Unavailable, "reach", &url, error.to_string());
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in authority.to_socket_addrs().map_err(|error| failed(&error))? {
        match TcpStream::connect_timeout(&address, REACH) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(failed(&last))
}

/// An error of the crate, with the action that failed.
fn failed(action: &'static str, path: &str, error: &HdfsError) -> FsError {
    let kind = match error {
        HdfsError::IOError(error) => return FsError::io(action, path, error),
        HdfsError::FileNotFound(_) => ErrorKind::NotFound,
        HdfsError::AlreadyExists(_) => ErrorKind::AlreadyExists,
        HdfsError::ChecksumError => ErrorKind::Corrupt,
        HdfsError::InvalidPath(_)
        | HdfsError::InvalidArgument(_)
        | HdfsError::UrlParseError(_)
        | HdfsError::IsADirectoryError(_) => ErrorKind::Invalid,
        HdfsError::DataTransferError(_) | HdfsError::BlocksNotFound(_) => ErrorKind::Unavailable,
        HdfsError::UnsupportedFeature(_) | HdfsError::UnsupportedErasureCodingPolicy(_) => ErrorKind::Unsupported,
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => of_class(class, message),
        _ => ErrorKind::Other,
    };
    let text = error.to_string();
    // "All DataNodes failed: [DatanodeInfoProto { … }]": some 600 characters for each node.
    let message = text.lines().next().and_then(|line| line.split(": [DatanodeInfoProto").next()).unwrap_or_default();
    FsError::new(kind, action, path, message)
}

/// Whether a file can be continued after this error: a data node was lost, or has not yet reported an earlier block. The client
/// retries neither at the beginning of a block; Hadoop's own waits for the report.
fn resumable(error: &HdfsError) -> bool {
    match error {
        HdfsError::IOError(_) | HdfsError::DataTransferError(_) => true,
        HdfsError::RPCError(class, _) => class.ends_with(".NotReplicatedYetException"),
        _ => false,
    }
}

/// The kind of an exception of the name node.
fn of_class(class: &str, message: &str) -> ErrorKind {
    match class.rsplit('.').next().unwrap_or(class) {
        "FileNotFoundException" => ErrorKind::NotFound,
        "FileAlreadyExistsException" | "AlreadyBeingCreatedException" => ErrorKind::AlreadyExists,
        "AccessControlException" => ErrorKind::Forbidden,
        "DSQuotaExceededException" | "NSQuotaExceededException" => ErrorKind::NoSpace,
        "SafeModeException" | "StandbyException" | "RetriableException" => ErrorKind::Unavailable,
        "InvalidPathException" | "IllegalArgumentException" | "HadoopIllegalArgumentException" => ErrorKind::Invalid,
        // BlockManager.chooseTarget4NewBlock: too few data nodes, or none with free space.
        _ if message.contains("could only be written to") => ErrorKind::NoSpace,
        // FSNamesystem: a block size below dfs.namenode.fs-limits.min-block-size, a replication beyond the limits.
        _ if message.contains("fs-limits") || message.contains("eplication") => ErrorKind::Invalid,
        _ => ErrorKind::Other,
    }
}

impl FileSystem for Hdfs {
    type Reader = HdfsReader;
    type Writer = HdfsWriter;

    async fn create(&self, path: &str, options: &CreateOptions) -> Result<HdfsWriter, FsError> {
        let how = WriteOptions {
            block_size: options.block_bytes,
            replication: options.replication,
            overwrite: options.overwrite,
            create_parent: options.parents,
            ..WriteOptions::default()
        };
        let file = self.client.create(path, how).await.map_err(|error| failed("create", path, &error))?;
        Ok(HdfsWriter::new(&self.client, file, path, 0, options.buffer_bytes))
    }

    async fn append(&self, path: &str, options: &CreateOptions) -> Result<HdfsWriter, FsError> {
        let at = self.stat(path).await?.bytes;
        let file = self.client.append(path).await.map_err(|error| failed("append to", path, &error))?;
        Ok(HdfsWriter::new(&self.client, file, path, at, options.buffer_bytes))
    }

    async fn open(&self, path: &str, options: OpenOptions) -> Result<HdfsReader, FsError> {
        let file = self.client.read(path).await.map_err(|error| failed("open", path, &error))?;
        Ok(HdfsReader {
            file,
            path: path.to_owned(),
            sequential: options.access == Access::Sequential,
            stream: None,
            at: 0,
            rest: Bytes::new(),
            buffer: BytesMut::with_capacity(options.buffer_bytes),
        })
    }

    async fn stat(&self, path: &str) -> Result<FileStat, FsError> {
        let status = self.client.get_file_info(path).await.map_err(|error| failed("stat", path, &error))?;
        Ok(stat(status))
    }

    async fn list(&self, path: &str) -> Result<Vec<FileStat>, FsError> {
        let listed = self.client.list_status(path, false).await.map_err(|error| failed("list", path, &error))?;
        let mut entries: Vec<_> = listed.into_iter().map(stat).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FsError> {
        self.client.rename(from, to, false).await.map_err(|error| failed("rename", from, &error))
    }

    async fn delete(&self, path: &str) -> Result<bool, FsError> {
        self.client.delete(path, true).await.map_err(|error| failed("delete", path, &error))
    }

    async fn mkdirs(&self, path: &str) -> Result<(), FsError> {
        let made = self.client.mkdirs(path, DIRECTORY_MODE, true).await;
        made.map_err(|error| failed("create the directory", path, &error))
    }

    async fn truncate(&self, path: &str, _bytes: u64) -> Result<(), FsError> {
        Err(FsError::new(ErrorKind::Unsupported, "truncate", path, "the native HDFS client has no truncate")
            .hint("use `hdfs dfs -truncate`, or Hadoop's TestDFSIO -truncate"))
    }
}

fn stat(status: FileStatus) -> FileStat {
    FileStat {
        kind: if status.isdir { FileKind::Directory } else { FileKind::File },
        bytes: status.length as u64,
        replication: status.replication.filter(|_| !status.isdir),
        block_bytes: status.blocksize.filter(|_| !status.isdir),
        path: status.path,
    }
}

/// Reads a file of HDFS.
pub struct HdfsReader {
    file: FileReader,
    path: String,
    sequential: bool,
    /// The packets that follow `rest`, to the end of the file.
    stream: Option<BoxStream<'static, Result<Bytes, HdfsError>>>,
    /// The offset of the first byte of `rest`.
    at: u64,
    /// Bytes received and not requested yet.
    rest: Bytes,
    buffer: BytesMut,
}

impl std::fmt::Debug for HdfsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdfsReader").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Reader for HdfsReader {
    fn len(&self) -> u64 {
        self.file.file_length() as u64
    }

    async fn fetch(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        let end = (offset + bytes as u64).min(self.len());
        self.buffer.clear();
        if offset >= end {
            return Ok(&[]);
        }
        let wanted = (end - offset) as usize;
        if self.stream.is_none() || self.at != offset {
            let until = if self.sequential { self.len() } else { end };
            self.rest = Bytes::new();
            self.at = offset;
            self.stream = Some(self.file.read_range_stream(offset as usize, (until - offset) as usize).boxed());
        }
        while self.buffer.len() < wanted {
            if self.rest.is_empty() {
                let Some(stream) = &mut self.stream else { break };
                match stream.next().await {
                    Some(Ok(packet)) => self.rest = packet,
                    Some(Err(error)) => {
                        self.stream = None;
                        return Err(failed("read", &self.path, &error).at(self.at));
                    }
                    None => break,
                }
            }
            let taken = self.rest.len().min(wanted - self.buffer.len());
            self.buffer.extend_from_slice(&self.rest[..taken]);
            self.rest.advance(taken);
            self.at += taken as u64;
        }
        if self.at >= self.len() || !self.sequential {
            self.stream = None;
        }
        Ok(&self.buffer)
    }
}

/// Writes a file of HDFS.
pub struct HdfsWriter {
    client: Client,
    /// `None` after a failure that could not be recovered from.
    file: Option<FileWriter>,
    path: String,
    at: u64,
    buffer: BytesMut,
    /// Buffers that were passed to the client.
    sent: VecDeque<Bytes>,
}

impl std::fmt::Debug for HdfsWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdfsWriter").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl HdfsWriter {
    fn new(client: &Client, file: FileWriter, path: &str, at: u64, buffer_bytes: usize) -> Self {
        let (buffer, sent) = (BytesMut::zeroed(buffer_bytes), VecDeque::new());
        Self { client: client.clone(), file: Some(file), path: path.to_owned(), at, buffer, sent }
    }

    fn failed(&self, action: &'static str, error: &HdfsError) -> FsError {
        failed(action, &self.path, error).at(self.at)
    }

    /// The open file. Of one that was given up nothing is certain, so nothing may succeed.
    fn opened(&mut self, action: &'static str) -> Result<&mut FileWriter, FsError> {
        self.file.as_mut().ok_or_else(|| {
            FsError::new(ErrorKind::Unavailable, action, &self.path, "an earlier write failed").at(self.at)
        })
    }

    async fn write_bytes(&mut self, bytes: Bytes) -> Result<(), HdfsError> {
        match &mut self.file {
            Some(file) => file.write_bytes(bytes).await.map(|_| ()),
            None => Err(HdfsError::DataTransferError("an earlier write failed".to_owned())),
        }
    }

    /// Continues a file after a block that could not be begun: one of its data nodes is gone, or an earlier block has not been
    /// reported.
    ///
    /// The client replaces a node that is lost within a block; at the beginning of one it gives up. So the file is closed at
    /// its current length and opened for append, until the name node assigns nodes to the next block.
    async fn resume(&mut self, buffer: &Bytes, first: HdfsError) -> Result<(), FsError> {
        let begun = Instant::now();
        let mut last = self.failed("write", &first);
        while begun.elapsed() < RESUME {
            match self.reopen(buffer, begun).await {
                Ok(()) => return Ok(()),
                Err(error) if error.kind == ErrorKind::Rewound => return Err(error),
                Err(error) => last = error,
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Err(last.hint(
            "lower dfs.namenode.heartbeat.recheck-interval, or use fewer copies: the name node still assigns a dead data node",
        ))
    }

    /// Reopens the file, and writes the missing part of a buffer.
    async fn reopen(&mut self, buffer: &Bytes, begun: Instant) -> Result<(), FsError> {
        // Dropped before the next writer is created: this ends the lease of the file.
        self.file = None;
        while !self.client.recover_lease(&self.path).await.map_err(|error| self.failed("recover", &error))? {
            if begun.elapsed() > RESUME {
                return Err(
                    FsError::new(ErrorKind::Timeout, "recover", &self.path, "its lease was not released").at(self.at)
                );
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        let status = self.client.get_file_info(&self.path).await.map_err(|error| self.failed("stat", &error))?;
        let file = self.client.append(&self.path).await.map_err(|error| self.failed("append to", &error))?;
        self.file = Some(file);
        let written = (status.length as u64).checked_sub(self.at).filter(|&bytes| bytes <= buffer.len() as u64);
        let Some(written) = written else {
            let message = format!("{} of {} bytes are left after recovery", status.length, self.at);
            let rewound = FsError::new(ErrorKind::Rewound, "write", &self.path, message).at(self.at);
            self.at = status.length as u64;
            return Err(rewound);
        };
        self.write_bytes(buffer.slice(written as usize..)).await.map_err(|error| self.failed("write", &error))
    }
}

impl Writer for HdfsWriter {
    async fn buffer(&mut self, bytes: usize) -> Result<&mut [u8], FsError> {
        if self.buffer.capacity() < bytes {
            // Reuses an acknowledged buffer, if any: fresh memory costs as much as sending it.
            let free = self.sent.iter().position(Bytes::is_unique).and_then(|first| self.sent.swap_remove_back(first));
            self.buffer = free.and_then(|old| old.try_into_mut().ok()).unwrap_or_default();
        }
        self.buffer.resize(bytes, 0);
        Ok(&mut self.buffer)
    }

    async fn submit(&mut self) -> Result<(), FsError> {
        let bytes = self.buffer.len();
        let buffer = std::mem::take(&mut self.buffer).freeze();
        let written = match self.write_bytes(buffer.clone()).await {
            Err(error) if resumable(&error) => self.resume(&buffer, error).await,
            other => other.map_err(|error| self.failed("write", &error)),
        };
        // The client keeps a reference until it is acknowledged.
        self.sent.push_back(buffer);
        if self.sent.len() > 1 + SENT_BYTES / bytes.max(1) {
            self.sent.pop_front();
        }
        written?;
        self.at += bytes as u64;
        Ok(())
    }

    fn position(&self) -> u64 {
        self.at
    }

    async fn seek(&mut self, offset: u64) -> Result<(), FsError> {
        if offset == self.at {
            return Ok(());
        }
        let message = "HDFS supports only sequential writes";
        Err(FsError::new(ErrorKind::Unsupported, "write", &self.path, message).at(offset).hint("write sequentially"))
    }

    async fn flush(&mut self) -> Result<(), FsError> {
        Err(FsError::new(ErrorKind::Unsupported, "flush", &self.path, "the native HDFS client has no hflush")
            .hint("use hsync, which guarantees more, or no flush at all"))
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        let synced = self.opened("sync")?.hsync().await;
        synced.map_err(|error| self.failed("sync", &error))
    }

    async fn complete(&mut self) -> Result<(), FsError> {
        let closed = self.opened("close")?.close().await;
        match closed {
            Err(error) if resumable(&error) => {
                self.resume(&Bytes::new(), error).await?;
                Err(FsError::new(ErrorKind::Rewound, "close", &self.path, "it was recovered and is open again")
                    .at(self.at))
            }
            other => other.map_err(|error| self.failed("close", &error)),
        }
    }

    async fn close(mut self) -> Result<(), FsError> {
        let closed = self.opened("close")?.close().await;
        closed.map_err(|error| self.failed("close", &error))
    }
}
