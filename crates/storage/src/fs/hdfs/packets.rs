//! The bytes of a file that is being written, divided into packets.
//!
//! Data stays where the caller put it. A packet is a part of a memory segment, which is reused when all its packets are
//! acknowledged. When a segment is full, only the bytes that do not fill a packet are copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, PoisonError};

use crc_fast::CrcAlgorithm;
use prost::Message;

use super::messages::invalid;
use super::write_messages::SentHeader;

/// Maximum number of packets that one call sends.
pub(super) const BATCH: usize = 32;
/// Size of a segment: small enough to stay in a processor's cache while it is filled, checksummed and sent.
const SEGMENT_BYTES: usize = 1 << 20;
/// Maximum total size of the free segments that are kept for reuse, in bytes.
const FREE_BYTES_MAX: usize = 16 << 20;
/// Hadoop's `PacketHeader.PKT_MAX_HEADER_LEN`: two lengths, and a header with all its fields.
const HEADER_BYTES_MAX: usize = 33;

/// Segments that are not in use. Allocating new memory costs as much as sending its contents.
#[derive(Debug, Default)]
pub(super) struct SegmentMemory(Mutex<Vec<Vec<u8>>>);

impl SegmentMemory {
    /// Returns a segment of at least this many bytes: the most recently used free segment, or a new segment.
    fn take_segment(&self, bytes: usize) -> Vec<u8> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = free.iter().rposition(|segment| segment.len() >= bytes);
        last.map_or_else(|| vec![0; bytes], |last| free.remove(last))
    }

    fn return_segment(&self, segment: Vec<u8>) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.iter().map(Vec::len).sum::<usize>() + segment.len() <= FREE_BYTES_MAX {
            free.push(segment);
        }
    }
}

/// The format of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PacketLayout {
    /// Bytes per checksum.
    pub chunk: usize,
    /// Bytes of data per packet: a multiple of `chunk`.
    pub data: usize,
    /// CRC-32C or CRC-32.
    pub algorithm: CrcAlgorithm,
}

impl PacketLayout {
    /// A layout for packets of at most `packet` bytes in total, computed as in Hadoop
    /// (`DFSOutputStream.computePacketChunkSize`).
    pub fn new(packet: usize, chunk: usize, algorithm: CrcAlgorithm) -> Self {
        let chunks = packet.saturating_sub(HEADER_BYTES_MAX) / (chunk + size_of::<u32>());
        Self { chunk, data: chunks.max(1) * chunk, algorithm }
    }
}

#[derive(Debug)]
struct Packet {
    number: i64,
    /// The segment that contains its data.
    segment: u64,
    start: usize,
    bytes: usize,
    /// The offset of the packet's data in the block.
    offset: u64,
    last: bool,
    sync: bool,
}

#[derive(Debug)]
struct PacketSegment {
    number: u64,
    data: Vec<u8>,
}

/// The unacknowledged packets of a block, and the bytes that are not yet in a packet.
#[derive(Debug)]
pub(super) struct Packets {
    layout: PacketLayout,
    memory: Arc<SegmentMemory>,
    /// The last segment is being filled.
    segments: VecDeque<PacketSegment>,
    /// The start of the next packet: in the last segment (`start`), and in the block (`offset`).
    start: usize,
    offset: u64,
    filled: usize,
    /// Number of bytes from `start` on that are already in a packet: the last chunk, if it was flushed before it was
    /// full. The next packet contains these bytes again, because a packet must begin with a chunk
    /// (`DFSOutputStream.flushOrSync`).
    repeated: usize,
    /// Unacknowledged packets, oldest first.
    waiting: VecDeque<Packet>,
    /// Number of unacknowledged packets that were sent.
    sent: usize,
    number: i64,
    /// The numbers of bytes of the block that were acknowledged, and that were sent at least once.
    acknowledged_bytes: u64,
    sent_bytes: u64,
    /// The heads of the packets that are being sent.
    heads: Vec<u8>,
}

impl Packets {
    pub fn new(layout: PacketLayout, memory: Arc<SegmentMemory>) -> Self {
        Self {
            layout,
            memory,
            segments: VecDeque::new(),
            start: 0,
            offset: 0,
            filled: 0,
            repeated: 0,
            waiting: VecDeque::new(),
            sent: 0,
            number: 0,
            acknowledged_bytes: 0,
            sent_bytes: 0,
            heads: Vec::new(),
        }
    }

    /// Memory for the next bytes of the file.
    pub fn reserve_buffer(&mut self, bytes: usize) -> &mut [u8] {
        if self.segments.back().is_none_or(|last| last.data.len() - self.filled < bytes) {
            let mut data = self.memory.take_segment(bytes.max(SEGMENT_BYTES) + self.layout.data);
            let number = self.segments.back().map_or(0, |last| {
                data[..self.filled - self.start].copy_from_slice(&last.data[self.start..self.filled]);
                last.number + 1
            });
            self.segments.push_back(PacketSegment { number, data });
            (self.start, self.filled) = (0, self.filled - self.start);
            self.release_segments();
        }
        match self.segments.back_mut() {
            Some(last) => &mut last.data[self.filled..self.filled + bytes],
            None => &mut [],
        }
    }

    /// The last bytes that the caller filled.
    pub fn last_filled(&self, bytes: usize) -> &[u8] {
        self.segments.back().map_or(&[], |last| &last.data[self.filled - bytes..self.filled])
    }

    /// Accepts the bytes that the caller has filled.
    pub fn accept_filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Number of bytes of the block that are in packets.
    pub fn block_bytes(&self) -> u64 {
        self.offset + self.repeated as u64
    }

    /// Number of bytes that are not in a packet yet.
    pub fn bytes_without_packet(&self) -> usize {
        self.filled - self.start - self.repeated
    }

    /// Forms as many full packets as the bytes allow, up to the end of the block. Returns whether more bytes follow,
    /// which belong to another block.
    pub fn cut_packets(&mut self, block_bytes: u64) -> bool {
        while self.block_bytes() < block_bytes {
            let bytes = (block_bytes - self.offset).min(self.layout.data as u64) as usize;
            if self.filled - self.start < bytes {
                return false;
            }
            self.push_packet(bytes, false, false);
            self.start += bytes;
            self.offset += bytes as u64;
            self.repeated = 0;
        }
        self.bytes_without_packet() > 0
    }

    /// Forms a packet from the remaining bytes; if there are none but the block must be synced, forms an empty packet.
    pub fn cut_rest(&mut self, sync: bool) {
        if self.bytes_without_packet() > 0 {
            let bytes = self.filled - self.start;
            self.push_packet(bytes, false, sync);
            self.repeated = bytes % self.layout.chunk;
            self.start += bytes - self.repeated;
            self.offset += (bytes - self.repeated) as u64;
        } else if sync {
            self.cut_sync();
        }
    }

    /// Forms an empty packet that syncs the block.
    pub fn cut_sync(&mut self) {
        self.push_packet(0, false, true);
    }

    /// Forms the packet that ends the block.
    pub fn cut_last(&mut self, sync: bool) {
        self.push_packet(0, true, sync);
    }

    fn push_packet(&mut self, bytes: usize, last: bool, sync: bool) {
        let offset = if bytes == 0 { self.block_bytes() } else { self.offset };
        let segment = self.segments.back().map_or(0, |last| last.number);
        self.waiting.push_back(Packet { number: self.number, segment, start: self.start, bytes, offset, last, sync });
        self.number += 1;
    }

    /// Begins the next block.
    pub fn next_block(&mut self) {
        self.start += self.repeated;
        (self.repeated, self.offset, self.number) = (0, 0, 0);
        (self.acknowledged_bytes, self.sent_bytes) = (0, 0);
    }

    /// Number of unacknowledged packets.
    pub fn count_unacknowledged(&self) -> usize {
        self.waiting.len()
    }

    /// Number of unsent packets.
    pub fn count_unsent(&self) -> usize {
        self.waiting.len() - self.sent
    }

    /// Whether the packet that ends the block is the only unacknowledged packet.
    pub fn is_at_end(&self) -> bool {
        self.waiting.front().is_some_and(|packet| packet.last)
    }

    /// The numbers of bytes of the block that were acknowledged, and that were sent at least once.
    pub fn bytes(&self) -> (u64, u64) {
        (self.acknowledged_bytes, self.sent_bytes)
    }

    /// Marks all packets to be sent again.
    pub fn send_again(&mut self) {
        self.sent = 0;
    }

    /// Returns the heads and the data of the next `count` packets, for sending. At least `count` packets must be
    /// unsent, and `count` must not exceed [`BATCH`].
    pub fn next_batch(&mut self, count: usize) -> ([IoSlice<'_>; 2 * BATCH], usize) {
        let next = self.sent..self.sent + count;
        self.sent = next.end;
        let first = self.segments.front().map_or(0, |first| first.number);
        let data = |packet: &Packet| {
            let segment = &self.segments[(packet.segment - first) as usize];
            &segment.data[packet.start..packet.start + packet.bytes]
        };
        self.heads.clear();
        let mut ends = [0; BATCH];
        for (packet, end) in self.waiting.range(next.clone()).zip(&mut ends) {
            self.sent_bytes = self.sent_bytes.max(packet.offset + packet.bytes as u64);
            append_head(packet, data(packet), self.layout, &mut self.heads);
            *end = self.heads.len();
        }
        let mut slices = std::array::from_fn(|_| IoSlice::new(&[]));
        let mut begin = 0;
        for ((packet, end), pair) in self.waiting.range(next).zip(ends).zip(slices.chunks_exact_mut(2)) {
            pair[0] = IoSlice::new(&self.heads[begin..end]);
            pair[1] = IoSlice::new(data(packet));
            begin = end;
        }
        (slices, 2 * count)
    }

    /// Records that a packet was acknowledged. It must be the oldest packet.
    pub fn acknowledge_packet(&mut self, number: i64) -> io::Result<()> {
        match self.waiting.front() {
            Some(oldest) if self.sent > 0 && oldest.number == number => {
                self.acknowledged_bytes = oldest.offset + oldest.bytes as u64;
            }
            _ => return Err(invalid(format!("packet {number} was acknowledged, but is not the oldest"))),
        }
        self.waiting.pop_front();
        self.sent -= 1;
        self.release_segments();
        Ok(())
    }

    /// Drops the packet that ends the block, which need not be sent again.
    pub fn forget_last(&mut self) {
        self.waiting.clear();
        self.sent = 0;
    }

    /// Releases the segments that precede the segment of the oldest packet.
    fn release_segments(&mut self) {
        let needed = self.waiting.front().map(|oldest| oldest.segment);
        while self.segments.len() > 1
            && self.segments.front().is_some_and(|first| needed.is_none_or(|n| first.number < n))
        {
            self.segments.pop_front().into_iter().for_each(|first| self.memory.return_segment(first.data));
        }
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        self.segments.drain(..).for_each(|segment| self.memory.return_segment(segment.data));
    }
}

/// Appends the head of a packet: its lengths, header and checksums.
fn append_head(packet: &Packet, data: &[u8], layout: PacketLayout, into: &mut Vec<u8>) {
    let header = SentHeader {
        offset: packet.offset as i64,
        number: packet.number,
        last: packet.last,
        data_bytes: data.len() as i32,
        sync: packet.sync.then_some(true),
    };
    append_header(&header, data.len().div_ceil(layout.chunk) * size_of::<u32>(), into);
    for chunk in data.chunks(layout.chunk) {
        into.extend_from_slice(&(crc_fast::checksum(layout.algorithm, chunk) as u32).to_be_bytes());
    }
}

fn append_header(header: &SentHeader, sums: usize, into: &mut Vec<u8>) {
    // The payload length includes its own 4 bytes.
    let payload = size_of::<u32>() + sums + header.data_bytes as usize;
    into.extend_from_slice(&(payload as u32).to_be_bytes());
    into.extend_from_slice(&(header.encoded_len() as u16).to_be_bytes());
    // Writing to a vector cannot fail.
    let _ = header.encode(into);
}

/// A packet whose only purpose is to show that the client is alive.
pub(super) fn heartbeat() -> Vec<u8> {
    let mut packet = Vec::new();
    append_header(&SentHeader { number: -1, ..SentHeader::default() }, 0, &mut packet);
    packet
}
