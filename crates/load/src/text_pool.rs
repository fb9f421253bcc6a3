//! Random text in YCSB's alphabet, taken from a pool and transformed for each record.

use crate::random::{Draws, Purpose};

/// The period of the alphabet: one random int gives six bytes.
const PERIOD: usize = 6;
/// Size of the pool, 192 KiB, which leaves room for the store in an L2 cache of 512 KiB.
const POOL_BYTES: usize = PERIOD * 32_768;
/// Number of bytes transformed at once.
const BLOCK: usize = 16;
/// Number of bytes transformed with one key: whole periods and whole blocks.
const STRIDE: usize = 3 * BLOCK;
/// The space, the first character of YCSB's alphabet.
const BLANK: u8 = 32;

/// A pool of YCSB's random text.
///
/// Generating 1,000 new bytes takes 400–500 ns; copying them from the pool takes a fifth of this time. Each record
/// starts at a random place, and combines the text with six random bytes. Two records from the same place are no more
/// alike than any other two records, so a compressor finds only the alphabet, in a window of any size.
#[derive(Debug)]
pub struct Pool {
    /// The bytes minus the space, so that transforming them is a single operation.
    bytes: Vec<u8>,
}

impl Pool {
    /// A pool generated from a seed.
    pub fn new(seed: u64) -> Self {
        let mut draws = Draws::new(seed, 0, Purpose::Value);
        let mut bytes = Vec::with_capacity(POOL_BYTES);
        while bytes.len() < POOL_BYTES {
            bytes.extend_from_slice(&draw_letters(draws.next_u64() as u32));
        }
        Self { bytes }
    }

    /// A random place at which to start. A record's fields take consecutive text from there, which costs one draw and
    /// one cache miss per record instead of one per field. The same draws give a different text for each value of
    /// `turn`.
    #[inline]
    pub fn draw_place(&self, draws: &mut Draws, turn: u32) -> Place {
        let at = draws.draw_below((POOL_BYTES / PERIOD) as u64) as usize * PERIOD;
        Place::new(at, draws.next_u64() as u32 ^ turn)
    }

    /// Advances `place` as if a value of `len` bytes had been filled.
    pub fn skip_bytes(&self, mut len: usize, place: &mut Place) {
        while len > 0 {
            if place.at >= POOL_BYTES {
                *place = place.wrap_place();
            }
            let part = len.min(POOL_BYTES - place.at);
            place.at += part.next_multiple_of(PERIOD);
            len -= part;
        }
    }

    /// Fills `out` with text from `place`, and advances `place`.
    #[inline]
    pub fn fill_bytes(&self, out: &mut [u8], place: &mut Place) {
        match self.bytes.get(place.at..place.at + out.len()) {
            Some(from) if out.len() >= BLOCK => {
                turn_blocks(out, from, &place.by);
                // Values begin at the start of a period of the alphabet.
                place.at += out.len().next_multiple_of(PERIOD);
            }
            _ => self.fill_in_parts(out, place),
        }
    }

    /// Fills several values of `len` bytes each, one after another, with text from `place`.
    #[inline]
    pub fn fill_each<'a>(&self, values: impl ExactSizeIterator<Item = &'a mut [u8]>, len: usize, place: &mut Place) {
        let advance = len.next_multiple_of(PERIOD);
        match self.bytes.get(place.at..place.at + advance * values.len()) {
            Some(from) if len >= BLOCK => {
                place.at += from.len();
                // `by` is copied, so that the compiler knows that writing to the values cannot change it.
                let by = place.by;
                for (value, from) in values.zip(from.chunks_exact(advance)) {
                    turn_blocks(&mut value[..len], &from[..len], &by);
                }
            }
            _ => values.for_each(|value| self.fill_bytes(value, place)),
        }
    }

    /// [`Pool::fill_bytes`] for values that are very short or that wrap around the end of the pool.
    #[inline(never)]
    fn fill_in_parts(&self, mut out: &mut [u8], place: &mut Place) {
        while !out.is_empty() {
            if place.at >= POOL_BYTES {
                *place = place.wrap_place();
            }
            let len = out.len().min(POOL_BYTES - place.at);
            let (now, rest) = out.split_at_mut(len);
            turn_letters(now, &self.bytes[place.at..place.at + len], &place.by);
            place.at += len.next_multiple_of(PERIOD);
            out = rest;
        }
    }
}

/// The place in the pool from which a record's values are taken, and their transformation.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: usize,
    turn: u32,
    /// The letters of `turn`, repeated over one stride and one more block, so that a block can begin anywhere in the
    /// stride.
    by: [u8; STRIDE + BLOCK],
}

impl Place {
    #[inline]
    fn new(at: usize, turn: u32) -> Self {
        let [a, b, c, d, e, f] = draw_letters(turn);
        let repeated = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let lanes = [repeated | repeated << 48, repeated >> 16 | repeated << 32, repeated >> 32 | repeated << 16];
        let mut by = [0; STRIDE + BLOCK];
        for (to, word) in by.as_chunks_mut::<8>().0.iter_mut().zip(lanes.iter().cycle()) {
            *to = word.to_le_bytes();
        }
        Self { at, turn, by }
    }

    /// Wraps around to the start of the pool. The pool repeats from there, so the text gets another transformation.
    fn wrap_place(self) -> Self {
        Self::new(0, self.turn.wrapping_add(0x9e37_79b9))
    }
}

/// Writes the letters in `from`, combined with the letters in `by`. Each bit of a letter is a bit of the random int, so
/// the letters of x XOR the letters of y are the letters of x ^ y. The result is text that YCSB generates too, with the
/// same probability.
#[inline]
fn turn_letters(out: &mut [u8], from: &[u8], by: &[u8; STRIDE + BLOCK]) {
    for ((to, from), by) in out.iter_mut().zip(from).zip(by[..STRIDE].iter().cycle()) {
        *to = (from ^ by) + BLANK;
    }
}

/// [`turn_letters`] for at least one block. The last block ends at the end of `out`, so it overlaps the block before
/// it.
#[inline(always)]
fn turn_blocks(out: &mut [u8], from: &[u8], by: &[u8; STRIDE + BLOCK]) {
    #[inline]
    fn turn_block(to: &mut [u8; BLOCK], from: &[u8; BLOCK], by: &[u8; BLOCK]) {
        // Processes words instead of bytes: a letter minus the space is below 96, so no byte carries into the next one.
        let (to, from, by) = (to.as_chunks_mut::<8>().0, from.as_chunks::<8>().0, by.as_chunks::<8>().0);
        for i in 0..BLOCK / 8 {
            let word = u64::from_le_bytes(from[i]) ^ u64::from_le_bytes(by[i]);
            to[i] = (word + u64::from_le_bytes([BLANK; 8])).to_le_bytes();
        }
    }
    let blocks = by.as_chunks::<BLOCK>().0;
    let (strides, rest) = out.as_chunks_mut::<STRIDE>();
    let (from_strides, from_rest) = from.as_chunks::<STRIDE>();
    for (to, from) in strides.iter_mut().zip(from_strides) {
        let (to, from) = (to.as_chunks_mut().0, from.as_chunks().0);
        for i in 0..STRIDE / BLOCK {
            turn_block(&mut to[i], &from[i], &blocks[i]);
        }
    }
    let len = rest.len();
    let (to, from_blocks) = (rest.as_chunks_mut().0, from_rest.as_chunks().0);
    for ((to, from), by) in to.iter_mut().zip(from_blocks).zip(blocks) {
        turn_block(to, from, by);
    }
    let last = (len + STRIDE - BLOCK) % STRIDE;
    if let (Some(to), Some(from), Some(by)) =
        (out.last_chunk_mut(), from.last_chunk(), by.get(last..).and_then(|by| by.first_chunk()))
    {
        turn_block(to, from, by);
    }
}

/// YCSB's `RandomByteIterator`: six printable bytes from one random int, here minus the space.
const fn draw_letters(x: u32) -> [u8; PERIOD] {
    // In Java, the shift is arithmetic. The masks remove the difference, except in the last two bits of the last byte.
    let x = x as i32;
    [
        (x & 31) as u8,
        ((x >> 5) & 63) as u8,
        ((x >> 10) & 0x5f) as u8,
        ((x >> 15) & 31) as u8,
        ((x >> 20) & 63) as u8,
        ((x >> 25) & 0x5f) as u8,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_text(pool: &Pool, index: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        pool.fill_bytes(&mut out, &mut pool.draw_place(&mut Draws::new(1, index, Purpose::Value), 0));
        out
    }

    #[test]
    fn random_text_has_ycsbs_alphabet_by_place() {
        let pool = Pool::new(1);
        // The texts reach the end of a value that is longer than the pool.
        for out in [draw_text(&pool, 1, 999), draw_text(&pool, 2, POOL_BYTES * 2 + 5)] {
            let mut counts = [[0u32; 128]; 3];
            for (i, &byte) in out.iter().enumerate() {
                counts[i % 3][byte as usize] += 1;
            }
            let used = |place: usize| (0..128u8).filter(|&b| counts[place][b as usize] > 0).collect::<Vec<u8>>();
            assert!(used(0).iter().all(|b| (0x20..0x40).contains(b)));
            assert!(used(1).iter().all(|b| (0x20..0x60).contains(b)));
            assert!(used(2).iter().all(|b| (0x20..0x40).contains(b) || (0x60..0x80).contains(b)));
            if out.len() > POOL_BYTES {
                assert_eq!([used(0).len(), used(1).len(), used(2).len()], [32, 64, 64]);
            }
        }
    }

    #[test]
    fn values_do_not_repeat() {
        let pool = Pool::new(1);
        // Sequences of twelve bytes have at least 60 random bits, so none of them repeats by chance.
        let twice = |text: &[u8]| {
            let mut seen_windows = std::collections::HashSet::new();
            text.windows(12).filter(|window| !seen_windows.insert(*window)).count()
        };
        let records: Vec<u8> = (0..2_000).flat_map(|index| draw_text(&pool, index, 1_000)).collect();
        assert_eq!(twice(&records), 0, "2,000 records, ten times the pool");
        assert_eq!(twice(&draw_text(&pool, 3, 2_500_000)), 0, "one value, longer than the pool");
    }

    #[test]
    fn block_rotation_equals_letter_rotation() {
        let pool = Pool::new(1);
        for len in 0..=200 {
            // At some of these places, the value wraps around the end of the pool.
            for at in [0, 6, 600, POOL_BYTES - 204, POOL_BYTES - 96, POOL_BYTES - 6] {
                let mut place = Place::new(at, 0x1234_5678 + len as u32);
                let (mut one_by_one, mut in_blocks) = (vec![0; len], vec![0; len]);
                let mut slow = place;
                pool.fill_in_parts(&mut one_by_one, &mut slow);
                pool.fill_bytes(&mut in_blocks, &mut place);
                assert_eq!((one_by_one, slow.at, slow.turn), (in_blocks, place.at, place.turn), "{len} from {at}");
                let mut skipped = Place::new(at, 0x1234_5678 + len as u32);
                pool.skip_bytes(len, &mut skipped);
                assert_eq!((skipped.at, skipped.turn, skipped.by), (place.at, place.turn, place.by), "{len} from {at}");
            }
        }
    }

    #[test]
    fn values_together_are_those_one_after_the_other() {
        let pool = Pool::new(1);
        for (len, at) in [(100, 0), (17, 12), (3, 6), (100, POOL_BYTES - 306), (100, POOL_BYTES - 204)] {
            let (mut single, mut all) = (vec![0; 3 * len], vec![0; 3 * len]);
            let (mut place, mut same) = (Place::new(at, 5), Place::new(at, 5));
            single.chunks_exact_mut(len).for_each(|value| pool.fill_bytes(value, &mut place));
            pool.fill_each(all.chunks_exact_mut(len), len, &mut same);
            assert_eq!((single, place.at, place.turn), (all, same.at, same.turn), "{len} from {at}");
        }
    }

    #[test]
    fn consecutive_fields_begin_periods() {
        let pool = Pool::new(1);
        let whole = draw_text(&pool, 7, 36);
        let mut place = pool.draw_place(&mut Draws::new(1, 7, Purpose::Value), 0);
        let (mut first, mut second) = ([0; 10], [0; 24]);
        pool.fill_bytes(&mut first, &mut place);
        pool.fill_bytes(&mut second, &mut place);
        assert_eq!((&first[..], &second[..]), (&whole[..10], &whole[12..]));
    }
}
