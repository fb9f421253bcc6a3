//! The content of a file: an incompressible, pure function of (seed, file, offset).
//!
//! A file is a sequence of sectors of [`SECTOR`] bytes. A sector begins with [`MAGIC`] and the seed, so the file alone
//! shows whether Loadstone wrote it and what it must contain. The remaining bytes come from eight interleaved xorshift
//! generators (Marsaglia, J. Stat. Softw. 8, 2003), which the compiler vectorises. The state of the generators is
//! derived from the seed, the file and the sector.

use loadstone_load::random::mix_bits;

/// Bytes per sector. A sector can be generated without the preceding sectors.
pub const SECTOR: usize = 4_096;
/// The mark at the beginning of each sector; the seed follows, little endian.
pub const MAGIC: [u8; 8] = *b"\x89LDSTN1\n";
/// The mark of a sector whose second half is zero.
const COMPRESSIBLE: [u8; 8] = *b"\x89LDSTN2\n";
/// Total bytes of [`MAGIC`] and the seed.
const HEADER: usize = 16;
const LANES: usize = 8;

/// The content of all files with one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    seed: u64,
    compressible: bool,
}

/// A byte that differs from the byte that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The byte's offset in the file.
    pub offset: u64,
    /// The byte that was read.
    pub actual: u8,
    /// The byte that was written.
    pub expected: u8,
}

impl Content {
    /// The content for a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, compressible: false }
    }

    /// The same content; with `true`, the second half of each sector is zero.
    #[must_use]
    pub fn compressible(self, compressible: bool) -> Self {
        Self { compressible, ..self }
    }

    fn mark(self) -> [u8; 8] {
        if self.compressible { COMPRESSIBLE } else { MAGIC }
    }

    #[inline]
    fn state(self, file: u64, sector: u64) -> [u64; LANES] {
        let base = mix_bits(mix_bits(self.seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(file)).wrapping_add(sector);
        // The state of an xorshift generator must not be 0.
        std::array::from_fn(|lane| mix_bits(base.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(lane as u64)) | 1)
    }

    /// Fills a sector, or the beginning of a sector.
    #[inline]
    fn sector(self, file: u64, sector: u64, into: &mut [u8]) {
        let random = if self.compressible { into.len().min(SECTOR / 2) } else { into.len() };
        let (into, zeros) = into.split_at_mut(random);
        zeros.fill(0);
        let mut state = self.state(file, sector);
        let mut chunks = into.chunks_exact_mut(LANES * 8);
        for chunk in &mut chunks {
            step_state(&mut state);
            for (bytes, word) in chunk.chunks_exact_mut(8).zip(state) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            step_state(&mut state);
            for (bytes, word) in rest.chunks_mut(8).zip(state) {
                bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            }
        }
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.mark());
        header[8..].copy_from_slice(&self.seed.to_le_bytes());
        let len = into.len().min(HEADER);
        into[..len].copy_from_slice(&header[..len]);
    }

    /// Recognizes the content of a part of a file by the marks of its sectors. Returns `None` if Loadstone did not
    /// write the part, or if the part is too short to tell.
    pub fn from_part(offset: u64, read: &[u8]) -> Option<Self> {
        let first = (offset.next_multiple_of(SECTOR as u64) - offset) as usize;
        // All sectors are examined, because one flipped bit in a mark must not make Loadstone's file look foreign.
        let sectors = read.get(first..)?.chunks(SECTOR);
        let headers =
            sectors.filter(|sector| sector.len() >= HEADER && [MAGIC, COMPRESSIBLE].contains(&mark_of(sector)));
        let mut contents = headers.map(|sector| {
            let seed = u64::from_le_bytes(std::array::from_fn(|i| sector[8 + i]));
            Self::new(seed).compressible(mark_of(sector) == COMPRESSIBLE)
        });
        let earliest = contents.next()?;
        // If the next two sectors agree on a different seed, the seed of the first sector is assumed to be damaged.
        let two = contents.next();
        let three = contents.next();
        Some(if two.is_some() && two == three { two.unwrap_or(earliest) } else { earliest })
    }

    /// Checks the first mark that lies wholly in this part of the file. If it is neither of Loadstone's marks, returns
    /// the first byte that differs from [`MAGIC`].
    pub fn first_unmarked(offset: u64, read: &[u8]) -> Option<Difference> {
        let start = offset.next_multiple_of(SECTOR as u64);
        let actual = read.get((start - offset) as usize..)?.get(..MAGIC.len())?;
        let is_marked = [MAGIC, COMPRESSIBLE].contains(&mark_of(actual));
        (!is_marked).then(|| first_difference(start, actual, &MAGIC)).flatten()
    }

    /// Fills `into` with the content of a file from `offset` on.
    pub fn fill(self, file: u64, offset: u64, into: &mut [u8]) {
        let before = (offset % SECTOR as u64) as usize;
        let mut sector = offset / SECTOR as u64;
        let mut into = into;
        if before > 0 {
            let mut whole = [0; SECTOR];
            let part_bytes = into.len().min(SECTOR - before);
            self.sector(file, sector, &mut whole[..before + part_bytes]);
            into[..part_bytes].copy_from_slice(&whole[before..before + part_bytes]);
            into = &mut into[part_bytes..];
            sector += 1;
        }
        for part in into.chunks_mut(SECTOR) {
            self.sector(file, sector, part);
            sector += 1;
        }
    }

    /// Compares `read`, the bytes at `offset` in a file, with the bytes written, and returns the first difference.
    pub fn find_difference(self, file: u64, offset: u64, read: &[u8]) -> Option<Difference> {
        let mut expected = [0; SECTOR];
        let mut done = 0;
        while done < read.len() {
            let at = offset + done as u64;
            let part_bytes = (read.len() - done).min(SECTOR - (at % SECTOR as u64) as usize);
            let (part, expected) = (&read[done..done + part_bytes], &mut expected[..part_bytes]);
            self.fill(file, at, expected);
            if part != expected {
                return first_difference(at, part, expected);
            }
            done += part_bytes;
        }
        None
    }
}

/// The first bytes of a sector, which must be long enough to contain a mark.
fn mark_of(sector: &[u8]) -> [u8; 8] {
    std::array::from_fn(|i| sector[i])
}

#[inline]
fn step_state(state: &mut [u64; LANES]) {
    for word in state {
        *word ^= *word << 13;
        *word ^= *word >> 7;
        *word ^= *word << 17;
    }
}

#[cold]
fn first_difference(at: u64, read: &[u8], expected: &[u8]) -> Option<Difference> {
    let first = read.iter().zip(expected).position(|(a, b)| a != b)?;
    Some(Difference { offset: at + first as u64, actual: read[first], expected: expected[first] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A part of a file is the same whether it is generated alone or with the whole file.
        #[test]
        fn part_equals_its_range_of_the_whole(seed: u64, half: bool, file: u64, offset in 0usize..20_000, bytes in 0usize..20_000) {
            let content = Content::new(seed).compressible(half);
            let mut whole = vec![0; 40_000];
            content.fill(file, 0, &mut whole);
            let mut part = vec![0; bytes];
            content.fill(file, offset as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[offset..offset + bytes]);
            prop_assert_eq!(content.find_difference(file, offset as u64, &part), None);
        }

        /// A flipped bit is found anywhere, and its offset is reported.
        #[test]
        fn a_flipped_bit_is_found_at_its_offset(offset in 0u64..9_000, bytes in 1usize..9_000, at: prop::sample::Index, bit in 0u8..8) {
            let content = Content::new(7);
            let mut read = vec![0; bytes];
            content.fill(3, offset, &mut read);
            let at = at.index(bytes);
            read[at] ^= 1 << bit;
            let actual = content.find_difference(3, offset, &read).map(|difference| difference.offset);
            prop_assert_eq!(actual, Some(offset + at as u64));
        }
    }

    /// The seed is recovered from any part of a file that contains a whole sector, even if one bit of a header is
    /// wrong.
    #[test]
    fn foreign_file_is_recognised() {
        let mut bytes = vec![0; 5 * SECTOR];
        Content::new(99).fill(3, 0, &mut bytes);
        assert_eq!(Content::from_part(0, &bytes), Some(Content::new(99)));
        assert_eq!(Content::from_part(1_000, &bytes[1_000..]), Some(Content::new(99)));
        assert_eq!(Content::from_part(0, &bytes[..15]), None, "too short to tell");
        let half = Content::new(99).compressible(true);
        half.fill(3, 0, &mut bytes);
        assert_eq!((Content::from_part(0, &bytes), Content::first_unmarked(0, &bytes)), (Some(half), None));
        assert!(bytes.chunks(SECTOR).all(|sector| sector[SECTOR / 2..] == [0; SECTOR / 2]));
        Content::new(99).fill(3, 0, &mut bytes);
        for at in 0..HEADER {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(Content::from_part(0, &flipped), Some(Content::new(99)), "byte {at}");
        }
        let hadoop: Vec<u8> = (0..5 * SECTOR).map(|i| b'0' + (i % 50) as u8).collect();
        assert_eq!(Content::from_part(0, &hadoop), None);
    }

    /// No 8-byte word occurs twice across files, sectors and seeds, and no byte value is more frequent than chance
    /// allows.
    #[test]
    fn content_differs_between_files_and_is_incompressible() {
        let mut unique = std::collections::HashSet::new();
        let mut counts = [0u32; 256];
        for (seed, file) in [(1, 0), (1, 1), (2, 0), (0, 0)] {
            let mut bytes = vec![0; 64 * SECTOR];
            Content::new(seed).fill(file, 0, &mut bytes);
            for word in bytes.chunks(SECTOR).flat_map(|sector| sector[HEADER..].chunks_exact(8)) {
                assert!(unique.insert(<[u8; 8]>::try_from(word).unwrap()), "a word occurs twice");
                for &byte in word {
                    counts[usize::from(byte)] += 1;
                }
            }
        }
        // Each byte value is expected 4,080 times; the bounds are ten standard deviations (of 64) away.
        assert!(counts.iter().all(|&count| (3_440..=4_720).contains(&count)), "{counts:?}");
    }
}
