//! The ledger of a segment's writes: two bits for each write, in memory that outlives the engine.
//!
//! After a crash of the server, the ledger shows which writes were acknowledged; even after a crash of the engine, if
//! the ledger's memory is a shared mapping of a file. Nothing in this module opens a file, reads a clock or starts a
//! thread; callers do.
//!
//! Each worker notes its writes in a separate ring, and converts the ring to bits when it is full, so that threads do
//! not contend for the words of neighbouring writes. The rings are in the same memory: after a crash,
//! [`Ledger::settle_writes`] converts the remaining entries.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::segment::Segment;
use crate::status::Status;

mod evidence;
mod judge;
mod layout;
mod pen;

pub use evidence::{Evidence, Write, WriteSpan, Writes};
pub use judge::{Fate, FieldValue, Finding, Judge, Standings, WriteOutcome};
pub use layout::LedgerLayout;
use layout::{EXCEPTION, HEADER, RING, TICK, WRITES_PER_WORD};
pub use pen::Pen;

/// Bounds on the duration of a write, ns. A write that exceeds the current bound is recorded as a separate exception.
/// The first bound applies until a quarter of the space for exceptions is used, the second until half of it is used,
/// and the third after that. The lower the bound, the more often the order of two writes is known.
pub const SLOW_NS: [u64; 3] = [1_000_000, 10_000_000, 100_000_000];
/// Flag in an exception's status: an attempt before the acknowledged one may still be applied.
const RETRIED: u64 = 1 << 32;

/// The text "loadledg", and the version of the layout.
const MAGIC: u64 = u64::from_be_bytes(*b"loadledg");
const VERSION: u64 = 2;

/// Offsets in the header, in words.
mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const SEED: usize = 2;
    pub const K: usize = 3;
    pub const N: usize = 4;
    pub const WRITES: usize = 5;
    pub const WORKERS: usize = 6;
    pub const TICKS: usize = 7;
    pub const EXCEPTIONS: usize = 8;
    pub const START_NS: usize = 9;
    pub const TO_UNIX_NS: usize = 10;
    pub const TICKS_NOTED: usize = 11;
    pub const EXCEPTIONS_NOTED: usize = 12;
    pub const BEYOND: usize = 13;
    pub const CLOSED: usize = 14;
    pub const CLIENTS: usize = 15;
    pub const SLOW: usize = 16;
    pub const NUMBERED: usize = 17;
    pub const NUMBER: usize = 18;
    pub const SPEC: usize = 19;
}

/// The run whose writes a ledger records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerRun {
    /// The seed of the run.
    pub seed: u64,
    /// The run's number, which is part of its values.
    pub number: Option<u64>,
    /// A hash of everything that determines the run's operations.
    pub spec: u64,
}

/// The known outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteState {
    /// Unknown: the write may have been claimed, and may have been sent.
    Unknown = 0,
    /// The system acknowledged the write.
    Acknowledged = 1,
    /// The write was certainly not applied.
    Refused = 2,
    /// The write may have been applied, or may still be applied.
    Maybe = 3,
    /// The system acknowledged the write, but an earlier attempt may still be applied. The two bits mean
    /// "acknowledged"; an exception records the earlier attempt.
    Retried = 5,
}

impl WriteState {
    const fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Unknown,
            1 => Self::Acknowledged,
            2 => Self::Refused,
            _ => Self::Maybe,
        }
    }

    /// The state of a write after another attempt. Each write is noted once, after its last attempt.
    #[must_use]
    pub const fn combine_with(self, again: Self) -> Self {
        match (self, again) {
            (Self::Acknowledged | Self::Retried, _) => self,
            (Self::Refused | Self::Unknown, _) => again,
            (Self::Maybe, Self::Acknowledged | Self::Retried) => Self::Retried,
            (Self::Maybe, _) => Self::Maybe,
        }
    }
}

/// A write that was not acknowledged in time, or not by its first attempt, with its times on the clients' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Index of the operation that wrote.
    pub index: u64,
    /// Time at which the first attempt was sent, ns.
    pub sent: u64,
    /// Time at which the last attempt was answered or abandoned, ns.
    pub done: u64,
    /// The final status; `None` if unknown.
    pub status: Option<Status>,
    /// Whether an attempt before the acknowledged one may still be applied.
    pub retried: bool,
}

/// A ledger in borrowed or owned memory: a slice, a vector or a mapping.
#[derive(Debug)]
pub struct Ledger<M> {
    memory: M,
    layout: LedgerLayout,
    places: [usize; 4],
}

impl<M: AsRef<[AtomicU64]>> Ledger<M> {
    /// Creates a ledger in words that are all zero. Error messages have one line.
    pub fn create_in(memory: M, layout: LedgerLayout, run: LedgerRun, segment: Segment) -> Result<Self, String> {
        let cells = memory.as_ref();
        let places = layout.section_offsets().ok_or("a ledger for that many writes does not fit in memory")?;
        if cells.len() < places[3] {
            return Err(format!("a ledger of {} writes needs {} words, got {}", layout.writes, places[3], cells.len()));
        }
        if cells[at::MAGIC].load(Ordering::Relaxed) != 0 {
            return Err("the ledger's memory is not empty: each trial needs a new one".to_owned());
        }
        for (place, value) in [
            (at::VERSION, VERSION),
            (at::SEED, run.seed),
            (at::NUMBERED, u64::from(run.number.is_some())),
            (at::NUMBER, run.number.unwrap_or(0)),
            (at::SPEC, run.spec),
            (at::SLOW, SLOW_NS[0]),
            (at::K, segment.k),
            (at::N, segment.n),
            (at::WRITES, layout.writes),
            (at::CLIENTS, layout.clients),
            (at::WORKERS, layout.workers),
            (at::TICKS, layout.ticks),
            (at::EXCEPTIONS, layout.exceptions),
        ] {
            cells[place].store(value, Ordering::Relaxed);
        }
        cells[at::MAGIC].store(MAGIC, Ordering::Release);
        Ok(Self { memory, layout, places })
    }

    /// Opens an existing ledger and converts its rings to bits. Error messages have one line.
    pub fn open_in(memory: M) -> Result<Self, String> {
        let cells = memory.as_ref();
        let get = |place: usize| cells.get(place).map_or(0, |word| word.load(Ordering::Acquire));
        if get(at::MAGIC) != MAGIC {
            return Err("this is not a ledger of writes".to_owned());
        }
        if get(at::VERSION) != VERSION {
            let version = get(at::VERSION);
            return Err(format!("the ledger has version {version}, but this load generator reads version {VERSION}"));
        }
        let layout = LedgerLayout {
            writes: get(at::WRITES),
            clients: get(at::CLIENTS),
            workers: get(at::WORKERS),
            ticks: get(at::TICKS),
            exceptions: get(at::EXCEPTIONS),
        };
        let places = layout.section_offsets().filter(|places| places[3] <= cells.len() && get(at::K) < get(at::N));
        let places = places.ok_or("the ledger is truncated, or its header is damaged")?;
        let ledger = Self { memory, layout, places };
        ledger.settle_writes();
        Ok(ledger)
    }

    fn cells(&self) -> &[AtomicU64] {
        self.memory.as_ref()
    }

    fn load_cell(&self, place: usize) -> u64 {
        self.cells()[place].load(Ordering::Acquire)
    }

    fn store_cell(&self, place: usize, value: u64) {
        self.cells()[place].store(value, Ordering::Release);
    }

    /// The ledger's layout.
    pub fn layout(&self) -> LedgerLayout {
        self.layout
    }

    /// The run whose writes the ledger records.
    pub fn run(&self) -> LedgerRun {
        let number = (self.load_cell(at::NUMBERED) != 0).then(|| self.load_cell(at::NUMBER));
        LedgerRun { seed: self.load_cell(at::SEED), number, spec: self.load_cell(at::SPEC) }
    }

    /// The segment whose writes the ledger records.
    pub fn segment(&self) -> Segment {
        Segment { k: self.load_cell(at::K), n: self.load_cell(at::N) }
    }

    /// Records the start, before the first operation can be claimed: the time on the clients' clock in ns, and the
    /// (wrapping) difference between Unix time and this clock.
    pub fn note_start(&self, now_ns: u64, to_unix_ns: u64) {
        self.store_cell(at::START_NS, now_ns);
        self.store_cell(at::TO_UNIX_NS, to_unix_ns);
    }

    /// Records the number of operations claimed so far in the segment. The caller reads the counter before it reads the
    /// clock, so that these operations were certainly claimed by `now_ns`. One thread does this about every 10 ms; if
    /// it is late, the recorded times are correct but farther apart.
    pub fn note_tick(&self, claims: u64, now_ns: u64) {
        let noted = self.load_cell(at::TICKS_NOTED);
        if noted < self.layout.ticks {
            let place = self.places[1] + noted as usize * TICK;
            self.store_cell(place, claims);
            self.store_cell(place + 1, now_ns);
        }
        self.store_cell(at::TICKS_NOTED, noted + 1);
    }

    /// Records the last tick of a trial whose workers have all stopped. Later operations were never sent.
    pub fn note_close(&self, claims: u64, now_ns: u64) {
        self.note_tick(claims, now_ns);
        self.store_cell(at::CLOSED, claims + 1);
        self.settle_writes();
    }

    /// The total number of operations claimed in the segment; `None` if the ledger was not closed.
    pub fn count_claimed(&self) -> Option<u64> {
        self.load_cell(at::CLOSED).checked_sub(1)
    }

    /// The pen with which a worker notes its writes. The worker's clients may share it if they run on one thread.
    ///
    /// # Panics
    /// If the layout has no such worker.
    pub fn create_pen(&self, worker: usize) -> Pen<'_> {
        let cells = self.cells();
        // Two threads that share a ring would overwrite each other's notes.
        assert!((worker as u64) < self.layout.workers, "worker {worker} of {}", self.layout.workers);
        let start = self.places[0] + worker * RING;
        Pen {
            ring: &cells[start..start + RING],
            bits: &cells[HEADER..HEADER + self.layout.bit_words() as usize],
            beyond: &cells[at::BEYOND],
            writes: self.layout.writes,
        }
    }

    /// Maximum time from a write's claim or due time, whichever was later, to its acknowledgement, for writes without
    /// an exception, ns. This limit only increases.
    #[inline]
    pub fn slow_ns(&self) -> u64 {
        self.cells()[at::SLOW].load(Ordering::Relaxed)
    }

    /// Notes a write that was not acknowledged within [`Self::slow_ns`], or not by its first attempt.
    #[cold]
    pub fn add_exception(&self, exception: Exception) {
        let slot = self.cells()[at::EXCEPTIONS_NOTED].fetch_add(1, Ordering::Relaxed);
        for (part, slow_ns) in [(4, SLOW_NS[1]), (2, SLOW_NS[2])] {
            if slot >= self.layout.exceptions / part {
                self.cells()[at::SLOW].fetch_max(slow_ns, Ordering::Relaxed);
            }
        }
        if slot < self.layout.exceptions {
            let place = self.places[2] + slot as usize * EXCEPTION;
            self.store_cell(place + 1, exception.sent);
            self.store_cell(place + 2, exception.done);
            let status = exception.status.map_or(u64::from(u32::MAX), |status| status as u64);
            self.store_cell(place + 3, if exception.retried { status | RETRIED } else { status });
            // The index is written last, and is never zero, so that a partly written exception does not count.
            self.store_cell(place, exception.index + 1);
        }
    }

    /// The recorded exceptions.
    pub fn exceptions(&self) -> impl Iterator<Item = Exception> {
        let noted = self.load_cell(at::EXCEPTIONS_NOTED).min(self.layout.exceptions) as usize;
        (0..noted).map(|slot| self.places[2] + slot * EXCEPTION).filter_map(|place| {
            let word = self.load_cell(place + 3);
            let status = Status::ALL.get((word & !RETRIED) as usize).copied();
            let (index, retried) = (self.load_cell(place).checked_sub(1)?, word & RETRIED != 0);
            Some(Exception { index, sent: self.load_cell(place + 1), done: self.load_cell(place + 2), status, retried })
        })
    }

    /// Number of exceptions for which the ledger had no space. If it is above 0, a write without an exception may have
    /// taken any amount of time.
    pub fn exceptions_lost(&self) -> u64 {
        self.load_cell(at::EXCEPTIONS_NOTED).saturating_sub(self.layout.exceptions)
    }

    /// Number of ticks for which the ledger had no space. If it is above 0, later writes have no times.
    pub fn ticks_lost(&self) -> u64 {
        self.load_cell(at::TICKS_NOTED).saturating_sub(self.layout.ticks)
    }

    /// Number of noted writes whose numbers exceed the ledger's capacity, so that their states are unknown.
    pub fn count_beyond(&self) -> u64 {
        self.load_cell(at::BEYOND)
            + (0..self.layout.workers as usize).map(|worker| self.create_pen(worker).fold_states()).sum::<u64>()
    }

    /// Converts the remaining entries of the rings to bits. It may be called any number of times, even while workers
    /// are writing.
    pub fn settle_writes(&self) {
        for worker in 0..self.layout.workers as usize {
            self.create_pen(worker).fold_states();
        }
    }

    /// The known state of a write; `Unknown` if its number exceeds the ledger's capacity. Entries in the rings are not
    /// considered.
    #[inline]
    pub fn state(&self, number: u64) -> WriteState {
        if number >= self.layout.writes {
            return WriteState::Unknown;
        }
        let word = self.cells()[HEADER + (number / WRITES_PER_WORD) as usize].load(Ordering::Relaxed);
        WriteState::from_bits(word >> (number % WRITES_PER_WORD * 2))
    }

    /// The number after the last write whose state is known, rounded up to a whole word of the ledger.
    pub fn end(&self) -> u64 {
        let bits = &self.cells()[HEADER..HEADER + self.layout.bit_words() as usize];
        let last = bits.iter().rposition(|word| word.load(Ordering::Relaxed) != 0);
        last.map_or(0, |word| (word as u64 + 1) * WRITES_PER_WORD).min(self.layout.writes)
    }

    /// The start, and the ticks as pairs of claims and Unix time in ns.
    fn tick_times(&self) -> (u64, Vec<(u64, u64)>) {
        let unix = |ns: u64| ns.wrapping_add(self.load_cell(at::TO_UNIX_NS));
        let noted = self.load_cell(at::TICKS_NOTED).min(self.layout.ticks) as usize;
        let places = (0..noted).map(|tick| self.places[1] + tick * TICK);
        (
            unix(self.load_cell(at::START_NS)),
            places.map(|place| (self.load_cell(place), unix(self.load_cell(place + 1)))).collect(),
        )
    }

    fn to_unix(&self, ns: u64) -> u64 {
        ns.wrapping_add(self.load_cell(at::TO_UNIX_NS))
    }
}

#[cfg(test)]
mod tests;
