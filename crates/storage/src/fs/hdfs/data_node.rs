//! Connections to data nodes, and the request of a block.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::time::Duration;

use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::REACH;
use super::block_reader::BlockReader;
use super::messages::{BaseHeader, BlockResponse, ClientHeader, LocatedBlock, ReadBlock, invalid, read_delimited};

/// `DataTransferProtocol.DATA_TRANSFER_VERSION`, and `Op.READ_BLOCK`.
pub(super) const READ_BLOCK: [u8; 3] = [0, 28, 81];

/// More than a data node sends at a time; the kernel's buffer holds more.
const WAKE_BYTES_MAX: usize = 256 << 10;

/// A connection to a data node that takes requests.
#[derive(Debug)]
pub(super) struct DataNode {
    pub address: String,
    pub stream: TcpStream,
    /// How long the data node may stay silent.
    timeout: Duration,
    /// How many bytes end a wait.
    wakes_at: usize,
}

impl DataNode {
    /// Connects to a data node.
    pub async fn connect(address: String, timeout: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(timeout.min(REACH), TcpStream::connect(&address)).await??;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, timeout, wakes_at: 1 })
    }

    /// Requests a block from an offset in it to its end.
    pub async fn request(mut self, block: &LocatedBlock, offset: u64) -> io::Result<BlockReader> {
        let base = BaseHeader { block: block.block.clone(), token: block.token.clone() };
        let header = ClientHeader { base, client: "loadstone".to_owned() };
        let bytes = block.block.bytes - offset;
        let request = ReadBlock { header, offset, bytes, send_checksums: true };
        let request = [READ_BLOCK.as_slice(), &request.encode_length_delimited_to_vec()].concat();
        self.stream.write_all(&request).await?;
        self.wake_at(1);
        let response: BlockResponse = tokio::time::timeout(self.timeout, read_delimited(&mut self.stream)).await??;
        match response.read {
            Some(read) if response.status == 0 => BlockReader::new(self, &read, offset, bytes),
            _ => Err(invalid(response.message.unwrap_or_else(|| format!("status {}", response.status)))),
        }
    }

    /// Receives what has come. If that is nothing, waits for about as much as is `wanted`. Returns the number of bytes, at
    /// least 1.
    pub async fn receive(&mut self, into: &mut [IoSliceMut<'_>], wanted: usize) -> io::Result<usize> {
        loop {
            match self.stream.try_read_vectored(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wake_at(wanted.min(WAKE_BYTES_MAX));
                    tokio::time::timeout(self.timeout, self.stream.readable()).await??;
                }
                other => return other,
            }
        }
    }

    /// How many bytes must have come before a wait ends: data nodes send less at a time than the kernel can hold.
    fn wake_at(&mut self, bytes: usize) {
        if self.wakes_at != bytes {
            self.wakes_at = bytes;
            let (bytes, size) = (bytes as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
            // SAFETY: the option is an int. If the kernel refuses it, waits end earlier.
            unsafe {
                libc::setsockopt(
                    self.stream.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_RCVLOWAT,
                    (&raw const bytes).cast(),
                    size,
                );
            }
        }
    }
}
