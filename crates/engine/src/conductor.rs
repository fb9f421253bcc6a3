//! The conductor of a trial: start, measure, stop, sum up.
//!
//! Workers drive clients; the conductor's thread reads their tapes once an interval and hands what it finds to an observer
//! (the events of `trial`, or a door's printer).

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use loadstone_load::pace::Pace;
use loadstone_stores::{Collections, Store};

use crate::clock::{Clock, Monotonic, unix_ns};
use crate::control::{Control, End};
use crate::course::Course;
use crate::observer::{Closed, Moment, Observer};
use crate::spec::TrialSpec;
use crate::tape::{LATE_NS, sent_at_a_rate, totals};
use crate::usage;
use crate::workers::Crew;

/// How long clients may take to finish their last operation after a stop. A store that does not answer must not keep the
/// results from being printed.
const GRACE: Duration = Duration::from_secs(5);
/// The same where nobody waits for the end and a server may be slow: longer than the time limits of most stores, so that
/// what is under way ends as `TIMEOUT`, in a histogram, and not as a note.
const NETWORK_GRACE: Duration = Duration::from_secs(60);

/// How long the conductor sleeps before it looks whether the clients are done.
const SLICE_NS_MIN: u64 = 2_000_000;
const SLICE_NS_MAX: u64 = 20_000_000;

/// The thread that starts, watches and ends a trial; it never stands in a client's way.
#[derive(Debug)]
pub struct Conductor<'a> {
    /// What is run.
    pub spec: &'a TrialSpec,
    /// Operations of this segment, if their number is a limit.
    pub operations: Option<u64>,
    /// The shared state of the clients.
    pub course: &'a Course,
    /// When operations are due, in the open loop.
    pub pace: Option<&'a Pace>,
    /// Who drives the clients.
    pub crew: Crew,
    /// The driver's own cost, ns per operation.
    pub driver_ns: f64,
}

impl Conductor<'_> {
    /// Returns how it ended, and whether every client came home.
    pub fn conduct<S: Store>(
        &mut self,
        controls: &Receiver<Control>,
        observer: &mut dyn Observer,
        store: &S,
    ) -> (End, bool) {
        let clock = Monotonic;
        let mut end = None;
        // Reckoned before the start is set, as that takes a while where arrivals are random.
        let warmup_ns = seconds_ns(self.spec.warmup_seconds);
        let first = self.pace.filter(|_| warmup_ns > 0).map(|pace| pace.first_due_at(warmup_ns));
        let start_ns = match self.wait_for_start(controls) {
            Ok(ns) => ns,
            Err(early) => {
                end = Some(early);
                self.course.interrupt();
                clock.now_ns()
            }
        };
        let mut measure_ns = start_ns + warmup_ns;
        if self.pace.is_some() && end.is_none() {
            self.set_bounds(first, measure_ns);
        }
        self.crew.start(start_ns);
        if end.is_none() {
            end = self.sleep_until(start_ns, controls, store);
        }
        if end.is_none() && measure_ns > start_ns {
            end = self.sleep_until(measure_ns, controls, store);
            if self.pace.is_none() && end.is_none() {
                // However late this thread woke: what is in the window counts, and what counts is in the window.
                measure_ns = clock.now_ns();
                self.course.measure(self.operations);
            }
        }
        let collections = store.collections();
        let (cpu, device) = (usage::cpu_ns(), usage::device_bytes());
        let start_unix_ns = unix_ns().saturating_sub(clock.now_ns().saturating_sub(measure_ns));
        let end_ns = self.end_ns(measure_ns);
        observer.started(&self.moment(measure_ns, measure_ns));
        let mut boundary = measure_ns;
        let step = self.spec.interval_ms * 1_000_000;
        while end.is_none() {
            let next = (boundary + step).min(end_ns.unwrap_or(u64::MAX));
            let early = self.sleep_until(next, controls, store);
            let now = clock.now_ns();
            let over = self.all_done() || end_ns.is_some_and(|ns| now >= ns);
            if early.is_none() && !over {
                observer.interval(&Moment { interval_ns: (boundary, now), ..self.moment(measure_ns, now) });
                boundary = now;
            }
            end = early.or_else(|| over.then_some(End::Done));
        }
        let stop_ns = clock.now_ns();
        match end {
            Some(End::Done) => self.course.stop(),
            _ => self.course.interrupt(),
        }
        // The clients of a store that is gone do not come home.
        let grace = match &end {
            _ if store.lost().is_some() => Duration::ZERO,
            Some(End::Done) if store.networked() => NETWORK_GRACE,
            _ => GRACE,
        };
        let all_home = self.crew.come_home(grace);
        let now = clock.now_ns();
        let end = match (self.course.reason(), self.crew.panic(), end) {
            (Some(reason), ..) => End::Failed(reason.to_owned()),
            (None, Some(words), _) => End::Failed(format!("a client died of a defect of this engine: {words}")),
            (None, None, end) => store.lost().map(End::Failed).or(end).unwrap_or(End::Done),
        };
        let minus = |a: [u64; 2], b: [u64; 2]| [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])];
        let (cpu, device) = (minus(usage::cpu_ns(), cpu), minus(usage::device_bytes(), device));
        let moment = Moment { interval_ns: (boundary, now), ..self.moment(measure_ns, now) };
        // A trial that was stopped before it measured has no interval.
        if now > boundary {
            observer.stopped(&moment);
        }
        // Only a trial that came to its end is worth waiting for; after a stop somebody waits for us.
        let settle = (self.spec.settle && all_home && end == End::Done).then(|| {
            let settling = Instant::now();
            // A store that cannot become idle says so when it is closed or opened next; the results stand.
            let _ = store.settle();
            settling.elapsed()
        });
        let over_ns = end_ns.map_or(stop_ns, |ns| ns.min(stop_ns));
        // In an open loop that ended by time, time without operations is part of the window; so it is where clients got
        // no answer any more, or a store that hangs would be the faster the earlier it does.
        let idle = self.course.reached_end() && end == End::Done;
        let answered_ns = moment.totals.last_done_ns;
        let last_ns = if idle || moment.totals.in_flight > 0 { answered_ns.max(over_ns) } else { answered_ns };
        // Who is stopped early is not blamed for what he had only just become late for.
        let horizon_ns = if end == End::Done { over_ns } else { over_ns.saturating_sub(LATE_NS) };
        let unsent = self.unsent(start_ns, measure_ns, horizon_ns);
        observer.end(&Closed {
            measured_ns: last_ns.saturating_sub(measure_ns),
            window_ns: now.saturating_sub(measure_ns),
            moment,
            end: end.clone(),
            start_unix_ns,
            unsent,
            cpu_ns: cpu,
            device_bytes: device,
            driver_ns: self.driver_ns,
            settle,
            embedded: !store.networked(),
            collections: since(store.collections(), &collections),
            open: self.pace.is_some(),
        });
        (end, all_home)
    }

    /// Whether every operation is done. Clients that only found the end of the time ahead of them do not end it early.
    fn all_done(&self) -> bool {
        self.crew.finished() && !self.course.reached_end()
    }

    fn moment(&self, start_ns: u64, now: u64) -> Moment<'_> {
        Moment {
            tapes: self.crew.tapes(),
            course: self.course,
            start_ns,
            interval_ns: (start_ns, now),
            totals: totals(self.crew.tapes()),
            operations: self.operations,
        }
    }

    fn wait_for_start(&self, controls: &Receiver<Control>) -> Result<u64, End> {
        let soon = || Monotonic.now_ns() + 1_000_000;
        if !self.spec.wait_for_start {
            return Ok(soon());
        }
        match controls.recv() {
            Ok(Control::StartAt(unix)) => Ok(Monotonic.now_ns() + unix.saturating_sub(unix_ns())),
            Ok(Control::Stop(why)) => Err(End::Stopped(why)),
            Ok(Control::LeaseLost(why)) => Err(End::Lease(why)),
            Err(_) => Ok(soon()),
        }
    }

    /// Sleeps until `ns`, a control, the loss of the store, or until every client has finished.
    fn sleep_until<S: Store>(&self, ns: u64, controls: &Receiver<Control>, store: &S) -> Option<End> {
        let start = Monotonic.now_ns();
        loop {
            let now = Monotonic.now_ns();
            if now >= ns || self.all_done() {
                return None;
            }
            if let Some(why) = store.lost() {
                return Some(End::Failed(why));
            }
            // Short enough to notice the end of a short run at once; long enough that in a long one waking costs nothing.
            let slice = (now.saturating_sub(start) / 50).clamp(SLICE_NS_MIN, SLICE_NS_MAX);
            let wait = Duration::from_nanos((ns - now).min(slice));
            match controls.recv_timeout(wait) {
                Ok(Control::Stop(why)) => return Some(End::Stopped(why)),
                Ok(Control::LeaseLost(why)) => return Some(End::Lease(why)),
                Ok(Control::StartAt(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(wait),
            }
        }
    }

    /// When a trial that measures from `measure_ns` on is over, if its time is limited.
    fn end_ns(&self, measure_ns: u64) -> Option<u64> {
        self.spec.until.seconds.map(|s| measure_ns.saturating_add(seconds_ns(s)))
    }

    /// Says which operations of an open loop count, from index `first` on if there is a warm-up, and from when on none is
    /// sent. It is said before the clients are let go: their first claims may lie beyond the end already.
    fn set_bounds(&self, first: Option<u64>, measure_ns: u64) {
        if let Some(index) = first {
            let before = self.spec.segment.share(index);
            let limit = self.operations.map_or(u64::MAX, |steps| before.saturating_add(steps));
            self.course.measure_from_index(index, limit);
        }
        if let Some(ns) = self.end_ns(measure_ns) {
            self.course.end_at(ns);
        }
    }

    /// Operations that were due from `measure_ns` to `horizon_ns` and never sent: left out of the histograms, so they must be
    /// told.
    fn unsent(&self, start_ns: u64, measure_ns: u64, horizon_ns: u64) -> u64 {
        let Some(pace) = self.pace else { return 0 };
        let due_until = |ns: u64| self.spec.segment.share(pace.first_due_at(ns.saturating_sub(start_ns)));
        let due = due_until(horizon_ns).saturating_sub(due_until(measure_ns));
        due.min(self.operations.unwrap_or(u64::MAX)).saturating_sub(sent_at_a_rate(self.crew.tapes()))
    }
}

/// What each collector did after `before`.
fn since(mut now: Vec<Collections>, before: &[Collections]) -> Vec<Collections> {
    for own in &mut now {
        if let Some(earlier) = before.iter().find(|earlier| earlier.collector == own.collector) {
            own.count = own.count.saturating_sub(earlier.count);
            own.time_ms = own.time_ms.saturating_sub(earlier.time_ms);
        }
    }
    now
}

fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
