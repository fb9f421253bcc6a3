//! Reads of a file of HDFS.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use hdfs_native::file::FileReader;
use hdfs_native::{Client, HdfsError};

use super::error::failed;
use crate::fs::error::{ErrorKind, FsError};
use crate::fs::{Access, OpenOptions, Reader};

/// How long a read waits before each time that it asks the name node anew where a block is, after all of the block's data nodes
/// failed. Hadoop's own client does so three times (`dfs.client.max.block.acquire.failures`) and waits as long on average
/// (`DFSInputStream.refetchLocations`); the crate does not.
const READ_RETRY_WAITS: [Duration; 3] =
    [Duration::from_millis(1500), Duration::from_secs(6), Duration::from_millis(10_500)];

/// Reads a file of HDFS.
pub struct HdfsReader {
    client: Client,
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
    /// How often the name node was asked again.
    retries: u64,
}

impl std::fmt::Debug for HdfsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdfsReader").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl HdfsReader {
    pub(super) async fn open(client: &Client, path: &str, options: OpenOptions) -> Result<Self, FsError> {
        let file = client.read(path).await.map_err(|error| failed("open", path, &error))?;
        Ok(Self {
            client: client.clone(),
            file,
            path: path.to_owned(),
            sequential: options.access == Access::Sequential,
            stream: None,
            at: 0,
            rest: Bytes::new(),
            buffer: BytesMut::with_capacity(options.buffer_bytes),
            retries: 0,
        })
    }

    /// The next packet of the stream that ends before `end`. After an error of the data nodes, asks the name node again.
    async fn next_packet(&mut self, end: u64) -> Result<Option<Bytes>, FsError> {
        let mut waits = READ_RETRY_WAITS.into_iter();
        loop {
            let (file, at) = (&self.file, self.at);
            let stream =
                self.stream.get_or_insert_with(|| file.read_range_stream(at as usize, (end - at) as usize).boxed());
            let error = match stream.next().await.transpose() {
                Ok(packet) => return Ok(packet),
                Err(error) => error,
            };
            self.stream = None;
            let error = self.failed("read", &error);
            let Some(wait) = waits.next().filter(|_| error.kind == ErrorKind::Unavailable) else { return Err(error) };
            self.retries += 1;
            tokio::time::sleep(wait).await;
            self.reopen().await?;
        }
    }

    /// Asks the name node for the blocks again. Data nodes that failed are tried again, too.
    async fn reopen(&mut self) -> Result<(), FsError> {
        let before = self.len();
        self.file = self.client.read(&self.path).await.map_err(|error| self.failed("open", &error))?;
        if self.len() != before {
            let message = format!("its length changed from {before} to {} bytes", self.len());
            return Err(FsError::new(ErrorKind::Other, "read", &self.path, message).at(self.at));
        }
        Ok(())
    }

    fn failed(&self, action: &'static str, error: &HdfsError) -> FsError {
        failed(action, &self.path, error).at(self.at)
    }
}

impl Reader for HdfsReader {
    fn len(&self) -> u64 {
        self.file.file_length() as u64
    }

    fn retries(&self) -> u64 {
        self.retries
    }

    async fn fetch(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        let end = (offset + bytes as u64).min(self.len());
        self.buffer.clear();
        if offset >= end {
            return Ok(&[]);
        }
        let wanted = (end - offset) as usize;
        if self.stream.is_none() || self.at != offset {
            self.rest = Bytes::new();
            self.at = offset;
            self.stream = None;
        }
        let until = if self.sequential { self.len() } else { end };
        while self.buffer.len() < wanted {
            if self.rest.is_empty() {
                match self.next_packet(until).await? {
                    Some(packet) => self.rest = packet,
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
