//! Connections to data nodes, and requests of blocks.

use std::io::{self, IoSliceMut};
use std::time::Duration;

use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::REACH;
use super::block_reader::BlockReader;
use super::messages::{BaseHeader, BlockResponse, ClientHeader, LocatedBlock, ReadBlock, invalid, read_delimited};

/// `DataTransferProtocol.DATA_TRANSFER_VERSION`, and `Op.READ_BLOCK`.
pub(super) const READ_BLOCK: [u8; 3] = [0, 28, 81];

/// A connection to a data node that accepts requests.
#[derive(Debug)]
pub(super) struct DataNode {
    pub address: String,
    pub stream: TcpStream,
    /// Limit of the data node's silence.
    timeout: Duration,
}

impl DataNode {
    /// Connects to a data node.
    pub async fn connect(address: String, timeout: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(timeout.min(REACH), TcpStream::connect(&address)).await??;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, timeout })
    }

    /// Requests a block from an offset in it to its end.
    pub async fn request(mut self, block: &LocatedBlock, offset: u64) -> io::Result<BlockReader> {
        let base = BaseHeader { block: block.block.clone(), token: block.token.clone() };
        let header = ClientHeader { base, client: "loadstone".to_owned() };
        let bytes = block.block.bytes - offset;
        let request = ReadBlock { header, offset, bytes, send_checksums: true };
        let request = [READ_BLOCK.as_slice(), &request.encode_length_delimited_to_vec()].concat();
        self.stream.write_all(&request).await?;
        let response: BlockResponse = tokio::time::timeout(self.timeout, read_delimited(&mut self.stream)).await??;
        match response.read {
            Some(read) if response.status == 0 => BlockReader::new(self, &read, offset, bytes),
            _ => Err(invalid(response.message.unwrap_or_else(|| format!("status {}", response.status)))),
        }
    }

    /// Receives the available bytes, and waits if there are none. Returns the number of bytes, at least 1.
    pub async fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        loop {
            match self.stream.try_read_vectored(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                // Does not wait for more (SO_RCVLOWAT): acknowledgements would be delayed, and with them small packets.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::timeout(self.timeout, self.stream.readable()).await??;
                }
                other => return other,
            }
        }
    }
}
