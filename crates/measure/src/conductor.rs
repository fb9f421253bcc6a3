//! The conductor starts a trial, reads the recorders, stops the trial, and adds up the results.
//!
//! Clients know the borders and observe them without the conductor. The conductor's thread wakes every few
//! milliseconds, reads the recorders once per interval, and passes the results to an observer (which prints the events
//! of `trial`, or the output of a front end).

mod collections;
mod unfinished;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use loadstone_session::ConnectionAttempts;
use loadstone_session::erased::OpenStore;

use crate::borders::{Borders, NEVER};
use crate::clock::{self, Clock, Monotonic, unix_ns};
use crate::control::{Control, End, TrialFailure, receive_start};
use crate::observer::{Closed, Interval, Moment, Observer, ThreadUse};
use crate::pulse::Pulse;
use crate::recorder::reader::{IntervalAdditions, Readings, RecorderReader, read_totals};
use crate::task::{Task, WorkKind};
use crate::usage;
use crate::window::{Ending, build_window};
use crate::worker_threads::WorkerThreads;
use loadstone_wire::spec::TrialSpec;

/// Time in which clients can finish their last operation after a stop. A store that does not answer must not prevent
/// the results from being printed.
const GRACE: Duration = Duration::from_secs(5);
/// The grace period at the end of a trial with a server, which may be slow. It is longer than the timeouts of most
/// stores, so that operations in flight are recorded in a histogram as `TIMEOUT`, rather than as censored.
const NETWORK_GRACE: Duration = Duration::from_secs(60);

/// Time between comparisons with the kernel's clock, ns.
const COMPARE_NS: u64 = 1_000_000_000;

/// Starts, monitors and ends a trial on a separate thread. It never blocks a client.
#[derive(Debug)]
pub struct Conductor<'a> {
    spec: &'a TrialSpec,
    /// Maximum number of operations in this segment, if limited.
    operations: Option<u64>,
    task: &'a Task<dyn WorkKind>,
    workers: WorkerThreads,
    reader: RecorderReader,
    /// The driver's own cost, ns per operation.
    driver_ns: f64,
    /// Time of the next comparison with the kernel's clock, ns.
    compare_at_ns: u64,
    /// Time at which the next tick of the work is due, ns.
    tick_at_ns: u64,
    /// Readings that have not been reported yet, by interval.
    pending: BTreeMap<u64, IntervalAdditions>,
    /// All latencies read so far.
    latencies: Readings,
}

/// The resources that were used before the start of the window.
struct Used {
    cpu_ns: [u64; 2],
    device_bytes: [u64; 2],
    connection_attempts: ConnectionAttempts,
    /// For each thread: CPU time, and time for which it was paused.
    threads_ns: Vec<[u64; 2]>,
    at_ns: u64,
}

impl<'a> Conductor<'a> {
    /// A conductor for workers that are waiting to be released.
    pub fn new(
        spec: &'a TrialSpec,
        operations: Option<u64>,
        task: &'a Task<dyn WorkKind>,
        workers: WorkerThreads,
        driver_ns: f64,
    ) -> Self {
        Self {
            reader: RecorderReader::new(workers.recorders.clone()),
            spec,
            operations,
            task,
            workers,
            driver_ns,
            compare_at_ns: 0,
            tick_at_ns: 0,
            pending: BTreeMap::new(),
            latencies: Readings::new(),
        }
    }

    /// Runs the trial. Returns how the trial ended, and whether every client has stopped.
    pub fn conduct_trial(
        &mut self,
        plan: Borders,
        controls: &Receiver<Control>,
        observer: &mut dyn Observer,
        store: &Arc<dyn OpenStore>,
    ) -> (End, bool) {
        let pulse = Arc::clone(&self.workers.conductor);
        let beating = pulse.begin_beating();
        let (borders, mut end) = match self.wait_for_start(controls) {
            Ok(start_ns) => (plan.starting_at(start_ns), None),
            Err(early) => {
                self.task.scheduler.halt_trial();
                (plan.starting_at(Monotonic.now_ns()), Some(early))
            }
        };
        self.announce_window(&borders);
        // The bytes are read before any client writes: without a warm-up, everything that clients do before this thread
        // wakes again is counted.
        let device_bytes = usage::device_bytes();
        self.workers.release_workers(Some(borders));
        let refused = end.is_some();
        if end.is_none() {
            end = self.sleep_until(borders.first_ns, &borders, &pulse, controls, &**store);
        }
        let collections = collections::Asked::send_request(store);
        let mut used = self.read_usage(&pulse, &**store);
        if borders.first_ns == borders.start_ns {
            used.device_bytes = device_bytes;
        }
        let start_unix_ns = unix_ns().wrapping_add(borders.first_ns).wrapping_sub(Monotonic.now_ns());
        observer.begin_window(&self.moment(borders));
        let (mut number, mut satisfied) = (0, false);
        while end.is_none() {
            let boundary = borders.interval_end(number);
            let early = self.sleep_until(boundary, &borders, &pulse, controls, &**store);
            let over = self.all_done() || Monotonic.now_ns() >= borders.end_ns;
            if early.is_none() && !over {
                self.read_recorders(&borders, false);
                self.report_interval(&borders, number, boundary, observer);
                number += 1;
                satisfied = observer.is_satisfied();
            }
            end = early.or_else(|| (over || satisfied).then_some(End::Done));
        }
        let at_stop = read_totals(&self.workers.recorders);
        let stop_ns = if refused { borders.start_ns } else { Monotonic.now_ns() };
        let threads = self.thread_uses(&pulse, &used);
        if satisfied || end != Some(End::Done) {
            self.task.scheduler.halt_trial();
        }
        self.tick_kind();
        let all_ended = self.drain_clients(&borders, end.as_ref(), &**store);
        if all_ended {
            self.task.work.end_trial(self.task.scheduler.count_claimed(), Monotonic.now_ns());
        }
        let now = Monotonic.now_ns();
        let end = self.find_failure(&**store).map(End::Failed).or(end).unwrap_or(End::Done);
        let ending = match &end {
            End::Done if satisfied => Ending::Stopped { at_ns: stop_ns, completed: at_stop.in_window },
            End::Done if self.task.scheduler.is_exhausted() || stop_ns >= borders.end_ns => Ending::Time,
            End::Done => Ending::Count,
            _ => Ending::Stopped { at_ns: stop_ns, completed: at_stop.in_window },
        };
        let held_ns = self.pause_ns(&pulse, &used);
        let (censored, due) = self.collect_censored(&borders, ending, now, held_ns);
        let carried = self.collect_carried(&borders, now);
        let window = build_window(&borders, ending, &read_totals(&self.workers.recorders), due);
        let last_ns = borders.first_ns.saturating_add(window.length_ns);
        self.read_recorders(&borders, true);
        self.report_rest(&borders, number, last_ns.min(borders.end_ns), observer);
        let cpu_ns = usage::subtract_times(usage::cpu_ns(), used.cpu_ns);
        let device_bytes = usage::subtract_times(usage::device_bytes(), used.device_bytes);
        drop(beating);
        // This is done only after a complete trial, because after a stop the user is waiting for the results.
        let settle = (self.spec.settle && all_ended && end == End::Done).then(|| settle_store(&**store));
        observer.report_end(&Closed {
            moment: self.moment(borders),
            end: end.clone(),
            start_unix_ns,
            window,
            due,
            censored,
            carried,
            notes: self.task.work.closing_notes(),
            sections: self.task.work.summary_sections(start_unix_ns.wrapping_sub(borders.first_ns)),
            latencies: &self.latencies,
            cpu_ns,
            device_bytes,
            threads,
            clock: clock::compare_clocks(),
            driver_ns: self.driver_ns,
            settle,
            embedded: !store.is_networked(),
            collections: collections::collections_since(collections, store),
            connection_attempts: store.connection_attempts().map(|attempts| attempts.since(used.connection_attempts)),
            server_events: store.server_events(),
            open: self.task.pace.is_some(),
        });
        (end, all_ended)
    }

    /// The failure that ended the trial: of an operation, of a client's thread, or of the store.
    fn find_failure(&self, store: &dyn OpenStore) -> Option<TrialFailure> {
        let panic = || self.workers.panic.as_ref().map(|message| TrialFailure::ClientPanicked(message.to_owned()));
        let loss = || store.describe_loss().map(TrialFailure::StoreLost);
        self.task.scheduler.failure().cloned().or_else(panic).or_else(loss)
    }

    /// Records the times of the trial just before it starts.
    fn announce_window(&self, borders: &Borders) {
        self.task.scheduler.set_end(borders.end_ns);
        self.task.work.start_trial(borders.start_ns, unix_ns().wrapping_sub(Monotonic.now_ns()));
    }

    /// Whether every operation has finished. Clients that stopped because no further operation is due in time do not
    /// end the trial early.
    fn all_done(&self) -> bool {
        self.workers.is_finished() && !self.task.scheduler.is_exhausted()
    }

    fn moment(&self, borders: Borders) -> Moment<'_> {
        Moment {
            recorders: &self.workers.recorders,
            failures: &self.task.failures,
            borders,
            totals: read_totals(&self.workers.recorders),
            operations: self.operations,
        }
    }

    /// The time at which the load must start, on the monotonic clock.
    fn wait_for_start(&self, controls: &Receiver<Control>) -> Result<u64, End> {
        let ahead_ns = if self.spec.wait_for_start { receive_start(controls)? } else { 1_000_000 };
        Ok(Monotonic.now_ns().saturating_add(ahead_ns))
    }

    /// Sleeps until `ns`, until a control ends the trial, until the store is lost, or until every operation has
    /// finished. Returns the end if a control or the loss of the store caused it.
    fn sleep_until(
        &mut self,
        ns: u64,
        borders: &Borders,
        pulse: &Pulse,
        controls: &Receiver<Control>,
        store: &dyn OpenStore,
    ) -> Option<End> {
        loop {
            let now = Monotonic.now_ns();
            if now >= ns || self.all_done() {
                return None;
            }
            if let Some(why) = store.describe_loss() {
                return Some(End::Failed(TrialFailure::StoreLost(why)));
            }
            if now >= self.compare_at_ns {
                self.compare_at_ns = now + COMPARE_NS;
                let _ = clock::compare_clocks();
            }
            if now >= self.tick_at_ns {
                self.tick_kind();
            }
            let wait = (ns.min(self.tick_at_ns) - now).min(pulse.tick_ns);
            // Polls and sleeps instead of waiting on the channel, which would spin and yield before it sleeps, hundreds
            // of times a second.
            pulse.expect_beat(now + wait);
            match controls.try_recv() {
                Ok(control) => {
                    if let Some(end) = control.find_end() {
                        return Some(end);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                    std::thread::sleep(Duration::from_nanos(wait));
                    pulse.record_beat(borders, now + wait, Monotonic.now_ns());
                }
            }
        }
    }

    /// Passes the number of claimed operations to the work.
    fn tick_kind(&mut self) {
        let claimed = self.task.scheduler.count_claimed();
        self.tick_at_ns = self.task.work.tick(claimed, Monotonic.now_ns(), self.workers.conductor.tick_ns);
    }

    /// Waits for the clients after the end. Returns `false` if a client has not stopped within the grace period.
    fn drain_clients(&mut self, borders: &Borders, end: Option<&End>, store: &dyn OpenStore) -> bool {
        let overdue = match end {
            Some(End::Done) if borders.cutoff_ns != NEVER => {
                Duration::from_nanos(borders.cutoff_ns.saturating_sub(Monotonic.now_ns()))
            }
            _ => Duration::ZERO,
        };
        let grace = match end {
            Some(End::Done) if store.is_networked() => NETWORK_GRACE,
            _ => GRACE,
        };
        self.workers.join_workers(borders, overdue + grace, || store.describe_loss().is_some())
    }

    fn read_recorders(&mut self, borders: &Borders, last: bool) {
        let now = borders.interval(Monotonic.now_ns().min(borders.end_ns - 1));
        let mut new = BTreeMap::new();
        self.reader.read_intervals(now, last, &mut new);
        for (number, additions) in new {
            for (key, latencies) in &additions.latencies {
                let all = self.latencies.entry(*key).or_default();
                all.iter_mut().zip(latencies).for_each(|(all, new)| all.merge_reading(new));
            }
            self.pending.entry(number).or_default().merge_additions(&additions);
        }
    }

    /// Reports interval `number`, which ends at `until_ns`, and late additions to earlier intervals.
    fn report_interval(&mut self, borders: &Borders, number: u64, until_ns: u64, observer: &mut dyn Observer) {
        let later = self.pending.split_off(&(number + 1));
        let additions = self.pending.remove(&number).unwrap_or_default();
        let earlier: Vec<(u64, IntervalAdditions)> =
            std::mem::replace(&mut self.pending, later).into_iter().filter(|(_, more)| !more.is_empty()).collect();
        let from_ns = borders.first_ns + number * borders.interval_ns;
        let pace = self.task.pace.as_ref();
        let due = pace.map(|pace| borders.count_due(pace, self.spec.segment, from_ns, until_ns));
        let interval = Interval {
            number,
            start_ns: from_ns - borders.first_ns,
            length_ns: until_ns.saturating_sub(from_ns),
            due,
            additions: &additions,
            earlier: &earlier,
        };
        observer.report_interval(&self.moment(*borders), &interval);
    }

    /// Reports the remaining intervals up to `last_ns`, after the wait for the clients. `number` is the next interval.
    fn report_rest(&mut self, borders: &Borders, mut number: u64, last_ns: u64, observer: &mut dyn Observer) {
        // A trial that was stopped before its window has no intervals.
        if last_ns <= borders.first_ns {
            return;
        }
        let last = borders.interval(last_ns - 1);
        // Operations that were sent before a stop may finish in intervals that the stopped trial does not have.
        drop(self.pending.split_off(&(last + 1)));
        while number < last {
            self.report_interval(borders, number, borders.interval_end(number), observer);
            number += 1;
        }
        self.report_interval(borders, number, last_ns, observer);
    }

    fn read_usage(&self, pulse: &Pulse, store: &dyn OpenStore) -> Used {
        Used {
            connection_attempts: store.connection_attempts().unwrap_or_default(),
            cpu_ns: usage::cpu_ns(),
            device_bytes: usage::device_bytes(),
            threads_ns: self.pulses(pulse).map(|pulse| [pulse.cpu_ns(), pulse.pause_ns(Monotonic.now_ns())]).collect(),
            at_ns: Monotonic.now_ns(),
        }
    }

    /// The pulses of the executors, followed by the conductor's pulse.
    fn pulses<'p>(&'p self, conductor: &'p Pulse) -> impl Iterator<Item = &'p Pulse> {
        self.workers.pulses.iter().map(|pulse| &**pulse).chain([conductor])
    }

    /// The largest total pause of any of the engine's threads since `before`, ns: an upper bound.
    fn pause_ns(&self, pulse: &Pulse, before: &Used) -> u64 {
        let now = Monotonic.now_ns();
        let threads = self.pulses(pulse).zip(&before.threads_ns);
        threads.map(|(pulse, earlier)| pulse.pause_ns(now).saturating_sub(earlier[1])).max().unwrap_or_default()
    }

    fn thread_uses(&self, pulse: &Pulse, before: &Used) -> Vec<ThreadUse> {
        let wall_ns = Monotonic.now_ns().saturating_sub(before.at_ns);
        self.pulses(pulse)
            .zip(&before.threads_ns)
            .map(|(pulse, earlier)| ThreadUse {
                name: pulse.name.clone(),
                clients: pulse.clients,
                cpu_ns: pulse.cpu_ns().saturating_sub(earlier[0]),
                wall_ns,
                lag: pulse.reading(),
                held_ns: pulse.pause_ns(Monotonic.now_ns()).saturating_sub(earlier[1]),
            })
            .collect()
    }
}

/// Waits until the store is idle, and returns the time that this took. A store that cannot become idle reports an error
/// when it is closed or next opened; the results remain valid.
fn settle_store(store: &dyn OpenStore) -> Duration {
    let settling = Instant::now();
    let _ = store.settle();
    settling.elapsed()
}
