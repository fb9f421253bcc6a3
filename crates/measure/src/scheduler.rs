//! Chooses the next operation, if there is one. The clients of a segment share this state while they run.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loadstone_load::Segment;

use crate::borders::{Borders, NEVER};
use crate::control::TrialFailure;

/// A value on a separate cache line, because every client of every thread may write it once per operation.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Alone<T>(T);

/// Assigns the operations of a segment to clients.
#[derive(Debug)]
pub struct Scheduler {
    segment: Segment,
    /// Number of operations that a thread or a client claims at once.
    stripe: u64,
    /// Number of consecutive operations that belong together: one client of one segment performs them.
    unit: u64,
    /// The difference between the indices of two consecutive claimed operations.
    pitch: u64,
    /// Number of operations of this segment; [`NEVER`] without a limit.
    steps: u64,
    /// Maximum number of counted operations, if it is limited.
    counted_max: u64,
    next: Alone<AtomicU64>,
    counted: Alone<AtomicU64>,
    /// Whether sending was stopped.
    halted: AtomicBool,
    /// Whether a client could not send its next operation before the end of the load, so that the time, rather than the
    /// number of operations, limits the load.
    reached_end: AtomicBool,
    /// The failure that caused a client to halt the trial.
    failure: OnceLock<TrialFailure>,
    /// Time at which the trial ends, ns.
    end_ns: AtomicU64,
}

/// The operations that a thread or a client has claimed but not begun.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stripe {
    /// The index of the next operation.
    index: u64,
    /// Number of remaining operations.
    left: u64,
}

impl Scheduler {
    /// A scheduler for the operations within `borders`. Threads claim `stripe` operations at once; this is 1, unless
    /// the order of operations does not matter.
    pub fn new(segment: Segment, borders: &Borders, stripe: u64) -> Self {
        Self {
            segment,
            stripe: stripe.max(1),
            unit: 1,
            pitch: segment.n,
            steps: borders.steps,
            counted_max: borders.counted,
            next: Alone::default(),
            counted: Alone::default(),
            halted: AtomicBool::new(false),
            reached_end: AtomicBool::new(false),
            failure: OnceLock::new(),
            end_ns: AtomicU64::new(NEVER),
        }
    }

    /// A scheduler for a workload in which every `unit` consecutive operations belong together: one client of one
    /// segment performs them.
    #[must_use]
    pub fn with_units(self, unit: u64) -> Self {
        if unit > 1 { Self { stripe: unit, unit, pitch: 1, ..self } } else { self }
    }

    /// Whether the clients of a thread may share a stripe.
    pub fn shares_stripes(&self) -> bool {
        self.unit == 1
    }

    /// Claims an operation and returns its index; `None` at the end.
    #[inline]
    pub fn claim_index(&self, current: &Cell<Stripe>) -> Option<u64> {
        if self.is_halted() {
            return None;
        }
        let mut stripe = current.get();
        if stripe.left == 0 {
            stripe = self.take_stripe()?;
        }
        // The index after the last claimed operation is not used.
        current.set(Stripe { index: stripe.index.wrapping_add(self.pitch), left: stripe.left - 1 });
        Some(stripe.index)
    }

    /// Claims the next operations; `None` at the end.
    #[inline]
    fn take_stripe(&self) -> Option<Stripe> {
        // There is only one access: with a separate load before it, the cache line would be fetched from another
        // processor twice.
        let first = self.next.0.fetch_add(self.stripe, Ordering::Relaxed);
        let left = self.stripe.min(self.steps.saturating_sub(first));
        // A client claims whole units.
        (left > 0).then(|| Stripe { index: self.segment.global_index(first / self.unit) * self.unit, left })
    }

    /// Whether another operation may be counted. Called for each operation due in the window, just before it is sent.
    #[inline]
    pub fn count_operation(&self) -> bool {
        self.counted_max == NEVER || self.counted.0.fetch_add(1, Ordering::Relaxed) < self.counted_max
    }

    /// The number of operations that were claimed.
    pub fn count_claimed(&self) -> u64 {
        self.next.0.load(Ordering::Relaxed).min(self.steps)
    }

    /// Whether the operation at `index` may have begun. The progress of other segments is unknown; they are assumed to
    /// have progressed at most twice as far as this one.
    pub fn may_have_begun(&self, index: u64) -> bool {
        let segments = if self.segment.has_index(index) { 1 } else { 2 };
        index < self.segment.global_index(self.count_claimed()).saturating_mul(segments)
    }

    /// The segment of the trial.
    pub fn segment(&self) -> Segment {
        self.segment
    }

    /// Records that a client could not send its next operation before the end of the load.
    pub fn reach_end(&self) {
        self.reached_end.store(true, Ordering::Relaxed);
    }

    /// Whether a client could not send its next operation before the end of the load.
    pub fn is_exhausted(&self) -> bool {
        self.reached_end.load(Ordering::Relaxed)
    }

    /// Sets the end of the trial, before the clients start.
    pub fn set_end(&self, end_ns: u64) {
        self.end_ns.store(end_ns, Ordering::Relaxed);
    }

    /// Whether the trial was halted or its time is over; with a rate, overdue operations may still be sent.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.is_halted() || now_ns >= self.end_ns.load(Ordering::Relaxed)
    }

    /// Stops sending: no further operation is claimed.
    pub fn halt_trial(&self) {
        self.halted.store(true, Ordering::Release);
    }

    /// Halts the trial because of a failure. Only the first failure is stored.
    pub fn halt_because(&self, failure: impl FnOnce() -> TrialFailure) {
        self.failure.get_or_init(failure);
        self.halt_trial();
    }

    /// Whether the trial was halted.
    #[inline]
    pub fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire)
    }

    /// The failure that caused a client to halt the trial, if there was one.
    pub fn failure(&self) -> Option<&TrialFailure> {
        self.failure.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn borders(steps: u64, counted: u64) -> Borders {
        Borders { steps, counted, ..Borders::UNLIMITED }
    }

    #[test]
    fn every_operation_is_claimed_once_for_any_stripe() {
        for stripe in [1, 4, 64] {
            let scheduler = Scheduler::new(Segment { k: 1, n: 2 }, &borders(101, NEVER), stripe);
            let mut clients = [(); 3].map(|()| Cell::default());
            let mut claimed = Vec::new();
            while let Some(index) = clients.iter().find_map(|current| scheduler.claim_index(current)) {
                claimed.push(index);
                clients.rotate_left(1);
            }
            claimed.sort_unstable();
            assert_eq!(claimed, (0..101).map(|step| step * 2 + 1).collect::<Vec<_>>());
            assert_eq!(scheduler.count_claimed(), 101);
        }
    }

    #[test]
    fn unit_belongs_to_one_client_of_one_segment() {
        let mut all = Vec::new();
        for k in 0..2 {
            let scheduler = Scheduler::new(Segment { k, n: 2 }, &borders([12, 8][k as usize], NEVER), 1).with_units(4);
            let clients = [(); 2].map(|()| Cell::default());
            let mut claims = [Vec::new(), Vec::new()];
            for turn in 0.. {
                match scheduler.claim_index(&clients[turn % 2]) {
                    Some(index) => claims[turn % 2].push(index),
                    None if claims.iter().map(Vec::len).sum::<usize>() as u64 >= scheduler.steps => break,
                    None => {}
                }
            }
            for claim in &claims {
                assert!(
                    claim.chunks(4).all(|file| file.windows(2).all(|two| two[1] == two[0] + 1) && file[0] % 4 == 0)
                );
            }
            all.extend(claims.into_iter().flatten());
        }
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>(), "five files, of which the first segment has three");
    }

    #[test]
    fn no_more_operations_are_counted_than_the_limit() {
        let scheduler = Scheduler::new(Segment::default(), &borders(NEVER, 2), 1);
        assert_eq!([(); 4].map(|()| scheduler.count_operation()), [true, true, false, false]);
    }

    #[test]
    fn furthest_operation_allows_for_faster_segments() {
        let scheduler = Scheduler::new(Segment { k: 1, n: 2 }, &borders(NEVER, NEVER), 1);
        let current = Cell::default();
        assert_eq!([(); 3].map(|()| scheduler.claim_index(&current)), [Some(1), Some(3), Some(5)]);
        assert_eq!([5, 7].map(|index| scheduler.may_have_begun(index)), [true, false]);
        assert_eq!([12, 14].map(|index| scheduler.may_have_begun(index)), [true, false]);
        scheduler.halt_trial();
        assert_eq!(scheduler.claim_index(&current), None);
    }
}
