//! The layout of a ledger in memory.

/// Number of words in the header; each of the areas after it begins on a separate cache line.
pub(super) const HEADER: usize = 32;
pub(super) const LINE: u64 = 16;
/// Number of words in a ring: a count on a separate cache line, followed by the entries. A ring uses 2 KiB of a
/// worker's first-level cache.
pub(super) const RING: usize = 256;
pub(super) const ENTRIES_AT: usize = LINE as usize;
pub(super) const ENTRIES: usize = RING - ENTRIES_AT;
pub(super) const TICK: usize = 2;
pub(super) const EXCEPTION: usize = 4;
pub(super) const WRITES_PER_WORD: u64 = 32;

/// The capacities of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerLayout {
    /// Writes of the whole trial, in all segments; writes with larger numbers are counted but not recorded.
    pub writes: u64,
    /// Number of clients, which is also the maximum number of writes in flight.
    pub clients: u64,
    /// Number of threads or executors that note writes.
    pub workers: u64,
    /// Number of ticks, of 16 bytes each.
    pub ticks: u64,
    /// Number of exceptions, of 32 bytes each.
    pub exceptions: u64,
}

impl LedgerLayout {
    /// Number of words that contain the bits.
    pub const fn bit_words(&self) -> u64 {
        self.writes.div_ceil(WRITES_PER_WORD).next_multiple_of(LINE)
    }

    /// The offsets of the rings, the ticks and the exceptions, and the total length, in words; `None` on overflow.
    pub(super) fn section_offsets(&self) -> Option<[usize; 4]> {
        let rings = HEADER as u64 + self.bit_words();
        let ticks = rings.checked_add(self.workers.checked_mul(RING as u64)?)?;
        let exceptions = ticks.checked_add(self.ticks.checked_mul(TICK as u64)?)?;
        let end = exceptions.checked_add(self.exceptions.checked_mul(EXCEPTION as u64)?)?;
        Some([rings as usize, ticks as usize, exceptions as usize, usize::try_from(end).ok()?])
    }

    /// Total length of a ledger in words; `None` on overflow.
    pub fn word_count(&self) -> Option<usize> {
        self.section_offsets().map(|[.., end]| end)
    }
}
