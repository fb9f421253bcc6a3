//! Reads files from HDFS.
//!
//! When a file is read from start to end, its blocks are read directly from their data nodes ([`BlockReader`]). The
//! crate `hdfs-native` handles everything else: striped or encrypted files, protected clusters, files with a block that
//! has lost all its data nodes, and reads in any other order. `hdfs-native` has its own retries and errors.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::stream::BoxStream;
use futures::{StreamExt, TryFutureExt};
use hdfs_native::file::FileReader;
use hdfs_native::{Client, HdfsError};

use super::block_reader::BlockReader;
use super::data_node::DataNode;
use super::error::{action_error, note_data_node_failure};
use super::messages::{LocatedBlock, LocatedFile, invalid};
use super::name_node::NameNode;
use crate::fs::error::{FsError, FsErrorKind};
use crate::fs::{AccessHint, OpenOptions, Reader};

/// The waits before new requests to the name node for the location of a block, after all of the block's data nodes have
/// failed. Hadoop's client makes three such requests (`dfs.client.max.block.acquire.failures`) with the same mean wait
/// (`DFSInputStream.refetchLocations`); `hdfs-native` makes none.
const READ_RETRY_WAITS: [Duration; 3] =
    [Duration::from_millis(1500), Duration::from_secs(6), Duration::from_millis(10_500)];

/// Maximum number of idle connections of a reader, in addition to the connection in use ([`crate::store`] counts both).
const IDLE_MAX: usize = 2;

/// Reader of a file on HDFS.
pub struct HdfsReader {
    client: Client,
    path: String,
    sequential: bool,
    bytes: u64,
    /// The offset of the next byte to receive.
    at: u64,
    direct: Option<DirectReader>,
    /// `hdfs-native`'s reader of the file, created when it is first needed.
    file: Option<FileReader>,
    /// The stream of packets that `hdfs-native` delivers after the bytes in `rest`: up to the end of the file with
    /// sequential access, otherwise up to the end of the request.
    stream: Option<BoxStream<'static, Result<Bytes, HdfsError>>>,
    /// Bytes received from `hdfs-native` but not requested yet.
    rest: Bytes,
    buffer: Vec<u8>,
    /// Number of repeated requests to the name node.
    retries: u64,
}

impl std::fmt::Debug for HdfsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdfsReader").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl HdfsReader {
    pub(super) async fn open(
        client: &Client,
        name_node: &Arc<NameNode>,
        path: &str,
        options: OpenOptions,
    ) -> Result<Self, FsError> {
        let sequential = options.access == AccessHint::Sequential;
        let located = if sequential { name_node.locate_file(path).await } else { None };
        let mut reader = Self {
            client: client.clone(),
            path: path.to_owned(),
            sequential,
            bytes: 0,
            at: 0,
            direct: None,
            file: None,
            stream: None,
            rest: Bytes::new(),
            buffer: vec![0; options.buffer_bytes],
            retries: 0,
        };
        if let Some(file) = located {
            reader.bytes = file.bytes;
            let name_node = Arc::clone(name_node);
            reader.direct = Some(DirectReader { name_node, file, reading: None, idle: Vec::new(), failed: Vec::new() });
        } else {
            let file = reader.open_by_crate().await?;
            reader.bytes = file.file_length() as u64;
            reader.file = Some(file);
        }
        Ok(reader)
    }

    /// Opens the file through `hdfs-native`, which requests its blocks from the name node.
    async fn open_by_crate(&mut self) -> Result<FileReader, FsError> {
        self.client.read(&self.path).await.map_err(|error| self.action_error("open", &error))
    }

    /// Reopens a file whose length is already known.
    async fn reopen(&mut self) -> Result<FileReader, FsError> {
        let file = self.open_by_crate().await?;
        let (before, now) = (self.bytes, file.file_length() as u64);
        if now != before {
            let message = format!("its length changed from {before} to {now} bytes");
            return Err(FsError::new(FsErrorKind::Other, "read", &self.path, message).with_offset(self.at));
        }
        Ok(file)
    }

    /// Returns the next packet of the bytes from the current offset to `end`. After an error of the data nodes, the
    /// block locations are requested again.
    async fn next_packet(&mut self, end: u64) -> Result<Option<Bytes>, FsError> {
        let mut waits = READ_RETRY_WAITS.into_iter();
        loop {
            if self.stream.is_none() {
                let file = match self.file.take() {
                    Some(file) => file,
                    None => self.reopen().await?,
                };
                self.stream = Some(file.read_range_stream(self.at as usize, (end - self.at) as usize).boxed());
                self.file = Some(file);
            }
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let error = match stream.next().await.transpose() {
                Ok(packet) => return Ok(packet),
                Err(error) => error,
            };
            self.stream = None;
            let error = self.action_error("read", &error);
            let Some(wait) = waits.next().filter(|_| error.kind == FsErrorKind::Unavailable) else { return Err(error) };
            self.retries += 1;
            tokio::time::sleep(wait).await;
            // Failed data nodes are tried again as well.
            self.file = None;
        }
    }

    fn action_error(&self, action: &'static str, error: &HdfsError) -> FsError {
        action_error(action, &self.path, error).with_offset(self.at)
    }
}

impl Reader for HdfsReader {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn retry_count(&self) -> u64 {
        self.retries
    }

    async fn fetch_bytes(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        let end = (offset + bytes as u64).min(self.bytes);
        if offset >= end {
            return Ok(&[]);
        }
        let len = (end - offset) as usize;
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        if self.at != offset {
            self.rest = Bytes::new();
            self.at = offset;
            self.stream = None;
            if let Some(direct) = &mut self.direct {
                direct.reading = None;
            }
        }
        let mut filled = 0;
        if let Some(direct) = &mut self.direct {
            if direct.read(self.at, &mut self.buffer[..len], &mut filled).await.is_err() {
                direct.name_node.data_nodes_failed();
                self.direct = None;
            }
            self.at += filled as u64;
        }
        let until = if self.sequential { self.bytes } else { end };
        while filled < len {
            if self.rest.is_empty() {
                match self.next_packet(until).await? {
                    Some(packet) => self.rest = packet,
                    None => break,
                }
            }
            let copied = self.rest.len().min(len - filled);
            self.buffer[filled..filled + copied].copy_from_slice(&self.rest[..copied]);
            self.rest.advance(copied);
            self.at += copied as u64;
            filled += copied;
        }
        if self.at >= self.bytes || !self.sequential {
            self.stream = None;
        }
        Ok(&self.buffer[..filled])
    }
}

/// A file whose blocks are read directly from their data nodes.
struct DirectReader {
    name_node: Arc<NameNode>,
    file: LocatedFile,
    reading: Option<BlockReader>,
    /// Connections that are ready for requests, the most recently used last.
    idle: Vec<DataNode>,
    /// The addresses of data nodes that failed. They are not tried again.
    failed: Vec<String>,
}

impl DirectReader {
    /// Fills a buffer with the bytes after an offset, and counts them in `filled`. After a failure, continues with
    /// another data node of the block; fails if there is none.
    async fn read(&mut self, at: u64, into: &mut [u8], filled: &mut usize) -> io::Result<()> {
        while *filled < into.len() {
            let mut reading = match self.reading.take() {
                Some(reading) => reading,
                None => self.begin_read(at + *filled as u64).await?,
            };
            match reading.read(&mut into[*filled..]).await {
                Ok(bytes) => *filled += bytes,
                Err(error) => {
                    note_failure(&mut self.failed, reading.address(), &error);
                    continue;
                }
            }
            if !reading.is_done() {
                self.reading = Some(reading);
            } else if let Ok(idle) = reading.finish().await {
                // It is not a failure if the connection cannot be reused: all bytes were read.
                self.idle.push(idle);
                if self.idle.len() > IDLE_MAX {
                    self.idle.remove(0);
                }
            }
        }
        Ok(())
    }

    /// Requests the part of a block from `at` to the block's end.
    async fn begin_read(&mut self, at: u64) -> io::Result<BlockReader> {
        let holds = |block: &&LocatedBlock| (block.offset..block.offset + block.block.bytes).contains(&at);
        let Some(block) = self.file.blocks.iter().find(holds) else { return Err(invalid("no block has this offset")) };
        let offset = at - block.offset;
        for node in &block.nodes {
            let address = self.name_node.address_of(node);
            if self.failed.contains(&address) {
                continue;
            }
            if let Some(idle) = self.idle.iter().position(|idle| idle.address == address)
                && let Ok(reading) = BlockReader::request(self.idle.swap_remove(idle), block, offset).await
            {
                return Ok(reading);
            }
            let node = DataNode::connect(address.clone(), self.name_node.timeout);
            match node.and_then(|node| BlockReader::request(node, block, offset)).await {
                Ok(reading) => {
                    self.name_node.data_node_answered();
                    return Ok(reading);
                }
                Err(error) => note_failure(&mut self.failed, &address, &error),
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "no data node of the block is left"))
    }
}

fn note_failure(failed: &mut Vec<String>, address: &str, error: &io::Error) {
    note_data_node_failure(format!("Failed to read from DataNode {address}: {error}"));
    failed.push(address.to_owned());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fs::FileSystem;
    use crate::fs::hdfs::Hdfs;
    use crate::fs::hdfs::name_node::tests::serve;
    use crate::fs::hdfs::scripted_data_node::Script;

    /// A file of two blocks on scripted servers, which reply to `hdfs-native` that the file does not exist.
    async fn file(first: Script, second: Script) -> (Vec<u8>, HdfsReader) {
        let content = [first.content.clone(), second.content.clone()].concat();
        let end_of_first = first.content.len() as u64;
        let blocks = vec![first.serve(0).await, second.serve(end_of_first).await];
        let located = LocatedFile { bytes: content.len() as u64, blocks, ..LocatedFile::default() };
        let hdfs = Hdfs::new(&serve(Some(located)).await, &BTreeMap::new()).unwrap();
        (content, hdfs.open("/file", OpenOptions { buffer_bytes: 70_000, ..OpenOptions::default() }).await.unwrap())
    }

    #[tokio::test]
    async fn reads_cross_blocks_and_seek() {
        let (content, mut reader) = file(Script::new(300_001), Script::new(100_000)).await;
        assert_eq!(reader.len(), 400_001);
        let mut at = 0;
        while at < content.len() {
            let read = reader.fetch_bytes(at as u64, 70_000).await.unwrap();
            assert!(read == &content[at..(at + 70_000).min(content.len())]);
            at += read.len();
        }
        assert!(reader.fetch_bytes(299_999, 5).await.unwrap() == &content[299_999..300_004]);
        assert!(reader.fetch_bytes(17, 200_000).await.unwrap() == &content[17..200_017]);
        assert!(reader.fetch_bytes(400_001, 1).await.unwrap().is_empty());
        assert!(reader.direct.is_some() && reader.file.is_none());
    }

    #[tokio::test]
    async fn failed_read_continues_on_another_data_node() {
        for broken in [
            Script { flipped: Some(250_000), ..Script::new(300_001) },
            Script { sent: 200_000, ..Script::new(300_001) },
            Script { sent: 0, ..Script::new(300_001) },
        ] {
            let (content, mut block) = (broken.content.clone(), broken.serve(0).await);
            block.nodes.extend(Script::new(300_001).serve(0).await.nodes);
            let located = LocatedFile { bytes: 300_001, blocks: vec![block], ..LocatedFile::default() };
            let hdfs = Hdfs::new(&serve(Some(located)).await, &BTreeMap::new()).unwrap();
            let mut reader = hdfs.open("/file", OpenOptions::default()).await.unwrap();
            let before = crate::fs::hdfs::data_node_failures();
            for (n, expected) in content.chunks(70_000).enumerate() {
                assert!(reader.fetch_bytes(n as u64 * 70_000, 70_000).await.unwrap() == expected);
            }
            assert!(reader.direct.as_ref().is_some_and(|direct| direct.failed.len() == 1) && reader.file.is_none());
            assert!(crate::fs::hdfs::data_node_failures() > before);
            // The failed node is not tried again.
            assert!(reader.fetch_bytes(0, 300_001).await.unwrap() == content);
        }
    }

    #[tokio::test]
    async fn crate_reads_after_the_last_data_node() {
        let before = crate::fs::hdfs::data_node_failures();
        let (content, mut reader) =
            file(Script::new(300_000), Script { flipped: Some(9), ..Script::new(10_000) }).await;
        assert!(reader.fetch_bytes(0, 300_000).await.unwrap() == &content[..300_000]);
        assert_eq!(reader.fetch_bytes(300_000, 10_000).await.unwrap_err().kind, FsErrorKind::NotFound);
        assert!(reader.direct.is_none());
        assert!(crate::fs::hdfs::data_node_failures() > before);
    }

    #[tokio::test]
    async fn crate_reads_the_file_after_unreachable_nodes() {
        for bytes in [0, usize::MAX] {
            let silent = Script { sent: bytes, ..Script::new(5_000) };
            let located = LocatedFile { bytes: 5_000, blocks: vec![silent.serve(0).await], ..LocatedFile::default() };
            let hdfs = Hdfs::new(&serve(Some(located)).await, &BTreeMap::new()).unwrap();
            let mut reader = hdfs.open("/a", OpenOptions::default()).await.unwrap();
            let read = reader.fetch_bytes(0, 5_000).await;
            assert_eq!(read.is_ok(), bytes > 0);
            assert_eq!(hdfs.open("/b", OpenOptions::default()).await.is_ok(), bytes > 0);
        }
    }
}
