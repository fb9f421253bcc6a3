//! Histograms that a worker writes while a reporter reads, without locks, hand-over or allocation per operation.
//!
//! The buckets are laid out as in `HdrHistogram` with three significant digits (Tene, <https://hdrhistogram.org>). Each
//! bucket is an atomic that only one thread ever writes, with a plain load and a plain store, so recording is as cheap
//! as in a `Vec<u32>`. A reporter may read at any time. Counts only grow, and an interval is the difference of two
//! readings. A reading between the two stores of an operation misses this operation, and the next reading includes it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hdrhistogram::Histogram;

use crate::kind::StepId;
use crate::status::Status;

/// There are 2,048 buckets for exact values, then 1,024 buckets per doubling: three significant digits.
const SUB_BITS: u32 = 11;
const HALF: u64 = 1 << (SUB_BITS - 1);
/// Values may be up to 2^47 − 1: 39 hours in ns, or over four years in µs.
const VALUE_BITS: u32 = 47;
/// Larger values are recorded as this value, and counted as saturated.
pub const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;
/// Number of buckets of a histogram.
pub const BUCKETS: usize = ((VALUE_BITS - SUB_BITS + 2) as u64 * HALF) as usize;
/// Number of buckets that are allocated together.
const BLOCK: usize = 64;
const BLOCKS: usize = BUCKETS / BLOCK;
/// A sum is stored as its lower 63 bits and the number of times that these bits overflowed.
const SUM_BITS: u32 = 63;
const SUM_LOW: u64 = (1 << SUM_BITS) - 1;

#[inline]
const fn bucket_of(value: u64) -> usize {
    let value = if value > VALUE_MAX { VALUE_MAX } else { value };
    let shift = (64 - SUB_BITS) - (value | (HALF * 2 - 1)).leading_zeros();
    (shift as u64 * HALF + (value >> shift)) as usize
}

/// The lowest value of a bucket.
const fn lowest_value(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * HALF {
        return bucket;
    }
    let shift = bucket / HALF - 1;
    (bucket - shift * HALF) << shift
}

/// One histogram with a single writer.
pub struct Grid {
    /// The blocks in use, in the order of first use. With thousands of threads that have a few outliers each, every
    /// outlier would otherwise occupy a page of memory. Counts have only 4 bytes, to leave the processor's cache to the
    /// store.
    counts: Box<[AtomicU32]>,
    /// For each block of buckets, its place in `counts`, from 1; 0 if the block is not in use.
    places: Box<[AtomicU16; BLOCKS]>,
    /// Number of blocks in use.
    placed: AtomicU16,
    /// Number of times that each bucket's count overflowed and restarted at 0. The lock is held while an overflow is
    /// recorded, and while the counts are read together with these numbers.
    wraps: Mutex<BTreeMap<usize, u64>>,
    sum: AtomicU64,
    /// Number of times that the sum's highest bit changed.
    sum_high: AtomicU64,
    saturated: AtomicU64,
}

impl std::fmt::Debug for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Grid({} recorded)", self.count())
    }
}

impl Default for Grid {
    fn default() -> Self {
        // Zeroed pages use no memory until they are touched.
        let mut counts = Vec::with_capacity(BUCKETS);
        counts.resize_with(BUCKETS, AtomicU32::default);
        Self {
            counts: counts.into_boxed_slice(),
            places: Box::new([const { AtomicU16::new(0) }; BLOCKS]),
            placed: AtomicU16::new(0),
            wraps: Mutex::default(),
            sum: AtomicU64::new(0),
            sum_high: AtomicU64::new(0),
            saturated: AtomicU64::new(0),
        }
    }
}

/// Adds to an atomic to which only this thread writes.
#[inline]
fn add_relaxed(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

impl Grid {
    /// Counts one value. Only the single writer of the grid may call this.
    #[inline]
    pub fn record_value(&self, value: u64) {
        if value > VALUE_MAX {
            return self.record_saturated(value);
        }
        self.count_in(bucket_of(value), value);
    }

    /// Counts a value in the given bucket.
    #[inline]
    fn count_in(&self, at: usize, value: u64) {
        let place = match self.places[at / BLOCK].load(Ordering::Relaxed) {
            0 => self.allocate_block(at / BLOCK),
            place => place,
        };
        let old = self.sum.load(Ordering::Relaxed);
        let sum = old.wrapping_add(value);
        self.sum.store(sum, Ordering::Relaxed);
        if (old ^ sum) > SUM_LOW {
            // A reader that sees this change will also see a sum that includes it.
            self.sum_high.store(self.sum_high.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
        let count = &self.counts[(usize::from(place) - 1) * BLOCK + at % BLOCK];
        // This is the last step, so that no register needs to be saved across the call.
        match count.load(Ordering::Relaxed).checked_add(1) {
            Some(n) => count.store(n, Ordering::Relaxed),
            None => self.count_wrap(at, count),
        }
    }

    /// Assigns a place to a block.
    #[cold]
    fn allocate_block(&self, block: usize) -> u16 {
        let place = self.placed.load(Ordering::Relaxed) + 1;
        self.placed.store(place, Ordering::Relaxed);
        self.places[block].store(place, Ordering::Relaxed);
        place
    }

    /// Counts one value in a full bucket.
    #[cold]
    fn count_wrap(&self, at: usize, count: &AtomicU32) {
        let mut wraps = self.lock_wraps();
        *wraps.entry(at).or_default() += 1;
        count.store(0, Ordering::Relaxed);
    }

    fn lock_wraps(&self) -> MutexGuard<'_, BTreeMap<usize, u64>> {
        self.wraps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a value that is too large. The sum includes the value itself, up to 292 years.
    #[cold]
    fn record_saturated(&self, value: u64) {
        add_relaxed(&self.saturated, 1);
        self.count_in(BUCKETS - 1, value.min(SUM_LOW));
    }

    /// The exact sum. If the writer has stored `sum` but not yet `sum_high`, the missing change of the highest bit is
    /// added here.
    fn sum(&self) -> u128 {
        let high = self.sum_high.load(Ordering::Acquire);
        let low = self.sum.load(Ordering::Relaxed);
        let high = high + ((low >> SUM_BITS) ^ (high & 1));
        u128::from(high) << SUM_BITS | u128::from(low & SUM_LOW)
    }

    /// The buckets of the blocks in use.
    fn blocks(&self) -> impl Iterator<Item = (usize, &[AtomicU32])> + '_ {
        self.places.iter().enumerate().filter_map(|(block, place)| {
            let start = usize::from(place.load(Ordering::Relaxed).checked_sub(1)?) * BLOCK;
            Some((block * BLOCK, &self.counts[start..start + BLOCK]))
        })
    }

    fn nonzero_buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let wraps = self.lock_wraps();
        let indexed = self.blocks().flat_map(|(start, block)| (start..).zip(block));
        let full = move |at| wraps.get(&at).map_or(0, |times| times << u32::BITS);
        indexed.map(move |(at, n)| (at, u64::from(n.load(Ordering::Relaxed)) + full(at))).filter(|&(_, n)| n > 0)
    }

    /// The number of recorded values.
    pub fn count(&self) -> u64 {
        self.nonzero_buckets().map(|(_, n)| n).sum()
    }

    /// Clears all values. The writer must be idle.
    pub fn clear_counts(&self) {
        self.lock_wraps().clear();
        for bucket in self.blocks().flat_map(|(_, block)| block) {
            bucket.store(0, Ordering::Relaxed);
        }
        for place in self.places.iter().chain([&self.placed]) {
            place.store(0, Ordering::Relaxed);
        }
        for cell in [&self.sum, &self.sum_high, &self.saturated] {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

/// A reading of one or more grids, which are added exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Counts by block number; empty blocks are omitted.
    blocks: BTreeMap<usize, [u64; BLOCK]>,
    sum: u128,
    saturated: u64,
}

impl Reading {
    /// Adds the current contents of a grid.
    pub fn add_grid(&mut self, grid: &Grid) {
        for (at, n) in grid.nonzero_buckets() {
            *self.bucket_mut(at) += n;
        }
        self.sum += grid.sum();
        self.saturated += grid.saturated.load(Ordering::Relaxed);
    }

    /// The reading of a histogram with the given counts in its buckets. Every value counts as the lowest value of its
    /// bucket.
    pub fn from_counts(counts: &[u64]) -> Self {
        let mut reading = Self::default();
        let used = counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        used.for_each(|(bucket, &n)| reading.record_n(lowest_value(bucket), n));
        reading
    }

    /// Counts one value.
    pub fn record_value(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `n` times.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n > 0 {
            *self.bucket_mut(bucket_of(value)) += n;
        }
        self.sum += u128::from(value) * u128::from(n);
        if value > VALUE_MAX {
            self.saturated += n;
        }
    }

    /// Adds another reading.
    pub fn merge_reading(&mut self, other: &Self) {
        for (&block, added) in &other.blocks {
            let mine = self.blocks.entry(block).or_insert([0; BLOCK]);
            mine.iter_mut().zip(added).for_each(|(mine, added)| *mine += added);
        }
        self.sum += other.sum;
        self.saturated += other.saturated;
    }

    /// The values recorded since an earlier reading of the same grids.
    #[must_use]
    pub fn subtract_earlier(&self, earlier: &Self) -> Self {
        let mut blocks = self.blocks.clone();
        blocks.retain(|block, mine| {
            if let Some(added) = earlier.blocks.get(block) {
                mine.iter_mut().zip(added).for_each(|(mine, added)| *mine = mine.saturating_sub(*added));
            }
            mine.iter().any(|&n| n > 0)
        });
        let saturated = self.saturated.saturating_sub(earlier.saturated);
        Self { blocks, sum: self.sum.saturating_sub(earlier.sum), saturated }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.blocks.values().flatten().sum()
    }

    fn bucket_mut(&mut self, at: usize) -> &mut u64 {
        &mut self.blocks.entry(at / BLOCK).or_insert([0; BLOCK])[at % BLOCK]
    }

    fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let indexed = self.blocks.iter().flat_map(|(block, counts)| (block * BLOCK..).zip(counts.iter().copied()));
        indexed.filter(|&(_, n)| n > 0)
    }

    /// The exact sum of the values, including values above [`VALUE_MAX`].
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The number of values above [`VALUE_MAX`], which the histogram contains as `VALUE_MAX`.
    pub const fn count_saturated(&self) -> u64 {
        self.saturated
    }

    /// The buckets in use in increasing order: lowest value, highest value and number of values.
    pub fn bucket_ranges(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets().map(|(at, n)| (lowest_value(at), lowest_value(at + 1) - 1, n))
    }

    /// Converts to a standard HDR histogram. The buckets are the same, so values are not rounded again.
    pub fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = match Histogram::new_with_bounds(1, VALUE_MAX, 3) {
            Ok(histogram) => histogram,
            // The bounds are constants that are valid according to the library's documentation.
            Err(error) => unreachable!("{error}"),
        };
        for (at, n) in self.buckets() {
            histogram.saturating_record_n(lowest_value(at), n);
        }
        histogram
    }
}

/// One cell for each step and status, allocated on first use.
#[derive(Debug)]
pub struct Table<T = Grid> {
    steps: Box<[[OnceLock<T>; Status::COUNT]]>,
}

impl<T> Table<T> {
    /// An empty table for a workload with the given number of steps.
    pub fn new(steps: usize) -> Self {
        Self { steps: (0..steps).map(|_| std::array::from_fn(|_| OnceLock::new())).collect() }
    }

    /// The cell of a step and status, created by `make` on first use. Panics if the workload does not have this step.
    #[inline]
    pub fn cell_or_insert(&self, step: StepId, status: Status, make: impl FnOnce() -> T) -> &T {
        self.steps[usize::from(step.0)][status as usize].get_or_init(make)
    }

    /// The cells in use.
    pub fn entries(&self) -> impl Iterator<Item = (StepId, Status, &T)> {
        self.steps.iter().enumerate().flat_map(|(step, cells)| {
            let indexed = Status::ALL.into_iter().zip(cells);
            indexed.filter_map(move |(status, cell)| Some((StepId(step as u16), status, cell.get()?)))
        })
    }
}

impl Table {
    /// Counts one value in a table of histograms.
    #[inline]
    pub fn record_value(&self, step: StepId, status: Status, value: u64) {
        self.cell_or_insert(step, status, Grid::default).record_value(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_those_of_hdrhistogram() {
        for value in [0, 1, 2_047, 2_048, 2_049, 4_095, 4_096, 4_708, 8_103, 100_000, 1_234_567, VALUE_MAX] {
            let grid = Grid::default();
            grid.record_value(value);
            let mut reading = Reading::default();
            reading.add_grid(&grid);
            let histogram = reading.to_histogram();
            let mut added = Histogram::<u64>::new_with_bounds(1, VALUE_MAX, 3).unwrap();
            added.record(value).unwrap();
            assert_eq!(histogram, added, "{value}");
            assert_eq!(lowest_value(bucket_of(value)), added.lowest_equivalent(value));
        }
    }

    #[test]
    fn a_value_beyond_the_range_is_the_largest() {
        let grid = Grid::default();
        grid.record_value(u64::MAX);
        let mut reading = Reading::default();
        reading.add_grid(&grid);
        assert_eq!(reading.to_histogram().max(), VALUE_MAX);
        assert_eq!((reading.count(), reading.count_saturated()), (1, 1));
        grid.record_value(VALUE_MAX);
        let mut again = Reading::default();
        again.add_grid(&grid);
        assert_eq!(
            (again.count(), again.count_saturated(), again.subtract_earlier(&reading).count_saturated()),
            (2, 1, 0)
        );
        let mut own = Reading::default();
        own.record_n(VALUE_MAX + 1, 3);
        own.merge_reading(&again);
        assert_eq!((own.count(), own.count_saturated()), (5, 4));
    }

    #[test]
    fn a_sum_is_exact_beyond_64_bits() {
        let (grid, mut last, mut whole) = (Grid::default(), Reading::default(), Reading::default());
        for n in 1..=9u128 {
            grid.record_value(SUM_LOW);
            grid.record_value(5);
            let mut now = Reading::default();
            now.add_grid(&grid);
            assert_eq!(now.sum(), n * (u128::from(SUM_LOW) + 5));
            whole.merge_reading(&now.subtract_earlier(&last));
            last = now;
        }
        assert_eq!(whole.sum(), last.sum());
    }

    #[test]
    fn a_bucket_counts_beyond_32_bits() {
        let grid = Grid::default();
        grid.record_value(7);
        grid.counts[7].store(u32::MAX, Ordering::Relaxed);
        grid.record_value(1 << 40);
        let full = u64::from(u32::MAX);
        for more in 1..=3 {
            grid.record_value(7);
            assert_eq!(grid.nonzero_buckets().next(), Some((7, full + more)));
        }
        grid.clear_counts();
        assert_eq!(grid.count(), 0);
    }

    #[test]
    fn a_cleared_grid_is_as_new() {
        let grid = Grid::default();
        for value in [0, 63, 64, 5_000, 1 << 30, VALUE_MAX, u64::MAX] {
            grid.record_value(value);
        }
        assert_eq!(grid.count(), 7);
        grid.clear_counts();
        let read = || {
            let mut reading = Reading::default();
            reading.add_grid(&grid);
            reading
        };
        assert_eq!(read(), Reading::default());
        assert!(grid.counts.iter().all(|n| n.load(Ordering::Relaxed) == 0));
        grid.record_value(64);
        assert_eq!(read().bucket_ranges().collect::<Vec<_>>(), [(64, 64, 1)]);
    }

    proptest! {
            /// However values are distributed over grids and intervals, the sum of the readings equals one histogram of
            /// all values.
            #[test]
            fn merging_is_exact(values in proptest::collection::vec(0u64..1 << VALUE_BITS, 1..300), split in 1usize..7) {
                let mut whole = Histogram::<u64>::new_with_bounds(1, VALUE_MAX, 3).unwrap();
                let grids: Vec<Grid> = (0..split).map(|_| Grid::default()).collect();
                let (mut merged, mut last) = (Reading::default(), Reading::default());
                for (i, &value) in values.iter().enumerate() {
                    whole.record(value).unwrap();
                    grids[i % split].record_value(value);
                    if i % 50 == 49 {
                        let mut now = Reading::default();
                        for grid in &grids {
     now.add_grid(grid);
    }
                        merged.merge_reading(&now.subtract_earlier(&last));
                        last = now;
                    }
                }
                let mut now = Reading::default();
                for grid in &grids {
     now.add_grid(grid);
    }
                merged.merge_reading(&now.subtract_earlier(&last));
                prop_assert_eq!(merged.to_histogram(), whole);
                prop_assert_eq!(merged.sum(), values.iter().map(|&value| u128::from(value)).sum::<u128>());
            }
        }
}
