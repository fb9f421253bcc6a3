//! Damaged answers: no decoder panics, and none allocates more than the bytes of the answer allow.

use proptest::prelude::*;

use super::answer::{parse_prepared, refusal, rows};
use super::control::Event;
use super::segments::unwrap;
use super::sharding::Extensions;
use super::wire::{BODY_MAX, Body, Header, Version, opcode};

/// Undamaged answers in protocol 4: rows, a prepared statement, an error, an event, SUPPORTED.
const ANSWERS: [&[u8]; 5] = [
    b"\0\0\0\x02\0\0\0\x03\0\0\0\x01\0\0\0\x02go\0\x01k\0\x01t\0\x01a\0\x21\0\x0D\0\x09\0\0\0\x02\0\0\0\x01k\0\0\0\x01v",
    b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01k\0\x01t\0\x01a\0\x0D\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01a\0\x0D",
    b"\0\0\x10\0\0\x04text\0\x04\0\0\0\x02\0\0\0\x01",
    b"\0\x0DSTATUS_CHANGE\0\x02UP\x04\x7F\0\0\x02\0\0\x23\x52",
    b"\0\x02\0\x0CSCYLLA_SHARD\0\x01\0\x013\0\x0BCOMPRESSION\0\x02\0\x03lz4\0\x06snappy",
];

/// Arbitrary bytes, or an answer with a few changed bytes, possibly truncated.
fn damage_answers() -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let answer = (0..ANSWERS.len(), changes, any::<prop::sample::Index>(), any::<bool>());
    let answer = answer.prop_map(|(answer, changes, len, is_cut)| {
        let mut bytes = ANSWERS[answer].to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(if is_cut { len.index(bytes.len()) } else { bytes.len() });
        bytes
    });
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..200), answer]
}

proptest! {
    #[test]
    fn damaged_answers_are_refused_or_bounded(bytes in damage_answers(), flags in any::<u8>()) {
        let Ok(body) = Body::behind(flags & 0x0E, &bytes) else { return Ok(()) };
        if let Ok(Some(mut table)) = rows(body) {
            let mut values = 0;
            while values < table.rows * table.width && table.body.bytes().is_ok() {
                values += 1;
            }
            prop_assert!(values <= bytes.len() / 4);
            prop_assert!(table.width > 0 || table.rows == 0);
            prop_assert!(table.changed.is_none_or(|(_, columns)| columns.len() <= bytes.len()));
        }
        for version in [Version::V3, Version::V4, Version::V5] {
            if let Ok(prepared) = parse_prepared(body, version) {
                prop_assert!(prepared.markers.len() + prepared.columns.len() + prepared.key.len() <= bytes.len());
                prop_assert!(prepared.key.iter().all(|marker| *marker < prepared.markers.len()));
            }
        }
        prop_assert!(refusal(opcode::ERROR, body, Some(0x1000)).message.len() <= 4 * bytes.len() + 100);
        let _ = (Event::read(body), Extensions::read(body));
    }

    #[test]
    fn damaged_frames_are_refused_or_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..64), compressed in any::<bool>()) {
        if let Ok(Ok(segment)) = unwrap(&bytes, compressed) {
            prop_assert!(segment.len <= bytes.len() && segment.payload.len() < segment.len);
        }
        if let Some(header) = bytes.first_chunk() {
            let header = Header::read(*header, Version::V4);
            prop_assert!(header.is_err() || header.is_ok_and(|header| header.len <= BODY_MAX));
        }
    }
}

#[test]
fn rows_without_columns_are_refused() {
    // Two billion rows in 16 bytes.
    assert!(rows(Body(b"\0\0\0\x02\0\0\0\x04\0\0\0\0\x7F\xFF\xFF\xFF")).is_err());
    assert!(rows(Body(b"\0\0\0\x02\0\0\0\x04\0\0\0\0\0\0\0\0")).unwrap().is_some_and(|table| table.rows == 0));
}
