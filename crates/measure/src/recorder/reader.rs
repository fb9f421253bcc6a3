//! Reads the recorders of all client threads together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, PoisonError};

use loadstone_load::histogram::{Reading, Table};
use loadstone_load::{Status, StepId};

use super::flight::Flight;
use super::{EMPTY, ENDED, FourCounts, IntervalSlot, LEFT, Recorder, SLOTS};

/// With more recorders than this, the reader skips the histograms of slots that are still being written, because each
/// of these slots would need a copy. A later reading adds their latencies.
const COPIED_MAX: usize = 256;

/// Totals over all recorders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations of the warm-up that have finished.
    pub warmup: u64,
    /// Operations of the warm-up that finished in the window.
    pub carried: u64,
    /// Time from the start of the window until the last operation of the warm-up finished, ns.
    pub carried_ns: u64,
    /// Counted operations that have finished.
    pub operations: u64,
    /// Counted operations that succeeded.
    pub succeeded: u64,
    /// Operations that succeeded in the window, whenever they were due.
    pub in_window: u64,
    /// Operations that the store batched.
    pub batched: u64,
    /// Operations on records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Attempts that failed and were retried, by status.
    pub retried: [u64; Status::COUNT],
    /// Counted operations that failed without being sent, because no server could be reached.
    pub unreached: u64,
    /// Operations sent after the cut-off, if only the number of operations is limited.
    pub overdue: u64,
    /// Pauses of clients after failures: their number, and their total length in ns.
    pub pauses: [u64; 2],
    /// Records read and written by operations that succeeded.
    pub rows: u64,
    /// Bytes read and written by operations that succeeded.
    pub bytes: u64,
    /// Counted operations that were sent but have not finished.
    pub in_flight: u64,
    /// Time at which the last counted operation finished, ns.
    pub last_done_ns: u64,
    /// Time at which the last session was closed, ns.
    pub closed_ns: u64,
    /// Counted operations sent more than 1 ms late because the generator was late.
    pub late_generator: u64,
    /// Counted operations sent more than 1 ms late because all clients were busy.
    pub late_client: u64,
}

impl Totals {
    /// Counted operations that failed.
    pub fn count_failed(&self) -> u64 {
        self.operations.saturating_sub(self.succeeded + self.not_yet)
    }
}

/// Adds the totals of all recorders.
pub fn read_totals(recorders: &[Arc<Recorder>]) -> Totals {
    let mut all = Totals::default();
    for recorder in recorders {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        all.warmup += get(&recorder.warmup);
        all.carried += get(&recorder.carried);
        all.carried_ns = all.carried_ns.max(get(&recorder.carried_ns));
        let counts = recorder.counts();
        fence(Ordering::Acquire);
        all.operations += counts.iter().sum::<u64>();
        all.succeeded += counts[0] + counts[1];
        all.not_yet += counts[3];
        all.in_window += (counts[0] + counts[1]).saturating_sub(get(&recorder.succeeded_elsewhere));
        all.in_window += recorder.ended.iter().map(|ended| get(&ended[0])).sum::<u64>();
        all.batched += get(&recorder.batched);
        all.retried.iter_mut().zip(&recorder.retried).for_each(|(all, cell)| *all += get(cell));
        all.unreached += get(&recorder.unreached);
        all.overdue += get(&recorder.overdue);
        all.pauses.iter_mut().zip(&recorder.pauses).for_each(|(all, cell)| *all += get(cell));
        all.rows += get(&recorder.rows);
        all.bytes += get(&recorder.bytes);
        all.in_flight +=
            recorder.list_unfinished().filter(|operation| operation.sent && operation.counted).count() as u64;
        all.last_done_ns = recorder.flights.iter().map(Flight::last_done_ns).fold(all.last_done_ns, u64::max);
        all.closed_ns = all.closed_ns.max(get(&recorder.closed));
        all.late_generator += get(&recorder.late_generator);
        all.late_client += get(&recorder.late_client);
    }
    all
}

pub use loadstone_wire::event::{Latencies, Readings};

/// The operations that were recorded in an interval since the last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalAdditions {
    /// Operations due in the interval: good, late, failed, not yet.
    pub counts: FourCounts,
    /// Operations that finished in the interval, whenever they were due.
    pub ended: u64,
    /// Operations that finished in the interval and succeeded.
    pub completed: u64,
    /// Latencies of the operations due in the interval.
    pub latencies: Readings,
}

impl IntervalAdditions {
    pub(super) fn record_service(&mut self, id: StepId, status: Status, service: u64, open: Option<(u64, u64)>) {
        let latencies = self.latencies.entry((id, status)).or_default();
        latencies[0].record_value(service);
        if let Some((response, generator_ns)) = open {
            latencies[1].record_value(response);
            latencies[2].record_value(response.saturating_sub(generator_ns));
        }
    }

    /// Adds the recordings of `other`.
    pub fn merge_additions(&mut self, other: &Self) {
        for (mine, added) in self.counts.iter_mut().zip(other.counts) {
            *mine += added;
        }
        self.ended += other.ended;
        self.completed += other.completed;
        for (key, added) in &other.latencies {
            let mine = self.latencies.entry(*key).or_default();
            mine.iter_mut().zip(added).for_each(|(mine, added)| mine.merge_reading(added));
        }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.counts == [0; 4] && self.ended == 0 && self.latencies.is_empty()
    }
}

/// The contents of a slot that was read while it was still being written.
#[derive(Debug, Default)]
struct Copied {
    counts: FourCounts,
    /// Operations that finished in the slot's interval: successes, then other outcomes.
    here: [u64; 2],
    /// Empty if there are more than [`COPIED_MAX`] recorders.
    latencies: Readings,
}

/// Reads the recorders of a trial, interval by interval.
#[derive(Debug)]
pub struct RecorderReader {
    recorders: Vec<Arc<Recorder>>,
    /// For each recorder and slot: the contents that were read while the slot was still being written.
    copied: Vec<[Copied; SLOTS]>,
    ended: Vec<[[u64; 2]; ENDED]>,
}

impl RecorderReader {
    /// Creates a reader. The recorders must not have any other reader.
    pub fn new(recorders: Vec<Arc<Recorder>>) -> Self {
        let length = recorders.len();
        Self {
            copied: std::iter::repeat_with(Default::default).take(length).collect(),
            ended: vec![[[0; 2]; ENDED]; length],
            recorders,
        }
    }

    /// Adds the recordings since the last reading to `all`, by interval. `now` is the current interval; `last` means
    /// that nothing more is written to the recorders.
    pub fn read_intervals(&mut self, now: u64, last: bool, all: &mut BTreeMap<u64, IntervalAdditions>) {
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
                    slot.clear_slot();
                    slot.state.store(EMPTY, Ordering::Release);
                }
            }
            for (at, previous) in ended.iter_mut().enumerate() {
                let read = |which: usize| recorder.ended[at][which].load(Ordering::Relaxed);
                let new = [read(0) - previous[0], read(1) - previous[1]];
                if new != [0; 2] {
                    // Counters are reused every `ENDED` intervals. Computes the latest interval, at most `now`, that
                    // uses this counter.
                    let back = (now + ENDED as u64 - at as u64) % ENDED as u64;
                    let to = all.entry(now.saturating_sub(back)).or_default();
                    to.ended += new[0] + new[1];
                    to.completed += new[0];
                    *previous = [previous[0] + new[0], previous[1] + new[1]];
                }
            }
            let stragglers = std::mem::take(&mut *recorder.stragglers.lock().unwrap_or_else(PoisonError::into_inner));
            for (interval, more) in stragglers {
                all.entry(interval).or_default().merge_additions(&more);
            }
        }
    }
}

/// Adds the recordings in a slot since `copied`. Latencies are added only if requested.
fn read_slot(slot: &IntervalSlot, copied: &mut Copied, latencies: bool, to: &mut IntervalAdditions) {
    let counts = slot.counts.load_counts();
    fence(Ordering::Acquire);
    let elsewhere = slot.elsewhere.each_ref().map(|count| count.load(Ordering::Relaxed));
    for (to, (now, old)) in to.counts.iter_mut().zip(counts.iter().zip(copied.counts)) {
        *to += now - old;
    }
    copied.counts = counts;
    // If an operation is included in `elsewhere` but not yet in `counts`, the difference is too low by one; the next
    // reading corrects this.
    let [succeeded, others] = [counts[0] + counts[1], counts[2] + counts[3]];
    let here = [succeeded.saturating_sub(elsewhere[0]), others.saturating_sub(elsewhere[1])];
    let new: [u64; 2] = std::array::from_fn(|which| here[which].saturating_sub(copied.here[which]));
    to.ended += new[0] + new[1];
    to.completed += new[0];
    copied.here = [copied.here[0] + new[0], copied.here[1] + new[1]];
    if !latencies {
        return;
    }
    let mut all = Readings::new();
    for (which, table) in slot.tables().into_iter().enumerate() {
        for (id, status, grid) in table.into_iter().flat_map(Table::entries) {
            let mut reading = Reading::default();
            reading.add_grid(grid);
            if reading.count() > 0 {
                all.entry((id, status)).or_default()[which] = reading;
            }
        }
    }
    for (key, now) in &all {
        let to = to.latencies.entry(*key).or_default();
        for (which, (to, now)) in to.iter_mut().zip(now).enumerate() {
            match copied.latencies.get(key) {
                Some(old) => to.merge_reading(&now.subtract_earlier(&old[which])),
                None => to.merge_reading(now),
            }
        }
    }
    copied.latencies = all;
}

#[cfg(test)]
mod tests {
    use loadstone_load::Kind;

    use super::*;
    use crate::recorder::{RecorderShape, StepRecord};
    use crate::sink::StepTimes;
    use loadstone_wire::sink::Sink;

    const SHAPE: RecorderShape =
        RecorderShape { steps: Kind::COUNT, sinks: Vec::new(), open: true, deadline_ns: 500, to_unix_ns: 0 };

    /// Records an operation. `ended_in` is the interval in which the operation finished, if it differs from `interval`.
    fn record_operation(recorder: &Recorder, interval: u64, status: Status, ns: u64, ended_in: Option<u64>) {
        let times = StepTimes { due: 0, sent: 0, done: ns };
        recorder.record_step(StepRecord { id: Kind::Read.step(), status, times, lateness: None, interval });
        recorder.record_operation(interval, status, (1, 1), ns, ended_in.is_some());
        if let Some(other) = ended_in {
            recorder.count_end(other, status);
        }
    }

    /// With a writer that never waits and a reader with varying speed, every interval contains exactly the operations
    /// due in it.
    #[test]
    fn intervals_are_exact_whenever_they_are_read() {
        const EACH: u64 = 500;
        const INTERVALS: u64 = 2_000;
        let shape = RecorderShape { sinks: vec![Sink::HdrNs], ..SHAPE };
        let recorder = Arc::new(Recorder::new(&shape, 1));
        let mut reader = RecorderReader::new(vec![Arc::clone(&recorder)]);
        let (mut all, now) = (BTreeMap::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for i in 0..EACH * INTERVALS {
                    now.store(i / EACH, Ordering::Release);
                    // Some operations finish in a later interval.
                    let late = i % 7 == 0 && i > 3 * EACH;
                    let due_in = i / EACH - if late { 1 + i % 3 } else { 0 };
                    record_operation(&recorder, due_in, Status::Ok, i % 1_000, late.then_some(i / EACH));
                }
            });
            let (mut rounds, mut succeeded) = (0u32, 0);
            while !writer.is_finished() {
                reader.read_intervals(now.load(Ordering::Acquire), false, &mut all);
                let before = std::mem::replace(&mut succeeded, read_totals(&[Arc::clone(&recorder)]).succeeded);
                assert!(succeeded >= before, "{succeeded} after {before}");
                rounds += 1;
                std::thread::sleep(std::time::Duration::from_micros(u64::from(rounds % 5) * 100));
            }
        });
        reader.read_intervals(INTERVALS - 1, true, &mut all);
        let mut expected = BTreeMap::<u64, (u64, u64)>::new();
        for i in 0..EACH * INTERVALS {
            let late = i % 7 == 0 && i > 3 * EACH;
            let counts = expected.entry(i / EACH - if late { 1 + i % 3 } else { 0 }).or_default();
            if i % 1_000 > SHAPE.deadline_ns { counts.1 += 1 } else { counts.0 += 1 }
        }
        let actual: BTreeMap<u64, (u64, u64)> =
            all.iter().map(|(&k, more)| (k, (more.counts[0], more.counts[1]))).collect();
        assert_eq!(actual, expected);
        for (interval, more) in &all {
            let [service, response, lower] = &more.latencies[&(Kind::Read.step(), Status::Ok)];
            let counts = [service.count(), response.count(), lower.count()];
            assert_eq!(counts, [more.counts[0] + more.counts[1]; 3], "interval {interval}");
        }
        let ended = all.values().fold([0, 0], |sum, more| [sum[0] + more.ended, sum[1] + more.completed]);
        assert_eq!(ended, [EACH * INTERVALS; 2]);
        let totals = read_totals(&[recorder]);
        assert_eq!((totals.succeeded, totals.in_window), (EACH * INTERVALS, EACH * INTERVALS));
    }

    /// Operations are counted in the interval in which they were due and in the interval in which they finished, even
    /// after their slot was released.
    #[test]
    fn operations_count_in_the_interval_of_their_end() {
        let recorder = Recorder::new(&SHAPE, 1);
        record_operation(&recorder, 0, Status::Ok, 1, None);
        record_operation(&recorder, 0, Status::Ok, 1, Some(1));
        record_operation(&recorder, 1, Status::Timeout, 1, None);
        // Stragglers: the slot of interval 0 was already released.
        record_operation(&recorder, 0, Status::Ok, 1, None);
        record_operation(&recorder, 0, Status::Timeout, 1, None);
        record_operation(&recorder, 0, Status::Ok, 501, Some(1));
        // An operation of the warm-up, and an operation that finished after the window.
        recorder.count_warm_up(1);
        recorder.count_end(1, Status::Ok);
        recorder.record_operation(1, Status::Ok, (1, 1), 1, true);
        let recorders = [Arc::new(recorder)];
        let mut all = BTreeMap::new();
        RecorderReader::new(recorders.to_vec()).read_intervals(1, true, &mut all);
        assert_eq!((all[&0].counts, all[&0].ended, all[&0].completed), ([3, 1, 1, 0], 3, 2));
        assert_eq!((all[&1].counts, all[&1].ended, all[&1].completed), ([1, 0, 1, 0], 4, 3));
        let totals = read_totals(&recorders);
        assert_eq!((totals.operations, totals.succeeded, totals.in_window), (7, 5, 5));
    }

    #[test]
    fn each_status_is_counted_in_its_category() {
        let recorder = Recorder::new(&SHAPE, 1);
        for (status, ns) in [
            (Status::Ok, 500),
            (Status::Ok, 501),
            (Status::BatchedOk, 1),
            (Status::Timeout, 1),
            (Status::NotFound, 1),
            (Status::NotYet, 1),
        ] {
            record_operation(&recorder, 0, status, ns, None);
        }
        let mut all = BTreeMap::new();
        let recorders = [Arc::new(recorder)];
        RecorderReader::new(recorders.to_vec()).read_intervals(0, true, &mut all);
        assert_eq!((all[&0].counts, all[&0].ended, all[&0].completed), ([2, 1, 2, 1], 6, 3));
        let totals = read_totals(&recorders);
        assert_eq!((totals.succeeded, totals.count_failed(), totals.not_yet, totals.batched), (3, 2, 1, 1));
    }
}
