//! Receives the packets of a block from a data node.
//!
//! Most of what a read costs are the kernel's calls. So as much is received in a call as the kernel has, and not a packet of
//! 64 KiB: that takes 0.4 of the CPU. Packets of one size follow each other, so data go straight into the caller's buffer, and
//! what lies between them beside it. Where the packets are different after all, the bytes are copied to where they belong.

use std::io::{self, IoSliceMut};

use crc_fast::CrcAlgorithm;
use prost::Message;
use tokio::io::AsyncWriteExt;

use super::data_node::DataNode;
use super::messages::{PacketHeader, ReadChecksums, invalid};

/// `ClientReadStatusProto` of `CHECKSUM_OK`, after its length.
const CHECKSUM_OK: [u8; 3] = [2, 8, 6];
/// What one call may receive that does not go into the caller's buffer.
const RECEIVE_BYTES: usize = 1 << 20;
/// How many packets one call may receive into the caller's buffer.
const PACKETS: usize = 32;
/// Bytes of a packet's length and its header's length.
const LENGTHS: usize = 6;
/// A header has some 25 bytes, and a packet of 64 KiB some 512 of checksums.
const PACKET_HEAD_MAX: usize = RECEIVE_BYTES / 2;

/// The bytes of a block that follow an offset, as a data node sends them.
#[derive(Debug)]
pub(super) struct BlockReader {
    node: DataNode,
    /// What was received and is not in the caller's buffer: the bytes from `start` to `end`.
    received: Vec<u8>,
    start: usize,
    end: usize,
    /// Where the next packet begins in the block.
    at: u64,
    /// Bytes of a checksum's chunk.
    chunk: usize,
    sums: Checksums,
    /// Bytes of the packet whose checksums were not compared yet.
    packet: usize,
    /// The size of the packet; the next one is probably as large.
    size: PacketSize,
    /// The heads of packets whose data go into the caller's buffer.
    heads: Vec<u8>,
    /// Received bytes that were compared and not handed out.
    ready: usize,
    /// Bytes of the first chunk before the requested offset.
    skip: usize,
    /// Bytes to hand out, to the end of the block.
    left: u64,
}

/// The size of a packet, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PacketSize {
    /// Lengths, header and checksums.
    head: usize,
    data: usize,
}

/// The checksums of a packet.
#[derive(Debug)]
struct Checksums {
    /// `None`: the block has none.
    algorithm: Option<CrcAlgorithm>,
    bytes: Vec<u8>,
    /// How many of the bytes were compared.
    compared: usize,
}

impl Checksums {
    fn replace(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.compared = 0;
    }

    /// Compares the next checksum with that of a chunk.
    fn compare(&mut self, chunk: &[u8]) -> io::Result<()> {
        let Some(algorithm) = self.algorithm else { return Ok(()) };
        let sum = (crc_fast::checksum(algorithm, chunk) as u32).to_be_bytes();
        if self.bytes.get(self.compared..self.compared + sum.len()) != Some(sum.as_slice()) {
            return Err(invalid("ChecksumError"));
        }
        self.compared += sum.len();
        Ok(())
    }
}

impl BlockReader {
    /// Reads what a data node sends after its answer to a request for `bytes` bytes from an offset.
    pub fn new(node: DataNode, answer: &ReadChecksums, offset: u64, bytes: u64) -> io::Result<Self> {
        let algorithm = match answer.checksum.kind {
            0 => None,
            1 => Some(CrcAlgorithm::Crc32IsoHdlc),
            2 => Some(CrcAlgorithm::Crc32Iscsi),
            other => return Err(invalid(format!("checksums of the unknown kind {other}"))),
        };
        let chunk = answer.checksum.chunk_bytes as usize;
        let skip = offset.checked_sub(answer.offset).filter(|_| (1..=RECEIVE_BYTES / 2).contains(&chunk));
        let Some(skip) = skip else { return Err(invalid("an offset or a chunk that cannot be")) };
        Ok(Self {
            node,
            received: vec![0; RECEIVE_BYTES],
            start: 0,
            end: 0,
            at: answer.offset,
            chunk,
            sums: Checksums { algorithm, bytes: Vec::new(), compared: 0 },
            packet: 0,
            size: PacketSize::default(),
            heads: Vec::new(),
            ready: 0,
            skip: skip as usize,
            left: bytes,
        })
    }

    /// The address of the data node.
    pub fn address(&self) -> &str {
        &self.node.address
    }

    /// Whether everything was handed out.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The next bytes of the block; fewer than fit only at its end.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let fits = self.left.min(into.len() as u64) as usize;
        let mut filled = 0;
        while filled < fits {
            let free = &mut into[filled..fits];
            let bytes = if free.len() >= self.chunk && self.can_receive_into() {
                self.receive_into(free).await?
            } else {
                if self.ready == 0 {
                    self.compare().await?;
                }
                let bytes = self.ready.min(free.len());
                free[..bytes].copy_from_slice(&self.pending()[..bytes]);
                self.start += bytes;
                self.ready -= bytes;
                bytes
            };
            self.left -= bytes as u64;
            filled += bytes;
        }
        Ok(filled)
    }

    /// Whether the packet has only whole chunks, and of the next chunk or head not all was received yet.
    fn can_receive_into(&self) -> bool {
        let next = if self.packet > 0 { self.chunk } else { self.size.head };
        let whole = self.size.data > 0 && self.size.data.is_multiple_of(self.chunk) && self.skip == 0;
        whole && self.ready == 0 && self.pending().len() < next
    }

    /// Receives into the caller's buffer, and compares the checksums. Expects packets as large as this one; the bytes of one
    /// that is not go to `received`. Returns the number of bytes in the buffer: whole chunks, or none.
    async fn receive_into(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (whole, cut) = into.split_at_mut(into.len() / self.chunk * self.chunk);
        // What remains is less than a chunk. So that chunk is received beside the buffer, with a head that may precede it.
        let beside = if cut.is_empty() { 0 } else { self.size.head + self.chunk };
        let PacketSize { head, data } = self.size;
        let (mut got, mut compared) = (0, 0);
        let mut heads = std::mem::take(&mut self.heads);
        heads.resize(PACKETS * head, 0);
        // Bytes of the first head that were received before.
        let mut begun = 0;
        let pending = self.pending();
        if self.packet > 0 {
            got = pending.len();
            whole[..got].copy_from_slice(pending);
        } else {
            begun = pending.len();
            heads[..begun].copy_from_slice(pending);
        }
        loop {
            let current = (self.packet - (got - compared)).min(whole.len() - got);
            let mut slices: [IoSliceMut<'_>; 2 * PACKETS + 2] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
            let (first, free) = whole[got..].split_at_mut(current);
            slices[0] = IoSliceMut::new(first);
            let mut used = 1;
            for packet in heads.chunks_exact_mut(head).zip(free.chunks_mut(data)) {
                slices[used] = IoSliceMut::new(if used == 1 { &mut packet.0[begun..] } else { packet.0 });
                slices[used + 1] = IoSliceMut::new(packet.1);
                used += 2;
            }
            slices[used] = IoSliceMut::new(&mut self.received[..beside]);
            let mut bytes = self.node.receive(&mut slices[..=used]).await? + begun;
            begun = 0;

            let taken = bytes.min(current);
            (got, bytes) = (got + taken, bytes - taken);
            compared += self.compare_chunks(&whole[compared..got])?;
            for (n, next) in heads.chunks_exact(head).enumerate().take(used / 2) {
                if bytes == 0 {
                    break;
                }
                if bytes < head || !self.begin_alike(next) {
                    let mut rest = Vec::new();
                    for (head, data) in heads.chunks_exact(head).skip(n).zip(whole[got..].chunks(data)) {
                        rest.extend_from_slice(head);
                        rest.extend_from_slice(data);
                    }
                    rest.extend_from_slice(&self.received[..beside]);
                    self.received.resize(bytes.max(RECEIVE_BYTES), 0);
                    self.received[..bytes].copy_from_slice(&rest[..bytes]);
                    break;
                }
                let taken = (bytes - head).min(data).min(whole.len() - got);
                (got, bytes) = (got + taken, bytes - head - taken);
                compared += self.compare_chunks(&whole[compared..got])?;
            }
            (self.start, self.end) = (0, bytes);
            if compared == got {
                break;
            }
        }
        self.heads = heads;
        Ok(compared)
    }

    /// Receives at least one more chunk, and compares its checksum and those of all complete chunks of the packet.
    async fn compare(&mut self) -> io::Result<()> {
        while self.ready == 0 {
            if self.packet == 0 && self.begin_packet().await?.last {
                return Err(invalid("the block ended early"));
            }
            self.receive(self.chunk.min(self.packet), self.packet).await?;
            let received = std::mem::take(&mut self.received);
            let compared = self.compare_chunks(&received[self.start..self.end]);
            self.received = received;
            self.ready = compared?;
            let skipped = self.skip.min(self.ready);
            self.start += skipped;
            self.ready -= skipped;
            self.skip -= skipped;
        }
        Ok(())
    }

    /// Compares the checksums of the complete chunks of the packet at the beginning of these bytes; returns their length.
    fn compare_chunks(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut compared = 0;
        while self.packet > 0 {
            let Some(chunk) = bytes[compared..].get(..self.chunk.min(self.packet)) else { break };
            self.sums.compare(chunk)?;
            compared += chunk.len();
            self.packet -= chunk.len();
        }
        Ok(compared)
    }

    /// Receives the head of the next packet: lengths, header, checksums.
    async fn begin_packet(&mut self) -> io::Result<PacketHeader> {
        self.receive(LENGTHS, LENGTHS).await?;
        let (_, header) = lengths(self.pending());
        self.receive(LENGTHS + header, LENGTHS + header).await?;
        let decoded = PacketHeader::decode(&self.pending()[LENGTHS..LENGTHS + header])?;
        let size = self.size_of(self.pending(), &decoded)?;
        self.receive(size.head, size.head).await?;
        let (first, last) = (self.start + LENGTHS + header, self.start + size.head);
        self.sums.replace(&self.received[first..last]);
        self.start = last;
        self.begin(size);
        Ok(decoded)
    }

    /// Begins the next packet, if this is its head and it is as large as this one.
    fn begin_alike(&mut self, head: &[u8]) -> bool {
        let first = LENGTHS + lengths(head).1;
        let Some(Ok(header)) = head.get(LENGTHS..first).map(PacketHeader::decode) else { return false };
        let alike = !header.last && self.size_of(head, &header).is_ok_and(|size| size == self.size);
        if alike {
            self.sums.replace(&head[first..]);
            self.begin(self.size);
        }
        alike
    }

    fn begin(&mut self, size: PacketSize) {
        self.at += size.data as u64;
        self.packet = size.data;
        self.size = size;
    }

    /// The size of the next packet, from its lengths and its header.
    fn size_of(&self, head: &[u8], header: &PacketHeader) -> io::Result<PacketSize> {
        let data = usize::try_from(header.data_bytes).map_err(invalid)?;
        if data > 0 && header.offset as u64 != self.at {
            return Err(invalid(format!("a packet of offset {} where {} was expected", header.offset, self.at)));
        }
        let (payload, header) = lengths(head);
        // The payload's length counts itself.
        let head = payload.checked_sub(4 + data).map(|sums| LENGTHS + header + sums);
        match head.filter(|head| *head <= PACKET_HEAD_MAX) {
            Some(head) => Ok(PacketSize { head, data }),
            None => Err(invalid("a packet whose lengths cannot be")),
        }
    }

    /// Ends the read of a whole block. Returns the connection, on which the data node takes further requests.
    pub async fn finish(mut self) -> io::Result<DataNode> {
        if self.ready + self.packet > 0 || !self.begin_packet().await?.last {
            return Err(invalid("more bytes than the block has"));
        }
        self.node.stream.write_all(&CHECKSUM_OK).await?;
        Ok(self.node)
    }

    fn pending(&self) -> &[u8] {
        &self.received[self.start..self.end]
    }

    /// Receives until this many bytes are there, and no more than `most`.
    async fn receive(&mut self, bytes: usize, most: usize) -> io::Result<()> {
        // Less than a chunk, or than a packet's head.
        self.received.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let most = most.min(self.received.len());
        while self.end < bytes {
            self.end += self.node.receive(&mut [IoSliceMut::new(&mut self.received[self.end..most])]).await?;
        }
        Ok(())
    }
}

/// The lengths of a packet's payload and of its header, which come before them.
fn lengths(head: &[u8]) -> (usize, usize) {
    let payload = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    (payload as usize, usize::from(u16::from_be_bytes([head[4], head[5]])))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::content::Content;
    use crate::fs::hdfs::data_node::READ_BLOCK;
    use crate::fs::hdfs::messages::{
        BlockResponse, Checksum, DataNodeId, DataNodeInfo, ExtendedBlock, LocatedBlock, ReadBlock, read_delimited,
    };

    const CHUNK: usize = 512;

    /// What a scripted data node sends of a block.
    #[derive(Clone, Debug)]
    pub struct Script {
        pub content: Vec<u8>,
        /// Chunks of a packet.
        pub chunks: usize,
        /// Chunks of every third packet.
        pub chunks_of_third: usize,
        /// How many bytes are sent at a time.
        pub piece: usize,
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
            Self {
                content,
                chunks: 128,
                chunks_of_third: 128,
                piece: usize::MAX,
                kind: 2,
                flipped: None,
                sent: usize::MAX,
            }
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
            let (mut at, mut rest) = (first, &self.content[first..]);
            for chunks in [self.chunks, self.chunks, self.chunks_of_third].into_iter().cycle() {
                let (data, after) = rest.split_at((chunks * CHUNK).min(rest.len()));
                if data.is_empty() {
                    break;
                }
                self.packet(&mut sent, at, data, false);
                (at, rest) = (at + data.len(), after);
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
                        let mut sent = Ok(());
                        for piece in self.response(request.offset as usize).chunks(self.piece) {
                            sent = sent.and(client.write_all(piece).await);
                            tokio::task::yield_now().await;
                        }
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
            bytes in 1..300_000_usize, part in 0.0..1.0_f64, buffer in 1..400_000_usize, whole_chunks: bool,
            chunks in 1..200_usize, chunks_of_third in 1..200_usize, same_size: bool, piece in 1..100_000_usize, kind in 0..3_i32,
        ) {
            runtime().block_on(async {
                let chunks_of_third = if same_size { chunks } else { chunks_of_third };
                let piece = piece + bytes / 1_000;
                let script = Script { chunks, chunks_of_third, piece, kind, ..Script::new(bytes) };
                let offset = (part * bytes as f64) as usize;
                let expected = script.content[offset..].to_vec();
                let block = script.serve(0).await;
                let mut reader = request(&block, offset as u64).await;
                let buffer = if whole_chunks { buffer.next_multiple_of(CHUNK) } else { buffer.max(bytes / 1_000 + 1) };
                assert!(read_all(&mut reader, buffer).await.unwrap() == expected);
                // The connection takes another request.
                let mut again = reader.finish().await.unwrap().request(&block, 0).await.unwrap();
                assert_eq!(read_all(&mut again, buffer).await.unwrap().len(), bytes);
            });
        }

        #[test]
        fn a_flipped_bit_is_never_handed_out(
            bytes in 1..200_000_usize, flipped in 0.0..1.0_f64, chunks in 1..200_usize, piece in 100..100_000_usize, kind in 1..3_i32,
        ) {
            runtime().block_on(async {
                let flipped = (flipped * bytes as f64) as usize;
                let script = Script { chunks, chunks_of_third: chunks, piece, kind, ..Script::new(bytes) };
                let block = Script { flipped: Some(flipped), ..script }.serve(0).await;
                let error = read_all(&mut request(&block, 0).await, 10_240).await.unwrap_err();
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
