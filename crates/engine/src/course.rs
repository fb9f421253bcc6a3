//! What the clients of a segment share while they run: which operation is next, which count, and when to stop.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loadstone_load::{Kind, Segment, Status};

/// Set in the counter of claims when the warm-up is over, so that each claim says by itself whether it counts: two
/// variables, written one after the other, leave operations between them that are neither.
const MEASURED: u64 = 1 << 63;

/// The next operation of whoever claimed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its index.
    pub index: u64,
    /// Whether it counts.
    pub measured: bool,
}

/// Kept on cache lines of its own: every client of every thread writes it once per operation.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Alone<T>(T);

/// The course of a segment.
#[derive(Debug)]
pub struct Course {
    segment: Segment,
    /// And whether the warm-up is over.
    next_step: Alone<AtomicU64>,
    limit_step: Alone<AtomicU64>,
    /// Operations from this index on are measured; `u64::MAX` where the counter of claims says so.
    measured_from: AtomicU64,
    /// Operations due at or after this are not sent, ns.
    end_ns: AtomicU64,
    stopped: AtomicBool,
    /// It was stopped before its time: what is due is not sent either.
    interrupted: AtomicBool,
    /// A client found the next due time beyond the end: time, and not the number of operations, is the limit.
    reached_end: AtomicBool,
    /// Why the course was stopped, when a client stopped it.
    reason: OnceLock<String>,
    /// The first words of each kind of failure.
    words: [[OnceLock<String>; Status::COUNT]; Kind::COUNT],
    /// Clients that did not close, by status.
    unclosed: [AtomicU64; Status::COUNT],
}

impl Course {
    /// A course of a segment with at most `steps` operations of its own.
    pub fn new(segment: Segment, steps: u64) -> Self {
        Self {
            segment,
            next_step: Alone::default(),
            limit_step: Alone(AtomicU64::new(steps)),
            measured_from: AtomicU64::new(0),
            end_ns: AtomicU64::new(u64::MAX),
            stopped: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            reached_end: AtomicBool::new(false),
            reason: OnceLock::new(),
            words: std::array::from_fn(|_| std::array::from_fn(|_| OnceLock::new())),
            unclosed: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// The next operation for whoever asks; `None` at the end.
    #[inline]
    pub fn claim(&self) -> Option<Claim> {
        // The limit is read first, so that clients that find the end leave the counter where it is.
        if self.claimed() >= self.limit_step.0.load(Ordering::Relaxed) {
            return None;
        }
        let claimed = self.next_step.0.fetch_add(1, Ordering::Relaxed);
        let step = claimed & !MEASURED;
        (step < self.limit_step.0.load(Ordering::Relaxed)).then(|| {
            let index = self.segment.index(step);
            let measured = claimed >= MEASURED || index >= self.measured_from.load(Ordering::Relaxed);
            Claim { index, measured }
        })
    }

    /// How many operations have been claimed.
    pub fn claimed(&self) -> u64 {
        self.next_step.0.load(Ordering::Relaxed) & !MEASURED
    }

    /// Whether the operation at `index` may have begun. Of other segments nothing is known but that they keep up more or
    /// less: they may be twice as far.
    pub fn may_have_begun(&self, index: u64) -> bool {
        let segments = if self.segment.owns(index) { 1 } else { 2 };
        index < self.segment.index(self.claimed()).saturating_mul(segments)
    }

    /// Which share of the trial this is.
    pub fn segment(&self) -> Segment {
        self.segment
    }

    /// Nothing counts until [`Course::measure`].
    pub fn warm_up(&self) {
        self.limit_step.0.store(u64::MAX, Ordering::Relaxed);
        self.measured_from.store(u64::MAX, Ordering::Relaxed);
    }

    /// Ends the warm-up: what is claimed from now on counts, and `steps` more operations of this segment are the limit.
    pub fn measure(&self, steps: Option<u64>) {
        let step = self.next_step.0.fetch_or(MEASURED, Ordering::Relaxed);
        if let Some(steps) = steps {
            self.limit_step.0.store(step.saturating_add(steps), Ordering::Relaxed);
        }
    }

    /// Ends the warm-up of an open loop where arithmetic says: at the first index due after it. To be said before anybody
    /// claims, since a claim may lie far ahead.
    pub fn measure_from_index(&self, index: u64, limit_steps: u64) {
        self.limit_step.0.store(limit_steps, Ordering::Relaxed);
        self.measured_from.store(index, Ordering::Relaxed);
    }

    /// Operations due at or after `ns` are not sent.
    pub fn end_at(&self, ns: u64) {
        self.end_ns.store(ns, Ordering::Relaxed);
    }

    /// Whether an operation due then is beyond the end.
    #[inline]
    pub fn beyond_end(&self, due_ns: u64) -> bool {
        due_ns >= self.end_ns.load(Ordering::Relaxed)
    }

    /// A client found nothing more to send before the end.
    pub fn reach_end(&self) {
        self.reached_end.store(true, Ordering::Relaxed);
    }

    /// Whether one did.
    pub fn reached_end(&self) -> bool {
        self.reached_end.load(Ordering::Relaxed)
    }

    /// The time is over: no further operation is claimed. One that was claimed was due before, and is sent however late:
    /// those for which the generator was latest must not be the ones that nobody counts.
    pub fn stop(&self) {
        // Who sees this sees an interruption as well.
        self.stopped.store(true, Ordering::Release);
        self.limit_step.0.store(0, Ordering::Relaxed);
    }

    /// No further operation is sent.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// The same, with a reason that ends up in the summary. The first one counts.
    pub fn interrupt_because(&self, reason: impl FnOnce() -> String) {
        self.reason.get_or_init(reason);
        self.interrupt();
    }

    /// Whether it was stopped, in time or before.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether it was stopped before its time.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Why a client stopped it.
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Keeps the words of the first failure of a kind and status.
    pub fn keep_words(&self, kind: Kind, status: Status, words: impl FnOnce() -> Option<String>) {
        let cell = &self.words[kind as usize][status as usize];
        if cell.get().is_none()
            && let Some(words) = words()
        {
            cell.get_or_init(|| words);
        }
    }

    /// Counts a client that did not close.
    pub fn count_unclosed(&self, status: Status) {
        self.unclosed[status as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Clients that did not close, by the status that they closed with. YCSB's report has no such count.
    pub fn unclosed(&self) -> impl Iterator<Item = (Status, u64)> {
        let counts = self.unclosed.iter().map(|count| count.load(Ordering::Relaxed));
        Status::ALL.into_iter().zip(counts).filter(|&(_, count)| count > 0)
    }

    /// The words kept.
    pub fn words(&self, kind: Kind, status: Status) -> Option<&str> {
        self.words[kind as usize][status as usize].get().map(String::as_str)
    }
}

/// When each recent insert of the run phase was acknowledged.
///
/// A read that finds nothing and was sent before the acknowledgement of its record's insert is `NOT_YET`, neither a
/// success nor the store's failure. Two stores per insert, read only by reads that found nothing.
#[derive(Debug)]
pub struct Acks {
    slots: Vec<Ack>,
}

/// The insert that last had a slot.
#[derive(Debug)]
struct Ack {
    /// Its number; `u64::MAX` before the first.
    number: AtomicU64,
    /// When it was acknowledged, ns; `u64::MAX` while it is under way.
    done_ns: AtomicU64,
}

impl Ack {
    fn of_nobody() -> Self {
        Self { number: AtomicU64::new(u64::MAX), done_ns: AtomicU64::new(u64::MAX) }
    }
}

/// Far more than any sensible number of clients has under way; YCSB's own window is 2^20.
const ACKS: usize = 1 << 16;

impl Acks {
    /// Nothing acknowledged.
    pub fn new() -> Self {
        let mut slots = Vec::with_capacity(ACKS);
        slots.resize_with(ACKS, Ack::of_nobody);
        Self { slots }
    }

    /// Insert `number` begins.
    #[inline]
    pub fn begin(&self, number: u64) {
        let slot = self.slot(number);
        slot.done_ns.store(u64::MAX, Ordering::Relaxed);
        slot.number.store(number, Ordering::Release);
    }

    /// Insert `number` was acknowledged.
    #[inline]
    pub fn done(&self, number: u64, ns: u64) {
        let slot = self.slot(number);
        // One that took as long as 65,536 others has lost its slot.
        if slot.number.load(Ordering::Relaxed) == number {
            slot.done_ns.store(ns, Ordering::Release);
        }
    }

    /// Whether insert `number` was acknowledged before `ns`.
    pub fn before(&self, number: u64, ns: u64) -> bool {
        let slot = self.slot(number);
        match slot.number.load(Ordering::Acquire) {
            // Claimed and not begun: the slot is still an older insert's.
            u64::MAX => false,
            last if last < number => false,
            last if last > number => true,
            _ => slot.done_ns.load(Ordering::Acquire) <= ns,
        }
    }

    fn slot(&self, number: u64) -> &Ack {
        &self.slots[number as usize % ACKS]
    }
}

impl Default for Acks {
    fn default() -> Self {
        Self::new()
    }
}
