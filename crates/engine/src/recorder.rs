//! What one worker records, and how the recorders of all workers are read together.
//!
//! Histograms and counts are kept by the interval in which an operation was due (closed loop: sent). A worker writes those of
//! one interval into a slot; when it comes to the next interval it leaves the slot to the reader, who adds it up, empties it
//! and gives it back. So an interval is exact whenever it is read, and nobody waits for anybody. An operation that ends when
//! its interval's slot has been left goes to the stragglers, behind a lock that its one writer finds free.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loadstone_load::meter::{Grid, Reading, Table};
use loadstone_load::{Status, StepId};

use crate::borders::Borders;
use crate::client::Wait;
use crate::clock::elapsed_ns;
use crate::sink::{Sink, Times, YcsbTape};

/// An operation this late against its due time, for no other reason than ourselves, is the generator's fault.
pub const LATE_NS: u64 = 1_000_000;

/// Slots for intervals: the one that is written, and the one that is read.
const SLOTS: usize = 2;
/// Intervals for which the operations that ended in them are counted at the same time.
const ENDED: usize = 8;
/// With more recorders than this, the histograms of slots that are still written are not read: a copy of each would have to be
/// kept, for latencies that come with the next interval all the same.
const COPIED_MAX: usize = 256;

/// Why operations went out late, ns.
#[derive(Debug, Default)]
pub struct Waits {
    /// Wait while all clients were busy.
    pub client: Grid,
    /// Wait while a client was idle: the generator woke late.
    pub generator: Grid,
}

/// What a recorder has for its workload.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Steps of the workload.
    pub steps: usize,
    /// What is recorded.
    pub sinks: Vec<Sink>,
    /// Whether a rate is set.
    pub open: bool,
    /// An operation that ends well, but later than this after it was due, is late, ns.
    pub deadline_ns: u64,
    /// What must be added to an instant for the time since the Unix epoch, ns.
    pub to_unix_ns: u64,
}

/// One recording: a step, its outcome and its instants.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Which.
    pub id: StepId,
    /// How it ended.
    pub status: Status,
    /// When.
    pub times: Times,
    /// How much too late the generator sent the operation, ns.
    pub generator_ns: u64,
    /// The interval in which its operation was due.
    pub interval: u64,
}

/// A whole operation that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How.
    pub status: Status,
    /// Records that it read or wrote.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When it was due (closed loop: sent), ns.
    pub due_ns: u64,
    /// When it ended, ns.
    pub done_ns: u64,
    /// The interval in which it was due.
    pub interval: u64,
}

/// Good, late, failed and not yet.
#[derive(Debug, Default)]
struct Counts([AtomicU64; 4]);

impl Counts {
    fn get(&self) -> FourCounts {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

const EMPTY: u8 = 0;
const WRITTEN: u8 = 1;
const LEFT: u8 = 2;

/// What one interval came to, until it is read.
#[derive(Debug)]
struct Slot {
    state: AtomicU8,
    interval: AtomicU64,
    counts: Counts,
    service: Option<Table>,
    response: Option<Table>,
    response_lower: Option<Table>,
}

impl Slot {
    fn new(shape: &Shape) -> Self {
        let ns = shape.sinks.contains(&Sink::HdrNs);
        let table = |wanted: bool| wanted.then(|| Table::new(shape.steps));
        Self {
            state: AtomicU8::new(EMPTY),
            interval: AtomicU64::new(0),
            counts: Counts::default(),
            service: table(ns),
            response: table(ns && shape.open),
            response_lower: table(ns && shape.open),
        }
    }

    fn tables(&self) -> [Option<&Table>; 3] {
        [self.service.as_ref(), self.response.as_ref(), self.response_lower.as_ref()]
    }

    fn clear(&self) {
        for count in &self.counts.0 {
            count.store(0, Ordering::Relaxed);
        }
        for (_, _, grid) in self.tables().into_iter().flatten().flat_map(Table::used) {
            grid.clear();
        }
    }
}

/// The operation that a client has taken and not finished, for the conductor to find after the trial.
#[derive(Debug)]
pub struct Flight {
    index: AtomicU64,
    /// When it was due (closed loop: sent), ns; with [`SENT`] once it is sent, and [`WARM_UP`] if it does not count;
    /// [`NOTHING`] if there is none.
    due: AtomicU64,
}

const SENT: u64 = 1 << 63;
const WARM_UP: u64 = 1 << 62;
const NOTHING: u64 = u64::MAX;

/// An operation that a client has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Its index in the whole trial.
    pub index: u64,
    /// When it was due (closed loop: sent), ns.
    pub due_ns: u64,
    /// Whether it was sent.
    pub sent: bool,
    /// Whether it counts: those of the warm-up do not.
    pub counted: bool,
}

impl Flight {
    /// The client has taken an operation.
    #[inline]
    pub fn take(&self, index: u64, due_ns: u64, counted: bool) {
        self.index.store(index, Ordering::Relaxed);
        self.due.store(due_ns | if counted { 0 } else { WARM_UP }, Ordering::Relaxed);
    }

    /// It sends it.
    #[inline]
    pub fn send(&self, index: u64, due_ns: u64, counted: bool) {
        self.take(index, due_ns | SENT, counted);
    }

    /// It has ended.
    #[inline]
    pub fn end(&self) {
        self.due.store(NOTHING, Ordering::Relaxed);
    }

    fn unfinished(&self) -> Option<Unfinished> {
        let due = self.due.load(Ordering::Relaxed);
        let index = self.index.load(Ordering::Relaxed);
        (due != NOTHING).then_some(Unfinished {
            index,
            due_ns: due & !(SENT | WARM_UP),
            sent: due & SENT != 0,
            counted: due & WARM_UP == 0,
        })
    }
}

/// What one worker (a thread or an executor) records. It alone writes; anyone may read.
#[derive(Debug)]
pub struct Recorder {
    slots: [Slot; SLOTS],
    /// The slot that is written.
    current: AtomicU64,
    stragglers: Mutex<BTreeMap<u64, Additions>>,
    /// Operations that ended in an interval: well, and otherwise; by its number, modulo how many there are.
    ended: [[AtomicU64; 2]; ENDED],
    /// Waits; with a rate only.
    pub waits: Option<Waits>,
    /// What YCSB's formats need to be exact.
    pub ycsb: Vec<YcsbTape>,
    /// One for each client.
    pub flights: Box<[Flight]>,
    deadline_ns: u64,
    /// Operations of the warm-up that have ended.
    warmup: AtomicU64,
    /// Of these, the ones that ended in the window.
    carried: AtomicU64,
    /// How far into the window the last of them ended, ns.
    carried_ns: AtomicU64,
    /// Counted operations that have ended.
    counts: Counts,
    /// Operations that the store put into a batch, to be sent later.
    batched: AtomicU64,
    /// Attempts that failed and were followed by another.
    retried: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// When the last counted operation ended, ns.
    last_done: AtomicU64,
    /// When the last session was closed, ns.
    closed: AtomicU64,
    late_generator: AtomicU64,
    late_client: AtomicU64,
}

#[inline]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

#[inline]
fn raise(cell: &AtomicU64, value: u64) {
    if value > cell.load(Ordering::Relaxed) {
        cell.store(value, Ordering::Relaxed);
    }
}

impl Recorder {
    /// A recorder for a worker with so many clients.
    pub fn new(shape: &Shape, clients: usize) -> Self {
        let zero = AtomicU64::default;
        let slots: [Slot; SLOTS] = std::array::from_fn(|_| Slot::new(shape));
        slots[0].state.store(WRITTEN, Ordering::Relaxed);
        Self {
            slots,
            current: zero(),
            stragglers: Mutex::default(),
            ended: std::array::from_fn(|_| [zero(), zero()]),
            waits: shape.open.then(Waits::default),
            ycsb: shape
                .sinks
                .iter()
                .filter_map(|sink| YcsbTape::new(sink, shape.steps, shape.open, shape.to_unix_ns))
                .collect(),
            flights: (0..clients).map(|_| Flight { index: zero(), due: AtomicU64::new(NOTHING) }).collect(),
            deadline_ns: shape.deadline_ns,
            warmup: zero(),
            carried: zero(),
            carried_ns: zero(),
            counts: Counts::default(),
            batched: zero(),
            retried: zero(),
            rows: zero(),
            bytes: zero(),
            last_done: zero(),
            closed: zero(),
            late_generator: zero(),
            late_client: zero(),
        }
    }

    /// The slot of an interval; `None` for a straggler.
    #[inline]
    fn slot(&self, interval: u64) -> Option<&Slot> {
        let current = &self.slots[self.current.load(Ordering::Relaxed) as usize % SLOTS];
        if current.interval.load(Ordering::Relaxed) == interval { Some(current) } else { self.next_slot(interval) }
    }

    #[cold]
    fn next_slot(&self, interval: u64) -> Option<&Slot> {
        let at = self.current.load(Ordering::Relaxed);
        let (current, next) = (&self.slots[at as usize % SLOTS], &self.slots[(at + 1) as usize % SLOTS]);
        let earlier = interval < current.interval.load(Ordering::Relaxed);
        if earlier || next.state.load(Ordering::Acquire) != EMPTY {
            return None;
        }
        next.interval.store(interval, Ordering::Relaxed);
        next.state.store(WRITTEN, Ordering::Release);
        current.state.store(LEFT, Ordering::Release);
        self.current.store(at + 1, Ordering::Relaxed);
        Some(next)
    }

    fn straggle(&self, interval: u64, change: impl FnOnce(&mut Additions)) {
        let mut stragglers = self.stragglers.lock().unwrap_or_else(PoisonError::into_inner);
        change(stragglers.entry(interval).or_default());
    }

    /// Records one counted step: an operation, a part of one, or a check.
    #[inline]
    pub fn step(&self, step: Step) {
        let Step { id, status, times, generator_ns, interval } = step;
        for tape in &self.ycsb {
            tape.record(id, status, times);
        }
        let service = elapsed_ns(times.sent, times.done);
        let response = times.done.saturating_sub(times.due);
        let Some(slot) = self.slot(interval) else {
            if self.slots[0].service.is_some() {
                let open = self.slots[0].response.is_some();
                let open = open.then_some((response, generator_ns));
                self.straggle(interval, |more| more.record(id, status, service, open));
            }
            return;
        };
        if let Some(table) = &slot.service {
            table.record(id, status, service);
        }
        if let (Some(table), Some(lower)) = (&slot.response, &slot.response_lower) {
            table.record(id, status, response);
            lower.record(id, status, response.saturating_sub(generator_ns));
        }
    }

    /// Records an attempt that is followed by another: in YCSB's formats, which count attempts.
    #[cold]
    pub fn attempt(&self, id: StepId, status: Status, times: Times) {
        add(&self.retried, 1);
        for tape in &self.ycsb {
            tape.record(id, status, times);
        }
    }

    /// Counts an operation of the warm-up, which ended so many ns after the window had begun.
    #[inline]
    pub fn warmed_up(&self, late_ns: u64) {
        add(&self.warmup, 1);
        if late_ns > 0 {
            add(&self.carried, 1);
            raise(&self.carried_ns, late_ns);
        }
    }

    /// Counts an operation that ended in an interval of the window, whenever it was due: one that was sent in the warm-up, too,
    /// as one that ends after the window is not.
    #[inline]
    pub fn ended_in(&self, interval: u64, status: Status) {
        add(&self.ended[interval as usize % ENDED][usize::from(!status.is_ok())], 1);
    }

    /// Counts a whole operation, once, after its steps.
    #[inline]
    pub fn operation(&self, ended: &Ended) {
        let which = match ended.status {
            Status::Ok | Status::BatchedOk => {
                usize::from(ended.done_ns.saturating_sub(ended.due_ns) > self.deadline_ns)
            }
            Status::NotYet => 3,
            _ => 2,
        };
        add(&self.counts.0[which], 1);
        if ended.status == Status::BatchedOk {
            add(&self.batched, 1);
        }
        if ended.status.is_ok() {
            add(&self.rows, ended.rows);
            add(&self.bytes, ended.bytes);
        }
        raise(&self.last_done, ended.done_ns);
        match self.slot(ended.interval) {
            Some(slot) => add(&slot.counts.0[which], 1),
            None => self.straggle(ended.interval, |more| more.counts[which] += 1),
        }
    }

    /// Records the wait before a counted operation was sent.
    #[inline]
    pub fn wait(&self, Wait { client, generator }: Wait) {
        if let Some(waits) = &self.waits {
            waits.client.record(client);
            waits.generator.record(generator);
        }
        add(&self.late_client, u64::from(client > LATE_NS));
        add(&self.late_generator, u64::from(generator > LATE_NS));
    }

    /// A session was closed.
    pub fn session_closed(&self, ns: u64) {
        raise(&self.closed, ns);
    }

    /// Operations that its clients have taken and not finished.
    pub fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        self.flights.iter().filter_map(Flight::unfinished)
    }
}

/// Totals over all recorders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations of the warm-up.
    pub warmup: u64,
    /// Of these, the ones that ended in the window.
    pub carried: u64,
    /// How far into the window the last of them ended, ns.
    pub carried_ns: u64,
    /// Counted operations that have ended.
    pub operations: u64,
    /// Of these, the ones that ended well.
    pub succeeded: u64,
    /// Operations that ended well within the window, whenever they were due.
    pub in_window: u64,
    /// Operations that a store put into a batch.
    pub batched: u64,
    /// Reads of records whose insert or delete was under way: neither success nor failure.
    pub not_yet: u64,
    /// Attempts that were followed by another.
    pub retried: u64,
    /// Records read and written by operations that ended well.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Counted operations sent and not yet done.
    pub in_flight: u64,
    /// When the last counted operation ended, ns.
    pub last_done_ns: u64,
    /// When the last session was closed, ns.
    pub closed_ns: u64,
    /// Counted operations sent over 1 ms late though a client was idle.
    pub late_generator: u64,
    /// Counted operations over 1 ms late because all clients were busy.
    pub late_client: u64,
}

impl Totals {
    /// Counted operations that failed.
    pub fn failed(&self) -> u64 {
        self.operations.saturating_sub(self.succeeded + self.not_yet)
    }
}

/// The totals of recorders.
pub fn totals(recorders: &[Arc<Recorder>]) -> Totals {
    let mut all = Totals::default();
    for recorder in recorders {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        all.warmup += get(&recorder.warmup);
        all.carried += get(&recorder.carried);
        all.carried_ns = all.carried_ns.max(get(&recorder.carried_ns));
        let counts = recorder.counts.get();
        all.operations += counts.iter().sum::<u64>();
        all.succeeded += counts[0] + counts[1];
        all.not_yet += counts[3];
        all.in_window += recorder.ended.iter().map(|ended| get(&ended[0])).sum::<u64>();
        all.batched += get(&recorder.batched);
        all.retried += get(&recorder.retried);
        all.rows += get(&recorder.rows);
        all.bytes += get(&recorder.bytes);
        all.in_flight += recorder.unfinished().filter(|one| one.sent && one.counted).count() as u64;
        all.last_done_ns = all.last_done_ns.max(get(&recorder.last_done));
        all.closed_ns = all.closed_ns.max(get(&recorder.closed));
        all.late_generator += get(&recorder.late_generator);
        all.late_client += get(&recorder.late_client);
    }
    all
}

/// Service times, responses and lower bounds of responses of one step and status; the latter two with a rate only.
pub type Latencies = [Reading; 3];

/// Latencies by step and status.
pub type Readings = BTreeMap<(StepId, Status), Latencies>;

/// Good, late, failed and not yet.
pub type FourCounts = [u64; 4];

/// What came to an interval since it was last looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// Operations due in it: good, late, failed, not yet.
    pub counts: FourCounts,
    /// Operations that ended in it, whenever due.
    pub ended: u64,
    /// Of these, the ones that ended well.
    pub completed: u64,
    /// Latencies of operations due in it.
    pub latencies: Readings,
}

impl Additions {
    fn record(&mut self, id: StepId, status: Status, service: u64, open: Option<(u64, u64)>) {
        let own = self.latencies.entry((id, status)).or_default();
        own[0].record(service);
        if let Some((response, generator_ns)) = open {
            own[1].record(response);
            own[2].record(response.saturating_sub(generator_ns));
        }
    }

    /// Adds others to them.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
        self.ended += other.ended;
        self.completed += other.completed;
        for (key, theirs) in &other.latencies {
            let mine = self.latencies.entry(*key).or_default();
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts == [0; 4] && self.ended == 0 && self.latencies.is_empty()
    }
}

/// What a slot held when it was read while still written.
#[derive(Debug, Default)]
struct Copied {
    counts: FourCounts,
    /// Only for a few recorders.
    latencies: Readings,
}

/// Reads the recorders of a trial, interval by interval.
#[derive(Debug)]
pub struct Reader {
    recorders: Vec<Arc<Recorder>>,
    /// By recorder and slot.
    copied: Vec<[Copied; SLOTS]>,
    ended: Vec<[[u64; 2]; ENDED]>,
}

impl Reader {
    /// A reader of recorders that nobody else reads.
    pub fn new(recorders: Vec<Arc<Recorder>>) -> Self {
        let each = recorders.len();
        Self {
            copied: std::iter::repeat_with(Default::default).take(each).collect(),
            ended: vec![[[0; 2]; ENDED]; each],
            recorders,
        }
    }

    /// Adds to `all`, by interval, what came since the last time. `now` is the interval that it is, and `last` that nobody
    /// writes any more.
    pub fn read(&mut self, now: u64, last: bool, all: &mut BTreeMap<u64, Additions>) {
        let copies = last || self.recorders.len() <= COPIED_MAX;
        for ((recorder, copied), ended) in self.recorders.iter().zip(&mut self.copied).zip(&mut self.ended) {
            for (slot, copied) in recorder.slots.iter().zip(copied) {
                let state = slot.state.load(Ordering::Acquire);
                if state != EMPTY {
                    let interval = slot.interval.load(Ordering::Relaxed);
                    read_slot(slot, copied, state == LEFT || copies, all.entry(interval).or_default());
                }
                if state == LEFT {
                    *copied = Copied::default();
                    slot.clear();
                    slot.state.store(EMPTY, Ordering::Release);
                }
            }
            for (at, seen) in ended.iter_mut().enumerate() {
                let read = |which: usize| recorder.ended[at][which].load(Ordering::Relaxed);
                let new = [read(0) - seen[0], read(1) - seen[1]];
                if new != [0; 2] {
                    // The latest interval up to now that shares this place.
                    let back = (now + ENDED as u64 - at as u64) % ENDED as u64;
                    let to = all.entry(now.saturating_sub(back)).or_default();
                    to.ended += new[0] + new[1];
                    to.completed += new[0];
                    *seen = [seen[0] + new[0], seen[1] + new[1]];
                }
            }
            let stragglers = std::mem::take(&mut *recorder.stragglers.lock().unwrap_or_else(PoisonError::into_inner));
            for (interval, more) in stragglers {
                all.entry(interval).or_default().merge(&more);
            }
        }
    }
}

/// Adds what came to a slot since `copied`; the latencies only if they are wanted.
fn read_slot(slot: &Slot, copied: &mut Copied, latencies: bool, to: &mut Additions) {
    let counts = slot.counts.get();
    for (to, (now, old)) in to.counts.iter_mut().zip(counts.iter().zip(copied.counts)) {
        *to += now - old;
    }
    copied.counts = counts;
    if !latencies {
        return;
    }
    let mut all = Readings::new();
    for (which, table) in slot.tables().into_iter().enumerate() {
        for (id, status, grid) in table.into_iter().flat_map(Table::used) {
            let mut reading = Reading::default();
            reading.add(grid);
            if reading.count() > 0 {
                all.entry((id, status)).or_default()[which] = reading;
            }
        }
    }
    for (key, now) in &all {
        let to = to.latencies.entry(*key).or_default();
        for (which, (to, now)) in to.iter_mut().zip(now).enumerate() {
            match copied.latencies.get(key) {
                Some(old) => to.merge(&now.since(&old[which])),
                None => to.merge(now),
            }
        }
    }
    copied.latencies = all;
}

/// Which intervals an instant lies in, remembered from the last one asked for: a division only when that changes.
#[derive(Debug, Default)]
pub struct IntervalCursor {
    from: u64,
    to: u64,
    interval: u64,
}

impl IntervalCursor {
    /// The interval of an instant from `borders.first_ns` on.
    #[inline]
    pub fn at(&mut self, borders: &Borders, ns: u64) -> u64 {
        if ns < self.from || ns >= self.to {
            self.interval = borders.interval(ns);
            self.from = borders.first_ns.saturating_add(self.interval.saturating_mul(borders.interval_ns));
            self.to = self.from.saturating_add(borders.interval_ns);
        }
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use loadstone_load::Kind;

    use super::*;

    const SHAPE: Shape = Shape { steps: Kind::COUNT, sinks: Vec::new(), open: true, deadline_ns: 500, to_unix_ns: 0 };

    fn record(recorder: &Recorder, interval: u64, status: Status, ns: u64) {
        let times = Times { due: 0, sent: 0, done: ns };
        recorder.step(Step { id: Kind::Read.step(), status, times, generator_ns: 1, interval });
        recorder.operation(&Ended { status, rows: 1, bytes: 1, due_ns: 0, done_ns: ns, interval });
        recorder.ended_in(interval, status);
    }

    /// A writer that never waits, and a reader that is now quick and now slow: every interval has what was due in it.
    #[test]
    fn intervals_are_exact_whenever_they_are_read() {
        const EACH: u64 = 500;
        const INTERVALS: u64 = 2_000;
        let shape = Shape { sinks: vec![Sink::HdrNs], ..SHAPE };
        let recorder = Arc::new(Recorder::new(&shape, 1));
        let mut reader = Reader::new(vec![Arc::clone(&recorder)]);
        let (mut all, now) = (BTreeMap::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for i in 0..EACH * INTERVALS {
                    now.store(i / EACH, Ordering::Release);
                    // Some operations end in a later interval than they were due in.
                    let late = i % 7 == 0 && i > 3 * EACH;
                    record(&recorder, i / EACH - if late { 1 + i % 3 } else { 0 }, Status::Ok, i % 1_000);
                }
            });
            let mut rounds = 0u32;
            while !writer.is_finished() {
                reader.read(now.load(Ordering::Acquire), false, &mut all);
                rounds += 1;
                std::thread::sleep(std::time::Duration::from_micros(u64::from(rounds % 5) * 100));
            }
        });
        reader.read(INTERVALS - 1, true, &mut all);
        let mut expected = BTreeMap::<u64, (u64, u64)>::new();
        for i in 0..EACH * INTERVALS {
            let late = i % 7 == 0 && i > 3 * EACH;
            let own = expected.entry(i / EACH - if late { 1 + i % 3 } else { 0 }).or_default();
            if i % 1_000 > SHAPE.deadline_ns { own.1 += 1 } else { own.0 += 1 }
        }
        let found: BTreeMap<u64, (u64, u64)> =
            all.iter().map(|(&k, more)| (k, (more.counts[0], more.counts[1]))).collect();
        assert_eq!(found, expected);
        for (interval, more) in &all {
            let [service, response, lower] = &more.latencies[&(Kind::Read.step(), Status::Ok)];
            let counts = [service.count(), response.count(), lower.count()];
            assert_eq!(counts, [more.counts[0] + more.counts[1]; 3], "interval {interval}");
        }
        assert_eq!(all.values().map(|more| more.completed).sum::<u64>(), EACH * INTERVALS);
        assert_eq!(totals(&[recorder]).succeeded, EACH * INTERVALS);
    }

    #[test]
    fn outcomes_are_counted_as_what_they_are() {
        let recorder = Recorder::new(&SHAPE, 1);
        for (status, ns) in [
            (Status::Ok, 500),
            (Status::Ok, 501),
            (Status::BatchedOk, 1),
            (Status::Timeout, 1),
            (Status::NotFound, 1),
            (Status::NotYet, 1),
        ] {
            record(&recorder, 0, status, ns);
        }
        let mut all = BTreeMap::new();
        let recorders = [Arc::new(recorder)];
        Reader::new(recorders.to_vec()).read(0, true, &mut all);
        assert_eq!((all[&0].counts, all[&0].ended, all[&0].completed), ([2, 1, 2, 1], 6, 3));
        let totals = totals(&recorders);
        assert_eq!((totals.succeeded, totals.failed(), totals.not_yet, totals.batched), (3, 2, 1, 1));
    }
}
