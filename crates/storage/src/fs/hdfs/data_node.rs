//! Reads blocks from data nodes.
//!
//! Most of what a read costs are the kernel's calls. So as much is received in a call as the kernel has, up to 1 MiB, and not a
//! packet of 64 KiB: that takes 0.4 of the CPU. Data are copied once, into the caller's buffer, right after their checksums were
//! compared.

use std::io;
use std::time::Duration;

use crc_fast::CrcAlgorithm;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::REACH;
use super::messages::{
    BaseHeader, BlockResponse, ClientHeader, LocatedBlock, PacketHeader, ReadBlock, invalid, read_delimited,
};

/// `DataTransferProtocol.DATA_TRANSFER_VERSION`, and `Op.READ_BLOCK`.
const READ_BLOCK: [u8; 3] = [0, 28, 81];
/// `ClientReadStatusProto` of `CHECKSUM_OK`, after its length.
const CHECKSUM_OK: [u8; 3] = [2, 8, 6];
/// What one call of the kernel may return.
const RECEIVE_BYTES: usize = 1 << 20;
/// Bytes of a packet's length and its header's length.
const LENGTHS: usize = 6;
/// A header has some 25 bytes, and a packet of 64 KiB some 512 of checksums.
const PACKET_HEAD_MAX: usize = RECEIVE_BYTES / 2;

/// A connection to a data node, and what was received on it.
#[derive(Debug)]
pub(super) struct DataNode {
    pub address: String,
    stream: TcpStream,
    timeout: Duration,
    received: Vec<u8>,
    start: usize,
    end: usize,
}

impl DataNode {
    /// Connects to a data node.
    pub async fn connect(address: String, timeout: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(timeout.min(REACH), TcpStream::connect(&address)).await??;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, timeout, received: vec![0; RECEIVE_BYTES], start: 0, end: 0 })
    }

    /// Requests a block from an offset in it to its end.
    pub async fn request(mut self, block: &LocatedBlock, offset: u64) -> io::Result<BlockReader> {
        let base = BaseHeader { block: block.block.clone(), token: block.token.clone() };
        let header = ClientHeader { base, client: "loadstone".to_owned() };
        let left = block.block.bytes - offset;
        let request = ReadBlock { header, offset, bytes: left, send_checksums: true };
        let request = [READ_BLOCK.as_slice(), &request.encode_length_delimited_to_vec()].concat();
        self.stream.write_all(&request).await?;
        let response: BlockResponse = tokio::time::timeout(self.timeout, read_delimited(&mut self.stream)).await??;
        let Some(read) = response.read.filter(|_| response.status == 0) else {
            return Err(invalid(response.message.unwrap_or_else(|| format!("status {}", response.status))));
        };
        let algorithm = match read.checksum.kind {
            0 => None,
            1 => Some(CrcAlgorithm::Crc32IsoHdlc),
            2 => Some(CrcAlgorithm::Crc32Iscsi),
            other => return Err(invalid(format!("checksums of the unknown kind {other}"))),
        };
        let chunk = read.checksum.chunk_bytes as usize;
        let skip = offset.checked_sub(read.offset).filter(|_| (1..=RECEIVE_BYTES / 2).contains(&chunk));
        let Some(skip) = skip else { return Err(invalid("an offset or a chunk that cannot be")) };
        Ok(BlockReader {
            node: self,
            at: read.offset,
            algorithm,
            chunk,
            sums: Vec::new(),
            compared: 0,
            packet: 0,
            ready: 0,
            skip: skip as usize,
            left,
        })
    }

    fn pending(&self) -> &[u8] {
        &self.received[self.start..self.end]
    }

    /// Receives until this many bytes are there.
    async fn receive(&mut self, bytes: usize) -> io::Result<()> {
        if self.end - self.start < bytes {
            // Less than a chunk, or than a packet's head.
            self.received.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end < bytes + self.start {
            let read = self.stream.read(&mut self.received[self.end..]);
            let read = tokio::time::timeout(self.timeout, read).await??;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.end += read;
        }
        Ok(())
    }
}

/// The bytes of a block that follow an offset, as a data node sends them.
#[derive(Debug)]
pub(super) struct BlockReader {
    node: DataNode,
    /// Where the next packet begins in the block.
    at: u64,
    algorithm: Option<CrcAlgorithm>,
    /// Bytes of a checksum's chunk.
    chunk: usize,
    /// The checksums of the packet, and how many of these bytes were compared.
    sums: Vec<u8>,
    compared: usize,
    /// Bytes of the packet whose checksums were not compared yet.
    packet: usize,
    /// Bytes that were compared and not handed out.
    ready: usize,
    /// Bytes of the first chunk before the requested offset.
    skip: usize,
    /// Bytes to hand out, to the end of the block.
    left: u64,
}

impl BlockReader {
    /// Whether everything was handed out.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The next bytes of the block; fewer than fit only at its end.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() && self.left > 0 {
            if self.ready == 0 {
                self.compare().await?;
            }
            let bytes = self.ready.min(into.len() - filled).min(self.left as usize);
            into[filled..filled + bytes].copy_from_slice(&self.node.pending()[..bytes]);
            self.node.start += bytes;
            self.ready -= bytes;
            self.left -= bytes as u64;
            filled += bytes;
        }
        Ok(filled)
    }

    /// Receives at least one more chunk, and compares its checksum and those of all complete chunks of the packet.
    async fn compare(&mut self) -> io::Result<()> {
        while self.ready == 0 {
            if self.packet == 0 && self.begin_packet().await?.last {
                return Err(invalid("the block ended early"));
            }
            self.node.receive(self.chunk.min(self.packet)).await?;
            let mut rest = self.node.pending();
            while self.packet > 0 {
                let Some(chunk) = rest.get(..self.chunk.min(self.packet)) else { break };
                if let Some(algorithm) = self.algorithm {
                    let sum = (crc_fast::checksum(algorithm, chunk) as u32).to_be_bytes();
                    if self.sums.get(self.compared..self.compared + sum.len()) != Some(sum.as_slice()) {
                        return Err(invalid("ChecksumError"));
                    }
                    self.compared += sum.len();
                }
                self.ready += chunk.len();
                self.packet -= chunk.len();
                rest = &rest[chunk.len()..];
            }
            let skipped = self.skip.min(self.ready);
            self.node.start += skipped;
            self.ready -= skipped;
            self.skip -= skipped;
        }
        Ok(())
    }

    /// Receives the head of the next packet: lengths, header, checksums.
    async fn begin_packet(&mut self) -> io::Result<PacketHeader> {
        self.node.receive(LENGTHS).await?;
        let lengths = self.node.pending();
        let payload = u32::from_be_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
        let header = usize::from(u16::from_be_bytes([lengths[4], lengths[5]]));
        self.node.receive(LENGTHS + header).await?;
        let decoded = PacketHeader::decode(&self.node.pending()[LENGTHS..LENGTHS + header])?;
        let data = usize::try_from(decoded.data_bytes).map_err(invalid)?;
        if data > 0 && decoded.offset as u64 != self.at {
            return Err(invalid(format!("a packet of offset {} where {} was expected", decoded.offset, self.at)));
        }
        self.at += data as u64;
        // The payload's length counts itself.
        let sums = payload.checked_sub(4 + data).filter(|sums| LENGTHS + header + sums <= PACKET_HEAD_MAX);
        let Some(sums) = sums else { return Err(invalid("a packet whose lengths cannot be")) };
        let head = LENGTHS + header + sums;
        self.node.receive(head).await?;
        self.sums.clear();
        self.sums.extend_from_slice(&self.node.pending()[LENGTHS + header..head]);
        self.node.start += head;
        (self.compared, self.packet) = (0, data);
        Ok(decoded)
    }

    /// Ends the read of a whole block. Returns the connection, on which the data node takes further requests.
    pub async fn finish(mut self) -> io::Result<DataNode> {
        if self.ready + self.packet > 0 || !self.begin_packet().await?.last {
            return Err(invalid("more bytes than the block has"));
        }
        self.node.stream.write_all(&CHECKSUM_OK).await?;
        Ok(self.node)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use tokio::net::TcpListener;

    use super::*;
    use crate::content::Content;
    use crate::fs::hdfs::messages::{Checksum, DataNodeId, DataNodeInfo, ExtendedBlock, ReadChecksums};

    const CHUNK: usize = 512;

    /// What a scripted data node sends of a block.
    #[derive(Clone, Debug)]
    pub struct Script {
        pub content: Vec<u8>,
        /// Chunks of a packet.
        pub chunks: usize,
        /// 0: none, 1: CRC-32, 2: CRC-32C.
        pub kind: i32,
        /// The byte of the block that differs from what its checksum was made of.
        pub flipped: Option<usize>,
        /// How many bytes are sent before the connection is closed.
        pub sent: usize,
    }

    impl Script {
        pub fn new(bytes: usize) -> Self {
            let mut content = vec![0; bytes];
            Content::new(5).fill(0, 0, &mut content);
            Self { content, chunks: 128, kind: 2, flipped: None, sent: usize::MAX }
        }

        /// The answer to a request, before the packets.
        fn answer(&self, offset: usize) -> Vec<u8> {
            let checksum = Checksum { kind: self.kind, chunk_bytes: CHUNK as u32 };
            let read = Some(ReadChecksums { checksum, offset: (offset / CHUNK * CHUNK) as u64 });
            BlockResponse { status: 0, read, message: None }.encode_length_delimited_to_vec()
        }

        fn response(&self, offset: usize) -> Vec<u8> {
            let first = offset / CHUNK * CHUNK;
            let mut sent = self.answer(offset);
            for (number, data) in self.content[first..].chunks(self.chunks * CHUNK).enumerate() {
                let at = first + number * self.chunks * CHUNK;
                self.packet(&mut sent, at, data, false);
            }
            self.packet(&mut sent, self.content.len(), &[], true);
            sent.truncate(self.sent);
            sent
        }

        fn packet(&self, sent: &mut Vec<u8>, at: usize, data: &[u8], last: bool) {
            let sum = |chunk: &[u8]| match self.kind {
                1 => crc32fast::hash(chunk).to_be_bytes().to_vec(),
                2 => (crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, chunk) as u32).to_be_bytes().to_vec(),
                _ => Vec::new(),
            };
            let sums: Vec<u8> = data.chunks(CHUNK).flat_map(sum).collect();
            let header = PacketHeader { offset: at as i64, last, data_bytes: data.len() as i32 }.encode_to_vec();
            sent.extend((4 + sums.len() as u32 + data.len() as u32).to_be_bytes());
            sent.extend((header.len() as u16).to_be_bytes());
            sent.extend([header, sums].concat());
            let begin = sent.len();
            sent.extend(data);
            if let Some(flipped) =
                self.flipped.and_then(|flipped| flipped.checked_sub(at)).filter(|at| *at < data.len())
            {
                sent[begin + flipped] ^= 1;
            }
        }

        /// Serves requests for the block, any number on a connection, and returns its location.
        pub async fn serve(self, offset_in_file: u64) -> LocatedBlock {
            let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = u32::from(server.local_addr().unwrap().port());
            let id = DataNodeId { ip: "127.0.0.1".to_owned(), host: "localhost".to_owned(), port };
            let bytes = self.content.len() as u64;
            let block = ExtendedBlock { pool: "BP-1".to_owned(), id: 7, generation: 1001, bytes };
            tokio::spawn(async move {
                loop {
                    let (mut client, _) = server.accept().await.unwrap();
                    let mut version = [0; 3];
                    while client.read_exact(&mut version).await.is_ok() {
                        assert_eq!(version, READ_BLOCK);
                        let request: ReadBlock = read_delimited(&mut client).await.unwrap();
                        assert_eq!(request.offset + request.bytes, self.content.len() as u64);
                        // The client may leave before the end.
                        let sent = client.write_all(&self.response(request.offset as usize)).await;
                        let mut status = [0; 3];
                        if sent.is_err() || self.sent != usize::MAX || client.read_exact(&mut status).await.is_err() {
                            break;
                        }
                        assert_eq!(status, CHECKSUM_OK);
                    }
                }
            });
            LocatedBlock { block, offset: offset_in_file, nodes: vec![DataNodeInfo { id }], token: Vec::new() }
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    async fn request(block: &LocatedBlock, offset: u64) -> BlockReader {
        let address = format!("127.0.0.1:{}", block.nodes[0].id.port);
        DataNode::connect(address, Duration::from_secs(5)).await.unwrap().request(block, offset).await.unwrap()
    }

    /// Reads to the end in buffers of this size.
    async fn read_all(reader: &mut BlockReader, buffer: usize) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let mut into = vec![0; buffer];
        while !reader.is_done() {
            let bytes = reader.read(&mut into).await?;
            assert!(bytes == buffer || reader.is_done());
            read.extend_from_slice(&into[..bytes]);
        }
        Ok(read)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn any_part_of_a_block_is_read_in_buffers_of_any_size(
            bytes in 1..300_000_usize, part in 0.0..1.0_f64, buffer in 1..400_000_usize, chunks in 1..200_usize, kind in 0..3_i32,
        ) {
            runtime().block_on(async {
                let script = Script { chunks, kind, ..Script::new(bytes) };
                let offset = (part * bytes as f64) as usize;
                let expected = script.content[offset..].to_vec();
                let block = script.serve(0).await;
                let mut reader = request(&block, offset as u64).await;
                let buffer = buffer.max(bytes / 1_000 + 1);
                assert!(read_all(&mut reader, buffer).await.unwrap() == expected);
                // The connection takes another request.
                let mut again = reader.finish().await.unwrap().request(&block, 0).await.unwrap();
                assert_eq!(read_all(&mut again, buffer).await.unwrap().len(), bytes);
            });
        }

        #[test]
        fn a_flipped_bit_is_never_handed_out(bytes in 1..200_000_usize, flipped in 0.0..1.0_f64, kind in 1..3_i32) {
            runtime().block_on(async {
                let flipped = (flipped * bytes as f64) as usize;
                let block = Script { flipped: Some(flipped), kind, ..Script::new(bytes) }.serve(0).await;
                let error = read_all(&mut request(&block, 0).await, 10_000).await.unwrap_err();
                assert_eq!(error.to_string(), "ChecksumError");
            });
        }

        #[test]
        fn a_connection_that_ends_anywhere_is_an_error(bytes in 1..200_000_usize, sent in 0.0..1.0_f64) {
            runtime().block_on(async {
                let script = Script::new(bytes);
                let (answer, mut last) = (script.answer(0).len(), Vec::new());
                script.packet(&mut last, bytes, &[], true);
                // Behind the answer to the request, and before the last byte of data.
                let sent = answer + (sent * (script.response(0).len() - last.len() - answer) as f64) as usize;
                let block = Script { sent, ..Script::new(bytes) }.serve(0).await;
                assert!(read_all(&mut request(&block, 0).await, 10_000).await.is_err());
            });
        }
    }

    #[test]
    fn a_packet_that_is_missing_or_sent_twice_is_refused() {
        runtime().block_on(async {
            for offset in [0, 1_024, 65_536] {
                let script = Script::new(200_000);
                let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = server.local_addr().unwrap().to_string();
                let mut sent = script.answer(0);
                script.packet(&mut sent, 0, &script.content[..512], false);
                script.packet(&mut sent, offset, &script.content[offset..offset + 512], false);
                tokio::spawn(async move {
                    let (mut client, _) = server.accept().await.unwrap();
                    client.write_all(&sent).await.unwrap();
                    client.read_to_end(&mut Vec::new()).await.ok();
                });
                let block = script.serve(0).await;
                let node = DataNode::connect(address, Duration::from_secs(5)).await.unwrap();
                let mut reader = node.request(&block, 0).await.unwrap();
                let error = reader.read(&mut [0; 1_000]).await.unwrap_err();
                assert!(error.to_string().ends_with("where 512 was expected"), "{error}");
            }
        });
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        runtime().block_on(async {
            for (payload, header, data) in
                [(3_u32, 18_u16, 0_i32), (u32::MAX, 18, 0), (4, 18, 5), (4, u16::MAX, 0), (4, 18, -1)]
            {
                let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = server.local_addr().unwrap().to_string();
                tokio::spawn(async move {
                    let (mut client, _) = server.accept().await.unwrap();
                    let mut sent = Script::new(1_000).answer(0);
                    sent.extend(payload.to_be_bytes());
                    sent.extend(header.to_be_bytes());
                    let mut head = PacketHeader { offset: 0, last: false, data_bytes: data }.encode_to_vec();
                    head.resize(usize::from(header), 0);
                    sent.extend(head);
                    client.write_all(&sent).await.unwrap();
                    client.read_to_end(&mut Vec::new()).await.ok();
                });
                let block = Script::new(1_000).serve(0).await;
                let node = DataNode::connect(address, Duration::from_secs(5)).await.unwrap();
                let mut reader = node.request(&block, 0).await.unwrap();
                assert!(reader.read(&mut [0; 100]).await.is_err(), "{payload} {header} {data}");
            }
        });
    }
}
