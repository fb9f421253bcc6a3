//! Work whose operations execute statements: the predefined operations of cassandra-stress, and operations with
//! generated columns.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loadstone_load::ledger::{Exception, Ledger, WriteState};
use loadstone_load::{Status, StepId, Workload};
use loadstone_session::erased::Driving;
use loadstone_session::statements::{Cells, NullStatements, Statement, StatementStore, Statements};
use loadstone_session::{EngineError, Options};

use crate::mapping::Mapping;
use crate::records::ledger::{self, LedgerWriter};
use crate::retry::{Retried, RetryPolicy, retry_operation};
use loadstone_measure::actor::{Actor, Outcome, Stopwatch};
use loadstone_measure::borders::Borders;
use loadstone_measure::client::{ClientContext, drive_thread};
use loadstone_measure::clock::{ThreadTimer, Timer};
use loadstone_measure::control::TrialFailure;
use loadstone_measure::crew::{Client, Crew, OpenedStore, Target};
use loadstone_measure::task::{Task, Work, WorkKind};
use loadstone_wire::event::{MissingRows, Note};
use loadstone_wire::spec::TrialSpec;

/// Reads that found no row.
#[derive(Debug, Default)]
pub struct MissingReads(Mutex<Option<MissingRows>>);

impl MissingReads {
    #[cold]
    fn count_miss(&self, number: i64) {
        let mut missing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        missing.get_or_insert(MissingRows { reads: 0, number }).reads += 1;
    }

    /// The number of reads that found no row, and the partition of one such read; `None` if there are none.
    pub fn missing_rows(&self) -> Option<MissingRows> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A note about the reads that found no row, if there are any.
    pub fn describe_misses(&self, hint: &str) -> Vec<Note> {
        let note = |MissingRows { reads, number }| Note {
            name: "missing-rows".to_owned(),
            message: format!("{reads} reads found no row, for example partition {number}"),
            hint: hint.to_owned(),
        };
        self.missing_rows().map(note).into_iter().collect()
    }
}

/// The state of a trial that is common to all work with statements.
#[derive(Debug, Default)]
pub struct StatementState {
    pub policy: RetryPolicy,
    pub missing: MissingReads,
    /// The ledger of the run's writes, if the spec requests one.
    pub ledger: Option<Ledger<Mapping>>,
    /// Number of ticks of the ledger so far.
    ticks: AtomicU64,
}

impl StatementState {
    /// The state at the start of a trial.
    pub fn new(spec: &TrialSpec, workers: u64) -> Result<Self, EngineError> {
        let policy = RetryPolicy { stop: !spec.inserts.keep_going, ..RetryPolicy::from_spec(spec) };
        Ok(Self { policy, ledger: ledger::create_ledger(spec, workers)?, ..Self::default() })
    }

    /// Records the number of claimed operations in the ledger, if there is one. Returns the time of the next record.
    pub fn schedule_tick(&self, claimed: u64, now_ns: u64, awake_ns: u64) -> u64 {
        let Some(ledger) = &self.ledger else { return u64::MAX };
        ledger.note_tick(claimed, now_ns);
        now_ns + ledger::tick_ns(self.ticks.fetch_add(1, Ordering::Relaxed) + 1, awake_ns)
    }
}

/// Identifies an operation in error messages.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub index: u64,
    pub step: StepId,
    pub name: &'static str,
    /// The number of the operation's partition.
    pub number: i64,
}

/// Work whose operations execute statements. The last step of the work closes a session.
#[allow(async_fn_in_trait)]
pub trait StatementWork: Workload + WorkKind + Sized {
    fn state(&self) -> &StatementState;

    fn statements(&self) -> &Arc<[Statement]>;

    fn identify_operation(&self, operation: &Self::Operation) -> Identity;

    /// The key for the message of a failure.
    fn key<'a>(&self, operation: &'a Self::Operation) -> Cow<'a, [u8]>;

    /// Sends an operation, and stores the rows of its answer in `cells`.
    async fn send_operation<S: Statements>(
        &self,
        session: &mut S,
        operation: &Self::Operation,
        cells: &mut Cells,
    ) -> Status;

    /// Compares the rows of an answer with the rows written. The error contains the status of the operation, and a
    /// message.
    fn compare_cells(&self, operation: &Self::Operation, cells: &Cells) -> Result<(), (Status, String)>;

    /// The number of a write in the ledger; `None` if the ledger does not record the operation.
    fn ledger_number(&self, _operation: &Self::Operation) -> Option<u64> {
        None
    }

    /// Whether repeating a recorded write has the same effect as a single attempt.
    fn is_idempotent(&self) -> bool {
        true
    }

    /// The number of rows and bytes of an operation that has finished. `counts`: whether it succeeded in the measured
    /// time.
    fn measure_operation(&self, operation: &Self::Operation, cells: &Cells, counts: bool) -> (u64, u64);
}

/// Performs one client's operations.
#[derive(Debug)]
pub struct StatementActor<'a, S, W> {
    task: &'a Task<W>,
    session: &'a mut S,
    cells: Cells,
    writer: Option<LedgerWriter<'a>>,
    unsent: bool,
}

impl<'a, S: Statements, W: StatementWork> StatementActor<'a, S, W> {
    /// Creates the actor for a client of this worker.
    pub fn new(task: &'a Task<W>, session: &'a mut S, worker: usize) -> Self {
        let ledger = task.work.state().ledger.as_ref();
        let writer = ledger.map(|ledger| LedgerWriter { ledger, pen: ledger.create_pen(worker) });
        Self { task, session, cells: Cells::default(), writer, unsent: false }
    }

    /// Records the outcome of a write in the ledger. The first attempt had the status `first`.
    fn note_write<T: Timer>(
        &self,
        operation: &W::Operation,
        (first, status): (Status, Status),
        watch: &Stopwatch<'_, T>,
        done: u64,
    ) {
        let work = &self.task.work;
        let Some(writer) = &self.writer else { return };
        let Some(number) = work.ledger_number(operation) else { return };
        let index = work.identify_operation(operation).index;
        let state = match status {
            Status::Ok if first.is_ok() || work.is_idempotent() => WriteState::Acknowledged,
            Status::Ok => WriteState::Retried,
            // A refusal is certain only without retries: of several attempts, only the last attempt's outcome is known.
            _ if self.unsent || (work.state().policy.retries == 0 && self.session.is_refusal(status)) => {
                WriteState::Refused
            }
            _ => WriteState::Maybe,
        };
        let retried = state == WriteState::Retried;
        let exception = Exception { index, sent: watch.sent_ns, done, status: Some(status), retried };
        writer.note_write(number, state, watch.ready_ns, exception);
    }

    /// Stores the message of a read whose rows differ from the rows written, and halts the trial if the policy requires
    /// this. `counted`: whether the read was in the measured time.
    #[cold]
    fn explain_failure(&self, operation: &W::Operation, status: Status, message: &str, counted: bool) {
        let work = &self.task.work;
        let Identity { step, name, number, .. } = work.identify_operation(operation);
        if status == Status::NotFound && counted {
            work.state().missing.count_miss(number);
        }
        self.task.failures.keep_message(step, status, || Some(message.to_owned()));
        if work.state().policy.stop {
            self.task.scheduler.halt_because(|| TrialFailure::Operation {
                operation: name,
                key: String::from_utf8_lossy(&work.key(operation)).into_owned(),
                status,
                message: message.to_owned(),
                attempts: 0,
            });
        }
    }
}

impl<S: Statements, W: StatementWork> Actor for StatementActor<'_, S, W> {
    type Operation = W::Operation;

    #[inline]
    async fn perform_operation<T: Timer>(&mut self, operation: &W::Operation, watch: &Stopwatch<'_, T>) -> Outcome {
        let task = self.task;
        let work = &task.work;
        let Identity { index, step, name, .. } = work.identify_operation(operation);
        let mut status = work.send_operation(self.session, operation, &mut self.cells).await;
        let mut done_ns = watch.now_ns();
        let first = status;
        self.unsent = false;
        if status.is_ok() {
            // A wrong answer is not retried, because the next answer would also be wrong.
            if let Err((difference, message)) = work.compare_cells(operation, &self.cells) {
                status = difference;
                self.explain_failure(operation, status, &message, watch.counted);
            }
            watch.record_step(step, status, watch.sent_ns, done_ns);
        } else {
            let key = work.key(operation);
            let retried = Retried { index, step, name, key: &key };
            let cells = &mut self.cells;
            let attempt = async |session: &mut S| work.send_operation(session, operation, cells).await;
            let policy = &work.state().policy;
            (status, done_ns, self.unsent) =
                retry_operation(task, policy, self.session, watch, retried, (status, done_ns), attempt).await;
        }
        self.note_write(operation, (first, status), watch, done_ns);
        let (rows, bytes) = work.measure_operation(operation, &self.cells, status.is_ok() && watch.counted);
        Outcome { status, done_ns, rows, bytes }
    }

    fn is_unsent(&self) -> bool {
        self.unsent
    }

    async fn pause(&mut self) {
        self.session.pause().await;
    }

    async fn close(&mut self) -> (StepId, Status) {
        let last = self.task.work.step_names().len() - 1;
        (StepId(last as u16), self.session.cleanup().await)
    }
}

/// A statement store as a target of work that executes statements.
#[derive(Debug)]
pub struct SessionTarget<'a, S> {
    /// Statements to execute before the store is opened.
    definitions: &'a [String],
    store: PhantomData<fn() -> S>,
}

impl<'a, S> SessionTarget<'a, S> {
    /// A target for one type of store.
    pub const fn new(definitions: &'a [String]) -> Self {
        Self { definitions, store: PhantomData }
    }
}

impl<S: StatementStore, W: StatementWork + Work<S::Statements> + Work<NullStatements>> Target<W>
    for SessionTarget<'_, S>
{
    fn driving_mode(&self) -> Driving {
        Driving::for_store::<S>()
    }

    fn probe_operations(&self, task: &Task<W>, borders: &Borders, context: ClientContext<'_>) {
        drive_thread(task, borders, ThreadTimer::default(), &mut NullStatements, context);
    }

    fn open_store(&self, options: &Options) -> Result<OpenedStore<W>, EngineError> {
        if !self.definitions.is_empty() {
            S::define(options, self.definitions)?;
        }
        let store = Arc::new(S::open(options)?);
        let open = Arc::clone(&store) as _;
        let crew = move |task: Arc<Task<W>>, _by_thread| {
            let statements = Arc::clone(task.work.statements());
            Crew::Tasks(Box::new(move || {
                let session = store.statements(&statements);
                Ok(Box::new(Client { session, task: Arc::clone(&task) }))
            }))
        };
        Ok(OpenedStore { store: open, crew: Box::new(crew) })
    }
}
