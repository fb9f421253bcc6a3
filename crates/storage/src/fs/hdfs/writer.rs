//! Writes files to HDFS.
//!
//! A new plain file is written directly to its data nodes ([`BlockWriter`]). The crate `hdfs-native` handles everything
//! else: appends, striped or encrypted files, protected clusters, and the remainder of a file with a block that has
//! lost all its data nodes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use hdfs_native::file::FileWriter;
use hdfs_native::{Client, HdfsError};

use super::block_writer::BlockWriter;
use super::error::action_error;
use super::name_node::NameNode;
use super::write_messages::{Created, GetFileInfo};
use crate::fs::Writer;
use crate::fs::error::{FsError, FsErrorKind};

/// Time limit for retries when a block cannot be started. If the name node asked a dead data node to recover a block,
/// the name node asks another data node after 30 heartbeats (`BlockManager.getBlockRecoveryTimeout`), which take 90 s
/// by default.
const RESUME: Duration = Duration::from_secs(150);
/// The pause between these retries.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Bytes of sent buffers that are kept to reuse their memory: more than the client has in flight.
const SENT_BYTES: usize = 16 << 20;

/// Whether a file can be continued after this error: its data nodes were lost, or have not yet reported an earlier
/// block. When a block is started, `hdfs-native` retries in neither case; Hadoop's client waits for the report.
fn is_resumable(error: &HdfsError) -> bool {
    match error {
        HdfsError::IOError(_) | HdfsError::DataTransferError(_) => true,
        HdfsError::RPCError(class, _) => class.ends_with(".NotReplicatedYetException"),
        _ => false,
    }
}

/// Writer of a file on HDFS.
pub struct HdfsWriter {
    client: Client,
    direct: Option<BlockWriter>,
    /// The name node of a file that was written directly, and the file's number there.
    identity: Option<(Arc<NameNode>, u64)>,
    /// `hdfs-native`'s writer of the file. If there is neither this writer nor a direct writer, an earlier write has
    /// failed.
    file: Option<FileWriter>,
    path: String,
    at: u64,
    buffer: BytesMut,
    /// Buffers that were passed to the client.
    sent: VecDeque<Bytes>,
    /// Number of times that the file was reopened.
    retries: u64,
    completed: bool,
}

impl std::fmt::Debug for HdfsWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdfsWriter").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl HdfsWriter {
    pub(super) fn new(client: &Client, file: FileWriter, path: &str, at: u64, buffer_bytes: usize) -> Self {
        let mut writer = Self::for_file(client, path, at);
        writer.file = Some(file);
        writer.buffer = BytesMut::zeroed(buffer_bytes);
        writer
    }

    /// A writer for a new file that is written directly.
    pub(super) fn direct(client: &Client, direct: BlockWriter, path: &str) -> Self {
        let mut writer = Self::for_file(client, path, 0);
        writer.identity = Some(direct.identity());
        writer.direct = Some(direct);
        writer
    }

    fn for_file(client: &Client, path: &str, at: u64) -> Self {
        Self {
            client: client.clone(),
            direct: None,
            identity: None,
            file: None,
            path: path.to_owned(),
            at,
            buffer: BytesMut::new(),
            sent: VecDeque::new(),
            retries: 0,
            completed: false,
        }
    }

    fn action_error(&self, action: &'static str, error: &HdfsError) -> FsError {
        action_error(action, &self.path, error).with_offset(self.at)
    }

    /// The open file. The state of an abandoned file is unknown, so no operation on it may succeed.
    fn open_file(&mut self, action: &'static str) -> Result<&mut FileWriter, FsError> {
        self.file.as_mut().ok_or_else(|| {
            FsError::new(FsErrorKind::Unavailable, action, &self.path, "an earlier write failed").with_offset(self.at)
        })
    }

    /// Hands over to `hdfs-native` a file whose data nodes were lost, together with the unwritten part of a buffer.
    async fn hand_over(&mut self, action: &'static str, buffer: &Bytes, error: HdfsError) -> Result<(), FsError> {
        self.direct = None;
        if is_resumable(&error) {
            self.resume_file(buffer, error).await
        } else {
            Err(self.action_error(action, &error))
        }
    }

    async fn write_bytes(&mut self, bytes: Bytes) -> Result<(), HdfsError> {
        match &mut self.file {
            Some(file) => file.write_bytes(bytes).await.map(|_| ()),
            None => Err(HdfsError::DataTransferError("an earlier write failed".to_owned())),
        }
    }

    /// Continues a file whose data nodes were lost or have not yet reported an earlier block.
    ///
    /// Repeatedly closes the file at its current length and opens it for append, until the name node assigns nodes to
    /// the next block.
    async fn resume_file(&mut self, buffer: &Bytes, first: HdfsError) -> Result<(), FsError> {
        let start = Instant::now();
        let mut last = self.action_error("write", &first);
        while start.elapsed() < RESUME {
            match self.reopen(buffer, start).await {
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.kind, FsErrorKind::Rewound | FsErrorKind::NotFound) => return Err(error),
                Err(error) => last = error,
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Err(last.hint(
            "lower dfs.namenode.heartbeat.recheck-interval, or use fewer copies: the name node still assigns a dead data node",
        ))
    }

    /// Fails if the path no longer refers to the file.
    async fn check_identity(&self) -> Result<(), FsError> {
        let Some((name_node, number)) = &self.identity else { return Ok(()) };
        let request = GetFileInfo { path: self.path.clone() };
        let reply = name_node.call_method::<Created>("getFileInfo", &request).await;
        let reply = reply.map_err(|error| self.action_error("stat", &error))?.status;
        if reply.and_then(|status| status.id) == Some(*number) {
            return Ok(());
        }
        let message = "it was deleted or replaced while it was being written";
        Err(FsError::new(FsErrorKind::NotFound, "write", &self.path, message).with_offset(self.at))
    }

    /// Reopens the file and writes the unwritten part of a buffer.
    async fn reopen(&mut self, buffer: &Bytes, start: Instant) -> Result<(), FsError> {
        // The old writer is dropped before the next writer is created, because dropping it ends the lease of the file.
        self.file = None;
        self.retries += 1;
        self.check_identity().await?;
        while !self.client.recover_lease(&self.path).await.map_err(|error| self.action_error("recover", &error))? {
            if start.elapsed() > RESUME {
                return Err(FsError::new(FsErrorKind::Timeout, "recover", &self.path, "its lease was not released")
                    .with_offset(self.at));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        let status = self.client.get_file_info(&self.path).await.map_err(|error| self.action_error("stat", &error))?;
        let file = self.client.append(&self.path).await.map_err(|error| self.action_error("append to", &error))?;
        self.check_identity().await?;
        self.file = Some(file);
        let written = (status.length as u64).checked_sub(self.at).filter(|&bytes| bytes <= buffer.len() as u64);
        let Some(written) = written else {
            let message = format!("{} of {} bytes are left after recovery", status.length, self.at);
            let rewound = FsError::new(FsErrorKind::Rewound, "write", &self.path, message).with_offset(self.at);
            self.at = status.length as u64;
            return Err(rewound);
        };
        self.write_bytes(buffer.slice(written as usize..)).await.map_err(|error| self.action_error("write", &error))
    }
}

impl Writer for HdfsWriter {
    async fn reserve_buffer(&mut self, bytes: usize) -> Result<&mut [u8], FsError> {
        if let Some(direct) = &mut self.direct {
            return Ok(direct.buffer(bytes));
        }
        if self.buffer.capacity() < bytes {
            // Reuses an acknowledged buffer if there is one: allocating new memory costs as much as sending its
            // contents.
            let free = self.sent.iter().position(Bytes::is_unique).and_then(|first| self.sent.swap_remove_back(first));
            self.buffer = free.and_then(|old| old.try_into_mut().ok()).unwrap_or_default();
        }
        self.buffer.resize(bytes, 0);
        Ok(&mut self.buffer)
    }

    async fn submit_buffer(&mut self) -> Result<(), FsError> {
        if let Some(direct) = &mut self.direct {
            let written = direct.submit().await;
            let buffer = direct.buffer_filled();
            let bytes = buffer.len() as u64;
            if let Err(error) = written {
                let buffer = Bytes::copy_from_slice(buffer);
                self.hand_over("write", &buffer, error).await?;
            }
            self.at += bytes;
            return Ok(());
        }
        let bytes = self.buffer.len();
        let buffer = std::mem::take(&mut self.buffer).freeze();
        let written = match self.write_bytes(buffer.clone()).await {
            Err(error) if is_resumable(&error) => self.resume_file(&buffer, error).await,
            other => other.map_err(|error| self.action_error("write", &error)),
        };
        // The client holds a reference until the buffer is acknowledged.
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

    fn retry_count(&self) -> u64 {
        self.retries
    }

    async fn seek_to(&mut self, offset: u64) -> Result<(), FsError> {
        if offset == self.at {
            return Ok(());
        }
        let message = "HDFS supports only sequential writes";
        Err(FsError::new(FsErrorKind::Unsupported, "write", &self.path, message)
            .with_offset(offset)
            .hint("write sequentially"))
    }

    async fn flush(&mut self) -> Result<(), FsError> {
        if let Some(direct) = &mut self.direct {
            let Err(error) = direct.flush(false).await else { return Ok(()) };
            self.hand_over("flush", &Bytes::new(), error).await?;
        }
        // `hdfs-native` has no hflush. Bytes that were handed over to `hdfs-native` are synced instead, which is a
        // stronger guarantee.
        if self.retries > 0 {
            return self.sync().await;
        }
        Err(FsError::new(FsErrorKind::Unsupported, "flush", &self.path, "the native HDFS client has no hflush here")
            .hint("use hsync, which guarantees more, or no flush at all"))
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        if let Some(direct) = &mut self.direct {
            let Err(error) = direct.flush(true).await else { return Ok(()) };
            self.hand_over("sync", &Bytes::new(), error).await?;
        }
        let synced = self.open_file("sync")?.hsync().await;
        synced.map_err(|error| self.action_error("sync", &error))
    }

    async fn complete_file(&mut self) -> Result<(), FsError> {
        if self.completed {
            return Ok(());
        }
        let closed = match &mut self.direct {
            Some(direct) => direct.complete().await,
            None => self.open_file("close")?.close().await,
        };
        let Err(error) = closed else {
            self.completed = true;
            return Ok(());
        };
        self.hand_over("close", &Bytes::new(), error).await?;
        Err(FsError::new(FsErrorKind::Rewound, "close", &self.path, "it was recovered and is open again")
            .with_offset(self.at))
    }

    async fn close(mut self) -> Result<(), FsError> {
        if self.direct.is_some() {
            return self.complete_file().await;
        }
        let closed = self.open_file("close")?.close().await;
        closed.map_err(|error| self.action_error("close", &error))
    }
}
