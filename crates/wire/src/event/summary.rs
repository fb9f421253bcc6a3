//! The result of a trial.

use std::collections::BTreeMap;

use loadstone_session::session::{Collections, ConnectionAttempts, ServerEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Outcome, Sections};
use crate::merge_fields_of;
use crate::merge_rule::{Merge, add_known, max_known, merge_fields};

/// The result of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How the trial ended: `done`, `stopped` (by a control line or a signal), `lease` (the lab stopped sending
    /// heartbeats) or `failed`.
    pub end: String,
    /// The reason, if the trial did not end normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The build profile, `release` or `debug`. The results of a debug build are invalid.
    pub profile: String,
    /// Start of measuring on the wall clock, ns since the Unix epoch.
    pub start_unix_ns: u64,
    /// The borders of the trial.
    pub borders: Borders,
    /// The denominator of throughput, ns. With a time limit: that limit, no matter when the last answer arrived.
    /// Without one: the time until the last answer. If a store buffers writes, the time until its final flush has
    /// finished.
    pub measured_ns: u64,
    /// The numerator of throughput: operations that succeeded within that time, whenever they were sent. With a rate,
    /// it is at most the number of operations that were due in that time and did not fail.
    pub completed: u64,
    /// Operations due in the window, whether finished, in flight or unsent; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Measured operations that finished, whatever their outcome and however late.
    pub operations: u64,
    /// Measured operations that succeeded.
    pub succeeded: u64,
    /// Reads of records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Attempts that failed and were retried.
    pub retried: u64,
    /// Number of failed attempts that were retried, by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retried_by_status: BTreeMap<String, u64>,
    /// Operations that failed without being sent, because no server could be reached. They also count as failed.
    #[serde(default)]
    pub unreached: u64,
    /// Operations sent after the cut-off; with a rate, if only the number of operations is limited.
    #[serde(default)]
    pub overdue: u64,
    /// Pauses of clients after failures; in closed loop only.
    #[serde(default)]
    pub pauses: Pauses,
    /// Attempts to connect while measuring; absent if a client library makes the connections, or if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_attempts: Option<ConnectionAttempts>,
    /// Events that the servers reported since the store was opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_events: Vec<ServerEvent>,
    /// Records read or written by operations that succeeded.
    pub rows: u64,
    /// Bytes read or written by operations that succeeded.
    pub bytes: u64,
    /// Warm-up operations that finished, some of them in the window.
    pub warmup_operations: u64,
    /// Warm-up operations that had not completed when the window began.
    #[serde(default)]
    pub carried: Carried,
    /// Operations that were sent but not answered when the engine stopped waiting.
    pub in_flight: u64,
    /// Operations that were due before the end but not sent before the cut-off.
    pub unsent: u64,
    /// Clients whose session did not close: writes buffered in the session may be lost.
    pub unclosed: u64,
    /// Operations sent more than 1 ms late because the load generator was late with this operation or, for most of the
    /// wait, with earlier ones.
    pub late_generator: u64,
    /// Operations sent more than 1 ms late because all clients were busy.
    pub late_client: u64,
    /// Histogram of the waits while all clients were busy, ns, encoded as in [`Outcome::service`]; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_client: Option<String>,
    /// Histogram of the waits because the engine was late with this operation or with earlier ones, ns; with a rate
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_generator: Option<String>,
    /// The engine's executors and its conductor.
    pub executors: Vec<Executor>,
    /// The clock of the trial.
    pub clock: Clock,
    /// CPU time of the engine while measuring, ns: user time, then system time.
    pub cpu_ns: [u64; 2],
    /// Peak resident memory of the engine, bytes.
    pub memory_bytes_max: u64,
    /// Bytes that the engine read from and wrote to devices while measuring, according to the kernel.
    pub device_bytes: [u64; 2],
    /// Garbage collections in the engine's process while measuring; absent if there is no garbage collector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<Collections>,
    /// Time that the store took to become idle after the load, seconds; only if `settle` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<f64>,
    /// Number of latencies above the range of a histogram, 39 hours, over all outcomes: they are recorded as this
    /// maximum.
    #[serde(default)]
    pub saturated_values: u64,
    /// Outcomes of the whole measured window.
    pub outcomes: Vec<Outcome>,
    /// The first error message for each operation and status; a key has the form `OPERATION STATUS`.
    #[serde(rename = "words")]
    pub messages: BTreeMap<String, String>,
    /// The sections that belong to the workload kinds.
    #[serde(flatten)]
    pub sections: Sections,
}

/// The measured time is the longest measured time of any segment. Outcomes are only appended;
/// [`crate::merge_events::Merger`] adds their histograms and the waits.
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
    /// The total time of the pauses, ns.
    pub ns_sum: u64,
}

merge_fields_of!(Pauses: count, ns_sum);

merge_fields_of!(ConnectionAttempts: attempted, failed);

/// The borders of a trial, which are fixed before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Borders {
    /// The length of the warm-up, ns.
    pub warmup_ns: u64,
    /// The length of the window, ns; absent without a time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Time from the start of measuring to the cut-off, after which overdue operations are no longer sent, ns; absent
    /// without a time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff_ns: Option<u64>,
    /// The length of an interval, ns.
    pub interval_ns: u64,
}

/// Operations due (closed loop: sent) in the warm-up that had not finished when the window began. No histogram contains
/// them, but measured operations had to wait for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// Operations that finished in the window.
    pub ended: u64,
    /// Operations that were sent but not answered when the engine stopped waiting.
    pub unanswered: u64,
    /// Operations that were never sent.
    pub unsent: u64,
    /// Time from the start of the window until the last of these operations finished, ns.
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
    /// `tsc`: the processor's counter, calibrated against the kernel's clock; `kernel`: the kernel's clock itself.
    pub source: String,
    /// Error of the counter's initial rate, averaged since the start, in millionths.
    pub drift_ppm: f64,
    /// The largest observed difference from the kernel's clock, ns.
    pub offset_ns_max: u64,
    /// Number of jumps: the clocks diverged by more than corrections explain (after a suspend or a migration). Times
    /// measured across a jump are wrong.
    pub jumps: u64,
    /// Number of readings that were earlier than the preceding reading.
    pub reversals: u64,
}

/// A thread of the engine during the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// The name: `executor-0` …, or `conductor`.
    pub name: String,
    /// Number of clients that the thread serves.
    pub clients: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Time for which the thread was observed, ns.
    pub wall_ns: u64,
    /// The share of this time during which the thread was busy.
    pub busy: f64,
    /// Lateness of 1 ms ticks on this thread, ns, encoded as in [`Outcome::service`].
    pub lag: String,
    /// Upper bound of the time during which the thread was ready to run but had no processor, ns.
    #[serde(default)]
    pub held_ns: u64,
}
