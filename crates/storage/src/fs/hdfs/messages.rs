//! The few messages of Hadoop's IPC and data transfer protocols that a read needs (RpcHeader.proto,
//! ClientNamenodeProtocol.proto, hdfs.proto and datatransfer.proto in Hadoop 3.4). Messages that are passed on unparsed
//! are represented as bytes.

use std::io;

use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest message lists the blocks of a file, with about 300 bytes per replica.
const MESSAGE_BYTES_MAX: u64 = 128 << 20;

#[derive(Clone, PartialEq, Message)]
pub(super) struct RpcRequestHeader {
    #[prost(int32, required, tag = "1")]
    pub rpc_kind: i32,
    #[prost(int32, required, tag = "2")]
    pub rpc_op: i32,
    #[prost(sint32, required, tag = "3")]
    pub call_id: i32,
    #[prost(bytes = "vec", required, tag = "4")]
    pub client_id: Vec<u8>,
    #[prost(sint32, required, tag = "5")]
    pub retry_count: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ConnectionContext {
    #[prost(message, required, tag = "2")]
    pub user: UserInformation,
    #[prost(string, required, tag = "3")]
    pub protocol: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UserInformation {
    #[prost(string, required, tag = "1")]
    pub effective_user: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestHeader {
    #[prost(string, required, tag = "1")]
    pub method: String,
    #[prost(string, required, tag = "2")]
    pub protocol: String,
    #[prost(uint64, required, tag = "3")]
    pub version: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RpcResponseHeader {
    #[prost(uint32, required, tag = "1")]
    pub call_id: u32,
    /// 0: success; 1: the call failed; 2: the connection is closed.
    #[prost(int32, required, tag = "2")]
    pub status: i32,
    #[prost(string, optional, tag = "4")]
    pub class: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub message: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GetBlockLocations {
    #[prost(string, required, tag = "1")]
    pub path: String,
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    #[prost(uint64, required, tag = "3")]
    pub length: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockLocations {
    /// Absent if the file does not exist.
    #[prost(message, optional, tag = "1")]
    pub file: Option<LocatedFile>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LocatedFile {
    #[prost(uint64, required, tag = "1")]
    pub bytes: u64,
    #[prost(message, repeated, tag = "2")]
    pub blocks: Vec<LocatedBlock>,
    #[prost(bool, required, tag = "3")]
    pub under_construction: bool,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub encryption: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub erasure_coding: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LocatedBlock {
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlock,
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    /// The nearest data node comes first.
    #[prost(message, repeated, tag = "3")]
    pub nodes: Vec<DataNodeInfo>,
    #[prost(bytes = "vec", required, tag = "5")]
    pub token: Vec<u8>,
    #[prost(int32, repeated, packed = "false", tag = "7")]
    pub storage_types: Vec<i32>,
    #[prost(string, repeated, tag = "8")]
    pub storages: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExtendedBlock {
    #[prost(string, required, tag = "1")]
    pub pool: String,
    #[prost(uint64, required, tag = "2")]
    pub id: u64,
    #[prost(uint64, required, tag = "3")]
    pub generation: u64,
    #[prost(uint64, required, tag = "4")]
    pub bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DataNodeInfo {
    #[prost(message, required, tag = "1")]
    pub id: DataNodeId,
    /// Its rack. A name node refuses a request whose data node has none.
    #[prost(string, optional, tag = "8")]
    pub location: Option<String>,
    #[prost(string, optional, tag = "14")]
    pub upgrade_domain: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DataNodeId {
    #[prost(string, required, tag = "1")]
    pub ip: String,
    #[prost(string, required, tag = "2")]
    pub host: String,
    #[prost(string, required, tag = "3")]
    pub id: String,
    #[prost(uint32, required, tag = "4")]
    pub port: u32,
    #[prost(uint32, required, tag = "5")]
    pub info_port: u32,
    #[prost(uint32, required, tag = "6")]
    pub ipc_port: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadBlock {
    #[prost(message, required, tag = "1")]
    pub header: ClientHeader,
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    #[prost(uint64, required, tag = "3")]
    pub bytes: u64,
    #[prost(bool, required, tag = "4")]
    pub send_checksums: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClientHeader {
    #[prost(message, required, tag = "1")]
    pub base: BaseHeader,
    #[prost(string, required, tag = "2")]
    pub client: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BaseHeader {
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlock,
    #[prost(bytes = "vec", required, tag = "2")]
    pub token: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockResponse {
    /// 0: success.
    #[prost(int32, required, tag = "1")]
    pub status: i32,
    #[prost(message, optional, tag = "4")]
    pub read: Option<ReadChecksums>,
    #[prost(string, optional, tag = "5")]
    pub message: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadChecksums {
    #[prost(message, required, tag = "1")]
    pub checksum: Checksum,
    /// The offset of the first packet in the block: the requested offset, or the start of its chunk.
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Checksum {
    /// 0: none, 1: CRC-32, 2: CRC-32C.
    #[prost(int32, required, tag = "1")]
    pub kind: i32,
    #[prost(uint32, required, tag = "2")]
    pub chunk_bytes: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PacketHeader {
    #[prost(sfixed64, required, tag = "1")]
    pub offset: i64,
    #[prost(bool, required, tag = "3")]
    pub last: bool,
    #[prost(sfixed32, required, tag = "4")]
    pub data_bytes: i32,
}

/// Reads a message that is preceded by its length.
pub(super) async fn read_delimited<M: Message + Default>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<M> {
    let mut bytes = 0;
    for shift in (0..35).step_by(7) {
        let next = stream.read_u8().await?;
        bytes |= u64::from(next & 0x7f) << shift;
        if next < 0x80 {
            break;
        }
    }
    let mut message = vec![0; check_length(bytes)?];
    stream.read_exact(&mut message).await?;
    Ok(M::decode(message.as_slice())?)
}

/// A length sent by a server, after a check that it is plausible.
pub(super) fn check_length(bytes: u64) -> io::Result<usize> {
    if bytes > MESSAGE_BYTES_MAX {
        return Err(invalid(format!("a message of {bytes} bytes")));
    }
    Ok(bytes as usize)
}

/// An error for a message that violates the protocol.
pub(super) fn invalid(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
