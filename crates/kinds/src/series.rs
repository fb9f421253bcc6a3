//! YCSB's time series: points are written as fields, and bindings receive the clauses of queries as field names.

use loadstone_load::time_series::{SeriesOperation, SeriesWorkload, TimeSeriesLoad, TimeSeriesRun, TimeSeriesSpec};
use loadstone_load::{Check, Kind, Projection, Row, Status, StepId, Workload};
use loadstone_session::{EngineError, Rows, Session};

use super::records::actor::{close_session, time_verification, worse_status};
use super::records::inserts::retry_insert;
use crate::retry::RetryPolicy;
use crate::stores::{Trial, VirtualTarget};
use loadstone_measure::actor::{Actor, Outcome, Stopwatch};
use loadstone_measure::clock::Timer;
use loadstone_measure::control::End;
use loadstone_measure::task::{Task, Work, WorkKind};
use loadstone_measure::trial;
use loadstone_wire::event::Sections;
use loadstone_wire::spec::{Phase, TrialSpec};

/// YCSB's time series with the retry policy of its inserts.
#[derive(Debug)]
pub struct SeriesWork {
    workload: SeriesOf,
    insert_policy: RetryPolicy,
}

/// Runs a trial of a time series.
pub fn run_trial(series: &TimeSeriesSpec, to_run: Trial<'_>) -> Result<End, EngineError> {
    let Trial { spec, stores, controls, observer } = to_run;
    let work = SeriesWork::new(series, spec.phase, spec.seed)?;
    let target = VirtualTarget(&stores.find_records(&spec.store.name)?.store);
    trial::run_trial(spec, work, &target, controls, observer)
}

/// The workload, which is either a load or a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has only one")]
enum SeriesOf {
    Load(TimeSeriesLoad),
    Run(TimeSeriesRun),
}

impl SeriesWork {
    /// The workload of a phase. Fails if the spec is invalid.
    pub fn new(spec: &TimeSeriesSpec, phase: Phase, seed: u64) -> Result<Self, EngineError> {
        let workload = match phase {
            Phase::Load => SeriesOf::Load(TimeSeriesLoad::new(spec.clone(), seed).map_err(EngineError::usage)?),
            Phase::Run => SeriesOf::Run(TimeSeriesRun::new(spec.clone(), seed).map_err(EngineError::usage)?),
        };
        Ok(Self { workload, insert_policy: RetryPolicy::default() })
    }
}

load_or_run!(SeriesOf, SeriesOperation);

impl SeriesWorkload for SeriesOf {
    fn has_read_checks(&self) -> bool {
        matches!(self, Self::Run(run) if run.has_read_checks())
    }

    fn verify_read(&self, operation: &SeriesOperation, read: &Row) -> Option<Check> {
        if let Self::Run(run) = self { run.verify_read(operation, read) } else { None }
    }
}

forward_workload!(SeriesWork, SeriesOperation);

impl WorkKind for SeriesWork {
    fn prepare_trial(&mut self, spec: &TrialSpec, _workers: u64) -> Result<(), EngineError> {
        self.insert_policy = RetryPolicy::from_spec(spec);
        Ok(())
    }

    fn summary_sections(&self, _to_unix_ns: u64) -> Sections {
        Sections::default()
    }
}

impl<S: Session> Work<S> for SeriesWork {
    type Actor<'a>
        = SeriesActor<'a, S>
    where
        S: 'a;

    fn create_actor<'a>(task: &'a Task<Self>, session: &'a mut S, _worker: usize) -> Self::Actor<'a> {
        SeriesActor { task, session, row: Row::default(), rows: Rows::default(), unsent: false }
    }
}

/// Performs one client's operations on time series.
#[derive(Debug)]
pub struct SeriesActor<'a, S> {
    task: &'a Task<SeriesWork>,
    session: &'a mut S,
    row: Row,
    rows: Rows,
    unsent: bool,
}

impl<S: Session> SeriesActor<'_, S> {
    fn verify_read<T: Timer>(&self, operation: &SeriesOperation, watch: &Stopwatch<'_, T>) -> Status {
        if !self.task.work.workload.has_read_checks() {
            return Status::Ok;
        }
        time_verification(self.task, watch, &operation.key, || {
            self.task.work.workload.verify_read(operation, &self.row)
        })
    }
}

impl<S: Session> Actor for SeriesActor<'_, S> {
    type Operation = SeriesOperation;

    async fn perform_operation<T: Timer>(&mut self, operation: &SeriesOperation, watch: &Stopwatch<'_, T>) -> Outcome {
        self.unsent = false;
        let SeriesOperation { kind, key, row, clauses, .. } = operation;
        let (status, rows) = match kind {
            Kind::Insert => {
                let (outcome, _, unsent) = {
                    let policy = (&self.task.work.insert_policy, false);
                    retry_insert(self.task, policy, self.session, watch, (operation.index, key, row)).await
                };
                self.unsent = unsent;
                return outcome;
            }
            Kind::Read => (self.session.read(key, Projection::Names(clauses), &mut self.row).await, 1),
            Kind::Update => (self.session.update(key, row).await, 1),
            Kind::Scan => {
                let (count, projection) = (operation.scan_count, Projection::Names(clauses));
                (self.session.scan(key, count, projection, &mut self.rows).await, self.rows.len() as u64)
            }
            Kind::Delete => (self.session.delete(key).await, 1),
            // No mix contains these steps.
            Kind::ReadModifyWrite | Kind::Verify | Kind::Cleanup => (Status::NotImplemented, 0),
        };
        let done_ns = watch.now_ns();
        if !status.is_ok() {
            self.row.clear_fields();
            let message = self.session.last_error();
            self.unsent = self.session.is_unsent();
            self.task.failures.keep_message(kind.step(), status, || message);
        }
        watch.record_step(kind.step(), status, watch.sent_ns, done_ns);
        let status =
            if *kind == Kind::Read { worse_status(status, self.verify_read(operation, watch)) } else { status };
        let bytes = if *kind == Kind::Read { self.row.bytes().len() } else { row.bytes().len() };
        Outcome { status, done_ns, rows, bytes: bytes as u64 }
    }

    fn is_unsent(&self) -> bool {
        self.unsent
    }

    async fn pause(&mut self) {
        self.session.pause().await;
    }

    async fn close(&mut self) -> (StepId, Status) {
        close_session(self.task, self.session).await
    }
}
