//! The combined ledgers of all segments: the outcome of each write, and the bounds of its time.

use std::sync::atomic::AtomicU64;

use super::{Ledger, WriteState};

/// What a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Number of the record.
    pub record: u64,
    /// The field that is written; `None` for all fields.
    pub field: Option<usize>,
    /// Whether the write removes the record.
    pub delete: bool,
}

/// The writes of a run, calculated from their indices.
pub trait Writes {
    /// The number of the write at `index` among all writes of the trial, in the order of their indices; `None` if the
    /// operation at `index` is not a write.
    fn find_number(&self, index: u64) -> Option<u64>;

    /// The index of the write with the given number.
    fn find_index(&self, number: u64) -> Option<u64>;

    /// The write that the operation at `index` makes.
    fn find_write(&self, index: u64) -> Option<Write>;

    /// The number of histories per record: one if every write writes all fields, otherwise one per field.
    fn history_count(&self) -> usize;

    /// Whether a record existed before the run.
    fn is_loaded(&self, record: u64) -> bool;

    /// The index of the operation that deletes a record. At most one operation deletes a record.
    fn deletion_of(&self, record: u64) -> Option<u64>;
}

/// Bounds of a write's time, ns since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSpan {
    /// The earliest time at which the write can have been sent.
    pub sent: u64,
    /// The latest time at which the write can have been answered or abandoned; `u64::MAX` if unknown.
    pub done: u64,
}

/// An exception with its times in Unix time.
#[derive(Clone, Copy, Debug)]
struct Excepted {
    index: u64,
    span: WriteSpan,
    retried: bool,
}

/// The times of one segment.
#[derive(Debug)]
struct SegmentTimes {
    start: u64,
    /// Claims and times in ns; both increase.
    ticks: Vec<(u64, u64)>,
    /// Sorted by index.
    exceptions: Vec<Excepted>,
    /// The number after the last write of the trial that this segment can have sent.
    end: u64,
    /// Upper bound on the duration of a write without an exception, ns; `u64::MAX` if there is no bound.
    slowest: u64,
}

impl SegmentTimes {
    fn from_ledger<M: AsRef<[AtomicU64]>>(ledger: &Ledger<M>) -> Self {
        let (start, ticks) = ledger.tick_times();
        let exceptions = ledger.exceptions().map(|exception| {
            let span = WriteSpan { sent: ledger.to_unix(exception.sent), done: ledger.to_unix(exception.done) };
            Excepted { index: exception.index, span, retried: exception.retried }
        });
        let mut exceptions: Vec<_> = exceptions.collect();
        exceptions.sort_unstable_by_key(|exception| exception.index);
        // A killed engine had at most one write in flight per client. The numbers of these writes are not consecutive,
        // because the writes of all segments are numbered together. The factor 2 allows for their irregular order.
        let end = ledger.end() + 2 * ledger.layout().clients * ledger.segment().n + 64;
        let slowest = if ledger.exceptions_lost() > 0 { u64::MAX } else { ledger.slow_ns() };
        Self { start, ticks, exceptions, end, slowest }
    }

    /// The bounds of the time at which the operation at `step` of the segment was claimed.
    fn claim_span(&self, step: u64) -> WriteSpan {
        let after = self.ticks.partition_point(|&(claims, _)| claims <= step);
        // At the last tick that does not include this claim, the counter was read later than the time of the preceding
        // tick. The claim was made even later.
        let sent = after.checked_sub(2).map_or(self.start, |before| self.ticks[before].1);
        WriteSpan { sent, done: self.ticks.get(after).map_or(u64::MAX, |&(_, ns)| ns) }
    }

    fn tick_count(&self) -> u64 {
        self.ticks.last().map_or(0, |&(claims, _)| claims)
    }

    fn find_exception(&self, index: u64) -> Option<&Excepted> {
        let place = self.exceptions.binary_search_by_key(&index, |exception| exception.index).ok()?;
        Some(&self.exceptions[place])
    }
}

/// The due time of an operation in an open loop, ns after the start.
type Due<'a> = &'a dyn Fn(u64) -> u64;

/// The evidence from the ledgers of a trial.
pub struct Evidence<'a, M> {
    ledgers: &'a [Ledger<M>],
    times: Vec<SegmentTimes>,
    due: Option<Due<'a>>,
    skew_ns: u64,
}

impl<'a, M: AsRef<[AtomicU64]>> Evidence<'a, M> {
    /// Combines the ledgers of all segments, in order. In an open loop, `due` gives the due time of the operation at an
    /// index, ns after the start of the trial. `skew_ns` is the largest difference between the clocks of two segments.
    pub fn new(ledgers: &'a [Ledger<M>], due: Option<Due<'a>>, skew_ns: u64) -> Result<Self, String> {
        let n = ledgers.len() as u64;
        for (k, ledger) in (0..n).zip(ledgers) {
            let segment = ledger.segment();
            if (segment.k, segment.n) != (k, n) {
                return Err(format!("ledger {k} of {n} belongs to segment {}/{}", segment.k, segment.n));
            }
            if ledger.run() != ledgers[0].run() {
                return Err(format!("ledger {k} of {n} and ledger 0 belong to different runs"));
            }
        }
        if ledgers.is_empty() {
            return Err("at least one ledger is required".to_owned());
        }
        Ok(Self { ledgers, times: ledgers.iter().map(SegmentTimes::from_ledger).collect(), due, skew_ns })
    }

    fn locate_write(&self, index: u64) -> (usize, u64) {
        let n = self.ledgers.len() as u64;
        ((index % n) as usize, index / n)
    }

    /// The known state of the write with this `index` and `number`; `None` if it was never sent.
    pub fn state(&self, index: u64, number: u64) -> Option<WriteState> {
        let (segment, step) = self.locate_write(index);
        let ledger = &self.ledgers[segment];
        let state = ledger.state(number);
        let state = match state {
            WriteState::Acknowledged
                if self.times[segment].find_exception(index).is_some_and(|exception| exception.retried) =>
            {
                WriteState::Retried
            }
            state => state,
        };
        let sent = match ledger.count_claimed() {
            _ if state != WriteState::Unknown => true,
            Some(claims) => step < claims,
            None => number < self.times[segment].end || step < self.times[segment].tick_count(),
        };
        sent.then_some(state)
    }

    /// Bounds of the time of the write at `index`, provided that it was sent.
    pub fn span(&self, index: u64) -> WriteSpan {
        let (segment, step) = self.locate_write(index);
        let times = &self.times[segment];
        if let Some(exception) = times.find_exception(index) {
            return exception.span;
        }
        let claimed = times.claim_span(step);
        // A client that claims an operation before its due time waits until then.
        let due = self.due.map_or(0, |due| times.start.saturating_add(due(index)));
        WriteSpan { sent: claimed.sent.max(due), done: claimed.done.max(due).saturating_add(times.slowest) }
    }

    /// Whether the write at `index` had certainly been acknowledged before another host sent an operation at `sent_ns`
    /// (Unix time).
    pub fn is_acknowledged_before(&self, index: u64, number: u64, sent_ns: u64) -> bool {
        matches!(self.state(index, number), Some(WriteState::Acknowledged | WriteState::Retried))
            && self.span(index).done.saturating_add(self.skew_ns) < sent_ns
    }

    /// Whether the first write had certainly finished (by `done`) before the second was sent (at `sent` or later).
    pub(super) fn is_certainly_before(&self, (first, done): (u64, u64), (second, sent): (u64, u64)) -> bool {
        let skew = if self.locate_write(first).0 == self.locate_write(second).0 { 0 } else { self.skew_ns };
        done.saturating_add(skew) < sent
    }

    /// Whether a note about this write may have exceeded the ledgers' space.
    pub(super) fn may_exceed_ledger(&self, number: u64) -> bool {
        self.ledgers.iter().any(|ledger| number >= ledger.layout().writes && ledger.count_beyond() > 0)
    }

    /// Whether the times of writes without an exception are bounded.
    pub(super) fn is_bounded(&self) -> bool {
        self.times.iter().all(|times| times.slowest < u64::MAX)
    }

    /// The number after the last write whose state is known, rounded up as in [`Ledger::end`].
    pub fn end(&self) -> u64 {
        self.ledgers.iter().map(Ledger::end).max().unwrap_or(0)
    }
}
