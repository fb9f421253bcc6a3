//! YCSB's records: the workload, and the state that its clients share.

pub mod actor;
pub mod inserts;
pub mod ledger;
pub mod misses;
pub mod overwrites;
pub mod ranges;
pub mod target;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec, Mix};
use loadstone_load::ledger::Ledger;
use loadstone_load::{Check, Operation, RecordWorkload, Row, StepId, Workload};
use loadstone_session::{Placement, Session};

use crate::mapping::Mapping;
use crate::retry::RetryPolicy;
use actor::RecordActor;
use inserts::InsertLog;
use loadstone_measure::task::{Task, Work, WorkKind};
use loadstone_wire::error::EngineError;
use loadstone_wire::event::{Note, Sections};
use loadstone_wire::spec::{Phase, TrialSpec};
use misses::Misses;
use overwrites::{Overwrites, find_overwrites};
use ranges::RangeCounts;

/// A workload on records, and the state that its clients share.
#[derive(Debug)]
pub struct Records<W> {
    pub workload: W,
    /// The log of inserts in the run phase; `None` in a load.
    pub inserts: Option<InsertLog>,
    /// Reads that did not find records inserted by other segments.
    pub misses: Misses,
    /// How a failed insert is handled.
    pub insert_policy: RetryPolicy,
    /// Number of reads for which whole values were compared, rather than only their versions.
    pub compared: AtomicU64,
    /// The counts by key range, if the spec requests them.
    pub ranges: Option<RangeCounts>,
    /// The ledger of the run's writes, if the spec requests one.
    pub ledger: Option<Ledger<Mapping>>,
    /// Number of ticks of the ledger so far.
    ledger_ticks: AtomicU64,
    /// The existing records that the inserts of the run overwrite.
    overwrites: OnceLock<Overwrites>,
}

impl<W> Records<W> {
    /// A workload without an insert log and without a ledger.
    pub fn new(workload: W) -> Self {
        Self {
            workload,
            inserts: None,
            misses: Misses::default(),
            insert_policy: RetryPolicy::default(),
            compared: AtomicU64::new(0),
            ranges: None,
            ledger: None,
            ledger_ticks: AtomicU64::new(0),
            overwrites: OnceLock::new(),
        }
    }
}

forward_workload!(Records<W: RecordWorkload>, Operation);

impl<W: RecordWorkload + fmt::Debug + 'static> WorkKind for Records<W> {
    fn prepare_probe(&mut self, spec: &TrialSpec, operations: u64, threads: u64) -> Result<(), EngineError> {
        self.ledger = ledger::create_for_probe(spec, operations, threads)?;
        Ok(())
    }

    fn prepare_trial(&mut self, spec: &TrialSpec, workers: u64) -> Result<(), EngineError> {
        self.compared = AtomicU64::new(0);
        self.inserts = (spec.phase == Phase::Run).then(InsertLog::default);
        self.insert_policy = RetryPolicy::from_spec(spec);
        self.ledger = ledger::create_ledger(spec, workers)?;
        Ok(())
    }

    fn count_by_range(&mut self, spec: &TrialSpec, placement: Option<Placement>) {
        self.ranges = RangeCounts::new(spec, placement);
    }

    fn opening_notes(&self) -> Vec<Note> {
        self.overwrites.get().map(|overwrites| overwrites.describe_overwrites()).into_iter().collect()
    }

    fn start_trial(&self, start_ns: u64, to_unix_ns: u64) {
        if let Some(ledger) = &self.ledger {
            ledger.note_start(start_ns, to_unix_ns);
        }
    }

    /// Records the number of claimed operations in the ledger, if there is one.
    fn tick(&self, claimed: u64, now_ns: u64, awake_ns: u64) -> u64 {
        let Some(ledger) = &self.ledger else { return u64::MAX };
        ledger.note_tick(claimed, now_ns);
        let ticks = self.ledger_ticks.fetch_add(1, Ordering::Relaxed) + 1;
        now_ns + ledger::tick_ns(ticks, awake_ns)
    }

    fn end_trial(&self, claimed: u64, now_ns: u64) {
        if let Some(ledger) = &self.ledger {
            ledger.note_close(claimed, now_ns);
        }
    }

    fn summary_sections(&self, to_unix_ns: u64) -> Sections {
        Sections {
            unsettled: self.misses.list_unsettled(to_unix_ns),
            compared: self.compared.load(Ordering::Relaxed),
            key_ranges: self.ranges.as_ref().map(RangeCounts::section),
            ..Sections::default()
        }
    }
}

impl<S: Session, W: RecordWorkload + fmt::Debug + 'static> Work<S> for Records<W> {
    type Actor<'a>
        = RecordActor<'a, S, W>
    where
        W: 'a,
        S: 'a;

    fn create_actor<'a>(task: &'a Task<Self>, session: &'a mut S, worker: usize) -> Self::Actor<'a> {
        RecordActor::new(task, session, worker)
    }

    async fn inspect_store(&self, session: &mut S) {
        if let Some(overwrites) = find_overwrites(&self.workload, session).await {
            self.overwrites.get_or_init(|| overwrites);
        }
    }
}

/// The workload on YCSB's records, either a load or a run, as a single type. The loop is therefore compiled once per
/// store, rather than once per store and workload. The additional branch is perfectly predictable.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has only one")]
pub enum RecordsOf {
    Load(CoreLoad),
    Run(CoreRun),
}

impl RecordsOf {
    /// The workload of a phase, in the run with the given number. Fails if the workload has no operations.
    pub fn new(spec: &CoreSpec, phase: Phase, seed: u64, run: Option<u64>) -> Result<Self, EngineError> {
        Ok(match phase {
            Phase::Load => Self::Load(CoreLoad::new(spec.clone(), seed)),
            Phase::Run => Self::Run(CoreRun::new(spec.clone(), seed).ok_or_else(Mix::refuse_empty)?.with_number(run)),
        })
    }
}

load_or_run!(RecordsOf, Operation);

impl RecordWorkload for RecordsOf {
    #[inline]
    fn field_names(&self) -> &[String] {
        either!(self.field_names())
    }

    // A load does not read or delete, and no operation depends on its inserts.

    #[inline]
    fn has_read_checks(&self) -> bool {
        matches!(self, Self::Run(run) if run.has_read_checks())
    }

    #[inline]
    fn verify_read(&self, operation: &Operation, read: &Row) -> Option<Check> {
        if let Self::Run(run) = self { run.verify_read(operation, read) } else { None }
    }

    #[inline]
    fn is_value_compared(&self, index: u64) -> bool {
        matches!(self, Self::Run(run) if run.is_value_compared(index))
    }

    #[inline]
    fn insert_number(&self, record: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.insert_number(record) } else { None }
    }

    fn index_of_insert(&self, number: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.index_of_insert(number) } else { None }
    }

    #[inline]
    fn write_number(&self, index: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.write_number(index) } else { None }
    }

    fn index_of_delete(&self, record: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.index_of_delete(record) } else { None }
    }
}
