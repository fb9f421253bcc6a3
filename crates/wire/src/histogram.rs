//! Encodes histograms in the standard form: HDR V2, zlib, base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Decompress, FlushDecompress, Status};
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use loadstone_load::histogram::{BUCKETS, Reading};

use crate::error::EngineError;

/// The cookies of a histogram with one-byte words and of its compressed form.
const COOKIES: [u32; 2] = [0x1c84_9313, 0x1c84_9314];
/// The header consists of cookie, length, offset, digits, lowest and highest value, and ratio.
const HEADER_BYTES: usize = 40;
/// The maximum length of an encoded count.
const VARINT_BYTES: usize = 9;

/// A histogram in the standard form.
pub fn encode(reading: &Reading) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and the bounds are within the range of the format.
    let _ = V2DeflateSerializer::new().serialize(&reading.to_histogram(), &mut bytes);
    STANDARD.encode(bytes)
}

/// The sum of histograms with the buckets of [`Reading`]. The reader of the `hdrhistogram` crate would allocate and add
/// 39,000 counts for each histogram, most of them 0, which takes 40 µs. A reader of `flate2` would allocate and clear
/// 80 KB for each histogram.
#[derive(Debug)]
pub struct Sum {
    counts: Vec<u64>,
    compressed: Vec<u8>,
    inflater: Decompress,
    /// Buffer for payloads, as long as the longest payload.
    payload: Vec<u8>,
}

impl Default for Sum {
    fn default() -> Self {
        let inflater = Decompress::new(true);
        Self { counts: Vec::new(), compressed: Vec::new(), inflater, payload: Vec::new() }
    }
}

impl Sum {
    /// Adds a histogram.
    pub fn add(&mut self, text: &str) -> Result<(), EngineError> {
        self.read(text).map_err(|why| EngineError::failed(format!("a histogram cannot be merged: {why}")))
    }

    fn read(&mut self, text: &str) -> Result<(), String> {
        self.compressed.clear();
        STANDARD.decode_vec(text, &mut self.compressed).map_err(|error| error.to_string())?;
        let word = |bytes: &[u8], at: usize| {
            let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
            word.ok_or("it is too short")
        };
        if word(&self.compressed, 0)? != COOKIES[1] {
            return Err("it is not a compressed histogram".to_owned());
        }
        self.payload.resize(HEADER_BYTES + BUCKETS * VARINT_BYTES, 0);
        self.inflater.reset(true);
        let deflated = self.compressed.get(8..).unwrap_or_default();
        let inflated = self.inflater.decompress(deflated, &mut self.payload, FlushDecompress::Finish);
        if inflated.map_err(|error| error.to_string())? != Status::StreamEnd {
            return Err("it is not complete".to_owned());
        }
        let payload = &self.payload[..self.inflater.total_out() as usize];
        let header = [0, 8, 12, 16, 20].map(|at| word(payload, at));
        // The highest values of two histograms may differ, because they only determine the number of buckets.
        if header != [Ok(COOKIES[0]), Ok(0), Ok(3), Ok(0), Ok(1)] {
            return Err("it has other buckets".to_owned());
        }
        let length = word(payload, 4)? as usize;
        let payload = payload.get(HEADER_BYTES..HEADER_BYTES + length).ok_or("its length is wrong")?;
        self.counts.resize(BUCKETS, 0);
        add_counts(payload, &mut self.counts)
    }

    /// The sum in the standard form; `None` if nothing was added.
    pub fn encode(&self) -> Option<String> {
        (!self.counts.is_empty()).then(|| encode(&Reading::from_counts(&self.counts)))
    }
}

/// Adds the counts of a payload. Counts are zigzag numbers of variable length; a negative number is a run of zeros.
fn add_counts(payload: &[u8], counts: &mut [u64]) -> Result<(), String> {
    let (mut at, mut bytes) = (0, payload.iter());
    while let Some(&first) = bytes.next() {
        let (mut number, mut shift, mut byte) = (u64::from(first & 0x7f), 7, first);
        while byte & 0x80 != 0 {
            byte = *bytes.next().ok_or("it ends within a number")?;
            // All eight bits of the ninth byte are data.
            let bits = if shift == 56 { byte } else { byte & 0x7f };
            number |= u64::from(bits) << shift;
            if shift == 56 {
                break;
            }
            shift += 7;
        }
        let number = (number >> 1) as i64 ^ -((number & 1) as i64);
        match u64::try_from(number) {
            Ok(count) => {
                let bucket: &mut u64 = counts.get_mut(at).ok_or("it has too many buckets")?;
                *bucket = bucket.saturating_add(count);
                at += 1;
            }
            Err(_) => at = at.saturating_add(usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_equal_readings(parts in proptest::collection::vec(proptest::collection::vec((any::<u64>(), 1u64..1 << 40), 1..50), 1..5)) {
            let (mut sum, mut whole) = (Sum::default(), Reading::default());
            for part in &parts {
                let mut reading = Reading::default();
                for (value, count) in part {
                    reading.record_n(value % (1 << 50), *count);
                }
                sum.add(&encode(&reading)).unwrap();
                whole.merge_reading(&reading);
            }
            prop_assert_eq!(sum.encode().unwrap(), encode(&whole));
        }

        #[test]
        fn no_payload_makes_the_reader_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = add_counts(&payload, &mut [0; 64]);
        }

        #[test]
        fn damaged_text_is_refused_or_added(at in 0usize..200, byte in any::<u8>()) {
            let mut reading = Reading::default();
            (1..100).for_each(|value| reading.record_value(value * value));
            let mut bytes = STANDARD.decode(encode(&reading)).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Sum::default().add(&STANDARD.encode(bytes));
        }
    }
}
