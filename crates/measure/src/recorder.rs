//! The recordings of one worker, and how the recorders of all workers are read together.
//!
//! Histograms and counts are stored by the interval in which an operation was due (closed loop: sent). A worker writes
//! one interval at a time into a slot. When it reaches the next interval, it releases the slot to the reader, which
//! adds the slot's values, clears it and returns it. An interval is therefore exact whenever it is read, and neither
//! side waits for the other. An operation that finishes after its slot was released, or before the reader has returned
//! the slot for its interval, is recorded with the stragglers, behind a lock that only this worker and the reader take.

pub mod flight;
pub mod reader;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use loadstone_load::histogram::{Grid, Table};
use loadstone_load::{Status, StepId};

use crate::clock::{LATE_NS, elapsed_ns};
use crate::lateness::{Lateness, Wait};
use crate::sink::{StepTimes, YcsbMeasurements};
use flight::{Flight, Unfinished};
use loadstone_wire::sink::Sink;
use reader::IntervalAdditions;

/// Number of slots for intervals: one is being written, and one is being read.
const SLOTS: usize = 2;
/// Number of intervals in which finished operations are counted at the same time.
const ENDED: usize = 8;

/// The waits of operations before they were sent, by cause, ns.
#[derive(Debug, Default)]
pub struct Waits {
    /// Wait while all clients were busy.
    pub client: Grid,
    /// Wait because the generator was late with this operation or with earlier ones.
    pub generator: Grid,
}

/// The parts of a workload that are recorded.
#[derive(Clone, Debug)]
pub struct RecorderShape {
    pub steps: usize,
    /// The requested recordings.
    pub sinks: Vec<Sink>,
    /// Whether a rate is set.
    pub open: bool,
    /// An operation that succeeds more than this time after its due time is late, ns.
    pub deadline_ns: u64,
    /// The offset that converts a time to ns since the Unix epoch.
    pub to_unix_ns: u64,
}

/// One recording: a step, its outcome and its times.
#[derive(Clone, Copy, Debug)]
pub struct StepRecord<'a> {
    pub id: StepId,
    pub status: Status,
    pub times: StepTimes,
    /// The part of the response time that the generator caused; with a rate only.
    pub lateness: Option<&'a Lateness<'a>>,
    /// The interval in which the operation was due.
    pub interval: u64,
}

/// Numbers of operations: good, late, failed, not yet.
pub type FourCounts = [u64; 4];

/// The number of successful outcomes, which come first.
const SUCCEEDED: usize = 2;

fn sum_counts(counts: FourCounts, more: FourCounts) -> FourCounts {
    std::array::from_fn(|which| counts[which] + more[which])
}

/// [`FourCounts`] that one thread writes.
#[derive(Debug, Default)]
struct AtomicCounts([AtomicU64; 4]);

impl AtomicCounts {
    fn load_counts(&self) -> FourCounts {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    fn store_counts(&self, counts: FourCounts) {
        self.0.iter().zip(counts).for_each(|(cell, n)| cell.store(n, Ordering::Relaxed));
    }
}

const EMPTY: u8 = 0;
const WRITTEN: u8 = 1;
const LEFT: u8 = 2;

/// The recordings of one interval until they are read. Slots are aligned, so that the reader's slot is on separate
/// cache lines.
#[repr(align(128))]
#[derive(Debug)]
struct IntervalSlot {
    state: AtomicU8,
    interval: AtomicU64,
    /// Operations due in the interval that have finished.
    counts: AtomicCounts,
    /// The part of `counts` that finished in another interval or after the window: successes, then other outcomes.
    elsewhere: [AtomicU64; 2],
    /// The counts of all intervals that were written before this interval.
    before: AtomicCounts,
    service: Option<Table>,
    response: Option<Table>,
    response_lower: Option<Table>,
}

impl IntervalSlot {
    fn new(shape: &RecorderShape) -> Self {
        let ns = shape.sinks.contains(&Sink::HdrNs);
        let table = |is_required: bool| is_required.then(|| Table::new(shape.steps));
        Self {
            state: AtomicU8::new(EMPTY),
            interval: AtomicU64::new(0),
            counts: AtomicCounts::default(),
            elsewhere: <[AtomicU64; 2]>::default(),
            before: AtomicCounts::default(),
            service: table(ns),
            response: table(ns && shape.open),
            response_lower: table(ns && shape.open),
        }
    }

    fn tables(&self) -> [Option<&Table>; 3] {
        [self.service.as_ref(), self.response.as_ref(), self.response_lower.as_ref()]
    }

    /// The counts of this slot's interval and of all earlier intervals.
    fn all_counts(&self) -> FourCounts {
        sum_counts(self.before.load_counts(), self.counts.load_counts())
    }

    fn clear_slot(&self) {
        for count in self.counts.0.iter().chain(&self.elsewhere) {
            count.store(0, Ordering::Relaxed);
        }
        for (_, _, grid) in self.tables().into_iter().flatten().flat_map(Table::entries) {
            grid.clear_counts();
        }
    }
}

/// The recordings of one worker (a thread or an executor). Only this worker writes to the recorder, but any thread may
/// read it.
#[derive(Debug)]
pub struct Recorder {
    slots: [IntervalSlot; SLOTS],
    /// The number of the slot that is being written.
    current: AtomicU64,
    stragglers: Mutex<BTreeMap<u64, IntervalAdditions>>,
    /// Operations that finished in an interval but were due in another one, or in the warm-up: successes, then other
    /// outcomes; by the number of the interval in which they finished, modulo [`ENDED`].
    ended: [[AtomicU64; 2]; ENDED],
    /// Operations due in the window that succeeded in an interval other than their own, or after the window.
    succeeded_elsewhere: AtomicU64,
    /// Operations that were recorded with the stragglers.
    straggled: AtomicCounts,
    /// Waits of operations before they were sent; with a rate only.
    pub waits: Option<Waits>,
    /// Additional recordings that make YCSB's formats exact.
    pub ycsb: Vec<YcsbMeasurements>,
    /// The operation that each client has in flight.
    pub flights: Box<[Flight]>,
    deadline_ns: u64,
    /// Operations of the warm-up that have finished.
    warmup: AtomicU64,
    /// Operations of the warm-up that finished in the window.
    carried: AtomicU64,
    /// Time from the start of the window until the last operation of the warm-up finished, ns.
    carried_ns: AtomicU64,
    /// Operations that the store batched, to be sent later.
    batched: AtomicU64,
    /// Attempts that failed and were retried, by status.
    retried: [AtomicU64; Status::COUNT],
    /// Counted operations that failed without being sent, because no server could be reached.
    unreached: AtomicU64,
    /// Operations sent after the cut-off, if only the number of operations is limited.
    overdue: AtomicU64,
    /// Pauses of clients after failures, in a closed loop: their number, and their total length in ns.
    pauses: [AtomicU64; 2],
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Time at which the last session was closed, ns.
    closed: AtomicU64,
    late_generator: AtomicU64,
    late_client: AtomicU64,
}

#[inline]
fn add_relaxed(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Records the response time, and the response time without the generator's part. Both exist only with a rate.
#[inline(never)]
fn record_response(
    response: &Table,
    lower: &Table,
    (id, status): (StepId, Status),
    (response_ns, generator_ns): (u64, u64),
) {
    response.record_value(id, status, response_ns);
    lower.record_value(id, status, response_ns.saturating_sub(generator_ns));
}

#[inline]
fn raise_maximum(cell: &AtomicU64, value: u64) {
    if value > cell.load(Ordering::Relaxed) {
        cell.store(value, Ordering::Relaxed);
    }
}

impl Recorder {
    /// A recorder for a worker with the given number of clients.
    pub fn new(shape: &RecorderShape, clients: usize) -> Self {
        let zero = AtomicU64::default;
        let slots: [IntervalSlot; SLOTS] = std::array::from_fn(|_| IntervalSlot::new(shape));
        slots[0].state.store(WRITTEN, Ordering::Relaxed);
        Self {
            slots,
            current: zero(),
            stragglers: Mutex::default(),
            ended: std::array::from_fn(|_| [zero(), zero()]),
            succeeded_elsewhere: zero(),
            straggled: AtomicCounts::default(),
            waits: shape.open.then(Waits::default),
            ycsb: shape
                .sinks
                .iter()
                .filter_map(|sink| YcsbMeasurements::new(sink, shape.steps, shape.open, shape.to_unix_ns))
                .collect(),
            flights: (0..clients).map(|_| Flight::default()).collect(),
            deadline_ns: shape.deadline_ns,
            warmup: zero(),
            carried: zero(),
            carried_ns: zero(),
            batched: zero(),
            retried: std::array::from_fn(|_| zero()),
            unreached: zero(),
            overdue: zero(),
            pauses: [zero(), zero()],
            rows: zero(),
            bytes: zero(),
            closed: zero(),
            late_generator: zero(),
            late_client: zero(),
        }
    }

    /// The slot of an interval; `None` for a straggler.
    #[inline]
    fn slot(&self, interval: u64) -> Option<&IntervalSlot> {
        let current = &self.slots[self.current.load(Ordering::Relaxed) as usize % SLOTS];
        if current.interval.load(Ordering::Relaxed) == interval { Some(current) } else { self.next_slot(interval) }
    }

    #[cold]
    fn next_slot(&self, interval: u64) -> Option<&IntervalSlot> {
        let at = self.current.load(Ordering::Relaxed);
        let (current, next) = (&self.slots[at as usize % SLOTS], &self.slots[(at + 1) as usize % SLOTS]);
        let earlier = interval < current.interval.load(Ordering::Relaxed);
        if earlier || next.state.load(Ordering::Acquire) != EMPTY {
            return None;
        }
        next.interval.store(interval, Ordering::Relaxed);
        next.before.store_counts(current.all_counts());
        next.state.store(WRITTEN, Ordering::Release);
        // The number of the current slot is stored before the earlier slot is released. The reader may clear a released
        // slot, and must not count operations from it afterwards.
        self.current.store(at + 1, Ordering::Release);
        current.state.store(LEFT, Ordering::Release);
        Some(next)
    }

    fn record_straggler(&self, interval: u64, change: impl FnOnce(&mut IntervalAdditions)) {
        let mut stragglers = self.stragglers.lock().unwrap_or_else(PoisonError::into_inner);
        change(stragglers.entry(interval).or_default());
    }

    /// Records one counted step: an operation, a part of an operation, or a check.
    #[expect(clippy::inline_always, reason = "its argument would be copied through memory twice")]
    #[inline(always)]
    pub fn record_step(&self, StepRecord { id, status, times, lateness, interval }: StepRecord<'_>) {
        if !self.ycsb.is_empty() {
            self.record_ycsb(id, status, times.due, times.sent, times.done);
        }
        self.record_times(StepRecord { id, status, times, lateness, interval });
    }

    /// Records a step with several attempts, timed from the first. YCSB's formats count each attempt separately: here,
    /// they count only the last attempt, which was sent at `retried`.
    #[cold]
    pub fn record_retried(&self, step: StepRecord<'_>, retried: u64) {
        self.record_ycsb(step.id, step.status, step.times.due, retried, step.times.done);
        self.record_times(step);
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn record_times(&self, StepRecord { id, status, times, lateness, interval }: StepRecord<'_>) {
        let service = elapsed_ns(times.sent, times.done);
        let response = || {
            let generator_ns = lateness.map_or(0, |lateness| lateness.lead_at(times.done));
            (times.done.saturating_sub(times.due), generator_ns)
        };
        let Some(slot) = self.slot(interval) else {
            return self.straggling_step(interval, (id, status), service, response());
        };
        if let Some(table) = &slot.service {
            table.record_value(id, status, service);
        }
        if let (Some(table), Some(lower)) = (&slot.response, &slot.response_lower) {
            record_response(table, lower, (id, status), response());
        }
    }

    #[cold]
    fn straggling_step(&self, interval: u64, (id, status): (StepId, Status), service: u64, response: (u64, u64)) {
        if self.slots[0].service.is_some() {
            let open = self.slots[0].response.is_some().then_some(response);
            self.record_straggler(interval, |more| more.record_service(id, status, service, open));
        }
    }

    // Takes the times as separate arguments, because a struct would be passed through memory.
    #[inline(never)]
    fn record_ycsb(&self, id: StepId, status: Status, due: u64, sent: u64, done: u64) {
        for measurements in &self.ycsb {
            measurements.record_times(id, status, StepTimes { due, sent, done });
        }
    }

    /// Records an attempt that was retried, for YCSB's formats, which count attempts.
    #[cold]
    pub fn record_attempt(&self, id: StepId, status: Status, times: StepTimes) {
        add_relaxed(&self.retried[status as usize], 1);
        self.record_ycsb(id, status, times.due, times.sent, times.done);
    }

    /// Counts an operation of the warm-up that finished `late_ns` after the window began (0 if it finished earlier).
    #[inline]
    pub fn count_warm_up(&self, late_ns: u64) {
        add_relaxed(&self.warmup, 1);
        if late_ns > 0 {
            add_relaxed(&self.carried, 1);
            raise_maximum(&self.carried_ns, late_ns);
        }
    }

    /// Counts an operation that finished in an interval of the window in which it was not due. This includes operations
    /// sent in the warm-up. Operations that finish after the window are excluded.
    #[inline(never)]
    pub fn count_end(&self, interval: u64, status: Status) {
        add_relaxed(&self.ended[interval as usize % ENDED][usize::from(!status.is_ok())], 1);
    }

    /// Counts a whole operation that was due in an interval, once, after its steps. The arguments are its status, the
    /// numbers of records and bytes that it read or wrote, its response time, and whether it finished in another
    /// interval.
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    pub fn record_operation(
        &self,
        interval: u64,
        status: Status,
        (rows, bytes): (u64, u64),
        response_ns: u64,
        elsewhere: bool,
    ) {
        let late = usize::from(response_ns > self.deadline_ns);
        let which = if status == Status::Ok { late } else { self.count_late(status, late) };
        if which < SUCCEEDED {
            add_relaxed(&self.rows, rows);
            add_relaxed(&self.bytes, bytes);
        }
        match self.slot(interval) {
            Some(slot) => {
                if elsewhere {
                    self.count_other_end(slot, which);
                }
                add_relaxed(&slot.counts.0[which], 1);
            }
            None => self.straggling_operation(interval, which, elsewhere),
        }
    }

    /// The position at which to count an operation whose status is not a simple success.
    #[inline(never)]
    fn count_late(&self, status: Status, late: usize) -> usize {
        match status {
            Status::Ok => late,
            Status::BatchedOk => {
                add_relaxed(&self.batched, 1);
                late
            }
            Status::NotYet => 3,
            _ => 2,
        }
    }

    #[inline(never)]
    fn count_other_end(&self, slot: &IntervalSlot, which: usize) {
        add_relaxed(&slot.elsewhere[usize::from(which >= SUCCEEDED)], 1);
        add_relaxed(&self.succeeded_elsewhere, u64::from(which < SUCCEEDED));
        // A reader that sees the operation's count also sees these counts, provided that it loads them afterwards.
        fence(Ordering::Release);
    }

    #[cold]
    fn straggling_operation(&self, interval: u64, which: usize, elsewhere: bool) {
        add_relaxed(&self.succeeded_elsewhere, u64::from(elsewhere && which < SUCCEEDED));
        // A reader that sees the operation's count also sees the count above: see `count_other_end`.
        fence(Ordering::Release);
        add_relaxed(&self.straggled.0[which], 1);
        self.record_straggler(interval, |more| {
            more.counts[which] += 1;
            more.ended += u64::from(!elsewhere);
            more.completed += u64::from(!elsewhere && which < SUCCEEDED);
        });
    }

    /// The counted operations that have finished. Call this only from the thread that reads the slots, or after all
    /// writing has ended.
    fn counts(&self) -> FourCounts {
        let current = &self.slots[self.current.load(Ordering::Acquire) as usize % SLOTS];
        sum_counts(current.all_counts(), self.straggled.load_counts())
    }

    /// Counts an operation that failed without being sent.
    #[cold]
    pub fn count_unreached(&self) {
        add_relaxed(&self.unreached, 1);
    }

    /// Records a pause of a client after a failure.
    #[cold]
    pub fn record_pause(&self, ns: u64) {
        if ns > 0 {
            add_relaxed(&self.pauses[0], 1);
            add_relaxed(&self.pauses[1], ns);
        }
    }

    /// Records how long a counted operation waited before it was sent, and whether it was sent after the cut-off.
    #[inline]
    pub fn record_wait(&self, wait: Wait, overdue: bool) {
        if let Some(waits) = &self.waits {
            waits.client.record_value(wait.client);
            waits.generator.record_value(wait.generator);
        }
        add_relaxed(&self.late_client, u64::from(wait.client > LATE_NS));
        add_relaxed(&self.late_generator, u64::from(wait.is_late(LATE_NS)));
        add_relaxed(&self.overdue, u64::from(overdue));
    }

    /// Records that a session was closed.
    pub fn session_closed(&self, ns: u64) {
        raise_maximum(&self.closed, ns);
    }

    /// Operations that this worker's clients have claimed but not finished.
    pub fn list_unfinished(&self) -> impl Iterator<Item = Unfinished> {
        self.flights.iter().filter_map(Flight::list_unfinished)
    }
}
