//! The TrialSpec is the input of `loadstone-engine trial`. Every front end translates its arguments into a TrialSpec.

pub mod work;

use std::collections::BTreeMap;

use loadstone_load::ledger::LedgerRun;
use loadstone_load::pace::{Pace, PaceSpec};
use loadstone_load::refusal::check_range;
pub use loadstone_load::version::Phase;
use loadstone_load::{Refusal, Segment};
use loadstone_stress::settings::DelayPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::sink::Sink;

pub use loadstone_session::Durability;
pub use work::WorkSpec;
pub use work::sort::SortSpec;
pub use work::statements::StatementsSpec;

/// The version of this format.
pub const VERSION: u32 = 2;
/// The oldest supported version.
const OLDEST: u64 = 1;

/// The maximum number of clients, which is more than fit in the memory of any host.
pub const CLIENTS_MAX: u64 = 1_000_000;
/// The maximum of a time in a spec: thirty years in seconds, or 12 days for a deadline in ms.
const TIME_MAX: f64 = 1e9;
/// The maximum length of an interval, ms: thirty years.
const INTERVAL_MS_MAX: u64 = 1_000_000_000_000;

/// One trial, or one segment of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option in the file")]
pub struct TrialSpec {
    /// Version of the format: 2.
    pub spec: u32,
    /// The store and its settings.
    pub store: StoreSpec,
    /// The phase: load the records, or run a workload on them.
    pub phase: Phase,
    /// The work to do.
    pub work: WorkSpec,
    /// Number of clients of the whole trial; a segment runs its share.
    pub clients: u64,
    /// When operations are sent.
    pub pace: PaceSpec,
    /// When the trial ends.
    pub until: Until,
    /// Length of the warm-up, seconds.
    #[serde(default)]
    pub warmup_seconds: f64,
    /// The share of the trial that this engine runs.
    #[serde(default)]
    pub segment: Segment,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How a failed insert is handled.
    #[serde(default)]
    pub inserts: InsertSpec,
    /// Spin instead of sleeping until an operation is due.
    #[serde(default)]
    pub spin: bool,
    /// Executors for stores that are not driven by one thread per client; 0: one per processor, but at most one per 32
    /// clients if clients mostly wait for a network.
    #[serde(default)]
    pub executors: u64,
    /// An operation that succeeds more than this time after it was due (closed loop: sent) counts as late, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// Count operations by key range. This has no effect without a rate, without a limit on the measured time, or if
    /// the store does not know the placement of its keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key_ranges: bool,
    /// The formats in which operations are recorded.
    pub sinks: Vec<Sink>,
    /// The length of the intervals in which results are reported, ms.
    pub interval_ms: u64,
    /// The load stops when stdin has been silent for this long, ms; absent: no lease.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    /// The load waits for `start_at` on stdin instead of starting at once.
    #[serde(default)]
    pub wait_for_start: bool,
    /// Wait until the store is idle before the trial ends.
    #[serde(default)]
    pub settle: bool,
    /// A random number that identifies the run. With versions, every value that the run writes depends on this number.
    /// It is the same for all segments of a run, and differs between runs. With a ledger of statements, it is the start
    /// of the run in µs since 1970: the write at index i has the timestamp run + i.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Record the writes of a run, so that lost writes can be found afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerSpec>,
}

/// The ledger of a run's writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerSpec {
    /// The path of a new file, different for each segment.
    pub file: String,
}

/// A store and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreSpec {
    /// The store's name.
    pub name: String,
    /// The store's properties.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// The event that writes must survive.
    #[serde(default)]
    pub durability: Durability,
}

/// The trial ends at the limit that is reached first. At least one limit must be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Limit on the measured operations of the whole trial.
    #[serde(default)]
    pub operations: Option<u64>,
    /// Limit on the measured time, seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// How a failed insert is handled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertSpec {
    /// Number of retries (`core_workload_insertion_retry_limit`).
    pub retries: u64,
    /// Mean sleep before each retry, seconds (`core_workload_insertion_retry_interval`); with `delays`, the minimum.
    pub retry_seconds: f64,
    /// Whether a load continues after an insert whose last attempt failed
    /// (`core_workload_insertion_keep_going_on_error`).
    pub keep_going: bool,
    /// How the sleeps before the retries of an operation grow; if absent, they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<DelaySpec>,
}

/// How the sleeps before the retries of an operation grow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// The growth from one retry to the next.
    pub policy: DelayPolicy,
    /// Maximum sleep before a retry, seconds.
    pub seconds_max: f64,
}

impl Default for InsertSpec {
    fn default() -> Self {
        Self { retries: 0, retry_seconds: 3.0, keep_going: false, delays: None }
    }
}

impl TrialSpec {
    /// A run of `work` by one client in a closed loop, with defaults for all other settings.
    pub fn new(store: StoreSpec, work: WorkSpec, seed: u64) -> Self {
        Self {
            spec: VERSION,
            store,
            phase: Phase::Run,
            work,
            clients: 1,
            pace: PaceSpec::Closed,
            until: Until { operations: None, seconds: None },
            warmup_seconds: 0.0,
            segment: Segment::default(),
            seed,
            inserts: InsertSpec::default(),
            spin: false,
            executors: 0,
            deadline_ms: None,
            key_ranges: false,
            sinks: vec![Sink::HdrNs],
            interval_ms: 1_000,
            lease_ms: None,
            wait_for_start: false,
            settle: false,
            run: None,
            ledger: None,
        }
    }

    /// Reads a spec of this version or an older version. Error messages include the position.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let unreadable = |error: serde_json::Error| {
            EngineError::usage(format!("the TrialSpec cannot be read: {error}"))
                .hint("see docs/reference/schemas/trial-spec.json for its form")
        };
        // The version is checked first, because a newer spec has fields that this engine does not know.
        let mut value: serde_json::Value = serde_json::from_str(text).map_err(unreadable)?;
        let spec = match value.get("spec").and_then(serde_json::Value::as_u64) {
            Some(version) if !(OLDEST..=u64::from(VERSION)).contains(&version) => {
                return Err(EngineError::usage(format!(
                    "the TrialSpec has version {version}, but this load generator reads versions {OLDEST} to {VERSION}"
                ))
                .hint("use loadstone and loadstone-engine from the same installation"));
            }
            Some(1) => {
                from_version_1(&mut value);
                serde_json::from_value(value).map_err(unreadable)?
            }
            // The spec is parsed from the text rather than the value, so that error messages include the position.
            _ => serde_json::from_str::<Self>(text).map_err(unreadable)?,
        };
        spec.check()?;
        Ok(spec)
    }

    /// Whether the trial may create a missing database: a load may, and so may a run that only inserts.
    pub fn may_create_database(&self) -> bool {
        self.phase == Phase::Load || self.work.rules().may_create_database()
    }

    /// Refuses a spec that cannot be run. Error messages name fields by their paths.
    pub fn check(&self) -> Result<(), EngineError> {
        self.validate()?;
        self.work.rules().check_work(self.seed)
    }

    /// Checks the rules that apply to every spec; front ends also rely on them. In the refusal, paths of fields are in
    /// braces.
    pub fn validate(&self) -> Result<(), Refusal> {
        if self.segment.n == 0 || self.segment.k >= self.segment.n {
            let segment = format!("{}/{}", self.segment.k, self.segment.n);
            return Err(Refusal::for_value("segment", "k/n with k below n", segment));
        }
        if self.interval_ms == 0 || self.interval_ms > INTERVAL_MS_MAX {
            let required = format!("1 to {INTERVAL_MS_MAX} ms");
            return Err(Refusal::for_value("interval_ms", &required, self.interval_ms));
        }
        if self.lease_ms == Some(0) {
            return Err(Refusal::new("{lease_ms} must be at least 1", "leave {lease_ms} out for no lease"));
        }
        if !self.work.rules().has_clients() {
            return Ok(());
        }
        self.validate_clients()?;
        self.validate_times()?;
        self.sinks.iter().try_for_each(Sink::check)?;
        if self.ledger.is_some() {
            self.work.rules().validate_ledger(self.phase)?;
        }
        self.work.rules().validate_trial(self)?;
        let pace = Pace::new(&self.pace, self.seed);
        pace.map(drop).map_err(|error| Refusal::new(format!("{{pace.rate}}: {error}"), "change {pace.rate}"))
    }

    fn validate_clients(&self) -> Result<(), Refusal> {
        if self.clients == 0 {
            return Err(Refusal::for_value("clients", "at least 1", 0));
        }
        if self.clients > CLIENTS_MAX {
            let refusal = Refusal::for_value("clients", &format!("at most {CLIENTS_MAX}"), self.clients);
            return Err(Refusal {
                hint: "use fewer clients, or several load generators with a segment each".to_owned(),
                ..refusal
            });
        }
        if self.clients < self.segment.n {
            let (clients, n) = (self.clients, self.segment.n);
            return Err(Refusal::new(
                format!("{{clients}} = {clients} cannot be split into {n} segments"),
                format!("set {{clients}} to at least {n}"),
            ));
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), Refusal> {
        if self.until.operations.is_none() && self.until.seconds.is_none() {
            return Err(Refusal::new(
                "operations and time are both unlimited: this run would never end",
                "set {until.operations} or {until.seconds}",
            ));
        }
        if self.phase == Phase::Run && self.until.operations == Some(0) {
            return Err(Refusal::for_value("until.operations", "at least 1", 0));
        }
        let times = [
            ("until.seconds", self.until.seconds.unwrap_or(0.0)),
            ("warmup_seconds", self.warmup_seconds),
            ("inserts.retry_seconds", self.inserts.retry_seconds),
            ("deadline_ms", self.deadline_ms.unwrap_or(0.0)),
        ];
        times.into_iter().try_for_each(|(field, time)| check_range(field, time, 0.0, TIME_MAX))?;
        if let Some(delays) = &self.inserts.delays {
            check_range("inserts.delays.seconds_max", delays.seconds_max, self.inserts.retry_seconds, TIME_MAX)?;
        }
        if self.phase == Phase::Load && self.warmup_seconds > 0.0 {
            return Err(Refusal::new(
                "{warmup_seconds} is for a run: a load counts every record",
                "leave it out of the load",
            ));
        }
        Ok(())
    }

    /// The identity of the run as recorded in its ledger.
    pub fn identify_run(&self) -> LedgerRun {
        LedgerRun { seed: self.seed, number: self.run, spec: self.fingerprint() }
    }

    /// A hash of everything that determines the operations of a run and the order of their due times; stored in the
    /// ledger. It excludes everything that may differ between segments, or between a run and its read-back: the store's
    /// addresses and consistency levels, the recording options, and the run's number, which a front end draws for each
    /// command.
    pub fn fingerprint(&self) -> u64 {
        let followed = (&self.store.name, self.phase, &self.work, self.clients, &self.pace, self.until);
        // The hash is of a JSON value, whose members are sorted, so that the order of fields in the types has no
        // effect.
        let canonical = serde_json::to_value((followed, self.warmup_seconds, self.seed));
        let canonical = canonical.map_or_else(|error| error.to_string(), |value| value.to_string());
        canonical
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

/// Converts version 1 to version 2. In version 1, `work` was `workload`, and its types were `core` and `timeseries`.
fn from_version_1(spec: &mut serde_json::Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    fields.insert("spec".to_owned(), VERSION.into());
    let Some(mut work) = fields.remove("workload") else { return };
    if let Some(kind) = work.get_mut("type") {
        match kind.as_str() {
            Some("core") => *kind = "records".into(),
            Some("timeseries") => *kind = "time_series".into(),
            _ => {}
        }
    }
    fields.insert("work".to_owned(), work);
}

#[cfg(test)]
mod tests;
