//! One trial: open, connect, start, measure, stop, sum up.
//!
//! Workers drive clients; this thread, the conductor, reads their tapes once an interval and hands what it finds to an
//! observer (the events of `trial`, or a door's printer). It never stands in a client's way.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use loadstone_load::Workload;
use loadstone_load::pace::Pace;
use loadstone_stores::{Collections, Options, Promise, Store};

use crate::clock::{Clock, Monotonic, unix_ns};
use crate::course::{Acks, Course};
use crate::error::EngineError;
use crate::spec::{Phase, TrialSpec};
use crate::tape::{Tape, Totals, totals};
use crate::usage;
use crate::workers::{Crew, Job};

/// How long clients may take to finish their last operation after a stop. A store that does not answer must not keep the
/// results from being printed.
const GRACE: Duration = Duration::from_secs(5);
/// The same where nobody waits for the end and a server may be slow: longer than the time limits of most stores, so that
/// what is under way ends as `TIMEOUT`, in a histogram, and not as a note.
const NETWORK_GRACE: Duration = Duration::from_secs(60);

/// How long the conductor sleeps before it looks whether the clients are done.
const SLICE_NS_MIN: u64 = 2_000_000;
const SLICE_NS_MAX: u64 = 20_000_000;

/// The reason of an end by signal.
pub const INTERRUPTED: &str = "interrupted";

/// What tells the conductor from outside what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Start the load at this Unix time, ns.
    StartAt(u64),
    /// End it now: `stopped`.
    Stop(String),
    /// The lab went away: `lease`.
    LeaseLost(String),
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By its own limits.
    Done,
    /// By a control line or a signal.
    Stopped(String),
    /// Because the lab went away.
    Lease(String),
    /// Because it could not go on.
    Failed(String),
}

impl End {
    /// The exit code, failed operations aside.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped(why) if why == INTERRUPTED => 130,
            Self::Done | Self::Stopped(_) => 0,
            Self::Lease(_) | Self::Failed(_) => 1,
        }
    }
}

/// What an observer sees while the trial runs and after it.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The tapes of all workers.
    pub tapes: &'a [Arc<Tape>],
    /// The shared state of the clients.
    pub course: &'a Course,
    /// Start of measuring, ns on the monotonic clock.
    pub start_ns: u64,
    /// Start of this interval, and now; ns on the monotonic clock.
    pub interval_ns: (u64, u64),
    /// Totals now.
    pub totals: Totals,
    /// Operations of the segment, if their number is the limit.
    pub operations: Option<u64>,
}

/// What is known when the store is open and every session connected.
#[derive(Debug)]
pub struct Opened<'a> {
    /// The spec.
    pub spec: &'a TrialSpec,
    /// What the store promises.
    pub promise: &'a Promise,
    /// Clients of this segment.
    pub clients: u64,
    /// The driver's own cost, ns per operation.
    pub driver_ns: f64,
    /// How long it took.
    pub connect: Duration,
}

/// What is known at the end.
#[derive(Debug)]
pub struct Closed<'a> {
    /// The last moment.
    pub moment: Moment<'a>,
    /// How it ended.
    pub end: End,
    /// Start of measuring, Unix ns.
    pub start_unix_ns: u64,
    /// From the start of measuring to the end of the last measured operation.
    pub measured_ns: u64,
    /// From the start of measuring until all clients were home; what `cpu_ns` and `device_bytes` cover.
    pub window_ns: u64,
    /// Operations due and never sent.
    pub unsent: u64,
    /// CPU time while measuring, ns: user, system.
    pub cpu_ns: [u64; 2],
    /// Device bytes while measuring: read, written.
    pub device_bytes: [u64; 2],
    /// Mean service time and driver cost tell our share of the run.
    pub driver_ns: f64,
    /// How long the store took to become idle, if asked for.
    pub settle: Option<Duration>,
    /// Whether the store works within this process.
    pub embedded: bool,
    /// What garbage collectors of this process did while measuring.
    pub collections: Vec<Collections>,
    /// Whether a rate was set.
    pub open: bool,
}

/// Sees a trial run.
pub trait Observer {
    /// The store is open, every session connected.
    fn ready(&mut self, opened: &Opened<'_>);
    /// The load starts.
    fn started(&mut self, _moment: &Moment<'_>) {}
    /// An interval has passed. Not called while warming up.
    fn interval(&mut self, moment: &Moment<'_>);
    /// The last interval, shorter than the others, is over: all clients are home, the store is not yet settled.
    fn stopped(&mut self, moment: &Moment<'_>) {
        self.interval(moment);
    }
    /// The end. Called once if `ready` was.
    fn end(&mut self, closed: &Closed<'_>);
}

/// Runs a trial on a store of type `S`.
pub fn run<S: Store, W: Workload + 'static>(
    spec: &TrialSpec,
    workload: W,
    controls: &Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<End, EngineError> {
    crate::clock::calibrate();
    let connecting = Instant::now();
    let workload = Arc::new(workload);
    let pace = Pace::new(&spec.pace, spec.seed).map_err(EngineError::usage)?;
    let driver_ns = crate::calibrate::driver_ns(&*workload, spec.seed);
    let clients = spec.segment.share(spec.clients);
    let store = S::open(&Options {
        properties: spec.store.properties.clone(),
        durability: spec.store.durability.into(),
        table: spec.workload.table().to_owned(),
        create: spec.creates(),
        clients: clients as usize,
    })?;
    let promise = store.promise();
    let operations = [spec.until.operations, workload.operations()].into_iter().flatten().min();
    let course = Course::new(spec.segment, operations.map_or(u64::MAX, |n| spec.segment.share(n)));
    if spec.warmup_seconds > 0.0 {
        course.warm_up();
    }
    let job = Job {
        store: Arc::new(store),
        workload: Arc::clone(&workload),
        course: Arc::new(course),
        pace: pace.map(Arc::new),
        acks: (spec.phase == Phase::Run).then(|| Arc::new(Acks::new())),
        spec: Arc::new(spec.clone()),
    };
    let course = Arc::clone(&job.course);
    let pace = job.pace.clone();
    let keep = Arc::clone(&job.store);
    let crew = Crew::hire(&job, clients)?;
    drop(job);
    observer.ready(&Opened { spec, promise: &promise, clients, driver_ns, connect: connecting.elapsed() });
    let operations = operations.map(|n| spec.segment.share(n));
    let mut conductor = Conductor { spec, operations, course: &course, pace: pace.as_deref(), crew, driver_ns };
    let (end, all_home) = conductor.conduct(controls, observer, &*keep);
    if all_home {
        let closed = Arc::try_unwrap(keep).map_or(Ok(()), Store::close);
        // What stopped a trial is told, not what closing the store then ran into.
        if !matches!(end, End::Failed(_)) {
            closed?;
        }
        return Ok(end);
    }
    // A client still sits in a call of the store: closing under it would crash, so the process ends without.
    std::mem::forget(keep);
    Ok(end)
}

struct Conductor<'a> {
    spec: &'a TrialSpec,
    /// Operations of this segment, if their number is a limit.
    operations: Option<u64>,
    course: &'a Course,
    pace: Option<&'a Pace>,
    crew: Crew,
    driver_ns: f64,
}

impl Conductor<'_> {
    /// Returns how it ended, and whether every client came home.
    fn conduct<S: Store>(
        &mut self,
        controls: &Receiver<Control>,
        observer: &mut dyn Observer,
        store: &S,
    ) -> (End, bool) {
        let clock = Monotonic;
        let mut end = None;
        let start_ns = match self.wait_for_start(controls) {
            Ok(ns) => ns,
            Err(early) => {
                end = Some(early);
                self.course.stop();
                clock.now_ns()
            }
        };
        self.crew.start(start_ns);
        if end.is_none() {
            end = self.sleep_until(start_ns, controls, store);
        }
        let measure_ns = start_ns + seconds_ns(self.spec.warmup_seconds);
        if end.is_none() && measure_ns > start_ns {
            end = self.warm_up(start_ns, measure_ns, controls, store);
        }
        let collections = store.collections();
        let (cpu, device) = (usage::cpu_ns(), usage::device_bytes());
        let start_unix_ns = unix_ns().saturating_sub(clock.now_ns().saturating_sub(measure_ns));
        let end_ns = self.spec.until.seconds.map(|s| measure_ns.saturating_add(seconds_ns(s)));
        if let (Some(end_ns), Some(_)) = (end_ns, self.pace) {
            self.course.end_at(end_ns);
        }
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
        let unsent = self.unsent(start_ns, measure_ns, end_ns, clock.now_ns());
        self.course.stop();
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
        let last_ns = match end_ns {
            // In an open loop that ended by time, time without operations is part of the window.
            Some(ns) if self.course.reached_end() && end == End::Done => moment.totals.last_done_ns.max(ns),
            _ => moment.totals.last_done_ns,
        };
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

    /// Runs unmeasured until `measure_ns`. In the open loop arithmetic says which index is the first that counts.
    fn warm_up<S: Store>(
        &self,
        start_ns: u64,
        measure_ns: u64,
        controls: &Receiver<Control>,
        store: &S,
    ) -> Option<End> {
        let segment = self.spec.segment;
        let steps = self.operations;
        if let Some(pace) = self.pace {
            let index = pace.first_due_at(measure_ns - start_ns);
            let before = segment.share(index);
            let limit = steps.map_or(u64::MAX, |steps| before.saturating_add(steps));
            self.course.measure_from_index(index, limit);
        }
        let early = self.sleep_until(measure_ns, controls, store);
        if self.pace.is_none() && early.is_none() {
            self.course.measure(steps);
        }
        early
    }

    /// Operations that were due in the measured window and never sent: left out of the histograms, so they must be told.
    fn unsent(&self, start_ns: u64, measure_ns: u64, end_ns: Option<u64>, now: u64) -> u64 {
        let (Some(pace), Some(end_ns)) = (self.pace, end_ns) else { return 0 };
        let due_until = |ns: u64| self.spec.segment.share(pace.first_due_at(ns.saturating_sub(start_ns)));
        let first = due_until(measure_ns);
        let last = due_until(end_ns.min(now)).min(first.saturating_add(self.operations.unwrap_or(u64::MAX)));
        last.saturating_sub(self.course.claimed().max(first))
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

impl TrialSpec {
    /// Whether a missing database may be made: by a load, and by a run that does nothing but insert.
    fn creates(&self) -> bool {
        use crate::spec::WorkloadSpec;
        let only_inserts = match &self.workload {
            WorkloadSpec::Core(core) => {
                let mix = core.mix;
                mix.insert > 0.0
                    && [mix.read, mix.update, mix.scan, mix.read_modify_write, mix.delete].iter().all(|&p| p <= 0.0)
            }
            WorkloadSpec::TimeSeries(_) => true,
        };
        self.phase == Phase::Load || only_inserts
    }
}
