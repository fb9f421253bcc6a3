//! The messages that a write needs in addition to [`super::messages`] (ClientNamenodeProtocol.proto, hdfs.proto and
//! datatransfer.proto in Hadoop 3.4). Messages that are passed on unparsed are represented as bytes.

use prost::Message;

use super::messages::{Checksum, ClientHeader, DataNodeId, DataNodeInfo, ExtendedBlock, LocatedBlock};

/// A request without fields, or a response whose fields do not matter.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerDefaultsAnswer {
    #[prost(message, required, tag = "1")]
    pub defaults: ServerDefaults,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerDefaults {
    #[prost(uint64, required, tag = "1")]
    pub block_bytes: u64,
    #[prost(uint32, required, tag = "4")]
    pub replication: u32,
    #[prost(bool, optional, tag = "6")]
    pub encrypted: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Create {
    #[prost(string, required, tag = "1")]
    pub path: String,
    #[prost(message, required, tag = "2")]
    pub permission: Permission,
    #[prost(string, required, tag = "3")]
    pub client: String,
    /// 1: create, 2: overwrite.
    #[prost(uint32, required, tag = "4")]
    pub flags: u32,
    #[prost(bool, required, tag = "5")]
    pub parents: bool,
    #[prost(uint32, required, tag = "6")]
    pub replication: u32,
    #[prost(uint64, required, tag = "7")]
    pub block_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Permission {
    #[prost(uint32, required, tag = "1")]
    pub mode: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GetFileInfo {
    #[prost(string, required, tag = "1")]
    pub path: String,
}

/// The response to `create` and to `getFileInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Created {
    #[prost(message, optional, tag = "1")]
    pub status: Option<FileStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FileStatus {
    #[prost(uint64, optional, tag = "11")]
    pub block_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "13")]
    pub id: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "15")]
    pub encryption: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "17")]
    pub erasure_coding: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Delete {
    #[prost(string, required, tag = "1")]
    pub path: String,
    #[prost(bool, required, tag = "2")]
    pub recursive: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AddBlock {
    #[prost(string, required, tag = "1")]
    pub path: String,
    #[prost(string, required, tag = "2")]
    pub client: String,
    #[prost(message, optional, tag = "3")]
    pub previous: Option<ExtendedBlock>,
    #[prost(message, repeated, tag = "4")]
    pub excluded: Vec<DataNodeInfo>,
    #[prost(uint64, required, tag = "5")]
    pub file: u64,
}

/// The response to `addBlock` and to `updateBlockForPipeline`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockAnswer {
    #[prost(message, required, tag = "1")]
    pub block: LocatedBlock,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AbandonBlock {
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlock,
    #[prost(string, required, tag = "2")]
    pub path: String,
    #[prost(string, required, tag = "3")]
    pub client: String,
    #[prost(uint64, required, tag = "4")]
    pub file: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Complete {
    #[prost(string, required, tag = "1")]
    pub path: String,
    #[prost(string, required, tag = "2")]
    pub client: String,
    /// Absent if the file has no blocks.
    #[prost(message, optional, tag = "3")]
    pub last: Option<ExtendedBlock>,
    #[prost(uint64, required, tag = "4")]
    pub file: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Completed {
    /// `false` if too few data nodes have reported the last block.
    #[prost(bool, required, tag = "1")]
    pub done: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Fsync {
    #[prost(string, required, tag = "1")]
    pub path: String,
    #[prost(string, required, tag = "2")]
    pub client: String,
    /// -1 keeps the length of the last block.
    #[prost(sint64, required, tag = "3")]
    pub last_block_bytes: i64,
    #[prost(uint64, required, tag = "4")]
    pub file: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RenewLease {
    #[prost(string, required, tag = "1")]
    pub client: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateBlock {
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlock,
    #[prost(string, required, tag = "2")]
    pub client: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdatePipeline {
    #[prost(string, required, tag = "1")]
    pub client: String,
    #[prost(message, required, tag = "2")]
    pub before: ExtendedBlock,
    #[prost(message, required, tag = "3")]
    pub after: ExtendedBlock,
    #[prost(message, repeated, tag = "4")]
    pub nodes: Vec<DataNodeId>,
    #[prost(string, repeated, tag = "5")]
    pub storages: Vec<String>,
}

/// The reason for setting up a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
pub(super) enum Stage {
    /// This client never appends, but the encoding requires a value of zero.
    Append = 0,
    /// The pipeline of a block failed, and packets are sent again.
    StreamingRecovery = 3,
    /// The pipeline of a block failed after all of the block's data was acknowledged.
    CloseRecovery = 5,
    Create = 6,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteBlock {
    #[prost(message, required, tag = "1")]
    pub header: ClientHeader,
    /// The nodes that follow the receiver of this message.
    #[prost(message, repeated, tag = "2")]
    pub targets: Vec<DataNodeInfo>,
    #[prost(enumeration = "Stage", required, tag = "4")]
    pub stage: i32,
    #[prost(uint32, required, tag = "5")]
    pub nodes: u32,
    /// Number of bytes of the block that were acknowledged.
    #[prost(uint64, required, tag = "6")]
    pub bytes_min: u64,
    /// Number of bytes of the block that were sent.
    #[prost(uint64, required, tag = "7")]
    pub bytes_max: u64,
    #[prost(uint64, required, tag = "8")]
    pub generation: u64,
    #[prost(message, required, tag = "9")]
    pub checksum: Checksum,
    #[prost(int32, optional, tag = "11")]
    pub storage_type: Option<i32>,
    #[prost(int32, repeated, packed = "false", tag = "12")]
    pub target_storage_types: Vec<i32>,
    #[prost(string, optional, tag = "16")]
    pub storage: Option<String>,
    #[prost(string, repeated, tag = "17")]
    pub target_storages: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PipelineAnswer {
    /// 0 means success.
    #[prost(int32, required, tag = "1")]
    pub status: i32,
    /// The address of the node to which no connection could be made; empty if it was the first node.
    #[prost(string, optional, tag = "2")]
    pub first_bad: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub message: Option<String>,
}

/// The header of a packet to be sent. All fields are written, whatever their values, because all have a fixed size.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct SentHeader {
    #[prost(sfixed64, required, tag = "1")]
    pub offset: i64,
    /// -1 marks a heartbeat.
    #[prost(sfixed64, required, tag = "2")]
    pub number: i64,
    #[prost(bool, required, tag = "3")]
    pub last: bool,
    #[prost(sfixed32, required, tag = "4")]
    pub data_bytes: i32,
    #[prost(bool, optional, tag = "5")]
    pub sync: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Acknowledgement {
    /// -1 acknowledges a heartbeat; -2 means that a node reports about itself.
    #[prost(sint64, required, tag = "1")]
    pub number: i64,
    /// The status of each node, first node first; 0 means success.
    #[prost(int32, repeated, packed = "false", tag = "2")]
    pub replies: Vec<i32>,
    /// The status in the low 4 bits, and a report of the node's load (`PipelineAck`).
    #[prost(uint32, repeated, packed = "true", tag = "4")]
    pub flags: Vec<u32>,
}

impl Acknowledgement {
    /// The last node whose status is not success, with that status. As in Hadoop (`DataStreamer`), the search begins at
    /// the end: a node that reports a fault of the next node may be at fault itself.
    pub fn find_failure(&self) -> Option<(usize, i32)> {
        let status = |node: usize| self.flags.get(node).map_or(self.replies[node], |flag| (flag & 15) as i32);
        (0..self.replies.len()).rev().map(|node| (node, status(node))).find(|(_, status)| *status != 0)
    }
}
