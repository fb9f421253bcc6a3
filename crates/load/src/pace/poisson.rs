//! Arrivals of independent users, with a lookup for each index.

use std::sync::{Arc, OnceLock};

use super::FRACTION_BITS;
use crate::random::{Draws, Purpose};

/// Number of operations in a block.
const BLOCK: u64 = 1_024;
const PATTERNS: u64 = 32;
/// Number of blocks summed at once. The first client that needs the sums spends about 5 µs on this, once in 65,536
/// operations.
const CHUNK: u64 = 64;
/// Number of levels of the table, enough for any index.
const LEVELS: usize = 49;

/// Arrivals in blocks. The length of a block is a gamma draw, and the arrivals within it are distributed like sorted
/// uniform draws; the combination is exactly a sum of exponentials. The arrivals come from a few precomputed patterns,
/// so that an index needs one lookup instead of a thousand logarithms.
#[derive(Clone, Debug)]
pub(super) struct Poisson {
    seed: u64,
    /// Patterns of `BLOCK` partial sums, each a fraction of the block in units of 2^−32.
    patterns: Arc<[u32]>,
    sums: Arc<Sums>,
}

/// The position of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Number of units before the block, and the block's length in units.
    before: u128,
    length: u64,
    /// The index at which the block's pattern starts.
    pattern: u64,
}

/// The sums of the blocks' lengths. All clients share them; they are computed on demand, never change, and are read
/// without a lock. They need 8 bytes per 1,024 operations, which is 28 MB for an hour at a million operations per
/// second.
///
/// Level l contains 2^l chunks, so the table grows without moving existing chunks.
#[derive(Debug)]
struct Sums {
    levels: [OnceLock<Level>; LEVELS],
}

type Level = Box<[OnceLock<Box<Chunk>>]>;

#[derive(Debug)]
struct Chunk {
    /// Number of units before the chunk.
    before: u128,
    /// For each block, the number of units from the first block up to and including this block.
    sums: [u64; CHUNK as usize],
}

impl Chunk {
    fn end(&self) -> u128 {
        self.before + u128::from(self.sums[CHUNK as usize - 1])
    }
}

impl Sums {
    fn chunk_cell(&self, chunk: u64) -> &OnceLock<Box<Chunk>> {
        let level = (chunk + 1).ilog2();
        let cells = self.levels[level as usize].get_or_init(|| (0..1u64 << level).map(|_| OnceLock::new()).collect());
        &cells[(chunk + 1 - (1 << level)) as usize]
    }

    /// Returns a chunk. Earlier chunks are computed first.
    fn chunk_or_insert(&self, number: u64, length: impl Fn(u64) -> u64) -> &Chunk {
        if let Some(chunk) = self.chunk_cell(number).get() {
            return chunk;
        }
        let last = (0..number).rev().find_map(|n| Some((n + 1, self.chunk_cell(n).get()?.end())));
        let (mut next, mut before) = last.unwrap_or_default();
        loop {
            let chunk = self.chunk_cell(next).get_or_init(|| {
                let mut sum = 0;
                let sums = std::array::from_fn(|i| {
                    sum += length(next * CHUNK + i as u64);
                    sum
                });
                Box::new(Chunk { before, sums })
            });
            if next == number {
                return chunk;
            }
            before = chunk.end();
            next += 1;
        }
    }
}

impl Poisson {
    pub(super) fn new(seed: u64) -> Self {
        let mut patterns = Vec::with_capacity((BLOCK * PATTERNS) as usize);
        for pattern in 0..PATTERNS {
            let mut draws = Draws::new(!seed, pattern, Purpose::Arrival);
            let gaps: Vec<f64> = (0..BLOCK).map(|_| draws.draw_exponential()).collect();
            let total: f64 = gaps.iter().sum();
            let mut sum = 0.0;
            for gap in gaps {
                patterns.push((sum / total * f64::from(u32::MAX)) as u32);
                sum += gap;
            }
        }
        let sums = Sums { levels: std::array::from_fn(|_| OnceLock::new()) };
        Self { seed, patterns: patterns.into(), sums: Arc::new(sums) }
    }

    fn block_length(&self, block: u64) -> u64 {
        let gamma = Draws::new(self.seed, block, Purpose::Arrival).draw_gamma(BLOCK as f64);
        (gamma * f64::from(1u32 << FRACTION_BITS)) as u64
    }

    fn draw_block(&self, block: u64) -> Block {
        let chunk = self.sums.chunk_or_insert(block / CHUNK, |block| self.block_length(block));
        let at = (block % CHUNK) as usize;
        let from = at.checked_sub(1).map_or(0, |last| chunk.sums[last]);
        let pattern = Draws::new(!self.seed, block, Purpose::KindSequence).draw_below(PATTERNS) * BLOCK;
        Block { before: chunk.before + u128::from(from), length: chunk.sums[at] - from, pattern }
    }

    /// The time at which the operation at `index` arrives in the unit-rate process, in units of 2^−20. `last` is the
    /// block of the caller's last lookup.
    #[inline]
    pub(super) fn due_units(&self, index: u64, last: &mut Option<(u64, Block)>) -> u128 {
        let number = index / BLOCK;
        let block = match *last {
            Some((same, block)) if same == number => block,
            _ => last.insert((number, self.draw_block(number))).1,
        };
        let fraction = self.patterns[(block.pattern + index % BLOCK) as usize];
        block.before + ((u128::from(block.length) * u128::from(fraction)) >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No matter in which order blocks are requested, each begins at the sum of the lengths of the earlier blocks.
    #[test]
    fn blocks_do_not_depend_on_query_order() {
        let blocks = CHUNK * 9 + 5;
        let poisson = Poisson::new(3);
        std::thread::scope(|scope| {
            for client in 0..4 {
                let poisson = &poisson;
                scope.spawn(move || {
                    let mut cursor = None;
                    for n in 0..blocks * 4 {
                        poisson.due_units((n * 7_919 + client * 13) % blocks * BLOCK, &mut cursor);
                    }
                });
            }
        });
        let mut before = 0;
        for number in 0..blocks {
            let block = poisson.draw_block(number);
            assert_eq!((block.before, block.length), (before, poisson.block_length(number)), "block {number}");
            before += u128::from(block.length);
        }
        let far = Poisson::new(3);
        assert_eq!(
            far.draw_block(blocks - 1).before + u128::from(far.block_length(blocks - 1)),
            before,
            "requested at once"
        );
    }
}
