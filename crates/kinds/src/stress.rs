//! The predefined operations of cassandra-stress: statements on one partition each.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use loadstone_load::kind_sequence::KindSequence;
use loadstone_load::{Kind, Status, StepId, Workload};
use loadstone_session::erased::Driving;
use loadstone_session::statements::{Cells, NullStatements, Statement, StatementStore, Statements, Values};
use loadstone_session::{EngineError, Options};
use loadstone_stress::population::Selection;
use loadstone_stress::row::Row;
use loadstone_stress::spec::{Command, Generators, StressSpec};

use crate::retry::{Retried, RetryPolicy, retry};
use loadstone_measure::actor::{Actor, Outcome, Stopwatch};
use loadstone_measure::borders::Borders;
use loadstone_measure::client::{ClientContext, drive_thread};
use loadstone_measure::clock::{ThreadTimer, Timer};
use loadstone_measure::control::TrialFailure;
use loadstone_measure::crew::{Client, Crew, Opened, Target};
use loadstone_measure::task::{Kind as WorkKind, Task, Work};
use loadstone_wire::event::{MissingRows, Note, Sections};
use loadstone_wire::spec::TrialSpec;

/// The names of the steps: the commands, then the end of a session.
const STEPS: [&str; 5] = ["READ", "WRITE", "COUNTER_READ", "COUNTER_WRITE", "CLEANUP"];
const CLEANUP: StepId = StepId(4);
/// The kinds that represent the commands in a sequence with exact quotas.
const KINDS: [Kind; 4] = [Kind::Read, Kind::Insert, Kind::Scan, Kind::Update];

/// The operations, and the state that their clients share.
#[derive(Debug)]
pub struct StressWork {
    spec: StressSpec,
    /// The commands that have a weight, and their statements.
    statements: Arc<[Statement]>,
    /// The statement of each command.
    statement_of: [usize; 4],
    sequence: KindSequence,
    generators: Generators,
    policy: RetryPolicy,
    clients: u64,
    /// Reads that found no row.
    missing: Mutex<Option<MissingRows>>,
}

impl StressWork {
    /// The work of a spec.
    pub fn new(spec: &StressSpec, seed: u64, operations: Option<u64>) -> Result<Self, EngineError> {
        let invalid = |invalid: loadstone_stress::spec::Invalid| {
            EngineError::usage(format!("work.{}: {}", invalid.field, invalid.reason))
        };
        spec.check().map_err(invalid)?;
        let generators = spec.generators(seed).map_err(invalid)?;
        let mut statements = Vec::new();
        let mut statement_of = [usize::MAX; 4];
        let mut weights = Vec::new();
        for (command, weight) in spec.mix.iter().filter(|(_, weight)| **weight > 0.0) {
            statement_of[*command as usize] = statements.len();
            let text = spec.statement(*command);
            statements.push(Statement { text, writes: command.writes(), prepared: !spec.unprepared });
            weights.push((KINDS[*command as usize], *weight));
        }
        let no_command = || EngineError::usage("work.mix: no command has a weight above 0");
        // With a lookback, writes alone advance the sequence of partitions.
        let counted: &[Kind] =
            if looks_back(spec) { &KINDS[Command::Write as usize..=Command::Write as usize] } else { &[] };
        let sequence = KindSequence::new(seed, &weights, counted, operations).ok_or_else(no_command)?;
        Ok(Self {
            spec: spec.clone(),
            statements: statements.into(),
            statement_of,
            sequence,
            generators,
            policy: RetryPolicy::default(),
            clients: 1,
            missing: Mutex::default(),
        })
    }

    #[inline]
    fn command(&self, index: u64) -> Command {
        match self.sequence.kind(index) {
            Kind::Read => Command::Read,
            Kind::Insert => Command::Write,
            Kind::Scan => Command::CounterRead,
            _ => Command::CounterWrite,
        }
    }

    fn missing_rows(&self) -> Option<MissingRows> {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn count_missing(&self, number: i64) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.get_or_insert(MissingRows { reads: 0, number }).reads += 1;
    }
}

/// Whether reads follow the writes of a sequence.
fn looks_back(spec: &StressSpec) -> bool {
    matches!(&spec.population, Selection::Sequence { read_lookback: Some(_), .. })
}

/// An operation, in buffers that are used again.
#[derive(Debug)]
pub struct StressOperation {
    index: u64,
    command: Command,
    /// The number of its partition.
    number: i64,
    /// Its key, and the values of its columns.
    row: Row,
    values: Values,
    increments: Vec<i64>,
    /// The client's own generators.
    generators: Option<Box<Generators>>,
}

impl Default for StressOperation {
    fn default() -> Self {
        Self {
            index: 0,
            command: Command::Read,
            number: 0,
            row: Row::default(),
            values: Values::default(),
            increments: Vec::new(),
            generators: None,
        }
    }
}

impl Workload for StressWork {
    type Operation = StressOperation;

    fn steps(&self) -> &'static [&'static str] {
        &STEPS
    }

    #[inline]
    fn fill(&self, index: u64, operation: &mut StressOperation) {
        let StressOperation { row, values, increments, .. } = operation;
        let generators = operation.generators.get_or_insert_with(|| Box::new(self.generators.clone()));
        let Generators { population, rows, increments: draws } = &mut **generators;
        let command = self.command(index);
        let number = if looks_back(&self.spec) {
            let written = self.sequence.before(KINDS[Command::Write as usize], index);
            match command {
                Command::Write => population.number_at(written),
                // The writes of the other clients may not have ended. The first row is read while there is no other.
                _ => population.read_number_at(index, written.saturating_sub(self.clients).max(1)),
            }
        } else {
            population.number_at(index)
        };
        // `operations` ends a sequence that does not wrap.
        let number = number.unwrap_or_default();
        let seed = population.seed_of(number);
        values.clear();
        values.timestamp_us = self.spec.timestamp_us;
        match command {
            Command::Write => {
                rows.fill(seed, row);
                for value in row.columns() {
                    match value {
                        Some(bytes) => values.push(bytes),
                        None => values.push_null(),
                    }
                }
            }
            Command::Read if self.spec.validates => rows.fill(seed, row),
            Command::CounterWrite => {
                row.key.clear();
                rows.append_key(seed, &mut row.key);
                draws.fill(index, self.spec.columns.len(), increments);
                for increment in &*increments {
                    values.push(&increment.to_be_bytes());
                }
            }
            Command::Read | Command::CounterRead => {
                row.key.clear();
                rows.append_key(seed, &mut row.key);
            }
        }
        values.push(&row.key);
        (operation.index, operation.command, operation.number) = (index, command, number);
    }

    fn step_of(&self, index: u64) -> StepId {
        StepId(self.command(index) as u16)
    }

    fn operations(&self) -> Option<u64> {
        match &self.spec.population {
            Selection::Sequence { wrap: false, .. } => self.generators.population.length(),
            _ => None,
        }
    }

    fn any_order(&self) -> bool {
        !looks_back(&self.spec)
    }
}

impl WorkKind for StressWork {
    fn steps(&self) -> &'static [&'static str] {
        &STEPS
    }

    fn step_of(&self, index: u64) -> StepId {
        Workload::step_of(self, index)
    }

    fn prepare_trial(&mut self, spec: &TrialSpec, _workers: u64) -> Result<(), EngineError> {
        self.policy = RetryPolicy { stop: !spec.inserts.keep_going, ..RetryPolicy::from_spec(spec) };
        self.clients = spec.clients;
        self.missing = Mutex::default();
        Ok(())
    }

    fn closing_notes(&self) -> Vec<Note> {
        let Some(MissingRows { reads, number }) = self.missing_rows() else { return Vec::new() };
        vec![Note {
            name: "missing-rows".to_owned(),
            message: format!("{reads} reads found no row, for example partition {number}"),
            hint: "load the whole population first: write n=COUNT, then read -pop seq=1..COUNT".to_owned(),
        }]
    }

    fn sections(&self, _to_unix_ns: u64) -> Sections {
        Sections { missing_rows: self.missing_rows(), ..Sections::default() }
    }
}

impl<S: Statements> Work<S> for StressWork {
    type Actor<'a>
        = StressActor<'a, S>
    where
        S: 'a;

    fn actor<'a>(task: &'a Task<Self>, session: &'a mut S, _worker: usize) -> Self::Actor<'a> {
        StressActor { task, session, cells: Cells::default(), unsent: false }
    }
}

/// One client's operations.
#[derive(Debug)]
pub struct StressActor<'a, S> {
    task: &'a Task<StressWork>,
    session: &'a mut S,
    cells: Cells,
    unsent: bool,
}

impl<S: Statements> StressActor<'_, S> {
    /// The status of a read that was answered: whether the row is there, and has the values that were written.
    #[inline]
    fn validate(&self, operation: &StressOperation) -> Status {
        if self.cells.rows() == 0 {
            self.task.work.count_missing(operation.number);
            return Status::NotFound;
        }
        let work = &self.task.work;
        if operation.command != Command::Read || !work.spec.validates || work.spec.selects_all {
            return Status::Ok;
        }
        let same = self.cells.rows() == 1
            && self.cells.width() == operation.row.ends.len()
            && operation.row.columns().enumerate().all(|(column, value)| self.cells.get(0, column) == value);
        if same { Status::Ok } else { Status::UnexpectedState }
    }

    /// Keeps the message of a read whose answer is wrong.
    #[cold]
    fn explain(&self, operation: &StressOperation, status: Status) {
        let number = operation.number;
        let message = match status {
            Status::NotFound => format!("partition {number} has no row"),
            _ if self.cells.rows() > 1 => {
                format!("partition {number} has {} rows instead of one", self.cells.rows())
            }
            _ if self.cells.width() != operation.row.ends.len() => {
                let (columns, written) = (self.cells.width(), operation.row.ends.len());
                format!("partition {number} has {columns} columns, {written} were written")
            }
            _ => format!("partition {number} has other values than the written ones"),
        };
        self.task.failures.keep(StepId(operation.command as u16), status, || Some(message.clone()));
        if self.task.work.policy.stop {
            let (operation, key) = (operation.command.name(), String::from_utf8_lossy(&operation.row.key).into_owned());
            let attempts = 0;
            self.task.scheduler.halt_because(|| TrialFailure::Operation { operation, key, status, message, attempts });
        }
    }
}

impl<S: Statements> Actor for StressActor<'_, S> {
    type Operation = StressOperation;

    #[inline]
    async fn perform<T: Timer>(&mut self, operation: &StressOperation, watch: &Stopwatch<'_, T>) -> Outcome {
        let StressOperation { index, command, row, values, .. } = operation;
        let (step, statement) = (StepId(*command as u16), self.task.work.statement_of[*command as usize]);
        let mut status = self.session.execute(statement, values, &mut self.cells).await;
        let mut done_ns = watch.now_ns();
        self.unsent = false;
        if status.is_ok() {
            if !command.writes() {
                status = self.validate(operation);
            }
            watch.step(step, status, watch.sent_ns, done_ns);
            if !status.is_ok() {
                // A wrong answer is not retried: the next one would be as wrong.
                self.explain(operation, status);
            }
        } else {
            let retried = Retried { index: *index, step, name: command.name(), key: &row.key };
            let cells = &mut self.cells;
            let attempt = async |session: &mut S| session.execute(statement, values, cells).await;
            let policy = &self.task.work.policy;
            let first = (status, done_ns);
            (status, done_ns, self.unsent) =
                retry(self.task, policy, self.session, watch, retried, first, attempt).await;
        }
        let bytes = if command.writes() { values.as_bytes().len() } else { self.cells.bytes() };
        Outcome { status, done_ns, rows: 1, bytes: bytes as u64 }
    }

    fn unsent(&self) -> bool {
        self.unsent
    }

    async fn pause(&mut self) {
        self.session.pause().await;
    }

    async fn close(&mut self) -> (StepId, Status) {
        (CLEANUP, self.session.cleanup().await)
    }
}

/// A store of statements, as a target of cassandra-stress.
#[derive(Debug)]
pub struct StressTarget<'a, S> {
    /// Executed before the store is opened.
    definitions: &'a [String],
    store: PhantomData<fn() -> S>,
}

impl<'a, S> StressTarget<'a, S> {
    /// The target of a type of store.
    pub const fn new(definitions: &'a [String]) -> Self {
        Self { definitions, store: PhantomData }
    }
}

impl<S: StatementStore> Target<StressWork> for StressTarget<'_, S> {
    fn driving(&self) -> Driving {
        Driving::for_store::<S>()
    }

    fn probe(&self, task: &Task<StressWork>, borders: &Borders, context: ClientContext<'_>) {
        drive_thread(task, borders, ThreadTimer::default(), &mut NullStatements, context);
    }

    fn open(&self, options: &Options) -> Result<Opened<StressWork>, EngineError> {
        if !self.definitions.is_empty() {
            S::define(options, self.definitions)?;
        }
        let store = Arc::new(S::open(options)?);
        let open = Arc::clone(&store) as _;
        let crew = move |task: Arc<Task<StressWork>>, _by_thread| {
            let statements = Arc::clone(&task.work.statements);
            Crew::Tasks(Box::new(move || {
                let session = store.statements(&statements);
                Ok(Box::new(Client { session, task: Arc::clone(&task) }))
            }))
        };
        Ok(Opened { store: open, crew: Box::new(crew) })
    }
}
