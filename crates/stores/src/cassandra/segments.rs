//! Protocol 5 sends frames in segments with checksums (`native_protocol_v5.spec`, section 2).
//!
//! A segment consists of a header of 3 bytes, the header's CRC-24, the payload, and the payload's CRC-32. The header
//! contains the length of the payload (17 bits) and whether the payload consists of whole frames only (1 bit). If
//! segments are compressed (only LZ4 is supported), the header has 5 bytes: 17 more bits contain the uncompressed
//! length, or 0 if the payload is not compressed.

use super::compression::Compressor;
use super::wire::HEADER;

/// Maximum length of a payload.
pub const PAYLOAD_MAX: usize = (1 << 17) - 1;
const LENGTH_BITS: u32 = 17;
const CHECKSUM: usize = 3;
const TRAILER: usize = 4;

/// Appends segments that contain these frames, as many per segment as fit. A frame that is longer than a segment is
/// split into several segments.
pub fn wrap(mut frames: &[u8], mut compressor: Option<&mut Compressor>, out: &mut Vec<u8>) {
    while !frames.is_empty() {
        let mut len = 0;
        while let Some(frame) = frame_length(&frames[len..]).filter(|frame| len + frame <= PAYLOAD_MAX) {
            len += frame;
        }
        let large = len == 0;
        let (now, later) = frames.split_at(if large { frame_length(frames).unwrap_or(frames.len()) } else { len });
        for payload in now.chunks(PAYLOAD_MAX) {
            put_segment(payload, !large, compressor.as_deref_mut(), out);
        }
        frames = later;
    }
}

/// The length of the first frame, including its header.
fn frame_length(frames: &[u8]) -> Option<usize> {
    let header = frames.first_chunk::<HEADER>()?;
    Some(HEADER + u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize)
}

fn put_segment(text: &[u8], whole: bool, compressor: Option<&mut Compressor>, out: &mut Vec<u8>) {
    let compressed = compressor.is_some();
    let (payload, text_len) = match compressor.and_then(|compressor| compressor.compress_block(text)) {
        Some(block) => (block, text.len()),
        None => (text, 0),
    };
    let lengths =
        if compressed { payload.len() as u64 | (text_len as u64) << LENGTH_BITS } else { payload.len() as u64 };
    let head = lengths | u64::from(whole) << (LENGTH_BITS * if compressed { 2 } else { 1 });
    let head = &head.to_le_bytes()[..head_len(compressed)];
    out.extend_from_slice(head);
    out.extend_from_slice(&crc24(head).to_le_bytes()[..CHECKSUM]);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
}

fn head_len(compressed: bool) -> usize {
    if compressed { 5 } else { 3 }
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub payload: &'a [u8],
    /// The length of the uncompressed payload; 0 if the payload is not compressed.
    pub text_len: usize,
    /// The length of the whole segment.
    pub len: usize,
}

/// Returns the first segment in `bytes`, or `Ok(Err(n))` if at least `n` bytes are needed. The outer error states why
/// the segment is invalid.
pub fn unwrap(bytes: &[u8], compressed: bool) -> Result<Result<Segment<'_>, usize>, String> {
    let front = head_len(compressed) + CHECKSUM;
    let Some((head, checksum)) = bytes.get(..front).map(|front| front.split_at(front.len() - CHECKSUM)) else {
        return Ok(Err(front));
    };
    if crc24(head).to_le_bytes()[..CHECKSUM] != *checksum {
        return Err("the checksum of a segment's header is wrong".to_owned());
    }
    let head = head.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)) as usize;
    let (len, text_len) = (head & PAYLOAD_MAX, if compressed { head >> LENGTH_BITS & PAYLOAD_MAX } else { 0 });
    let whole = front + len + TRAILER;
    let Some(segment) = bytes.get(..whole) else { return Ok(Err(whole)) };
    let (payload, trailer) = segment[front..].split_at(len);
    if crc32(payload).to_le_bytes() != trailer {
        return Err("the checksum of a segment is wrong".to_owned());
    }
    Ok(Ok(Segment { payload, text_len, len: whole }))
}

/// CRC-24 with the polynomial 0x1974F0B (Koopman) and the initial value 0x875060, as in `native_protocol_v5.spec`, 2.2.
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x87_5060, |crc, byte| {
        (0..8).fold(crc ^ (u32::from(*byte) << 16), |crc, _| {
            let crc = crc << 1;
            if crc & 0x100_0000 == 0 { crc } else { crc ^ 0x197_4F0B }
        })
    })
}

/// The CRC-32 of gzip, computed over four bytes that the protocol defines, followed by the payload.
fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = START.with(Clone::clone);
    hasher.update(payload);
    hasher.finalize()
}

thread_local! {
    static START: crc32fast::Hasher = {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[0xFA, 0x2D, 0x55, 0xCA]);
        hasher
    };
}

#[cfg(test)]
mod tests {
    use super::super::compression::Algorithm;
    use super::*;

    fn frame(len: usize) -> Vec<u8> {
        let mut frame = vec![5, 0, 0, 1, 7];
        frame.extend_from_slice(&(len as u32).to_be_bytes());
        frame.extend((0..len).map(|n| n as u8));
        frame
    }

    /// The uncompressed payloads of all segments, joined, and the number of segments.
    fn texts(mut bytes: &[u8], mut compressor: Option<Compressor>) -> (Vec<u8>, usize) {
        let (mut all, mut count) = (Vec::new(), 0);
        while let Ok(Segment { payload, text_len, len }) = unwrap(bytes, compressor.is_some()).unwrap() {
            match &mut compressor {
                Some(compressor) if text_len > 0 => {
                    all.extend_from_slice(compressor.read_block(payload, text_len).unwrap());
                }
                _ => all.extend_from_slice(payload),
            }
            count += 1;
            bytes = &bytes[len..];
        }
        assert!(bytes.is_empty());
        (all, count)
    }

    #[test]
    fn segments_return_the_frames_that_were_wrapped() {
        for (lengths, segments) in [
            (vec![0], 1),
            (vec![10, 20, 0, 5], 1),
            (vec![PAYLOAD_MAX - HEADER, 1], 2),
            (vec![PAYLOAD_MAX - HEADER + 1], 2),
            (vec![3, 400_000, 3], 6),
        ] {
            let frames: Vec<u8> = lengths.iter().flat_map(|len| frame(*len)).collect();
            for algorithm in [None, Some(Algorithm::Lz4)] {
                let compressor = || algorithm.map(Compressor::new);
                let mut out = Vec::new();
                wrap(&frames, compressor().as_mut(), &mut out);
                assert_eq!(texts(&out, compressor()), (frames.clone(), segments), "{lengths:?} {algorithm:?}");
                let long = frames.len() > 1_000;
                assert_eq!(out.len() < frames.len() / 2, long && algorithm.is_some(), "{lengths:?} {algorithm:?}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        for algorithm in [None, Some(Algorithm::Lz4)] {
            let mut out = Vec::new();
            wrap(&frame(30), algorithm.map(Compressor::new).as_mut(), &mut out);
            for bit in 0..out.len() * 8 {
                let mut damaged = out.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(unwrap(&damaged, algorithm.is_some()).is_err(), "bit {bit}");
            }
            for len in 0..out.len() {
                assert!(matches!(unwrap(&out[..len], algorithm.is_some()), Ok(Err(needed)) if needed > len));
            }
        }
    }
}
