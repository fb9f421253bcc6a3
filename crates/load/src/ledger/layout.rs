//! The layout of a ledger in memory.

/// Words of the header; the areas after it begin on separate cache lines.
pub(super) const HEADER: usize = 32;
pub(super) const LINE: u64 = 16;
/// Words of a ring: a count on a separate cache line, then entries. Two KiB of a worker's first-level cache.
pub(super) const RING: usize = 256;
pub(super) const ENTRIES_AT: usize = LINE as usize;
pub(super) const ENTRIES: usize = RING - ENTRIES_AT;
pub(super) const TICK: usize = 2;
pub(super) const EXCEPTION: usize = 4;
pub(super) const WRITES_PER_WORD: u64 = 32;

/// How much a ledger holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Writes of the whole trial, whatever its segments: numbers from here on are only counted.
    pub writes: u64,
    /// Clients: this many writes may be under way.
    pub clients: u64,
    /// Threads or executors that note.
    pub workers: u64,
    /// Ticks, 16 bytes each.
    pub ticks: u64,
    /// Exceptions, 32 bytes each.
    pub exceptions: u64,
}

impl Layout {
    /// Words of the bits alone.
    pub const fn bit_words(&self) -> u64 {
        self.writes.div_ceil(WRITES_PER_WORD).next_multiple_of(LINE)
    }

    /// Where the rings, the ticks and the exceptions begin, and the length, words. `None` where that is beyond all memory.
    pub(super) fn places(&self) -> Option<[usize; 4]> {
        let rings = HEADER as u64 + self.bit_words();
        let ticks = rings.checked_add(self.workers.checked_mul(RING as u64)?)?;
        let exceptions = ticks.checked_add(self.ticks.checked_mul(TICK as u64)?)?;
        let end = exceptions.checked_add(self.exceptions.checked_mul(EXCEPTION as u64)?)?;
        Some([rings as usize, ticks as usize, exceptions as usize, usize::try_from(end).ok()?])
    }

    /// Words of a ledger; `None` where that is beyond all memory.
    pub fn words(&self) -> Option<usize> {
        self.places().map(|[.., end]| end)
    }
}
