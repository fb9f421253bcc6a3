//! The predefined operations of cassandra-stress. Each executes a statement on one partition.

use std::borrow::Cow;
use std::sync::Arc;

use loadstone_load::kind_sequence::KindSequence;
use loadstone_load::{Kind, Status, StepId, Workload};
use loadstone_session::EngineError;
use loadstone_session::statements::{Cells, Statement, Statements, Values};
use loadstone_stress::population::Selection;
use loadstone_stress::row::ColumnRow;
use loadstone_stress::spec::{Command, Generators, StressSpec};

use crate::statement_actor::{Identity, StatementActor, StatementState, StatementWork};
use loadstone_measure::task::{Task, Work, WorkKind};
use loadstone_wire::event::{Note, Sections};
use loadstone_wire::spec::TrialSpec;

/// The names of the steps: the commands, followed by the end of a session.
const STEPS: [&str; 5] = ["READ", "WRITE", "COUNTER_READ", "COUNTER_WRITE", "CLEANUP"];
/// The kinds of operation that represent the commands in a sequence with exact quotas.
const KINDS: [Kind; 4] = [Kind::Read, Kind::Insert, Kind::Scan, Kind::Update];

/// The operations, and the state that their clients share.
#[derive(Debug)]
pub struct StressWork {
    spec: StressSpec,
    /// The statements of the commands that have a weight.
    statements: Arc<[Statement]>,
    /// The statement of each command.
    statement_of: [usize; 4],
    sequence: KindSequence,
    generators: Generators,
    state: StatementState,
    clients: u64,
    /// The command whose writes a ledger records: writes of rows, or increments of counters if no operation writes
    /// rows.
    recorded: Command,
    /// With a ledger of rows, the write at index i has this timestamp + i, µs since 1970. Values depend on the
    /// partition alone, so they cannot show which write made them.
    stamp_us: Option<i64>,
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
            statements.push(Statement { text, writes: command.is_write(), prepared: !spec.unprepared });
            weights.push((KINDS[*command as usize], *weight));
        }
        let no_command = || EngineError::usage("work.mix: no command has a weight above 0");
        // With a lookback, only writes advance the sequence of partitions. A ledger numbers the recorded writes.
        let recorded =
            if statement_of[Command::Write as usize] == usize::MAX { Command::CounterWrite } else { Command::Write };
        let counted = [KINDS[Command::Write as usize], KINDS[recorded as usize]];
        let sequence = KindSequence::new(seed, &weights, &counted, operations).ok_or_else(no_command)?;
        Ok(Self {
            spec: spec.clone(),
            statements: statements.into(),
            statement_of,
            sequence,
            generators,
            state: StatementState::default(),
            clients: 1,
            recorded,
            stamp_us: None,
        })
    }

    /// Whether a ledger records the increments of counters.
    pub fn records_counters(&self) -> bool {
        self.recorded == Command::CounterWrite
    }

    /// The number of the operation at `index` among all recorded writes; `None` if the operation is not recorded.
    pub fn write_number(&self, index: u64) -> Option<u64> {
        (self.command(index) == self.recorded).then(|| self.sequence.count_before(KINDS[self.recorded as usize], index))
    }

    /// The index and the number of each of the first `count` recorded writes.
    pub fn list_writes(&self, count: u64) -> impl Iterator<Item = (u64, u64)> {
        let indices = (0..).filter(|index| self.command(*index) == self.recorded);
        (0..count).zip(indices).map(|(number, index)| (index, number))
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
}

/// Whether reads lag behind the writes of a sequence.
fn looks_back(spec: &StressSpec) -> bool {
    matches!(&spec.population, Selection::Sequence { read_lookback: Some(_), .. })
}

/// An operation, in reused buffers.
#[derive(Debug, Default)]
pub struct StressOperation {
    index: u64,
    command: Command,
    /// The number of the operation's partition.
    number: i64,
    /// The key, and the values of the columns.
    row: ColumnRow,
    values: Values,
    increments: Vec<i64>,
    /// The generators of this client.
    generators: Option<Box<Generators>>,
}

impl StressOperation {
    /// The key and the values, which are written or expected.
    pub const fn row(&self) -> &ColumnRow {
        &self.row
    }

    /// The increments of an operation on counters, one per column.
    pub fn increments(&self) -> &[i64] {
        &self.increments
    }
}

impl Workload for StressWork {
    type Operation = StressOperation;

    fn step_names(&self) -> &'static [&'static str] {
        &STEPS
    }

    #[inline]
    fn fill_operation(&self, index: u64, operation: &mut StressOperation) {
        let StressOperation { row, values, increments, .. } = operation;
        let generators = operation.generators.get_or_insert_with(|| Box::new(self.generators.clone()));
        let Generators { population, rows, increments: draws } = &mut **generators;
        let command = self.command(index);
        let number = if looks_back(&self.spec) {
            let written = self.sequence.count_before(KINDS[Command::Write as usize], index);
            match command {
                Command::Write => population.number_at(written),
                // The last write of each client may not have finished, so reads assume this many fewer rows, but at
                // least one.
                _ => population.read_number_at(index, written.saturating_sub(self.clients).max(1)),
            }
        } else {
            population.number_at(index)
        };
        // A sequence that does not wrap cannot run out, because there are no more operations than numbers in it.
        let number = number.unwrap_or_default();
        let seed = population.seed_of(number);
        values.clear();
        values.timestamp_us = match self.stamp_us {
            Some(start_us) => Some(start_us.saturating_add_unsigned(index)),
            None => self.spec.timestamp_us,
        };
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

    fn operation_count(&self) -> Option<u64> {
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
    fn prepare_trial(&mut self, spec: &TrialSpec, workers: u64) -> Result<(), EngineError> {
        self.state = StatementState::new(spec, workers)?;
        self.clients = spec.clients;
        // A ledger without a run number is refused. Counters have no timestamps.
        let has_stamps = self.state.ledger.is_some() && !self.records_counters();
        self.stamp_us = if has_stamps { spec.run.and_then(|run| i64::try_from(run).ok()) } else { None };
        Ok(())
    }

    fn start_trial(&self, start_ns: u64, to_unix_ns: u64) {
        if let Some(ledger) = &self.state.ledger {
            ledger.note_start(start_ns, to_unix_ns);
        }
    }

    fn tick(&self, claimed: u64, now_ns: u64, awake_ns: u64) -> u64 {
        self.state.schedule_tick(claimed, now_ns, awake_ns)
    }

    fn end_trial(&self, claimed: u64, now_ns: u64) {
        if let Some(ledger) = &self.state.ledger {
            ledger.note_close(claimed, now_ns);
        }
    }

    fn closing_notes(&self) -> Vec<Note> {
        self.state
            .missing
            .describe_misses("load the whole population first: write n=COUNT, then read -pop seq=1..COUNT")
    }

    fn summary_sections(&self, _to_unix_ns: u64) -> Sections {
        Sections { missing_rows: self.state.missing.missing_rows(), ..Sections::default() }
    }
}

impl StatementWork for StressWork {
    fn state(&self) -> &StatementState {
        &self.state
    }

    fn statements(&self) -> &Arc<[Statement]> {
        &self.statements
    }

    #[inline]
    fn identify_operation(&self, operation: &StressOperation) -> Identity {
        let StressOperation { index, command, number, .. } = *operation;
        Identity { index, step: StepId(command as u16), name: command.name(), number }
    }

    fn key<'a>(&self, operation: &'a StressOperation) -> Cow<'a, [u8]> {
        Cow::Borrowed(&operation.row.key)
    }

    #[inline]
    async fn send_operation<S: Statements>(
        &self,
        session: &mut S,
        operation: &StressOperation,
        cells: &mut Cells,
    ) -> Status {
        session.execute(self.statement_of[operation.command as usize], &operation.values, cells).await
    }

    #[inline]
    fn ledger_number(&self, operation: &StressOperation) -> Option<u64> {
        self.write_number(operation.index)
    }

    fn is_idempotent(&self) -> bool {
        !self.records_counters()
    }

    #[inline]
    fn compare_cells(&self, operation: &StressOperation, cells: &Cells) -> Result<(), (Status, String)> {
        let StressOperation { command, number, row, .. } = operation;
        if command.is_write() {
            return Ok(());
        }
        if cells.rows() == 0 {
            return Err((Status::NotFound, format!("partition {number} has no row")));
        }
        if *command != Command::Read || !self.spec.validates {
            return Ok(());
        }
        // `SELECT *` returns the key as the first column.
        let keys = usize::from(self.spec.selects_all);
        let is_same = cells.rows() == 1
            && cells.width() == keys + row.ends.len()
            && (keys == 0 || cells.get(0, 0) == Some(&row.key))
            && row.columns().enumerate().all(|(column, value)| cells.get(0, keys + column) == value);
        if is_same { Ok(()) } else { Err((Status::UnexpectedState, describe_difference(operation, cells, keys))) }
    }

    #[inline]
    fn measure_operation(&self, operation: &StressOperation, cells: &Cells, _counts: bool) -> (u64, u64) {
        let bytes = if operation.command.is_write() { operation.values.as_bytes().len() } else { cells.bytes() };
        (1, bytes as u64)
    }
}

#[cold]
fn describe_difference(StressOperation { number, row, .. }: &StressOperation, cells: &Cells, keys: usize) -> String {
    let (columns, written) = (cells.width().saturating_sub(keys), row.ends.len());
    if cells.rows() > 1 {
        format!("partition {number} has {} rows instead of one", cells.rows())
    } else if columns != written {
        format!("partition {number} has {columns} columns, but {written} were written")
    } else {
        format!("the values of partition {number} differ from the values written")
    }
}

impl<S: Statements> Work<S> for StressWork {
    type Actor<'a>
        = StatementActor<'a, S, Self>
    where
        S: 'a;

    fn create_actor<'a>(task: &'a Task<Self>, session: &'a mut S, worker: usize) -> Self::Actor<'a> {
        StatementActor::new(task, session, worker)
    }
}
