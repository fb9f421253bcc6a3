//! The data about a trial that an observer receives, while the trial runs and at its end.

use std::sync::Arc;
use std::time::Duration;

use loadstone_load::StepId;
use loadstone_load::histogram::Reading;
use loadstone_session::session::ServerEvent;
use loadstone_session::{Collections, ConnectionAttempts, Guarantee};

use crate::borders::Borders;
use crate::control::End;
use crate::failures::Failures;
use crate::recorder::Recorder;
use crate::recorder::reader::{IntervalAdditions, Latencies, Readings, Totals};
use crate::tsc::Agreement;
use crate::window::Window;
use loadstone_wire::event::{Carried, Note, Sections};
use loadstone_wire::spec::TrialSpec;

/// The state of a trial while it runs and at its end.
#[derive(Debug)]
pub struct Moment<'a> {
    pub recorders: &'a [Arc<Recorder>],
    /// Error messages of failures.
    pub failures: &'a Failures,
    /// The borders, on the monotonic clock.
    pub borders: Borders,
    pub totals: Totals,
    /// Number of operations of the segment, if it is limited.
    pub operations: Option<u64>,
}

/// One interval of the window.
#[derive(Debug)]
pub struct Interval<'a> {
    /// The number of the interval, from 0.
    pub number: u64,
    /// Start of the interval, ns after the first counted time.
    pub start_ns: u64,
    /// Length of the interval, ns.
    pub length_ns: u64,
    /// Number of operations due in the interval, with a rate.
    pub due: Option<u64>,
    /// The operations recorded in this interval so far.
    pub additions: &'a IntervalAdditions,
    /// Later additions to earlier intervals, by interval number.
    pub earlier: &'a [(u64, IntervalAdditions)],
}

/// The data available once the store is open and every session is connected.
#[derive(Debug)]
pub struct OpenedTrial<'a> {
    pub spec: &'a TrialSpec,
    /// The guarantee of the store.
    pub guarantee: &'a Guarantee,
    pub steps: &'static [&'static str],
    /// Number of clients of this segment.
    pub clients: u64,
    /// The driver's own cost, ns per operation.
    pub driver_ns: f64,
    /// Notes for the user before the trial starts.
    pub notes: &'a [Note],
    /// Time until every session was connected, including the probe of the driver's own cost.
    pub connect: Duration,
}

/// Operations whose completion was not observed: only a lower bound of their latency is known.
#[derive(Clone, Debug, Default)]
pub struct Censored {
    /// Number of operations that were sent but not answered.
    pub unanswered: u64,
    /// Number of operations that were due but never sent.
    pub unsent: u64,
    /// By step: lower bounds of the service times of operations that were sent; lower bounds of the response times of
    /// all operations; and the latter minus the time for which the engine was paused.
    pub bounds: std::collections::BTreeMap<StepId, Latencies>,
}

/// Resource use and lateness of one thread of the engine.
#[derive(Clone, Debug)]
pub struct ThreadUse {
    pub name: String,
    /// Number of clients that the thread serves.
    pub clients: u64,
    /// CPU time during the window, ns.
    pub cpu_ns: u64,
    /// Time for which the thread was observed, ns.
    pub wall_ns: u64,
    /// Lateness of the thread's ticks, ns.
    pub lag: Reading,
    /// Upper bound of the time during which the thread was ready to run but had no processor, ns.
    pub held_ns: u64,
}

impl ThreadUse {
    /// The share of time for which the thread was busy.
    pub fn busy(&self) -> f64 {
        (self.cpu_ns as f64 / self.wall_ns.max(1) as f64).min(1.0)
    }
}

/// The data available at the end of a trial.
#[derive(Debug)]
pub struct Closed<'a> {
    pub moment: Moment<'a>,
    pub end: End,
    /// The first counted time, ns since the Unix epoch.
    pub start_unix_ns: u64,
    /// The numerator and the denominator of throughput.
    pub window: Window,
    /// Number of operations due in the window, with a rate.
    pub due: Option<u64>,
    /// Operations whose completion was not observed.
    pub censored: Censored,
    /// The sections that the workload kind adds to the summary.
    pub sections: Sections,
    /// The notes of the workload kind.
    pub notes: Vec<Note>,
    /// Operations of the warm-up that had not completed when the window began.
    pub carried: Carried,
    /// Latencies of all counted operations, if they are recorded.
    pub latencies: &'a Readings,
    /// CPU time while measuring, ns: user time, then system time.
    pub cpu_ns: [u64; 2],
    /// Bytes read from devices, and bytes of pages dirtied or written with direct I/O, while measuring.
    pub device_bytes: [u64; 2],
    /// The engine's threads that serve many clients, and the conductor.
    pub threads: Vec<ThreadUse>,
    /// Agreement of the clock with the kernel's clock; `None` if the trial uses the kernel's clock.
    pub clock: Option<Agreement>,
    /// The driver's own cost, ns per operation. Together with the mean service time, it gives the engine's share of the
    /// run.
    pub driver_ns: f64,
    /// Time that the store took to become idle, if `settle` was set and the trial was complete.
    pub settle: Option<Duration>,
    /// Whether the store runs in this process.
    pub embedded: bool,
    /// Garbage collections in this process while measuring.
    pub collections: Vec<Collections>,
    /// Attempts to connect while measuring, if the store counts them.
    pub connection_attempts: Option<ConnectionAttempts>,
    /// Events of the servers since the store was opened.
    pub server_events: Vec<ServerEvent>,
    /// Whether a rate was set.
    pub open: bool,
}

/// Observes a trial.
pub trait Observer {
    /// The store is open, and every session is connected.
    fn report_ready(&mut self, opened: &OpenedTrial<'_>);
    /// The window begins.
    fn begin_window(&mut self, _moment: &Moment<'_>) {}
    /// An interval of the window has ended. For the last interval, this is called after the wait for the clients.
    fn report_interval(&mut self, moment: &Moment<'_>, interval: &Interval<'_>);
    /// Whether the trial may end now because its figures are precise enough. Called after each interval.
    fn is_satisfied(&self) -> bool {
        false
    }
    /// The trial has ended. Called once, and only if `report_ready` was called.
    fn report_end(&mut self, closed: &Closed<'_>);
}
