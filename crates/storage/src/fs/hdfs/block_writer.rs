//! Writes a new file to its data nodes, block by block; each block goes through a pipeline of data nodes.
//!
//! As with reads, system calls and copies account for most of the cost. So packets are sent from the caller's buffers,
//! many at a time, and acknowledgements are received many at a time, by the caller's task. Failures within a block are
//! repaired as in Hadoop's client (`DataStreamer`), with one difference: a lost data node is not replaced. By default,
//! Hadoop replaces a data node when at most half of the copies remain, or after a flush.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crc_fast::CrcAlgorithm;
use hdfs_native::HdfsError;
use tokio::time::Instant;

use super::error::note_data_node_failure;
use super::lease::OpenFile;
use super::messages::{BaseHeader, Checksum, ClientHeader, DataNodeInfo, ExtendedBlock, LocatedBlock};
use super::name_node::NameNode;
use super::packets::{PacketLayout, Packets};
use super::pipeline::{Pipeline, PipelineFault};
use super::write_messages::{
    AbandonBlock, AddBlock, BlockAnswer, Complete, Completed, Create, Created, Delete, Empty, Fsync, Permission,
    PipelineStage, UpdateBlock, UpdatePipeline, WriteBlock,
};
use crate::fs::CreateOptions;

/// The mode of new files, as in the crate `hdfs-native`, and in Hadoop with the usual umask.
const FILE_MODE: u32 = 0o644;
/// Time for which a data node is excluded after a failure to connect to it
/// (`dfs.client.write.exclude.nodes.cache.expiry.interval.millis`).
const EXCLUDED: Duration = Duration::from_secs(600);
/// Extra timeout for each data node of a pipeline (`HdfsConstants.READ_TIMEOUT_EXTENSION`).
const TIMEOUT_EXTENSION: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(5) };
/// Hadoop's first wait for a block to be reported (`dfs.client.block.write.locateFollowingBlock.initial.delay.ms`). The
/// wait doubles each time.
const REPORT_PAUSE: Duration = Duration::from_millis(400);
/// Maximum number of retries when the next block is requested (`dfs.client.block.write.locateFollowingBlock.retries`).
const NEXT_BLOCK_RETRIES: u32 = 5;
/// Maximum number of retries when the file is completed: 100 s in total.
const COMPLETE_RETRIES: u32 = 8;

/// The settings of a write.
#[derive(Clone, Copy, Debug)]
struct BlockSettings {
    layout: PacketLayout,
    /// Maximum number of packets in flight.
    window: usize,
    /// Maximum number of times that a block is restarted.
    retries: u32,
}

impl BlockSettings {
    /// Reads the settings by Hadoop's names; `None` if this writer does not support a value, such as a checksum type of
    /// `NULL`.
    fn from_hadoop(settings: &BTreeMap<String, String>) -> Option<Self> {
        let number = |name: &str, default| settings.get(name).map_or(Some(default), |value| value.parse().ok());
        let algorithm = match settings.get("dfs.checksum.type").map_or("CRC32C", String::as_str) {
            "CRC32C" => CrcAlgorithm::Crc32Iscsi,
            "CRC32" => CrcAlgorithm::Crc32IsoHdlc,
            _ => return None,
        };
        let packet = number("dfs.client-write-packet-size", 65_536).filter(|bytes| *bytes <= 16 << 20)?;
        let chunk = number("dfs.bytes-per-checksum", 512).filter(|bytes| (1..=1 << 20).contains(bytes))?;
        let window = number("dfs.client.write.max-packets-in-flight", 80).filter(|packets| *packets > 0)?;
        let retries = number("dfs.client.block.write.retries", 3)? as u32;
        Some(Self { layout: PacketLayout::new(packet, chunk, algorithm), window, retries })
    }
}

/// Writer of a file.
#[derive(Debug)]
pub(super) struct BlockWriter {
    name_node: Arc<NameNode>,
    settings: BlockSettings,
    path: String,
    /// The file's number.
    file: u64,
    block_bytes: u64,
    /// Whether the data nodes sync each complete block (`CreateFlag.SYNC_BLOCK`, which is not sent to the name node).
    sync_blocks: bool,
    /// Whether the data nodes have synced all bytes of the block.
    synced: bool,
    packets: Packets,
    /// Size of the caller's buffer, in bytes.
    buffer_bytes: usize,
    open: Arc<OpenFile>,
    /// The block that is being written, with its remaining data nodes.
    block: Option<LocatedBlock>,
    pipeline: Option<Pipeline>,
    /// The preceding block, with its final length.
    previous: Option<ExtendedBlock>,
    /// Whether the name node has the block in its log; the block is visible to readers only then.
    logged: bool,
    /// Data nodes to which no connection could be made, with the time of the failure.
    excluded: Vec<(Instant, DataNodeInfo)>,
}

impl BlockWriter {
    /// Creates a file. Returns `None`, and leaves no file behind, if the crate `hdfs-native` must create the file.
    pub async fn create(
        name_node: &Arc<NameNode>,
        settings: &BTreeMap<String, String>,
        path: &str,
        options: &CreateOptions,
    ) -> Result<Option<Self>, HdfsError> {
        let Some(settings) = BlockSettings::from_hadoop(settings).filter(|_| name_node.is_usable()) else {
            return Ok(None);
        };
        let created = match create(name_node, path, options).await {
            // `hdfs-native` then tries to create the file, and reports the failure if the creation fails again.
            Err(HdfsError::IOError(_)) => {
                name_node.give_up();
                return Ok(None);
            }
            // The file is in an encryption zone, but this client did not announce support for encryption.
            Err(HdfsError::RPCError(class, _)) if class.ends_with(".UnknownCryptoProtocolVersionException") => {
                return Ok(None);
            }
            other => other?,
        };
        let Some(Created { status }) = created else { return Ok(None) };
        let plain = status.filter(|status| status.encryption.is_none() && status.erasure_coding.is_none());
        let Some((block_bytes, file)) = plain.and_then(|status| status.block_bytes.zip(status.id)) else {
            let delete = Delete { path: path.to_owned(), recursive: false };
            name_node.call_method::<Empty>("delete", &delete).await?;
            return Ok(None);
        };
        Ok(Some(Self {
            packets: Packets::new(settings.layout, Arc::clone(&name_node.memory)),
            open: name_node.open_files.add_file(name_node),
            name_node: Arc::clone(name_node),
            settings,
            path: path.to_owned(),
            file,
            block_bytes: block_bytes.max(1),
            sync_blocks: options.sync_blocks,
            synced: false,
            buffer_bytes: 0,
            block: None,
            pipeline: None,
            previous: None,
            logged: true,
            excluded: Vec::new(),
        }))
    }

    /// The name node and the file's number there, because the path may later refer to a different file.
    pub fn identity(&self) -> (Arc<NameNode>, u64) {
        (Arc::clone(&self.name_node), self.file)
    }

    /// A buffer to fill.
    pub fn buffer(&mut self, bytes: usize) -> &mut [u8] {
        self.buffer_bytes = bytes;
        self.packets.reserve_buffer(bytes)
    }

    /// The filled buffer, even after a failure to write it.
    pub fn buffer_filled(&self) -> &[u8] {
        self.packets.last_filled(self.buffer_bytes)
    }

    /// Writes the filled buffer by sending its complete packets.
    pub async fn submit(&mut self) -> Result<(), HdfsError> {
        self.packets.accept_filled(self.buffer_bytes);
        self.synced = false;
        while self.packets.cut_packets(self.block_bytes) {
            self.end_block(false).await?;
        }
        self.drive_pipeline(usize::MAX).await
    }

    /// Waits until all data nodes have received all bytes; with `sync`, until the bytes are on their devices.
    pub async fn flush(&mut self, sync: bool) -> Result<(), HdfsError> {
        if self.packets.block_bytes() == self.block_bytes {
            // Hadoop's client ends a full block without syncing it.
            self.end_block(sync).await?;
        } else if self.packets.bytes_without_packet() > 0 || (sync && self.packets.block_bytes() > 0) {
            self.packets.cut_rest(sync);
        }
        self.drive_pipeline(0).await?;
        self.synced = sync;
        if !self.logged {
            let (path, client) = (self.path.clone(), self.name_node.client.clone());
            let request = Fsync { path, client, last_block_bytes: -1, file: self.file };
            self.name_node.call_method::<Empty>("fsync", &request).await?;
            self.logged = true;
        }
        Ok(())
    }

    /// Writes the remaining bytes, and completes the file.
    pub async fn complete(&mut self) -> Result<(), HdfsError> {
        self.packets.cut_rest(false);
        if self.packets.block_bytes() > 0 {
            self.end_block(false).await?;
        }
        let (path, client) = (self.path.clone(), self.name_node.client.clone());
        let request = Complete { path, client, last: self.previous.clone(), file: self.file };
        let mut pause = REPORT_PAUSE;
        for retry in 0..=COMPLETE_RETRIES {
            if self.name_node.call_method::<Completed>("complete", &request).await?.done {
                return Ok(());
            }
            if retry < COMPLETE_RETRIES {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
        // The data nodes have the complete file, so it must not be recovered and reopened.
        Err(HdfsError::OperationFailed("the last block was not reported by enough data nodes".to_owned()))
    }

    /// Ends the block. All its bytes are already in packets.
    async fn end_block(&mut self, sync: bool) -> Result<(), HdfsError> {
        let sync = sync || self.sync_blocks;
        if sync && !self.synced {
            // The sync must precede the block's last packet: if a data node fails at that packet, the remaining nodes
            // finalize the block without a sync.
            self.packets.cut_sync();
        }
        // A data node finalizes a block when it receives the last packet, and accepts no data after that.
        self.drive_pipeline(0).await?;
        self.packets.cut_last(sync);
        self.drive_pipeline(0).await?;
        self.close();
        let bytes = self.packets.block_bytes();
        self.previous = self.block.take().map(|located| ExtendedBlock { bytes, ..located.block });
        self.packets.next_block();
        self.synced = false;
        Ok(())
    }

    /// Sends all packets, and waits until at most `left` are unacknowledged.
    async fn drive_pipeline(&mut self, left: usize) -> Result<(), HdfsError> {
        while self.packets.count_unsent() > 0 || self.packets.count_unacknowledged() > left {
            let Some(pipeline) = &mut self.pipeline else {
                self.begin_block().await?;
                continue;
            };
            if let Err(fault) = pipeline.drive_packets(&mut self.packets, left).await {
                self.recover_pipeline(fault).await?;
            }
        }
        Ok(())
    }

    /// Asks the name node to add a block, and connects to the block's data nodes.
    async fn begin_block(&mut self) -> Result<(), HdfsError> {
        let mut failed = None;
        for _ in 0..=self.settings.retries {
            let block = match self.add_block().await {
                // No nodes can replace the excluded nodes.
                Err(HdfsError::RPCError(_, message))
                    if message.contains("could only be written to") && failed.is_some() =>
                {
                    break;
                }
                other => other?,
            };
            match self.connect(&block, PipelineStage::Create, 0).await {
                Ok(pipeline) => {
                    self.set_block(block, pipeline);
                    self.logged = false;
                    return Ok(());
                }
                Err(fault) => {
                    self.note_fault(&block, &fault);
                    let node = block.nodes.get(fault.node).cloned();
                    self.excluded.extend(node.map(|node| (Instant::now(), node)));
                    failed = Some(fault.error);
                }
            }
            let (path, client) = (self.path.clone(), self.name_node.client.clone());
            let request = AbandonBlock { block: block.block, path, client, file: self.file };
            self.name_node.call_method::<Empty>("abandonBlock", &request).await?;
        }
        Err(self.pipeline_error())
    }

    async fn add_block(&mut self) -> Result<LocatedBlock, HdfsError> {
        self.excluded.retain(|(since, _)| since.elapsed() < EXCLUDED);
        let request = AddBlock {
            path: self.path.clone(),
            client: self.name_node.client.clone(),
            previous: self.previous.clone(),
            excluded: self.excluded.iter().map(|(_, node)| node.clone()).collect(),
            file: self.file,
        };
        let mut pause = REPORT_PAUSE;
        let mut retries = 0;
        loop {
            match self.name_node.call_method::<BlockAnswer>("addBlock", &request).await {
                Err(HdfsError::RPCError(class, _))
                    if class.ends_with(".NotReplicatedYetException") && retries < NEXT_BLOCK_RETRIES =>
                {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    retries += 1;
                }
                other => return other.map(|answer| answer.block),
            }
        }
    }

    /// Sets up a pipeline for a block with this `generation`.
    async fn connect(
        &self,
        block: &LocatedBlock,
        stage: PipelineStage,
        generation: u64,
    ) -> Result<Pipeline, PipelineFault> {
        let layout = self.settings.layout;
        let [first, targets @ ..] = block.nodes.as_slice() else {
            return Err(std::io::Error::from(std::io::ErrorKind::NotFound).into());
        };
        let (bytes_min, bytes_max) = if stage == PipelineStage::Create { (0, 0) } else { self.packets.bytes() };
        let kind = if layout.algorithm == CrcAlgorithm::Crc32Iscsi { 2 } else { 1 };
        // Data nodes reserve space for the number of bytes in the request, so the request contains the block size.
        let sized = ExtendedBlock { bytes: self.block_bytes, ..block.block.clone() };
        let request = WriteBlock {
            header: ClientHeader {
                base: BaseHeader { block: sized, token: block.token.clone() },
                client: self.name_node.client.clone(),
            },
            targets: targets.to_vec(),
            stage: stage.into(),
            nodes: block.nodes.len() as u32,
            bytes_min,
            bytes_max,
            generation,
            checksum: Checksum { kind, chunk_bytes: layout.chunk as u32 },
            storage_type: block.storage_types.first().copied(),
            target_storage_types: block.storage_types.iter().skip(1).copied().collect(),
            storage: block.storages.first().cloned(),
            target_storages: block.storages.iter().skip(1).cloned().collect(),
        };
        let address = self.name_node.address_of(first);
        let addresses: Vec<_> = block.nodes.iter().map(|node| format!("{}:{}", node.id.ip, node.id.port)).collect();
        let timeout = self.name_node.timeout + TIMEOUT_EXTENSION * block.nodes.len() as u32;
        let pipeline = Pipeline::connect(&address, &addresses, &request, self.settings.window, timeout).await?;
        self.name_node.data_node_answered();
        Ok(pipeline)
    }

    /// Continues with the remaining data nodes.
    async fn recover_pipeline(&mut self, mut fault: PipelineFault) -> Result<(), HdfsError> {
        self.close();
        self.packets.send_again();
        let Some(mut block) = self.block.take() else { return Err(self.pipeline_error()) };
        let client = self.name_node.client.clone();
        let ends = self.packets.is_at_end();
        let stage = if ends { PipelineStage::CloseRecovery } else { PipelineStage::StreamingRecovery };
        loop {
            self.note_fault(&block, &fault);
            drop_node(&mut block, fault.node);
            if block.nodes.is_empty() {
                return Err(self.pipeline_error());
            }
            let before = ExtendedBlock { bytes: self.packets.bytes().0, ..block.block.clone() };
            let request = UpdateBlock { block: before.clone(), client: client.clone() };
            let renewed = self.name_node.call_method::<BlockAnswer>("updateBlockForPipeline", &request).await?.block;
            block.token = renewed.token;
            let generation = renewed.block.generation;
            let pipeline = match self.connect(&block, stage, generation).await {
                Ok(pipeline) => pipeline,
                Err(next) => {
                    fault = next;
                    continue;
                }
            };
            block.block.generation = generation;
            let after = ExtendedBlock { generation, ..before.clone() };
            let nodes = block.nodes.iter().map(|node| node.id.clone()).collect();
            let request = UpdatePipeline { client, before, after, nodes, storages: block.storages.clone() };
            self.name_node.call_method::<Empty>("updatePipeline", &request).await?;
            if ends {
                // The data nodes have already finalized the block.
                self.packets.forget_last();
                self.block = Some(block);
            } else {
                self.set_block(block, pipeline);
            }
            return Ok(());
        }
    }

    fn set_block(&mut self, block: LocatedBlock, pipeline: Pipeline) {
        self.open.set(Some(pipeline.socket()));
        self.block = Some(block);
        self.pipeline = Some(pipeline);
    }

    fn close(&mut self) {
        self.open.set(None);
        self.pipeline = None;
    }

    fn note_fault(&self, block: &LocatedBlock, fault: &PipelineFault) {
        let address = block.nodes.get(fault.node).map(|node| self.name_node.address_of(node)).unwrap_or_default();
        note_data_node_failure(format!("Failed to write to DataNode {address}: {}", fault.error));
    }

    /// The error when no data node remains.
    fn pipeline_error(&self) -> HdfsError {
        self.name_node.data_nodes_failed();
        HdfsError::DataTransferError("no data node of the block is left".to_owned())
    }
}

async fn create(name_node: &NameNode, path: &str, options: &CreateOptions) -> Result<Option<Created>, HdfsError> {
    let defaults = name_node.defaults().await?;
    if defaults.encrypted == Some(true) {
        return Ok(None);
    }
    let request = Create {
        path: path.to_owned(),
        permission: Permission { mode: FILE_MODE },
        client: name_node.client.clone(),
        flags: if options.overwrite { 3 } else { 1 },
        parents: options.parents,
        replication: options.replication.unwrap_or(defaults.replication),
        block_bytes: options.block_bytes.unwrap_or(defaults.block_bytes),
    };
    name_node.call_method("create", &request).await.map(Some)
}

/// Removes a data node from a pipeline.
fn drop_node(block: &mut LocatedBlock, node: usize) {
    let node = node.min(block.nodes.len() - 1);
    block.nodes.remove(node);
    if node < block.storages.len() {
        block.storages.remove(node);
    }
    if node < block.storage_types.len() {
        block.storage_types.remove(node);
    }
}
