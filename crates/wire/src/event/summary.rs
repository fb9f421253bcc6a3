//! The end of a trial.

use std::collections::BTreeMap;

use loadstone_session::session::{Collections, ConnectionAttempts, ServerEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Outcome, Sections};
use crate::merge::{Merge, add_known, max_known, merge_fields};
use crate::merge_fields_of;

/// The end of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How it ended: `done`, `stopped` (by control line or signal), `lease` (the lab has ended) or `failed`.
    pub end: String,
    /// The reason, if it did not end normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `release` or `debug`; results of a debug build are invalid.
    pub profile: String,
    /// Start of measuring on the wall clock, ns since the Unix epoch.
    pub start_unix_ns: u64,
    /// The borders of the trial.
    pub borders: Borders,
    /// The denominator of throughput, ns: the time limit, whenever the last answer arrived; without a time limit, the
    /// time until the last answer. If a store holds writes back, the time until the end of its final flush.
    pub measured_ns: u64,
    /// The numerator of throughput: operations that succeeded within that time, whenever they were sent; at a rate at
    /// most as many as were due in it and did not fail.
    pub completed: u64,
    /// Operations due in the window: ended, in flight or unsent; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Counted operations that ended, whatever their outcome and however late.
    pub operations: u64,
    /// Counted operations that succeeded.
    pub succeeded: u64,
    /// Reads of records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Attempts that failed and were retried.
    pub retried: u64,
    /// Attempts that failed and were retried, by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retried_by_status: BTreeMap<String, u64>,
    /// Operations that failed unsent, because no server could be reached. They also count as failed.
    #[serde(default)]
    pub unreached: u64,
    /// Operations sent after the cut-off: at a rate, if only the number of operations is limited.
    #[serde(default)]
    pub overdue: u64,
    /// Pauses of clients after failures; in a closed loop only.
    #[serde(default)]
    pub pauses: Pauses,
    /// Attempts to connect while measuring; absent if a client library makes the connections, or there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_attempts: Option<ConnectionAttempts>,
    /// Events that the servers reported since the store was opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_events: Vec<ServerEvent>,
    /// Records read or written by operations that succeeded.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Operations of the warm-up that ended, some of them in the window.
    pub warmup_operations: u64,
    /// Operations of the warm-up that had not ended when the window began.
    #[serde(default)]
    pub carried: Carried,
    /// Operations sent and not answered when the engine stopped waiting.
    pub in_flight: u64,
    /// Operations due before the end and not sent before the cut-off.
    pub unsent: u64,
    /// Clients whose session did not close: writes buffered in it may be lost.
    pub unclosed: u64,
    /// Operations sent over 1 ms late although a client was idle, or mostly because of an earlier such delay.
    pub late_generator: u64,
    /// Operations over 1 ms late because all clients were busy.
    pub late_client: u64,
    /// Wait while all clients were busy, ns, as in [`Outcome::service`]; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_client: Option<String>,
    /// Wait because the engine was late with this operation or with earlier ones, ns; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_generator: Option<String>,
    /// The engine's executors, and its conductor.
    pub executors: Vec<Executor>,
    /// The clock of the trial.
    pub clock: Clock,
    /// CPU time of the engine while measuring, ns: user, then system.
    pub cpu_ns: [u64; 2],
    /// Peak resident memory of the engine, bytes.
    pub memory_bytes_max: u64,
    /// Bytes that the engine read from and wrote to devices while measuring, as the kernel counts them.
    pub device_bytes: [u64; 2],
    /// Garbage collections in the engine's process while measuring; absent without a collector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<Collections>,
    /// Time until the store became idle afterwards, seconds, if `settle` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<f64>,
    /// Number of latencies beyond the range of a histogram, 39 hours, over all outcomes: they are recorded as that
    /// maximum.
    #[serde(default)]
    pub saturated_values: u64,
    /// Outcomes of the whole measured window.
    pub outcomes: Vec<Outcome>,
    /// The first message for each `OPERATION STATUS`.
    #[serde(rename = "words")]
    pub messages: BTreeMap<String, String>,
    /// The sections of the workload kinds.
    #[serde(flatten)]
    pub sections: Sections,
}

/// The window is as long as the longest segment's. Outcomes are appended; [`crate::merge_events::Merger`] adds the waits.
impl Merge for Summary {
    fn merge(&mut self, other: Self) {
        self.start_unix_ns = self.start_unix_ns.min(other.start_unix_ns);
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.due = add_known(self.due, other.due);
        merge_fields!(self, other: completed, operations, succeeded, not_yet, retried);
        for (status, count) in other.retried_by_status {
            self.retried_by_status.entry(status).or_default().merge(count);
        }
        merge_fields!(self, other: unreached, overdue, pauses, connection_attempts);
        // Every engine receives the same events.
        if other.server_events.len() > self.server_events.len() {
            self.server_events = other.server_events;
        }
        merge_fields!(self, other: rows, bytes, warmup_operations, carried, in_flight, unsent, unclosed, late_generator, late_client, executors);
        let severity = |clock: &Clock| (clock.jumps, clock.drift_ppm.abs());
        if severity(&other.clock) > severity(&self.clock) {
            self.clock = other.clock;
        }
        self.settle_seconds = max_known(self.settle_seconds, other.settle_seconds);
        merge_fields!(self, other: cpu_ns, memory_bytes_max, device_bytes, collections, saturated_values, outcomes, sections);
        for (failure, message) in other.messages {
            self.messages.entry(failure).or_insert(message);
        }
    }
}

/// Pauses of clients after failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Number of pauses, over all clients.
    pub count: u64,
    /// Their total time, ns.
    pub ns_sum: u64,
}

merge_fields_of!(Pauses: count, ns_sum);

merge_fields_of!(ConnectionAttempts: attempted, failed);

/// The borders of a trial, fixed before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Borders {
    /// The length of the warm-up, ns.
    pub warmup_ns: u64,
    /// The length of the window, ns; absent without a limit of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Time from the start of measuring to the cut-off, after which overdue operations are no longer sent, ns; absent
    /// without a time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff_ns: Option<u64>,
    /// The length of an interval, ns.
    pub interval_ns: u64,
}

/// Operations due (closed loop: sent) in the warm-up that had not ended when the window began: they are in no histogram, but
/// measured operations had to wait for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// Number that ended in the window.
    pub ended: u64,
    /// Number sent and not answered when the engine stopped waiting.
    pub unanswered: u64,
    /// Number never sent.
    pub unsent: u64,
    /// Time from the start of the window to the end of the last of them, ns.
    pub ns_max: u64,
}

impl Merge for Carried {
    fn merge(&mut self, other: Self) {
        merge_fields!(self, other: ended, unanswered, unsent);
        self.ns_max = self.ns_max.max(other.ns_max);
    }
}

/// The clock of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// `tsc`: the processor's counter, on the scale of the kernel's clock; `kernel`: the kernel's clock itself.
    pub source: String,
    /// Error of the counter's initial rate since the start, on average, in millionths.
    pub drift_ppm: f64,
    /// The largest observed difference from the kernel's clock, ns.
    pub offset_ns_max: u64,
    /// Number of times that the clocks diverged by more than corrections explain (a suspend, a migration): times across
    /// such a jump are wrong.
    pub jumps: u64,
    /// Number of readings that were earlier than the preceding reading.
    pub reversals: u64,
}

/// A thread of the engine during the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// `executor-0` …, or `conductor`.
    pub name: String,
    /// Number of clients that it serves.
    pub clients: u64,
    /// Processor time, ns.
    pub cpu_ns: u64,
    /// Length of the observation, ns.
    pub wall_ns: u64,
    /// The share of the time for which it was busy.
    pub busy: f64,
    /// Lateness of 1 ms ticks on this thread, ns, as in [`Outcome::service`].
    pub lag: String,
    /// An upper bound of the time for which the thread was ready but could not run, ns.
    #[serde(default)]
    pub held_ns: u64,
}
