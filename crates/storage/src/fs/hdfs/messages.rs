//! The few messages of Hadoop's IPC and data transfer protocols that a read needs (RpcHeader.proto,
//! ClientNamenodeProtocol.proto, hdfs.proto and datatransfer.proto in Hadoop 3.4). Messages that are passed on unparsed
//! are represented as bytes.

use std::io;

use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest message lists the blocks of a file, with about 300 bytes per replica.
const MESSAGE_BYTES_MAX: u64 = 128 << 20;

/// Declares messages in the syntax of a .proto file, except that a field whose type is a message names that type in
/// parentheses.
macro_rules! messages {
    ($(
        $(#[$about:meta])*
        $message:ident {
            $(
                $(#[$about_field:meta])*
                $label:ident $kind:ident $(($of:ident))? $field:ident = $number:tt $([$option:ident = $value:tt])?;
            )*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, PartialEq, Message)]
        pub(super) struct $message {
            $(
                $(#[$about_field])*
                #[prost($kind, $label, tag = $number $(, $option = $value)?)]
                pub $field: $crate::fs::hdfs::messages::rust_type!($label $kind $(($of))?),
            )*
        }
    )*};
}

/// The Rust type of a message field.
macro_rules! rust_type {
    (optional $($kind:tt)*) => { Option<$crate::fs::hdfs::messages::rust_type!(required $($kind)*)> };
    (repeated $($kind:tt)*) => { Vec<$crate::fs::hdfs::messages::rust_type!(required $($kind)*)> };
    (required message($of:ident)) => { $of };
    (required bool) => { bool };
    (required bytes) => { Vec<u8> };
    (required string) => { String };
    (required uint32) => { u32 };
    (required uint64) => { u64 };
    (required int32) => { i32 };
    (required sint32) => { i32 };
    (required sfixed32) => { i32 };
    (required sint64) => { i64 };
    (required sfixed64) => { i64 };
}

pub(super) use {messages, rust_type};

messages! {
    RpcRequestHeader {
        required int32 rpc_kind = 1;
        required int32 rpc_op = 2;
        required sint32 call_id = 3;
        required bytes client_id = 4;
        required sint32 retry_count = 5;
    }

    ConnectionContext {
        required message(UserInformation) user = 2;
        required string protocol = 3;
    }

    UserInformation {
        required string effective_user = 1;
    }

    RequestHeader {
        required string method = 1;
        required string protocol = 2;
        required uint64 version = 3;
    }

    RpcResponseHeader {
        required uint32 call_id = 1;
        /// 0: success; 1: the call failed; 2: the connection is closed.
        required int32 status = 2;
        optional string class = 4;
        optional string message = 5;
    }

    GetBlockLocations {
        required string path = 1;
        required uint64 offset = 2;
        required uint64 length = 3;
    }

    BlockLocations {
        /// Absent if the file does not exist.
        optional message(LocatedFile) file = 1;
    }

    LocatedFile {
        required uint64 bytes = 1;
        repeated message(LocatedBlock) blocks = 2;
        required bool under_construction = 3;
        optional bytes encryption = 6;
        optional bytes erasure_coding = 7;
    }

    LocatedBlock {
        required message(ExtendedBlock) block = 1;
        required uint64 offset = 2;
        /// The nearest data node comes first.
        repeated message(DataNodeInfo) nodes = 3;
        required bytes token = 5;
        repeated int32 storage_types = 7 [packed = "false"];
        repeated string storages = 8;
    }

    ExtendedBlock {
        required string pool = 1;
        required uint64 id = 2;
        required uint64 generation = 3;
        required uint64 bytes = 4;
    }

    DataNodeInfo {
        required message(DataNodeId) id = 1;
        /// The data node's rack. A name node refuses a request that contains a data node without a rack.
        optional string location = 8;
        optional string upgrade_domain = 14;
    }

    DataNodeId {
        required string ip = 1;
        required string host = 2;
        required string id = 3;
        required uint32 port = 4;
        required uint32 info_port = 5;
        required uint32 ipc_port = 6;
    }

    ReadBlock {
        required message(ClientHeader) header = 1;
        required uint64 offset = 2;
        required uint64 bytes = 3;
        required bool send_checksums = 4;
    }

    ClientHeader {
        required message(BaseHeader) base = 1;
        required string client = 2;
    }

    BaseHeader {
        required message(ExtendedBlock) block = 1;
        required bytes token = 2;
    }

    BlockResponse {
        /// 0: success.
        required int32 status = 1;
        optional message(ReadChecksums) read = 4;
        optional string message = 5;
    }

    ReadChecksums {
        required message(Checksum) checksum = 1;
        /// The offset of the first packet in the block: the requested offset, or the start of its chunk.
        required uint64 offset = 2;
    }

    Checksum {
        /// The type of the checksums. 0: none, 1: CRC-32, 2: CRC-32C.
        required int32 kind = 1;
        required uint32 chunk_bytes = 2;
    }

    PacketHeader {
        required sfixed64 offset = 1;
        required bool last = 3;
        required sfixed32 data_bytes = 4;
    }
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
