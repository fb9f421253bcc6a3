//! What is seen of a trial, while it runs and after it.

use std::sync::Arc;
use std::time::Duration;

use loadstone_stores::{Collections, Promise};

use crate::control::End;
use crate::course::Course;
use crate::spec::TrialSpec;
use crate::tape::{Tape, Totals};

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
    /// From the start of measuring to the end of the last measured operation; to the end of the time where one got no
    /// answer, or nothing was due.
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
