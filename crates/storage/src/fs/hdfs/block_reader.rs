//! Receives the packets of a block from a data node.
//!
//! System calls account for most of the cost of a read. So each call receives as many bytes as the kernel has. This
//! takes 40 % of the CPU time that one call per packet of 64 KiB would take. Because consecutive packets have the same
//! size, data is received directly into the caller's buffer, and the bytes between packets into a separate buffer. If a
//! packet turns out to have a different size, the received bytes are moved to where they belong.

use std::io::{self, IoSliceMut};

use crc_fast::CrcAlgorithm;
use prost::Message;
use tokio::io::AsyncWriteExt;

use super::data_node::DataNode;
use super::messages::{
    BaseHeader, BlockResponse, ClientHeader, LocatedBlock, PacketHeader, ReadBlock, ReadChecksums, invalid,
    read_delimited,
};

/// `DataTransferProtocol.DATA_TRANSFER_VERSION`, followed by `Op.READ_BLOCK`.
pub(super) const READ_BLOCK: [u8; 3] = [0, 28, 81];

/// `ClientReadStatusProto` with the status `CHECKSUM_OK`, preceded by its length.
pub(super) const CHECKSUM_OK: [u8; 3] = [2, 8, 6];
/// Maximum number of bytes that one call receives outside the caller's buffer.
const RECEIVE_BYTES: usize = 1 << 20;
/// Maximum number of packets that one call receives into the caller's buffer.
const PACKETS: usize = 32;
/// Bytes of the two lengths that precede a packet's header.
const LENGTHS: usize = 6;
/// Maximum size of a packet's head. A header has about 25 bytes, and a packet of 64 KiB has about 512 bytes of
/// checksums.
const PACKET_HEAD_MAX: usize = RECEIVE_BYTES / 2;

/// The bytes of a block from an offset on, as a data node sends them.
#[derive(Debug)]
pub(super) struct BlockReader {
    node: DataNode,
    /// Bytes received outside the caller's buffer. The valid bytes are from `start` to `end`.
    received: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of the next packet in the block.
    at: u64,
    /// Bytes per checksum.
    chunk: usize,
    sums: Checksums,
    /// Number of bytes of the current packet that are still to be verified.
    packet: usize,
    /// The size of the current packet; the next packet probably has the same size.
    size: PacketSize,
    /// The heads of packets whose data is received into the caller's buffer.
    heads: Vec<u8>,
    /// Number of received bytes that were verified but not returned yet.
    ready: usize,
    /// Bytes of the first chunk that precede the requested offset.
    skip: usize,
    /// Bytes still to be returned, up to the end of the block.
    left: u64,
}

/// The size of a packet, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PacketSize {
    /// Bytes of the lengths, the header and the checksums.
    head: usize,
    data: usize,
}

/// The checksums of a packet.
#[derive(Debug)]
struct Checksums {
    /// `None`: the block has no checksums.
    algorithm: Option<CrcAlgorithm>,
    bytes: Vec<u8>,
    /// Number of checksum bytes that have been compared.
    compared: usize,
}

impl Checksums {
    fn replace_sums(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.compared = 0;
    }

    /// Compares the next checksum with the checksum of this chunk.
    fn compare_chunk(&mut self, chunk: &[u8]) -> io::Result<()> {
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
    /// Requests a block from an offset to the end of the block.
    pub async fn request(mut node: DataNode, block: &LocatedBlock, offset: u64) -> io::Result<Self> {
        let base = BaseHeader { block: block.block.clone(), token: block.token.clone() };
        let header = ClientHeader { base, client: "loadstone".to_owned() };
        let bytes = block.block.bytes - offset;
        let request = ReadBlock { header, offset, bytes, send_checksums: true };
        let request = [READ_BLOCK.as_slice(), &request.encode_length_delimited_to_vec()].concat();
        node.stream.write_all(&request).await?;
        let response: BlockResponse = tokio::time::timeout(node.timeout, read_delimited(&mut node.stream)).await??;
        match response.read {
            Some(read) if response.status == 0 => Self::new(node, &read, offset, bytes),
            _ => Err(invalid(response.message.unwrap_or_else(|| format!("status {}", response.status)))),
        }
    }

    /// Creates a reader for the data that a node sends after accepting a request for `bytes` bytes from an offset.
    fn new(node: DataNode, answer: &ReadChecksums, offset: u64, bytes: u64) -> io::Result<Self> {
        let algorithm = match answer.checksum.kind {
            0 => None,
            1 => Some(CrcAlgorithm::Crc32IsoHdlc),
            2 => Some(CrcAlgorithm::Crc32Iscsi),
            other => return Err(invalid(format!("checksums of unknown type {other}"))),
        };
        let chunk = answer.checksum.chunk_bytes as usize;
        let skip = offset.checked_sub(answer.offset).filter(|_| (1..=RECEIVE_BYTES / 2).contains(&chunk));
        let Some(skip) = skip else { return Err(invalid("an impossible offset or chunk size")) };
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

    /// Whether all bytes have been returned.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Reads the next bytes of the block. They fill the buffer except at the end of the block.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let fits = self.left.min(into.len() as u64) as usize;
        let mut filled = 0;
        while filled < fits {
            let free = &mut into[filled..fits];
            let bytes = if free.len() >= self.chunk && self.can_receive_into() {
                self.receive_into(free).await?
            } else {
                if self.ready == 0 {
                    self.compare_packet().await?;
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

    /// Whether the next bytes can be received directly into the caller's buffer: the packet has only whole chunks, and
    /// the next chunk or head has not been received completely.
    fn can_receive_into(&self) -> bool {
        let next = if self.packet > 0 { self.chunk } else { self.size.head };
        let whole = self.size.data > 0 && self.size.data.is_multiple_of(self.chunk) && self.skip == 0;
        whole && self.ready == 0 && self.pending().len() < next && !self.has_other_size()
    }

    /// Whether the next packet has begun to arrive and its size differs from the current packet's. The next packet may
    /// be so short that it is already complete, although fewer bytes than the current packet's head have arrived.
    fn has_other_size(&self) -> bool {
        let pending = self.pending();
        self.packet == 0 && pending.len() >= LENGTHS && {
            let (payload, header) = lengths(pending);
            // The payload length includes its own 4 bytes.
            LENGTHS + header + payload != self.size.head + self.size.data + 4
        }
    }

    /// Receives into the caller's buffer and verifies the checksums. Expects packets of the current packet's size; if a
    /// packet has a different size, its bytes are copied to `received`. Returns the number of bytes in the buffer,
    /// which is a multiple of the chunk size.
    async fn receive_into(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (whole, cut) = into.split_at_mut(into.len() / self.chunk * self.chunk);
        // The remaining space is smaller than a chunk, so the next chunk is received outside the buffer, with a head
        // that may precede it.
        let beside = if cut.is_empty() { 0 } else { self.size.head + self.chunk };
        let PacketSize { head, data } = self.size;
        let (mut got, mut compared) = (0, 0);
        let mut heads = std::mem::take(&mut self.heads);
        heads.resize(PACKETS * head, 0);
        // Bytes of the first head that have already been received.
        let mut head_bytes = 0;
        let pending = self.pending();
        if self.packet > 0 {
            got = pending.len();
            whole[..got].copy_from_slice(pending);
        } else {
            head_bytes = pending.len();
            heads[..head_bytes].copy_from_slice(pending);
        }
        loop {
            let current = (self.packet - (got - compared)).min(whole.len() - got);
            let mut slices: [IoSliceMut<'_>; 2 * PACKETS + 2] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
            let (first, free) = whole[got..].split_at_mut(current);
            slices[0] = IoSliceMut::new(first);
            let mut used = 1;
            for packet in heads.chunks_exact_mut(head).zip(free.chunks_mut(data)) {
                slices[used] = IoSliceMut::new(if used == 1 { &mut packet.0[head_bytes..] } else { packet.0 });
                slices[used + 1] = IoSliceMut::new(packet.1);
                used += 2;
            }
            slices[used] = IoSliceMut::new(&mut self.received[..beside]);
            let mut bytes = self.node.receive(&mut slices[..=used]).await? + head_bytes;
            head_bytes = 0;

            let copied = bytes.min(current);
            (got, bytes) = (got + copied, bytes - copied);
            compared += self.compare_chunks(&whole[compared..got])?;
            for (n, next) in heads.chunks_exact(head).enumerate().take(used / 2) {
                if bytes == 0 {
                    break;
                }
                if bytes < head || !self.begin_alike(next) {
                    let expected = heads.chunks_exact(head).skip(n).zip(whole[got..].chunks(data));
                    self.set_aside(expected, beside, bytes);
                    break;
                }
                let copied = (bytes - head).min(data).min(whole.len() - got);
                (got, bytes) = (got + copied, bytes - head - copied);
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

    /// Copies the first `bytes` bytes of the last call into `received`, in order of arrival: first the expected heads
    /// and data, then the bytes received outside the caller's buffer.
    fn set_aside<'a>(&mut self, expected: impl Iterator<Item = (&'a [u8], &'a [u8])>, beside: usize, bytes: usize) {
        let mut rest = Vec::new();
        for (head, data) in expected {
            rest.extend_from_slice(head);
            rest.extend_from_slice(data);
        }
        rest.extend_from_slice(&self.received[..beside]);
        self.received.resize(bytes.max(RECEIVE_BYTES), 0);
        self.received[..bytes].copy_from_slice(&rest[..bytes]);
    }

    /// Receives at least one more chunk, and verifies the checksums of the packet's complete chunks.
    async fn compare_packet(&mut self) -> io::Result<()> {
        while self.ready == 0 {
            if self.packet == 0 && self.begin_packet().await?.last {
                return Err(invalid("the block ended early"));
            }
            self.receive_bytes(self.chunk.min(self.packet), self.packet).await?;
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

    /// Verifies the checksums of the packet's complete chunks at the beginning of these bytes; returns the total length
    /// of these chunks.
    fn compare_chunks(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut compared = 0;
        while self.packet > 0 {
            let Some(chunk) = bytes[compared..].get(..self.chunk.min(self.packet)) else { break };
            self.sums.compare_chunk(chunk)?;
            compared += chunk.len();
            self.packet -= chunk.len();
        }
        Ok(compared)
    }

    /// Receives the head of the next packet: its lengths, header and checksums.
    async fn begin_packet(&mut self) -> io::Result<PacketHeader> {
        self.receive_bytes(LENGTHS, LENGTHS).await?;
        let (_, header) = lengths(self.pending());
        self.receive_bytes(LENGTHS + header, LENGTHS + header).await?;
        let decoded = PacketHeader::decode(&self.pending()[LENGTHS..LENGTHS + header])?;
        let size = self.size_of(self.pending(), &decoded)?;
        self.receive_bytes(size.head, size.head).await?;
        let (first, last) = (self.start + LENGTHS + header, self.start + size.head);
        self.sums.replace_sums(&self.received[first..last]);
        self.start = last;
        self.start_packet(size);
        Ok(decoded)
    }

    /// Begins the next packet if `head` is the head of a packet of the same size as the current packet.
    fn begin_alike(&mut self, head: &[u8]) -> bool {
        let first = LENGTHS + lengths(head).1;
        let Some(Ok(header)) = head.get(LENGTHS..first).map(PacketHeader::decode) else { return false };
        let alike = !header.last && self.size_of(head, &header).is_ok_and(|size| size == self.size);
        if alike {
            self.sums.replace_sums(&head[first..]);
            self.start_packet(self.size);
        }
        alike
    }

    fn start_packet(&mut self, size: PacketSize) {
        self.at += size.data as u64;
        self.packet = size.data;
        self.size = size;
    }

    /// The size of the next packet, computed from its lengths and its header.
    fn size_of(&self, head: &[u8], header: &PacketHeader) -> io::Result<PacketSize> {
        let data = usize::try_from(header.data_bytes).map_err(invalid)?;
        if data > 0 && header.offset as u64 != self.at {
            return Err(invalid(format!("a packet at offset {} where {} was expected", header.offset, self.at)));
        }
        let (payload, header) = lengths(head);
        // The payload length includes its own 4 bytes.
        let head = payload.checked_sub(4 + data).map(|sums| LENGTHS + header + sums);
        match head.filter(|head| *head <= PACKET_HEAD_MAX) {
            Some(head) => Ok(PacketSize { head, data }),
            None => Err(invalid("a packet with impossible lengths")),
        }
    }

    /// Completes the read of a whole block. Returns the connection, on which the data node accepts further requests.
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

    /// Receives until at least `bytes` and at most `most` bytes are available.
    async fn receive_bytes(&mut self, bytes: usize, most: usize) -> io::Result<()> {
        if self.pending().len() >= bytes {
            return Ok(());
        }
        // The pending bytes are fewer than a chunk or a packet's head.
        self.received.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let most = most.min(self.received.len());
        while self.end < bytes {
            self.end += self.node.receive(&mut [IoSliceMut::new(&mut self.received[self.end..most])]).await?;
        }
        Ok(())
    }
}

/// The lengths of a packet's payload and header; both lengths precede the header.
fn lengths(head: &[u8]) -> (usize, usize) {
    let payload = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    (payload as usize, usize::from(u16::from_be_bytes([head[4], head[5]])))
}

#[cfg(test)]
mod tests;
