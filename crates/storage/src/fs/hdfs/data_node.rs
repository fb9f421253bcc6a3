//! Connections to data nodes.

use std::io::{self, IoSliceMut};
use std::time::Duration;

use tokio::net::TcpStream;

use super::pipeline::REACH;

/// A connection to a data node; the connection is ready for requests.
#[derive(Debug)]
pub(super) struct DataNode {
    pub address: String,
    pub stream: TcpStream,
    /// Maximum time without a message from the data node.
    pub timeout: Duration,
}

impl DataNode {
    /// Connects to a data node.
    pub async fn connect(address: String, timeout: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(timeout.min(REACH), TcpStream::connect(&address)).await??;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, timeout })
    }

    /// Receives the available bytes, or waits for some. Returns the number of bytes, at least 1.
    pub async fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        loop {
            match self.stream.try_read_vectored(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                // Waiting until more bytes have arrived (SO_RCVLOWAT) would delay TCP acknowledgements, for which the
                // sender of small packets waits.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::timeout(self.timeout, self.stream.readable()).await??;
                }
                other => return other,
            }
        }
    }
}
