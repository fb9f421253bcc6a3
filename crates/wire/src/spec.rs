//! The TrialSpec: what `loadstone-engine trial` reads, and what every front end translates its arguments into.

use std::collections::BTreeMap;

use loadstone_load::core::CoreSpec;
use loadstone_load::ledger::Run;
use loadstone_load::pace::{Pace, PaceSpec};
use loadstone_load::refusal::check_range;
use loadstone_load::time_series::TimeSeriesSpec;
use loadstone_load::{Refusal, Segment};
use loadstone_storage::sort::job::{Job, Stage};
use loadstone_storage::work::{Files, FilesSpec};
use loadstone_stress::columns::ColumnsSpec;
use loadstone_stress::spec::StressSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::sink::Sink;

/// The version of this format.
pub const VERSION: u32 = 2;
/// The oldest version that can still be read.
const OLDEST: u64 = 1;

/// More clients than fit in the memory of any host.
pub const CLIENTS_MAX: u64 = 1_000_000;
/// Thirty years, in seconds; for a deadline, twelve days in ms.
const TIME_MAX: f64 = 1e9;
/// Thirty years.
const INTERVAL_MS_MAX: u64 = 1_000_000_000_000;

/// One trial, or one segment of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Version of the format: 2.
    pub spec: u32,
    /// The store and how it is opened.
    pub store: StoreSpec,
    /// Whether records are loaded or a workload is run on them.
    pub phase: Phase,
    /// The work to do.
    pub work: WorkSpec,
    /// Clients of the whole trial; a segment runs its share.
    pub clients: u64,
    /// When operations are sent.
    pub pace: PaceSpec,
    /// When the trial ends.
    pub until: Until,
    /// Seconds before measuring starts.
    #[serde(default)]
    pub warmup_seconds: f64,
    /// Which share of the trial this engine runs.
    #[serde(default)]
    pub segment: Segment,
    /// The seed of everything random.
    pub seed: u64,
    /// What happens after a failed insert.
    #[serde(default)]
    pub inserts: InsertSpec,
    /// Spin instead of sleeping while waiting for a due time.
    #[serde(default)]
    pub spin: bool,
    /// Executors for stores that are not driven by a thread per client; 0: one per processor, but at most one per 32
    /// clients where clients mostly wait for a network.
    #[serde(default)]
    pub executors: u64,
    /// An operation that succeeds later than this after it was due (closed loop: sent) is counted as late, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// What is recorded.
    pub sinks: Vec<Sink>,
    /// The length of a reported interval, ms.
    pub interval_ms: u64,
    /// The load stops when stdin is silent for this long, ms; no lease if absent.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    /// The load waits for `start_at` on stdin instead of starting at once.
    #[serde(default)]
    pub wait_for_start: bool,
    /// Wait until the store is idle before ending.
    #[serde(default)]
    pub settle: bool,
    /// A random number, which is in every value that a run with versions writes: the same for all segments of the run, and
    /// another for each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The writes of a run are recorded, so that lost ones can be found afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerSpec>,
}

/// Where the writes of a run are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerSpec {
    /// A file that does not exist yet. Each segment has its own.
    pub file: String,
}

/// A store and how it is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreSpec {
    /// Its name.
    pub name: String,
    /// The store's properties.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// What writes must survive.
    #[serde(default)]
    pub durability: DurabilitySpec,
}

/// What a write survives once acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DurabilitySpec {
    /// Nothing is guaranteed.
    None,
    /// The end of the process.
    #[default]
    Os,
    /// The end of the machine.
    Device,
}

impl From<DurabilitySpec> for loadstone_session::Durability {
    fn from(spec: DurabilitySpec) -> Self {
        match spec {
            DurabilitySpec::None => Self::None,
            DurabilitySpec::Os => Self::Os,
            DurabilitySpec::Device => Self::Device,
        }
    }
}

/// The phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Records are inserted.
    Load,
    /// The workload runs on the loaded records.
    Run,
}

/// The work of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
// There is one per process: a box would save nothing.
#[allow(clippy::large_enum_variant)]
pub enum WorkSpec {
    /// Records with fields, as in YCSB's `CoreWorkload`.
    Records(CoreSpec),
    /// YCSB's `TimeSeriesWorkload`.
    TimeSeries(TimeSeriesSpec),
    /// Files, as in Hadoop's TestDFSIO.
    Files(FilesSpec),
    /// Statements of a query language.
    Statements(StatementsSpec),
    /// One stage of `TeraGen`, `TeraSort` or `TeraValidate`. It has no clients, no due times and no store: what the spec says
    /// about these has no effect.
    Sort(SortSpec),
}

/// Statements, and the generator of their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "snake_case")]
pub enum StatementsSpec {
    /// The predefined operations of cassandra-stress.
    Stress(StressSpec),
    /// Any statements; their values come from generators of columns.
    Columns(ColumnsSpec),
}

impl StatementsSpec {
    fn check(&self) -> Result<(), Refusal> {
        let checked = match self {
            Self::Stress(stress) => stress.check(),
            Self::Columns(columns) => columns.check(),
        };
        checked.map_err(|invalid| {
            let message = format!("{{work.{}}}: {}", invalid.field, invalid.reason);
            Refusal::new(message, format!("change {{work.{}}}", invalid.field))
        })
    }
}

/// One stage of a sort. The stages run one after another; their caller is the barrier between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortSpec {
    /// The stage.
    pub stage: Stage,
    /// What is generated, sorted or validated: the same for every stage and segment.
    pub job: Job,
}

impl WorkSpec {
    /// The table of all operations; for files, their directory.
    pub fn table(&self) -> &str {
        match self {
            Self::Records(records) => &records.table,
            Self::TimeSeries(series) => &series.table,
            Self::Files(files) => &files.directory,
            // Statements name their tables.
            Self::Statements(_) | Self::Sort(_) => "",
        }
    }
}

/// When a trial ends: at the limit that is reached first; at least one must be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Measured operations of the whole trial.
    #[serde(default)]
    pub operations: Option<u64>,
    /// Measured seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// What happens after a failed insert.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertSpec {
    /// Retries (`core_workload_insertion_retry_limit`).
    pub retries: u64,
    /// Mean sleep before each, seconds (`core_workload_insertion_retry_interval`).
    pub retry_seconds: f64,
    /// Whether a load goes on after an insert whose last attempt failed (`core_workload_insertion_keep_going_on_error`).
    pub keep_going: bool,
}

impl Default for InsertSpec {
    fn default() -> Self {
        Self { retries: 0, retry_seconds: 3.0, keep_going: false }
    }
}

impl TrialSpec {
    /// Reads a spec of this version or an older one. Errors give the position.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let unreadable = |error: serde_json::Error| {
            EngineError::usage(format!("the TrialSpec cannot be read: {error}"))
                .hint("see docs/reference/schemas/trial-spec.json for its form")
        };
        // The version is checked first: a newer spec has fields that this engine does not know.
        let mut value: serde_json::Value = serde_json::from_str(text).map_err(unreadable)?;
        let spec = match value.get("spec").and_then(serde_json::Value::as_u64) {
            Some(version) if !(OLDEST..=u64::from(VERSION)).contains(&version) => {
                return Err(EngineError::usage(format!(
                    "the TrialSpec has version {version}, this engine reads {OLDEST} to {VERSION}"
                ))
                .hint("use the loadstone and loadstone-engine of one installation"));
            }
            Some(1) => {
                from_version_1(&mut value);
                serde_json::from_value(value).map_err(unreadable)?
            }
            // From the text, so that errors give the position.
            _ => serde_json::from_str::<Self>(text).map_err(unreadable)?,
        };
        spec.check()?;
        Ok(spec)
    }

    /// Whether a missing database may be created: by a load, and by a run that only inserts.
    pub fn creates(&self) -> bool {
        let only_inserts = match &self.work {
            WorkSpec::Records(records) => {
                let mix = records.mix;
                mix.insert > 0.0
                    && [mix.read, mix.update, mix.scan, mix.read_modify_write, mix.delete].iter().all(|&p| p <= 0.0)
            }
            WorkSpec::TimeSeries(_) | WorkSpec::Files(_) => true,
            WorkSpec::Statements(_) | WorkSpec::Sort(_) => false,
        };
        self.phase == Phase::Load || only_inserts
    }

    /// Refuses what cannot be run. Fields are named by their paths.
    pub fn check(&self) -> Result<(), EngineError> {
        self.validate()?;
        match &self.work {
            WorkSpec::Files(files) => Files::new(files.clone(), self.seed)
                .map(drop)
                .map_err(|(message, hint)| EngineError::usage(message).hint(hint)),
            WorkSpec::Sort(sort) => Ok(sort.job.check()?),
            WorkSpec::Records(_) | WorkSpec::TimeSeries(_) | WorkSpec::Statements(_) => Ok(()),
        }
    }

    /// The rules for every spec, on which front ends rely as well: the refusal has the paths of fields in braces.
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
        if let WorkSpec::Sort(_) = &self.work {
            return Ok(());
        }
        self.validate_clients()?;
        self.validate_times()?;
        self.sinks.iter().try_for_each(Sink::check)?;
        if self.ledger.is_some() {
            self.validate_ledger()?;
        }
        match &self.work {
            WorkSpec::Records(records) => records.check(self.phase == Phase::Run)?,
            WorkSpec::TimeSeries(series) => series.check(self.phase == Phase::Run)?,
            WorkSpec::Files(_) => self.validate_files()?,
            WorkSpec::Statements(statements) => statements.check()?,
            WorkSpec::Sort(_) => {}
        }
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
                hint: "use fewer clients, or several engines with a segment each".to_owned(),
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
        if self.phase == Phase::Load && self.warmup_seconds > 0.0 {
            return Err(Refusal::new(
                "{warmup_seconds} is for a run: a load counts every record",
                "leave it out of the load",
            ));
        }
        Ok(())
    }

    fn validate_files(&self) -> Result<(), Refusal> {
        if self.warmup_seconds > 0.0 {
            return Err(Refusal::new(
                "work on files cannot have a warm-up: a file counts from its first byte",
                "leave the warm-up out",
            ));
        }
        if !matches!(self.pace, PaceSpec::Closed) {
            return Err(Refusal::new(
                "work on files cannot have a rate: a client writes a file as fast as it can",
                "leave the rate out, and use fewer clients for less load",
            ));
        }
        Ok(())
    }

    fn validate_ledger(&self) -> Result<(), Refusal> {
        let WorkSpec::Records(records) = &self.work else {
            return Err(Refusal::new("a ledger is for records only", "leave {ledger} out"));
        };
        if self.phase == Phase::Load {
            return Err(Refusal::new(
                "a ledger is for a run, not for a load",
                "load with {work.versions}=true and a seed, then run with the same seed and {ledger}=FILE",
            ));
        }
        if !records.versions {
            return Err(Refusal::new("a ledger needs values that name their writes", "set {work.versions} to true"));
        }
        Ok(())
    }

    /// The identity of the run, as its ledger records it.
    pub fn identify_run(&self) -> Run {
        Run { seed: self.seed, number: self.run, spec: self.fingerprint() }
    }

    /// A hash of all that the operations of a run, and the order of their due times, follow from. A ledger carries it. What
    /// may differ between segments, or between a run and its read-back, is not in it: addresses and levels of the store, the
    /// run's number, which a front end draws for each command, and the recording options.
    pub fn fingerprint(&self) -> u64 {
        let followed = (&self.store.name, self.phase, &self.work, self.clients, &self.pace, self.until);
        // As a value, whose members are in alphabetic order, so the order of fields in the types has no effect.
        let canonical = serde_json::to_value((followed, self.warmup_seconds, self.seed));
        let canonical = canonical.map_or_else(|error| error.to_string(), |value| value.to_string());
        canonical
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

/// Turns version 1, where `work` was `workload` and its types were `core` and `timeseries`, into version 2.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPEC: &str = include_str!("../fixtures/trial-spec-1.json");

    /// Every released version can still be read.
    #[test]
    fn a_spec_of_version_1_is_read() {
        let spec = TrialSpec::parse(SPEC).unwrap();
        assert_eq!((spec.store.name.as_str(), spec.clients), ("rocksdb", 8));
        assert_eq!(spec.segment, Segment::default(), "omitted fields have their defaults");
        let WorkSpec::Records(records) = &spec.work else { panic!("{:?}", spec.work) };
        assert_eq!((spec.spec, records.field_count), (2, 10));
        let again = TrialSpec::parse(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec, "it is written as version 2, and reads back the same");
    }

    #[test]
    fn fingerprint_covers_operations_alone() {
        let parse = |from: &str, to: &str| {
            let text = SPEC.replace(from, to);
            assert!(from.is_empty() || text != SPEC, "{from} is in the fixture");
            TrialSpec::parse(&text).unwrap()
        };
        let own = parse("", "").fingerprint();
        assert_eq!(own, parse("", "").fingerprint());
        for (from, to) in [
            ("\"seed\": ", "\"seed\": 1"),
            ("\"clients\": 8", "\"clients\": 9"),
            ("\"read\": 0.5", "\"read\": 0.4"),
            ("\"operations\": 1000", "\"operations\": 1001"),
        ] {
            assert_ne!(parse(from, to).fingerprint(), own, "{to}");
        }
        let mut other = parse("", "");
        other.segment = Segment { k: 1, n: 2 };
        other.ledger = Some(LedgerSpec { file: "another".to_owned() });
        other.store.properties.insert("port".to_owned(), "1".to_owned());
        let other = TrialSpec { run: Some(7), lease_ms: Some(5), wait_for_start: true, interval_ms: 7, ..other };
        assert_eq!(other.fingerprint(), own);
    }

    #[test]
    fn a_spec_that_cannot_run_is_refused_with_the_reason() {
        for (from, to, wanted) in [
            ("\"spec\": 1", "\"spec\": 3", "version 3"),
            ("\"phase\": \"run\"", "\"phase\": \"load\", \"warmup_seconds\": 1", "warmup_seconds"),
            ("\"clients\": 8", "\"clients\": 0", "at least 1"),
            ("\"clients\": 8", "\"clients\": -1", "cannot be read"),
            ("\"clients\": 8", "\"cleints\": 8", "cleints"),
            ("{\n  \"operations\": 1000\n }", "{}", "never end"),
            ("{\n  \"operations\": 1000\n }", "{\"seconds\": -1}", "seconds"),
            ("\"interval_ms\": 1000", "\"interval_ms\": 0", "interval_ms"),
            ("\"insert_start\": 0", "\"insert_start\": 1", "is beyond work.records"),
            ("\"field_count\": 10", "\"field_count\": 0", "work.field_count"),
            ("\"mode\": \"closed\"", "\"mode\": \"open\", \"rate\": [], \"arrival\": \"uniform\"", "rate"),
        ] {
            let text = SPEC.replace(from, to);
            assert_ne!(text, SPEC, "{from} is in the fixture");
            let error = TrialSpec::parse(&text).unwrap_err();
            assert!(error.message.contains(wanted) && error.exit == 2, "{to}: {error}");
        }
    }

    proptest! {
        /// A broken lab must not crash an engine.
        #[test]
        fn no_text_makes_the_parser_panic(at in 0usize..SPEC.len(), bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
            let mut text = SPEC.as_bytes().to_vec();
            let end = (at + bytes.len()).min(text.len());
            text.splice(at..end, bytes);
            let _ = TrialSpec::parse(&String::from_utf8_lossy(&text));
        }
    }
}
