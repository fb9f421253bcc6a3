//! Notes a worker's writes, first in its ring, then as bits.

use std::sync::atomic::{AtomicU64, Ordering};

use super::WriteState;
use super::layout::{ENTRIES, ENTRIES_AT, WRITES_PER_WORD};

/// The pen with which one worker notes its writes.
#[derive(Clone, Copy, Debug)]
pub struct Pen<'a> {
    pub(super) ring: &'a [AtomicU64],
    pub(super) bits: &'a [AtomicU64],
    pub(super) beyond: &'a AtomicU64,
    pub(super) writes: u64,
}

impl Pen<'_> {
    /// Notes a write. Call this once per write. [`WriteState::Retried`] is noted as acknowledged.
    #[inline]
    pub fn note_state(&self, number: u64, state: WriteState) {
        let count = self.ring[0].load(Ordering::Relaxed) as usize;
        let count = count.min(ENTRIES - 1);
        // The entry is stored before the count, so that a reader never finds a partly written entry.
        self.ring[ENTRIES_AT + count].store(number << 2 | (state as u64 & 3), Ordering::Relaxed);
        self.ring[0].store(count as u64 + 1, Ordering::Release);
        if count + 1 == ENTRIES {
            self.flush_word();
        }
    }

    #[cold]
    fn flush_word(&self) {
        self.beyond.fetch_add(self.fold_states(), Ordering::Relaxed);
        // The count is stored last: if the engine is killed before this store, the ring contains entries that were
        // already converted to bits, which is harmless.
        self.ring[0].store(0, Ordering::Release);
    }

    /// Converts the ring to bits. Returns the number of entries that exceed the ledger's capacity.
    pub(super) fn fold_states(&self) -> u64 {
        let count = (self.ring[0].load(Ordering::Acquire) as usize).min(ENTRIES);
        let (mut word, mut mask, mut beyond) = (0, 0, 0);
        for entry in &self.ring[ENTRIES_AT..ENTRIES_AT + count] {
            let entry = entry.load(Ordering::Relaxed);
            let number = entry >> 2;
            if number >= self.writes {
                beyond += 1;
                continue;
            }
            // Neighbouring entries of the ring mostly belong to the same word.
            if number / WRITES_PER_WORD != word {
                if mask != 0 {
                    self.bits[word as usize].fetch_or(mask, Ordering::Relaxed);
                }
                (word, mask) = (number / WRITES_PER_WORD, 0);
            }
            mask |= (entry & 3) << (number % WRITES_PER_WORD * 2);
        }
        if mask != 0 {
            self.bits[word as usize].fetch_or(mask, Ordering::Relaxed);
        }
        beyond
    }
}
