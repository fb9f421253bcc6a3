//! Protocol 5 sends frames in segments with checksums (`native_protocol_v5.spec`, section 2). Uncompressed only.
//!
//! A segment is a header of 3 bytes (17 bits: the length of the payload; 1 bit: whether it holds whole frames only), the header's
//! CRC-24, the payload, and its CRC-32.

use super::wire::HEADER;

/// The longest payload.
pub const PAYLOAD_MAX: usize = (1 << 17) - 1;
const HEAD: usize = 6;
const TRAILER: usize = 4;
const SELF_CONTAINED: u32 = 1 << 17;

/// Appends segments that hold these frames, as many in each as fit. A frame that is longer than a segment is cut into separate ones.
pub fn wrap(mut frames: &[u8], out: &mut Vec<u8>) {
    while !frames.is_empty() {
        let mut len = 0;
        while let Some(frame) = frame_length(&frames[len..]).filter(|frame| len + frame <= PAYLOAD_MAX) {
            len += frame;
        }
        let large = len == 0;
        let (now, later) = frames.split_at(if large { frame_length(frames).unwrap_or(frames.len()) } else { len });
        now.chunks(PAYLOAD_MAX).for_each(|payload| put_segment(payload, !large, out));
        frames = later;
    }
}

/// The length of the first frame, header included.
fn frame_length(frames: &[u8]) -> Option<usize> {
    let header = frames.first_chunk::<HEADER>()?;
    Some(HEADER + u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize)
}

fn put_segment(payload: &[u8], whole: bool, out: &mut Vec<u8>) {
    let head = payload.len() as u32 | if whole { SELF_CONTAINED } else { 0 };
    let head = [head as u8, (head >> 8) as u8, (head >> 16) as u8];
    out.extend_from_slice(&head);
    out.extend_from_slice(&crc24(head).to_le_bytes()[..3]);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
}

/// The first segment in `bytes`: its payload and its whole length. `Ok(Err(n))`: `n` bytes are needed first. The error gives the
/// reason why it is not valid.
pub fn unwrap(bytes: &[u8]) -> Result<Result<(&[u8], usize), usize>, String> {
    let Some(&[a, b, c, x, y, z]) = bytes.first_chunk::<HEAD>() else { return Ok(Err(HEAD)) };
    if crc24([a, b, c]) != u32::from_le_bytes([x, y, z, 0]) {
        return Err("the checksum of a segment's header is wrong".to_owned());
    }
    let len = u32::from_le_bytes([a, b, c, 0]) as usize & PAYLOAD_MAX;
    let whole = HEAD + len + TRAILER;
    let Some(segment) = bytes.get(..whole) else { return Ok(Err(whole)) };
    let (payload, trailer) = segment[HEAD..].split_at(len);
    if crc32(payload).to_le_bytes() != trailer {
        return Err("the checksum of a segment is wrong".to_owned());
    }
    Ok(Ok((payload, whole)))
}

/// CRC-24 with the polynomial 0x1974F0B (Koopman) and the initial value 0x875060, as in `native_protocol_v5.spec`, 2.2.
fn crc24(bytes: [u8; 3]) -> u32 {
    bytes.into_iter().fold(0x87_5060, |crc, byte| {
        (0..8).fold(crc ^ (u32::from(byte) << 16), |crc, _| {
            let crc = crc << 1;
            if crc & 0x100_0000 == 0 { crc } else { crc ^ 0x197_4F0B }
        })
    })
}

/// The CRC-32 of gzip, after the four bytes that the protocol puts in front of each payload.
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
    use super::*;

    fn frame(len: usize) -> Vec<u8> {
        let mut frame = vec![5, 0, 0, 1, 7];
        frame.extend_from_slice(&(len as u32).to_be_bytes());
        frame.extend((0..len).map(|n| n as u8));
        frame
    }

    /// The payloads of all segments, joined, and their number.
    fn payloads(mut bytes: &[u8]) -> (Vec<u8>, usize) {
        let (mut all, mut count) = (Vec::new(), 0);
        while let Ok((payload, len)) = unwrap(bytes).unwrap() {
            all.extend_from_slice(payload);
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
            let mut out = Vec::new();
            wrap(&frames, &mut out);
            assert_eq!(payloads(&out), (frames, segments), "{lengths:?}");
        }
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let mut out = Vec::new();
        wrap(&frame(30), &mut out);
        for bit in 0..out.len() * 8 {
            let mut damaged = out.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(unwrap(&damaged).is_err(), "bit {bit}");
        }
        for len in 0..out.len() {
            assert!(matches!(unwrap(&out[..len]), Ok(Err(needed)) if needed > len));
        }
    }
}
