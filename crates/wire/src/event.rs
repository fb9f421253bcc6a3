//! Events: what the engine writes to stdout in `trial` mode, one JSON object a line.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use loadstone_load::meter::Reading;
use loadstone_load::{Status, StepId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::FilesSummary;
use crate::merge::{Merge, add_known, max_known};

/// Service times, responses and lower bounds of responses of one step and status; the latter two at a rate only.
pub type Latencies = [Reading; 3];
/// Latencies by step and status.
pub type Readings = BTreeMap<(StepId, Status), Latencies>;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// The store is open, every session connected.
    Ready(Ready),
    /// One interval of the measured window.
    Interval(Interval),
    /// An observation for the judge.
    Note(Note),
    /// The end; always the last event.
    Summary(Box<Summary>),
}

/// The store is open, every session connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Version of this format: 2.
    pub events: u32,
    /// The engine's version.
    pub engine: String,
    /// Its process id.
    pub pid: u32,
    /// The store's name.
    pub store: String,
    /// What acknowledged writes survive: `none`, `interval` (all but the most recent ones), `os`, `device`, or
    /// `unknown`.
    pub durability: String,
    /// How the store guarantees that.
    pub how: String,
    /// Version, cache, compression, directory …
    pub facts: BTreeMap<String, String>,
    /// Clients of this segment.
    pub clients: u64,
    /// The driver's own cost, ns per operation, measured on the null store just before.
    pub driver_ns: f64,
    /// Seconds to open the store and connect; not part of any measured time.
    pub connect_seconds: f64,
}

impl Merge for Ready {
    fn merge(&mut self, other: Self) {
        self.clients.merge(other.clients);
        self.driver_ns = self.driver_ns.max(other.driver_ns);
        self.connect_seconds = self.connect_seconds.max(other.connect_seconds);
    }
}

/// Histograms of one step with one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// READ, UPDATE …
    pub operation: String,
    /// OK, `NOT_FOUND` …; in a summary also `CENSORED`: operations whose end was not seen, with lower bounds of their
    /// latencies.
    pub status: String,
    /// Number of operations.
    pub count: u64,
    /// done − sent in ns: HDR histogram V2 (compressed form), base64. `CENSORED`: of those that were sent.
    pub service: String,
    /// done − due in ns; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// The same minus the generator's own lateness: the system's response lies between the two; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_lower: Option<String>,
    /// Exact sum of done − sent, ns; in a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns_sum: Option<u64>,
    /// Exact sum of done − due, ns; in a summary, with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns_sum: Option<u64>,
}

/// One interval of the window. Operations belong to the interval in which they were due (closed loop: sent), so more may
/// be added later: see [`Interval::earlier`]. The last interval is reported when all clients have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its number, from 0: it begins at k × the interval's length after the start of measuring.
    pub k: u64,
    /// Its start, ns after the start of measuring.
    pub start_ns: u64,
    /// Its length, ns; the last one may be shorter.
    pub length_ns: u64,
    /// When this was written, ns since the Unix epoch.
    pub unix_ns: u64,
    /// Operations due in it; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// What has been recorded in it so far.
    #[serde(flatten)]
    pub additions: Additions,
    /// What has been added to earlier intervals since the last event.
    pub earlier: Vec<Earlier>,
    /// Operations sent and not yet done.
    pub in_flight: u64,
    /// Operations sent over 1 ms late although a client was idle, since the last event.
    pub late_generator: u64,
    /// Operations over 1 ms late because all clients were busy, since the last event.
    pub late_client: u64,
    /// CPU time of the engine since the last event, ns: user, then system.
    pub cpu_ns: [u64; 2],
    /// Resident memory of the engine, bytes.
    pub memory_bytes: u64,
    /// Progress of a stage of a sort; sorts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sorted: Option<Sorted>,
}

impl Merge for Interval {
    fn merge(&mut self, other: Self) {
        self.due = add_known(self.due, other.due);
        self.additions.merge(other.additions);
        for more in other.earlier {
            match self.earlier.iter_mut().find(|earlier| earlier.k == more.k) {
                Some(earlier) => earlier.additions.merge(more.additions),
                None => self.earlier.push(more),
            }
        }
        self.in_flight.merge(other.in_flight);
        self.late_generator.merge(other.late_generator);
        self.late_client.merge(other.late_client);
        self.cpu_ns.merge(other.cpu_ns);
        self.memory_bytes.merge(other.memory_bytes);
        self.sorted.merge(other.sorted);
    }
}

/// Progress of a stage of a sort, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sorted {
    /// Rows done.
    pub rows: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl Merge for Sorted {
    fn merge(&mut self, other: Self) {
        self.rows.merge(other.rows);
        self.bytes_read.merge(other.bytes_read);
        self.bytes_written.merge(other.bytes_written);
    }
}

/// What a stage of a sort did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SortSummary {
    /// The stage.
    pub stage: String,
    /// Rows and bytes processed.
    #[serde(flatten)]
    pub sorted: Sorted,
    /// Seconds from the start to the end.
    pub seconds: f64,
    /// The checksum of the rows, as TeraValidate prints it: of this segment, or of all of them after `validate` or `commit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The result of validation, where it is complete: after `validate` by one segment, or `commit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

impl Merge for SortSummary {
    fn merge(&mut self, other: Self) {
        self.sorted.merge(other.sorted);
        self.seconds = self.seconds.max(other.seconds);
        // A checksum is a sum over the rows, in hexadecimal digits.
        let number = |text: Option<&String>| u128::from_str_radix(text?, 16).ok();
        let sum = number(self.checksum.as_ref()).zip(number(other.checksum.as_ref()));
        self.checksum = sum.map(|(own, other)| format!("{:x}", own.wrapping_add(other)));
        // Complete only after the last stage, which one segment does.
        self.validation = None;
    }
}

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// Rows in the output.
    pub rows: u64,
    /// Files of the output.
    pub parts: u64,
    /// Rows with the same key as the row before.
    pub duplicates: u64,
    /// Rows that are out of order, or that TeraGen did not generate.
    pub faults: u64,
    /// The first of these faults, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_faults: Vec<String>,
}

/// What was recorded in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Additions {
    /// Operations that succeeded during the interval, whenever they were due.
    pub completed: u64,
    /// Operations that ended during the interval, whatever their outcome.
    pub ended: u64,
    /// Operations due in it that succeeded, within the deadline if there is one.
    pub good: u64,
    /// Operations due in it that succeeded after the deadline.
    pub late: u64,
    /// Operations due in it that failed.
    pub failed: u64,
    /// Reads due in it of records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Outcomes of operations due in it.
    pub outcomes: Vec<Outcome>,
}

/// Outcomes are appended, since each has histograms: see [`crate::merger::add_outcomes`].
impl Merge for Additions {
    fn merge(&mut self, other: Self) {
        self.completed.merge(other.completed);
        self.ended.merge(other.ended);
        self.good.merge(other.good);
        self.late.merge(other.late);
        self.failed.merge(other.failed);
        self.not_yet.merge(other.not_yet);
        self.outcomes.extend(other.outcomes);
    }
}

/// What was added to an earlier interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// The interval's number.
    pub k: u64,
    /// What was added.
    #[serde(flatten)]
    pub additions: Additions,
}

/// An observation for the judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// A short name, like those of the judge's checks.
    pub name: String,
    /// One sentence with the figures.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// The end of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How it ended: `done`, `stopped` (by control line or signal), `lease` (the lab is gone) or `failed`.
    pub end: String,
    /// Why, when it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `release` or `debug`; results of a debug build are invalid.
    pub profile: String,
    /// Start of measuring on the wall clock, ns since the Unix epoch.
    pub start_unix_ns: u64,
    /// The borders of the trial.
    pub borders: Borders,
    /// The denominator of throughput, ns: the time that was set, whenever the last answer came; without a limit of time, the
    /// time until the last answer. Where a store holds writes back, the time until the end of its final flush.
    pub measured_ns: u64,
    /// The numerator of throughput: operations that succeeded within that time, whenever they were sent; at a rate at most as
    /// many as were due in it and did not fail.
    pub completed: u64,
    /// Operations due in the window: those that ended, those in flight and those unsent; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Counted operations that ended, whatever their outcome and however late.
    pub operations: u64,
    /// Those of them that succeeded.
    pub succeeded: u64,
    /// Reads of records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Attempts that failed and were retried.
    pub retried: u64,
    /// The same by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retried_by_status: BTreeMap<String, u64>,
    /// Operations that failed unsent, because no server could be reached. They count as failed, too.
    #[serde(default)]
    pub unreached: u64,
    /// Operations that were sent after the cut-off: at a rate, where only the number of operations is limited.
    #[serde(default)]
    pub overdue: u64,
    /// Pauses of clients after failures; in a closed loop only.
    #[serde(default)]
    pub pauses: Pauses,
    /// Attempts to connect while measuring; absent where another client library connects, or nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_attempts: Option<ConnectionAttempts>,
    /// What the servers reported of themselves since the store was opened.
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
    /// The clock that the trial was measured with.
    pub clock: Clock,
    /// CPU time of the engine while measuring, ns: user, then system.
    pub cpu_ns: [u64; 2],
    /// Peak resident memory of the engine, bytes.
    pub memory_bytes_max: u64,
    /// Bytes that the engine read from and wrote to devices while measuring, as the kernel counts them.
    pub device_bytes: [u64; 2],
    /// What garbage collectors in the engine's process did while measuring; absent without a collector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<Collection>,
    /// Seconds that the store took to become idle afterwards, if `settle` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<f64>,
    /// Latencies beyond the range of a histogram, 39 hours, over all outcomes: they are recorded as that maximum.
    #[serde(default)]
    pub saturated_values: u64,
    /// Outcomes of the whole measured window.
    pub outcomes: Vec<Outcome>,
    /// The first message of each kind of failure, by `OPERATION STATUS`.
    pub words: BTreeMap<String, String>,
    /// What the workload kinds add.
    #[serde(flatten)]
    pub sections: Sections,
}

/// A report of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerEvent {
    /// When it arrived, ns since the Unix epoch.
    pub unix_ns: u64,
    /// The server that it is about; empty: the whole cluster.
    pub server: String,
    /// `up`, `down`, `joined`, or a sentence.
    pub event: String,
}

/// The window is as long as the longest segment's. Outcomes are appended, and waits are left to [`crate::merger::Merger`].
impl Merge for Summary {
    fn merge(&mut self, other: Self) {
        self.start_unix_ns = self.start_unix_ns.min(other.start_unix_ns);
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.completed.merge(other.completed);
        self.due = add_known(self.due, other.due);
        self.operations.merge(other.operations);
        self.succeeded.merge(other.succeeded);
        self.not_yet.merge(other.not_yet);
        self.retried.merge(other.retried);
        for (status, count) in other.retried_by_status {
            self.retried_by_status.entry(status).or_default().merge(count);
        }
        self.unreached.merge(other.unreached);
        self.overdue.merge(other.overdue);
        self.pauses.merge(other.pauses);
        self.connection_attempts.merge(other.connection_attempts);
        // Every engine receives the same events.
        if other.server_events.len() > self.server_events.len() {
            self.server_events = other.server_events;
        }
        self.rows.merge(other.rows);
        self.bytes.merge(other.bytes);
        self.warmup_operations.merge(other.warmup_operations);
        self.carried.merge(other.carried);
        self.in_flight.merge(other.in_flight);
        self.unsent.merge(other.unsent);
        self.unclosed.merge(other.unclosed);
        self.late_generator.merge(other.late_generator);
        self.late_client.merge(other.late_client);
        self.executors.extend(other.executors);
        let severity = |clock: &Clock| (clock.jumps, clock.drift_ppm.abs());
        if severity(&other.clock) > severity(&self.clock) {
            self.clock = other.clock;
        }
        self.cpu_ns.merge(other.cpu_ns);
        self.memory_bytes_max.merge(other.memory_bytes_max);
        self.device_bytes.merge(other.device_bytes);
        self.collections.extend(other.collections);
        self.settle_seconds = max_known(self.settle_seconds, other.settle_seconds);
        self.saturated_values.merge(other.saturated_values);
        self.outcomes.extend(other.outcomes);
        for (failure, message) in other.words {
            self.words.entry(failure).or_insert(message);
        }
        self.sections.merge(other.sections);
    }
}

/// The sections of a summary that belong to one workload kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sections {
    /// Reads of records that missed inserts of other segments, whose ledgers show whether the inserts had been acknowledged.
    #[serde(default)]
    pub unsettled: Unsettled,
    /// Reads whose whole values were compared with the values written. The remaining verified reads had only the versions
    /// of their values compared.
    #[serde(default)]
    pub compared: u64,
    /// The outcomes of the files; absent where the work is not on files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesSummary>,
    /// What a stage of a sort did; sorts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortSummary>,
    /// Reads of cassandra-stress that found no row; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_rows: Option<MissingRows>,
    /// Rows and partitions of successful statements, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statements: BTreeMap<String, StatementRows>,
}

/// The rows that a statement wrote or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatementRows {
    /// Rows.
    pub rows: u64,
    /// Partitions with at least one of them.
    pub partitions: u64,
}

impl Merge for StatementRows {
    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.partitions += other.partitions;
    }
}

/// Reads that found no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRows {
    /// Their number.
    pub reads: u64,
    /// The number, in the population, of one of the rows.
    pub number: i64,
}

impl Merge for MissingRows {
    fn merge(&mut self, other: Self) {
        self.reads.merge(other.reads);
    }
}

impl Merge for Sections {
    fn merge(&mut self, other: Self) {
        self.unsettled.merge(other.unsettled);
        self.compared.merge(other.compared);
        self.files.merge(other.files);
        self.sort.merge(other.sort);
        self.missing_rows.merge(other.missing_rows);
        for (name, rows) in other.statements {
            self.statements.entry(name).or_default().merge(rows);
        }
    }
}

/// Pauses of clients after failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Number of pauses, over all clients.
    pub count: u64,
    /// Their time, ns.
    pub ns_sum: u64,
}

impl Merge for Pauses {
    fn merge(&mut self, other: Self) {
        self.count.merge(other.count);
        self.ns_sum.merge(other.ns_sum);
    }
}

/// Attempts to connect to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionAttempts {
    /// All attempts.
    pub attempted: u64,
    /// Attempts that failed.
    pub failed: u64,
}

impl Merge for ConnectionAttempts {
    fn merge(&mut self, other: Self) {
        self.attempted.merge(other.attempted);
        self.failed.merge(other.failed);
    }
}

/// The borders of a trial, which are fixed before it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Borders {
    /// The length of the warm-up, ns.
    pub warmup_ns: u64,
    /// The length of the window, ns; absent without a limit of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// From the start of measuring until overdue operations are no longer sent, ns; absent without a limit of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutoff_ns: Option<u64>,
    /// The length of an interval, ns.
    pub interval_ns: u64,
}

/// Operations due (closed loop: sent) in the warm-up that had not ended when the window began: they are in no histogram, but
/// measured operations had to wait for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// How many ended in the window.
    pub ended: u64,
    /// How many had been sent and not answered when the engine stopped waiting.
    pub unanswered: u64,
    /// How many were never sent.
    pub unsent: u64,
    /// How far into the window the last of them lasted, ns.
    pub ns_max: u64,
}

impl Merge for Carried {
    fn merge(&mut self, other: Self) {
        self.ended.merge(other.ended);
        self.unanswered.merge(other.unanswered);
        self.unsent.merge(other.unsent);
        self.ns_max = self.ns_max.max(other.ns_max);
    }
}

/// Reads that found nothing where another segment inserts: `loadstone ledger --events` decides how they count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unsettled {
    /// Number of such reads.
    pub count: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Missed>,
}

impl Merge for Unsettled {
    fn merge(&mut self, other: Self) {
        self.count.merge(other.count);
        self.first.extend(other.first);
    }
}

/// A read that found nothing where another segment inserts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// The index of the insert in the whole trial.
    pub index: u64,
    /// When the read was sent, Unix ns.
    pub sent_unix_ns: u64,
}

/// The clock that a trial was measured with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// `tsc`: the processor's counter, on the scale of the kernel's clock; `kernel`: the kernel's clock itself.
    pub source: String,
    /// How much the counter's initial rate has been off since the start, on average, in millionths.
    pub drift_ppm: f64,
    /// The largest observed difference from the kernel's clock, ns.
    pub offset_ns_max: u64,
    /// How often the clocks diverged by more than corrections explain (a suspend, a migration): times across such a jump are wrong.
    pub jumps: u64,
    /// How often a reading was earlier than the one before it.
    pub reversals: u64,
}

/// A thread of the engine during the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// `executor-0` …, or `conductor`.
    pub name: String,
    /// Clients that it serves.
    pub clients: u64,
    /// Processor time, ns.
    pub cpu_ns: u64,
    /// How long it was observed, ns.
    pub wall_ns: u64,
    /// The share of the time in which it was busy.
    pub busy: f64,
    /// How late ticks of 1 ms on this thread woke, ns, as in [`Outcome::service`].
    pub lag: String,
    /// An upper bound of the time for which the thread was ready but could not run, ns.
    #[serde(default)]
    pub held_ns: u64,
}

/// What a garbage collector in the engine's process did while measuring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// Its name, as the JVM gives it.
    pub collector: String,
    /// How often it ran.
    pub count: u64,
    /// The time that these runs took, ms.
    pub time_ms: u64,
}

/// A histogram in the standard form: HDR V2, zlib, base64.
pub fn encode(reading: &Reading) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and our bounds are within the range of the format.
    let _ = V2DeflateSerializer::new().serialize(&reading.histogram(), &mut bytes);
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A sum of ns as in the event: 584 years at most.
fn sum_ns(reading: &Reading) -> u64 {
    u64::try_from(reading.sum()).unwrap_or(u64::MAX)
}

/// The outcomes of readings, with the names of their steps. `summed`: with exact sums.
pub fn outcomes(latencies: &Readings, steps: &[&str], summed: bool) -> Vec<Outcome> {
    latencies
        .iter()
        .map(|((step, status), [service, response, lower])| {
            let open = response.count() > 0;
            Outcome {
                operation: steps[usize::from(step.0)].to_owned(),
                status: status.name().to_owned(),
                count: service.count(),
                service: encode(service),
                response: open.then(|| encode(response)),
                response_lower: open.then(|| encode(lower)),
                service_ns_sum: summed.then(|| sum_ns(service)),
                response_ns_sum: (summed && open).then(|| sum_ns(response)),
            }
        })
        .collect()
}

/// The outcomes of operations whose end was not seen.
pub fn censored(bounds: &BTreeMap<StepId, Latencies>, steps: &[&str], open: bool) -> Vec<Outcome> {
    bounds
        .iter()
        .map(|(step, [service, response, lower])| Outcome {
            operation: steps[usize::from(step.0)].to_owned(),
            status: "CENSORED".to_owned(),
            count: response.count(),
            service: encode(service),
            response: open.then(|| encode(response)),
            response_lower: open.then(|| encode(lower)),
            service_ns_sum: None,
            response_ns_sum: None,
        })
        .collect()
}
