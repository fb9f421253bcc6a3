//! The ledgers of all segments together: the outcome of a write, and the bounds of its time.

use std::sync::atomic::AtomicU64;

use super::{Ledger, State};

/// What a write touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Number of the record.
    pub record: u64,
    /// The one field; `None`: all of them.
    pub field: Option<usize>,
    /// Whether it removes the record.
    pub delete: bool,
}

/// The writes of a run as arithmetic on their indices.
pub trait Writes {
    /// The number, among all writes of the trial in the order of their indices, of the one at `index`; `None` if nothing
    /// is written there.
    fn number(&self, index: u64) -> Option<u64>;

    /// The index of the write of that number.
    fn index(&self, number: u64) -> Option<u64>;

    /// What the operation at `index` writes.
    fn write(&self, index: u64) -> Option<Write>;

    /// How many histories a record has: one where every write writes all fields, else one a field.
    fn histories(&self) -> usize;

    /// Whether a record was there before the run.
    fn loaded(&self, record: u64) -> bool;

    /// The index of the operation that deletes a record; there is at most one.
    fn deleted(&self, record: u64) -> Option<u64>;
}

/// Bounds of a write's time, ns of Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The earliest instant at which it can have been sent.
    pub sent: u64,
    /// The latest instant at which it was answered or abandoned; `u64::MAX`: unknown.
    pub done: u64,
}

/// An exception, in Unix time.
#[derive(Clone, Copy, Debug)]
struct Excepted {
    index: u64,
    span: Span,
    retried: bool,
}

/// One segment's times.
#[derive(Debug)]
struct Times {
    start: u64,
    /// Claims and ns, both rising.
    ticks: Vec<(u64, u64)>,
    /// By index.
    exceptions: Vec<Excepted>,
    /// The number behind the last write of the trial that this segment may have sent.
    end: u64,
    /// What a write without an exception took at most, ns.
    slowest: u64,
}

impl Times {
    fn of<M: AsRef<[AtomicU64]>>(ledger: &Ledger<M>) -> Self {
        let (start, ticks) = ledger.times();
        let exceptions = ledger.exceptions().map(|exception| {
            let span = Span { sent: ledger.to_unix(exception.sent), done: ledger.to_unix(exception.done) };
            Excepted { index: exception.index, span, retried: exception.retried }
        });
        let mut exceptions: Vec<_> = exceptions.collect();
        exceptions.sort_unstable_by_key(|exception| exception.index);
        // A killed engine had at most one write in flight for each client. In the order of all writes, the writes of the
        // remaining segments lie between them. Twice the number covers their irregular order.
        let end = ledger.end() + 2 * ledger.layout().clients * ledger.segment().n + 64;
        let slowest = if ledger.exceptions_lost() > 0 { u64::MAX } else { ledger.slow_ns() };
        Self { start, ticks, exceptions, end, slowest }
    }

    /// When the operation at `step` of the segment was claimed.
    fn claimed(&self, step: u64) -> Span {
        let after = self.ticks.partition_point(|&(claims, _)| claims <= step);
        // The tick before did not count it yet. It read the counter after the time of the one before that.
        let sent = after.checked_sub(2).map_or(self.start, |before| self.ticks[before].1);
        Span { sent, done: self.ticks.get(after).map_or(u64::MAX, |&(_, ns)| ns) }
    }

    fn ticked(&self) -> u64 {
        self.ticks.last().map_or(0, |&(claims, _)| claims)
    }

    fn exception(&self, index: u64) -> Option<&Excepted> {
        let place = self.exceptions.binary_search_by_key(&index, |exception| exception.index).ok()?;
        Some(&self.exceptions[place])
    }
}

/// When an operation of an open loop is due, ns after the start.
type Due<'a> = &'a dyn Fn(u64) -> u64;

/// The evidence in the ledgers of a trial.
pub struct Evidence<'a, M> {
    ledgers: &'a [Ledger<M>],
    times: Vec<Times>,
    due: Option<Due<'a>>,
    skew_ns: u64,
}

impl<'a, M: AsRef<[AtomicU64]>> Evidence<'a, M> {
    /// Of the ledgers of all segments, in order. `due`: when the operation at an index was due, ns after the start of the
    /// trial, in an open loop. `skew_ns`: how far apart the clocks of two segments may be.
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
            return Err("there is no ledger to judge by".to_owned());
        }
        Ok(Self { ledgers, times: ledgers.iter().map(Times::of).collect(), due, skew_ns })
    }

    fn place(&self, index: u64) -> (usize, u64) {
        let n = self.ledgers.len() as u64;
        ((index % n) as usize, index / n)
    }

    /// What is known of the write at `index`, whose number is `number`; `None`: it was never sent.
    pub fn state(&self, index: u64, number: u64) -> Option<State> {
        let (segment, step) = self.place(index);
        let ledger = &self.ledgers[segment];
        let state = ledger.state(number);
        let state = match state {
            State::Acknowledged if self.times[segment].exception(index).is_some_and(|exception| exception.retried) => {
                State::Retried
            }
            state => state,
        };
        let sent = match ledger.closed() {
            _ if state != State::Unknown => true,
            Some(claims) => step < claims,
            None => number < self.times[segment].end || step < self.times[segment].ticked(),
        };
        sent.then_some(state)
    }

    /// When the write at `index` was done, if it was.
    pub fn span(&self, index: u64) -> Span {
        let (segment, step) = self.place(index);
        let times = &self.times[segment];
        if let Some(exception) = times.exception(index) {
            return exception.span;
        }
        let claimed = times.claimed(step);
        // A client that claims before an operation is due waits for that.
        let due = self.due.map_or(0, |due| times.start.saturating_add(due(index)));
        Span { sent: claimed.sent.max(due), done: claimed.done.max(due).saturating_add(times.slowest) }
    }

    /// Whether the write at `index` had surely been acknowledged when something was sent, at `sent_ns` of Unix time, from
    /// another host.
    pub fn acknowledged_before(&self, index: u64, number: u64, sent_ns: u64) -> bool {
        matches!(self.state(index, number), Some(State::Acknowledged | State::Retried))
            && self.span(index).done.saturating_add(self.skew_ns) < sent_ns
    }

    /// Whether the first write had certainly ended, by `done`, before the second was sent, at `sent` or later.
    pub(super) fn precedes(&self, (first, done): (u64, u64), (second, sent): (u64, u64)) -> bool {
        let skew = if self.place(first).0 == self.place(second).0 { 0 } else { self.skew_ns };
        done.saturating_add(skew) < sent
    }

    /// Whether a write may have been noted where the ledgers had no room for it.
    pub(super) fn overflowed(&self, number: u64) -> bool {
        self.ledgers.iter().any(|ledger| number >= ledger.layout().writes && ledger.beyond() > 0)
    }

    /// Whether the times of writes without an exception are bounded.
    pub(super) fn bounded(&self) -> bool {
        self.times.iter().all(|times| times.slowest < u64::MAX)
    }

    /// The number after the last write of which anything is known.
    pub fn end(&self) -> u64 {
        self.ledgers.iter().map(Ledger::end).max().unwrap_or(0)
    }
}
