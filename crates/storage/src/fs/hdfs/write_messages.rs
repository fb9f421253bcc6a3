//! The messages that a write needs in addition to [`super::messages`] (ClientNamenodeProtocol.proto, hdfs.proto and
//! datatransfer.proto in Hadoop 3.4). Messages that are passed on unparsed are represented as bytes.

use prost::Message;

use super::messages::{Checksum, ClientHeader, DataNodeId, DataNodeInfo, ExtendedBlock, LocatedBlock, messages};

messages! {
    /// A request without fields, or a response whose fields do not matter.
    Empty {}

    ServerDefaultsAnswer {
        required message(ServerDefaults) defaults = 1;
    }

    ServerDefaults {
        required uint64 block_bytes = 1;
        required uint32 replication = 4;
        optional bool encrypted = 6;
    }

    Create {
        required string path = 1;
        required message(Permission) permission = 2;
        required string client = 3;
        /// 1: create, 2: overwrite.
        required uint32 flags = 4;
        required bool parents = 5;
        required uint32 replication = 6;
        required uint64 block_bytes = 7;
    }

    Permission {
        required uint32 mode = 1;
    }

    GetFileInfo {
        required string path = 1;
    }

    /// The response to `create` and to `getFileInfo`.
    Created {
        optional message(FileStatus) status = 1;
    }

    FileStatus {
        optional uint64 block_bytes = 11;
        optional uint64 id = 13;
        optional bytes encryption = 15;
        optional bytes erasure_coding = 17;
    }

    Delete {
        required string path = 1;
        required bool recursive = 2;
    }

    AddBlock {
        required string path = 1;
        required string client = 2;
        optional message(ExtendedBlock) previous = 3;
        repeated message(DataNodeInfo) excluded = 4;
        required uint64 file = 5;
    }

    /// The response to `addBlock` and to `updateBlockForPipeline`.
    BlockAnswer {
        required message(LocatedBlock) block = 1;
    }

    AbandonBlock {
        required message(ExtendedBlock) block = 1;
        required string path = 2;
        required string client = 3;
        required uint64 file = 4;
    }

    Complete {
        required string path = 1;
        required string client = 2;
        /// Absent if the file has no blocks.
        optional message(ExtendedBlock) last = 3;
        required uint64 file = 4;
    }

    Completed {
        /// `false` if too few data nodes have reported the last block.
        required bool done = 1;
    }

    Fsync {
        required string path = 1;
        required string client = 2;
        /// -1 keeps the length of the last block.
        required sint64 last_block_bytes = 3;
        required uint64 file = 4;
    }

    RenewLease {
        required string client = 1;
    }

    UpdateBlock {
        required message(ExtendedBlock) block = 1;
        required string client = 2;
    }

    UpdatePipeline {
        required string client = 1;
        required message(ExtendedBlock) before = 2;
        required message(ExtendedBlock) after = 3;
        repeated message(DataNodeId) nodes = 4;
        repeated string storages = 5;
    }
}

/// The reason for setting up a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
pub(super) enum PipelineStage {
    /// Never sent, because this client does not append; but the encoding requires a value of zero.
    Append = 0,
    /// The pipeline of a block failed, and packets are sent again.
    StreamingRecovery = 3,
    /// The pipeline of a block failed after all of the block's data was acknowledged.
    CloseRecovery = 5,
    Create = 6,
}

messages! {
    WriteBlock {
        required message(ClientHeader) header = 1;
        /// The nodes that follow the receiver of this message.
        repeated message(DataNodeInfo) targets = 2;
        required int32 stage = 4;
        required uint32 nodes = 5;
        /// Number of bytes of the block that were acknowledged.
        required uint64 bytes_min = 6;
        /// Number of bytes of the block that were sent.
        required uint64 bytes_max = 7;
        required uint64 generation = 8;
        required message(Checksum) checksum = 9;
        optional int32 storage_type = 11;
        repeated int32 target_storage_types = 12 [packed = "false"];
        optional string storage = 16;
        repeated string target_storages = 17;
    }

    PipelineAnswer {
        /// 0 means success.
        required int32 status = 1;
        /// The address of the node to which no connection could be made; empty if it was the first node.
        optional string first_bad = 2;
        optional string message = 5;
    }

    /// The header of a packet to be sent. All fields are written, whatever their values, because all have a fixed size.
    SentHeader {
        required sfixed64 offset = 1;
        /// -1 marks a heartbeat.
        required sfixed64 number = 2;
        required bool last = 3;
        required sfixed32 data_bytes = 4;
        optional bool sync = 5;
    }

    Acknowledgement {
        /// -1 acknowledges a heartbeat; -2 means that a node reports about itself.
        required sint64 number = 1;
        /// The status of each node, first node first; 0 means success.
        repeated int32 replies = 2 [packed = "false"];
        /// The status in the low 4 bits, and a report of the node's load (`PipelineAck`).
        repeated uint32 flags = 4 [packed = "true"];
    }
}

impl Acknowledgement {
    /// The last node whose status is not success, with that status. As in Hadoop (`DataStreamer`), the search begins at
    /// the end: a node that reports a fault of the next node may be at fault itself.
    pub fn find_failure(&self) -> Option<(usize, i32)> {
        let status = |node: usize| self.flags.get(node).map_or(self.replies[node], |flag| (flag & 15) as i32);
        (0..self.replies.len()).rev().map(|node| (node, status(node))).find(|(_, status)| *status != 0)
    }
}
