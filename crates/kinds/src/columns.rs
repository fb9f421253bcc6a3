//! Statements whose values come from generators of columns: user profiles of cassandra-stress, and the lab's statements.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loadstone_load::{Status, StepId, Workload};
use loadstone_session::statements::{BatchKind, Cells, NullStatements, Statement, StatementStore, Statements, Values};
use loadstone_session::{EngineError, Options};
use loadstone_stress::columns::{
    BATCH_ROWS_MAX, BatchType, ColumnsSpec, Fields, OperationWork, Plan, PlannedOperation,
};
use loadstone_stress::distribution::{Distribution, RatioSpec, Spec};
use loadstone_stress::partition::{PartitionGenerator, Place};
use loadstone_stress::population::{Population, Selection};
use loadstone_stress::random::mix_seed;
use loadstone_stress::spec::Invalid;

use crate::retry::{Retried, RetryPolicy, retry};
use crate::stress::open_statements;
use loadstone_measure::actor::{Actor, Outcome, Stopwatch};
use loadstone_measure::borders::Borders;
use loadstone_measure::client::{ClientContext, drive_thread};
use loadstone_measure::clock::{ThreadTimer, Timer};
use loadstone_measure::control::TrialFailure;
use loadstone_measure::crew::{Opened, Target};
use loadstone_measure::task::{Kind as WorkKind, Task, Work};
use loadstone_session::erased::Driving;
use loadstone_wire::event::{MissingRows, Note, Sections, StatementRows};
use loadstone_wire::spec::TrialSpec;

/// Separate the draws of one operation.
const RUN: u64 = 0x7275_6e73;
const STRIDE: u64 = 0x7374_7269;
const ROW: u64 = 0x726f_7773;
const SELECT: u64 = 0x7365_6c65;
const RATIO: u64 = 0x7261_7469;
const SHUFFLE: u64 = 0x7368_7566;
/// A batch of more bytes would exceed the largest mutation of a server with default settings.
const BATCH_BYTES_MAX: usize = 16 << 20;
const TWO_POW_MINUS_53: f64 = 1.0 / (1_u64 << 53) as f64;

/// The rows and partitions of each operation so far.
#[derive(Debug, Default)]
pub struct Counts(Vec<(AtomicU64, AtomicU64)>);

impl Counts {
    /// Counts of this many operations.
    pub fn new(operations: usize) -> Self {
        Self((0..operations).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect())
    }

    /// The rows and the partitions of an operation.
    pub fn read(&self, operation: usize) -> (u64, u64) {
        self.0
            .get(operation)
            .map_or((0, 0), |(rows, partitions)| (rows.load(Ordering::Relaxed), partitions.load(Ordering::Relaxed)))
    }
}

/// Values of a distribution whose sum over a block is the same for every block, so that the sum before any index is arithmetic.
#[derive(Debug)]
struct Strides {
    values: Vec<u64>,
    /// The sum of the values through each place.
    ends: Vec<u64>,
}

impl Strides {
    const BLOCK: u64 = 64;

    fn new(spec: Option<&Spec>, seed: u64) -> Result<Self, String> {
        let sampler = spec.unwrap_or(&Spec::Fixed { value: 1 }).sampler()?;
        let quantile = |at: u64| sampler.quantile((at as f64 + 0.5) / Self::BLOCK as f64).max(1) as u64;
        let mut values: Vec<u64> = (0..Self::BLOCK).map(quantile).collect();
        for at in (1..values.len()).rev() {
            values.swap(at, (mix_seed(seed, at as u64, STRIDE) as u64 % (at as u64 + 1)) as usize);
        }
        let mut sum = 0;
        let mut add = |value: &u64| {
            sum += value;
            sum
        };
        let ends = values.iter().map(&mut add).collect();
        Ok(Self { values, ends })
    }

    /// The sum before the value at `index`, and the value.
    #[inline]
    fn value_at(&self, index: u64) -> (u64, u64) {
        let (block, at) = (index / Self::BLOCK, (index % Self::BLOCK) as usize);
        let before = if at == 0 { 0 } else { self.ends[at - 1] };
        ((block * self.total()).wrapping_add(before), self.values[at])
    }

    /// The index of the value in which a sum falls.
    #[inline]
    fn find(&self, sum: u64) -> u64 {
        let (block, rest) = (sum / self.total(), sum % self.total());
        block * Self::BLOCK + self.ends.partition_point(|end| *end <= rest) as u64
    }

    fn total(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    fn max(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(1)
    }
}

/// An operation with what is computed once.
#[derive(Debug)]
struct Prepared {
    operation: PlannedOperation,
    name: &'static str,
    /// The sum of the weights through this operation, as a share.
    share: f64,
    partitions: Strides,
    batch: BatchKind,
}

/// The operations, and the state that their clients share.
#[derive(Debug)]
pub struct ColumnsWork {
    spec: ColumnsSpec,
    plan: Plan,
    operations: Vec<Prepared>,
    steps: &'static [&'static str],
    statements: Arc<[Statement]>,
    runs: Strides,
    /// Whether operations take several partitions, and all are inserts of the same numbers of them.
    is_dense: bool,
    stride_max: u64,
    /// Partitions whose visits alternate (`revisit`).
    group: u64,
    generators: Generators,
    ranges: Vec<(i64, i64)>,
    seed: u64,
    policy: RetryPolicy,
    counts: Arc<Counts>,
    missing: Mutex<Option<MissingRows>>,
}

/// One client's generators.
#[derive(Clone, Debug)]
struct Generators {
    population: Population,
    tables: Vec<PartitionGenerator>,
    /// By table: the shares of the rows that are written, and of their columns.
    select: Vec<Option<(Distribution, RatioSpec)>>,
    population_ratio: Vec<Option<(Distribution, RatioSpec)>>,
}

fn usage(Invalid { field, reason }: Invalid) -> EngineError {
    EngineError::usage(format!("work.{field}: {reason}"))
}

impl ColumnsWork {
    /// The work of a spec whose statements are bound. `tokens`: the ring's, for token ranges.
    pub fn new(
        spec: &ColumnsSpec,
        plan: Plan,
        tokens: &[i64],
        seed: u64,
        counts: Arc<Counts>,
    ) -> Result<Self, EngineError> {
        let total: f64 = plan.operations.iter().map(|operation| operation.weight).sum();
        let mut share = 0.0;
        let mut operations = Vec::new();
        let refuse = |reason: String| usage(Invalid { field: "tables", reason });
        for (at, operation) in plan.operations.iter().enumerate() {
            share += operation.weight / total;
            let insert = &spec.tables[operation.table].insert;
            let is_insert = operation.work == OperationWork::Insert;
            let partitions = insert.partitions.as_ref().filter(|_| is_insert);
            operations.push(Prepared {
                operation: operation.clone(),
                // A process has the steps of few trials, and their names are static.
                name: Box::leak(operation.name.clone().into_boxed_str()),
                share: if at + 1 == plan.operations.len() { f64::INFINITY } else { share },
                partitions: Strides::new(partitions, seed).map_err(refuse)?,
                batch: match insert.batch {
                    BatchType::Logged => BatchKind::Logged,
                    BatchType::Unlogged => BatchKind::Unlogged,
                    BatchType::Counter => BatchKind::Counter,
                },
            });
        }
        let names: Vec<&'static str> = operations.iter().map(|operation| operation.name).chain(["CLEANUP"]).collect();
        let statements: Vec<Statement> = plan
            .operations
            .iter()
            .map(|operation| Statement {
                text: operation.text.clone(),
                writes: operation.writes,
                // The values of a batch refer to prepared statements.
                prepared: !spec.unprepared || operation.work == OperationWork::Insert,
            })
            .collect();
        let ratio = |ratio: &Option<RatioSpec>| match ratio {
            Some(ratio) if !(ratio.distribution.is_fixed() && is_full(ratio)) => {
                ratio.distribution.sampler().map(|sampler| Some((sampler, ratio.clone())))
            }
            _ => Ok(None),
        };
        let population = spec.population(seed).map_err(usage)?;
        let revisit = spec.revisit.range().map_or(1, |(min, max)| max.saturating_sub(min).saturating_add(1) as u64);
        let group = population.length().map_or(revisit, |length| length.min(revisit)).max(1);
        let inserts = spec.tables.iter().map(|table| &table.insert);
        let generators = Generators {
            population,
            tables: plan.generators(spec).map_err(usage)?,
            select: inserts.clone().map(|insert| ratio(&insert.select)).collect::<Result<_, _>>().map_err(refuse)?,
            population_ratio: inserts
                .map(|insert| ratio(&insert.row_population))
                .collect::<Result<_, _>>()
                .map_err(refuse)?,
        };
        let stride_max = operations.iter().map(|operation| operation.partitions.max()).max().unwrap_or(1);
        Ok(Self {
            runs: Strides::new(spec.clustering.as_ref().filter(|_| operations.len() > 1), seed).map_err(refuse)?,
            is_dense: operations.len() == 1,
            stride_max,
            group,
            steps: Box::leak(names.into_boxed_slice()),
            statements: statements.into(),
            generators,
            ranges: split_ring(tokens, spec.split_factor.max(1)),
            spec: spec.clone(),
            plan,
            operations,
            seed,
            policy: RetryPolicy::default(),
            counts,
            missing: Mutex::default(),
        })
    }

    /// The statements of the operations.
    pub fn statements(&self) -> &Arc<[Statement]> {
        &self.statements
    }

    #[inline]
    fn operation_at(&self, index: u64) -> usize {
        if self.operations.len() == 1 {
            return 0;
        }
        let run = self.runs.find(index);
        let draw = uniform(self.seed, run, RUN);
        self.operations.partition_point(|operation| operation.share <= draw)
    }

    /// The first place in the population that an operation takes, and how many it takes.
    #[inline]
    fn places(&self, index: u64, operation: usize) -> (u64, u64) {
        let partitions = &self.operations[operation].partitions;
        let (first, count) = partitions.value_at(index);
        if self.is_dense { (first, count) } else { (index.wrapping_mul(self.stride_max), count) }
    }

    /// The place of a partition, and its visit: a group of partitions is visited once, then again.
    #[inline]
    fn visit(&self, place: u64) -> (u64, u64) {
        let visits = u64::from(self.spec.visits);
        if visits == 1 {
            return (place, 0);
        }
        let round = self.group * visits;
        let rest = place % round;
        (place / round * self.group + rest % self.group, rest / self.group)
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

fn is_full(ratio: &RatioSpec) -> bool {
    ratio.distribution.range().is_ok_and(|range| ratio.share(range.0 as f64) >= 1.0)
}

#[inline]
fn uniform(seed: u64, index: u64, purpose: u64) -> f64 {
    (mix_seed(seed, index, purpose) as u64 >> 11) as f64 * TWO_POW_MINUS_53
}

/// The ranges between the tokens of a ring, each split into `factor` parts: `(from, to]`.
fn split_ring(tokens: &[i64], factor: u32) -> Vec<(i64, i64)> {
    let mut borders: Vec<i64> = tokens.to_vec();
    borders.extend([i64::MIN, i64::MAX]);
    borders.sort_unstable();
    borders.dedup();
    let mut ranges = Vec::new();
    for pair in borders.windows(2) {
        let width = i128::from(pair[1]) - i128::from(pair[0]);
        let border = |part: u32| (i128::from(pair[0]) + width * i128::from(part) / i128::from(factor)) as i64;
        ranges.extend((0..factor).map(|part| (border(part), border(part + 1))).filter(|(from, to)| from < to));
    }
    ranges
}

/// The part of an operation that its attempts change.
#[derive(Debug, Default)]
struct State {
    generators: Option<Box<Generators>>,
    /// The rows that are sent next: the first `rows` of the buffer.
    batch: Vec<(usize, Values)>,
    batch_rows: usize,
    cursor: Cursor,
    rows: u64,
    partitions: u64,
    scratch: Vec<u8>,
}

/// Where an insert is.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    index: u64,
    /// The next partition, and the last.
    place: u64,
    last: u64,
    /// The rows of the open partition that are left: `next..end`.
    next: u64,
    end: u64,
    is_open: bool,
    share: f64,
    draws: u64,
    column_share: f64,
}

/// An operation, in buffers that are used again.
#[derive(Debug, Default)]
pub struct ColumnsOperation {
    index: u64,
    operation: usize,
    /// The number of its first partition.
    number: i64,
    values: Values,
    state: RefCell<State>,
}

impl Workload for ColumnsWork {
    type Operation = ColumnsOperation;

    fn steps(&self) -> &'static [&'static str] {
        self.steps
    }

    fn fill(&self, index: u64, operation: &mut ColumnsOperation) {
        let at = self.operation_at(index);
        let (first, count) = self.places(index, at);
        (operation.index, operation.operation) = (index, at);
        let ColumnsOperation { values, state, number, .. } = operation;
        let state = state.get_mut();
        (state.rows, state.partitions, state.batch_rows) = (0, 0, 0);
        let generators = state.generators.get_or_insert_with(|| Box::new(self.generators.clone()));
        *number = generators.population.number_at(self.visit(first).0).unwrap_or_default();
        values.clear();
        match &self.operations[at].operation.work {
            OperationWork::Insert => {
                state.cursor = Cursor { index, place: first, last: first + count, ..Cursor::default() };
                self.fill_batch(at, state);
            }
            OperationWork::TokenRange { .. } => {
                let (from, to) = self.ranges[(index % self.ranges.len() as u64) as usize];
                values.push(&from.to_be_bytes());
                values.push(&to.to_be_bytes());
            }
            work => {
                let fields = if let OperationWork::Query { fields, .. } = work { *fields } else { Fields::Samerow };
                self.fill_query(index, at, fields, *number, values, generators);
            }
        }
    }

    fn step_of(&self, index: u64) -> StepId {
        StepId(self.operation_at(index) as u16)
    }

    fn operations(&self) -> Option<u64> {
        let Selection::Sequence { wrap: false, .. } = &self.spec.population else { return None };
        let partitions = self.generators.population.length()? * u64::from(self.spec.visits);
        Some(if self.is_dense { self.operations[0].partitions.find(partitions) } else { partitions / self.stride_max })
    }

    fn any_order(&self) -> bool {
        true
    }
}

impl ColumnsWork {
    fn fill_query(
        &self,
        index: u64,
        at: usize,
        fields: Fields,
        number: i64,
        values: &mut Values,
        generators: &mut Generators,
    ) {
        let PlannedOperation { table, markers, .. } = &self.operations[at].operation;
        let generator = &mut generators.tables[*table];
        let seed = generators.population.seed_of(number);
        // Too many values to shuffle were refused before the trial, where distributions allow it.
        let is_open = generator.open(seed, |below| mix_seed(self.seed, number as u64, SHUFFLE) as u64 % below).is_ok();
        let rows = if is_open { generator.rows() } else { 0 };
        for (marker, place) in markers.iter().enumerate() {
            let draw = if fields == Fields::Samerow { 0 } else { marker as u64 };
            if let Place::Key(key) = place {
                values.push(generator.key(*key));
            } else if rows == 0 {
                values.push_null();
            } else {
                let row = mix_seed(self.seed, index, ROW.wrapping_add(draw << 32)) as u64 % rows;
                generator.seek(row);
                values.push_with(|out| generator.append(*place, out));
            }
        }
    }

    /// Fills the batch with the next rows of an insert; none are left if it remains empty.
    fn fill_batch(&self, at: usize, state: &mut State) {
        let Prepared { operation: PlannedOperation { table, markers, .. }, batch: kind, .. } = &self.operations[at];
        let State { generators, batch, batch_rows, cursor, rows, partitions, .. } = state;
        let Some(generators) = generators else { return };
        let columns = self.plan.layouts[*table].values.len() as f64;
        *batch_rows = 0;
        let mut bytes = 0;
        while *batch_rows < BATCH_ROWS_MAX && (*kind == BatchKind::Logged || bytes < BATCH_BYTES_MAX) {
            if !cursor.is_open {
                if cursor.place == cursor.last {
                    return;
                }
                self.open_partition(*table, cursor, generators);
                *partitions += 1;
            }
            if cursor.next >= cursor.end {
                cursor.is_open = false;
                continue;
            }
            let generator = &mut generators.tables[*table];
            generator.seek(cursor.next);
            cursor.next = cursor.next.saturating_add(1).saturating_add(gap(self.seed, cursor));
            if batch.len() == *batch_rows {
                batch.push((at, Values::default()));
            }
            let (statement, values) = &mut batch[*batch_rows];
            *statement = at;
            values.clear();
            for place in markers {
                match place {
                    Place::Value(column) if (*column + 1) as f64 / columns > cursor.column_share => values.push_null(),
                    place => values.push_with(|out| generator.append(*place, out)),
                }
            }
            bytes += values.as_bytes().len();
            *batch_rows += 1;
            *rows += 1;
        }
    }

    /// Opens the next partition of an insert, and chooses its first row.
    fn open_partition(&self, table: usize, cursor: &mut Cursor, generators: &mut Generators) {
        let (place, visit) = self.visit(cursor.place);
        let number = generators.population.number_at(place).unwrap_or_default();
        let draw = mix_seed(self.seed, cursor.place, RATIO);
        let share = |ratio: &mut Option<(Distribution, RatioSpec)>| {
            ratio.as_mut().map_or(1.0, |(sampler, ratio)| {
                sampler.seed(draw);
                ratio.share(sampler.next_double())
            })
        };
        cursor.share = share(&mut generators.select[table]);
        cursor.column_share = share(&mut generators.population_ratio[table]);
        let generator = &mut generators.tables[table];
        let seed = generators.population.seed_of(number);
        let is_open = generator.open(seed, |below| mix_seed(self.seed, number as u64, SHUFFLE) as u64 % below).is_ok();
        let rows = if is_open { generator.rows() } else { 0 };
        let visits = u64::from(self.spec.visits);
        let chunk = (rows / visits).max(1);
        let start = (visit * chunk).min(rows);
        cursor.end = if visit + 1 == visits { rows } else { (start + chunk).min(rows) };
        cursor.next = start;
        cursor.is_open = true;
        cursor.place += 1;
        if cursor.share < 1.0 && cursor.end > start {
            let first = start.saturating_add(gap(self.seed, cursor));
            // At least one row is written, as in the tool.
            cursor.next = first.min(cursor.end - 1);
        }
    }

    /// Compares rows with the written ones: the partition is open in the generator of its table.
    fn validate(&self, operation: &ColumnsOperation, cells: &Cells) -> Result<(), (Status, String)> {
        let planned = &self.operations[operation.operation].operation;
        let layout = &self.plan.layouts[planned.table];
        let mut state = operation.state.borrow_mut();
        let State { generators: Some(generators), scratch, .. } = &mut *state else { return Ok(()) };
        let share = generators.population_ratio[planned.table]
            .as_mut()
            .map_or(1.0, |(sampler, ratio)| ratio.share(sampler.next_double()));
        let generator = &mut generators.tables[planned.table];
        let marker_of = |place: Place| planned.markers.iter().position(|other| *other == place);
        let mut returned: BTreeMap<Vec<u8>, (usize, bool)> = BTreeMap::new();
        for row in 0..cells.rows() {
            let mut key = Vec::new();
            for at in 0..layout.clustering.len() {
                let place = Place::Clustering(at);
                let cell = match planned.results.iter().position(|result| *result == Some(place)) {
                    Some(column) => cells.get(row, column),
                    None => marker_of(place).and_then(|marker| operation.values.get(marker)),
                };
                let cell = cell.unwrap_or_default();
                key.extend_from_slice(&(cell.len() as u32).to_be_bytes());
                key.extend_from_slice(cell);
            }
            returned.insert(key, (row, false));
        }
        let number = operation.number;
        let mut expected = 0;
        for row in 0..generator.rows() {
            generator.seek(row);
            let mut is_requested = true;
            for condition in &planned.conditions {
                scratch.clear();
                generator.append(condition.place, scratch);
                let value = operation.values.get(condition.marker).unwrap_or_default();
                let kind = &layout.column(condition.place).kind;
                is_requested &= condition.operator.accepts(kind.compare(scratch, value));
            }
            if !is_requested {
                continue;
            }
            let mut key = Vec::new();
            for at in 0..layout.clustering.len() {
                let value = generator.clustering(at);
                key.extend_from_slice(&(value.len() as u32).to_be_bytes());
                key.extend_from_slice(value);
            }
            expected += 1;
            let Some((at, is_matched)) = returned.get_mut(&key) else {
                if cells.rows() == 0 {
                    return Err((Status::NotFound, format!("partition {number} has no row")));
                }
                return Err((Status::UnexpectedState, format!("partition {number}: row {row} is missing")));
            };
            *is_matched = true;
            for (column, place) in planned.results.iter().enumerate() {
                let Some(place) = place else { continue };
                let is_null = match place {
                    // Rows of one partition share it, and the last write of several is not determined.
                    Place::Value(value) if layout.statics.contains(value) && generator.rows() > 1 => continue,
                    Place::Value(value) => (*value + 1) as f64 / layout.values.len() as f64 > share,
                    _ => false,
                };
                scratch.clear();
                generator.append(*place, scratch);
                let written = (!is_null).then_some(scratch.as_slice());
                if cells.get(*at, column) != written {
                    let name = &layout.column(*place).name;
                    return Err((
                        Status::UnexpectedState,
                        format!("partition {number}: row {row} has another value of {name}"),
                    ));
                }
            }
        }
        match returned.values().find(|(_, is_matched)| !is_matched) {
            Some((row, _)) => Err((
                Status::UnexpectedState,
                format!("partition {number}: row {row} of the answer was not written; {expected} rows were expected"),
            )),
            None => Ok(()),
        }
    }
}

/// Rows that are not written before the next one: a random part has geometric gaps.
#[inline]
fn gap(seed: u64, cursor: &mut Cursor) -> u64 {
    if cursor.share >= 1.0 {
        return 0;
    }
    cursor.draws += 1;
    let draw = uniform(seed, cursor.index.wrapping_mul(0x9e37_79b9).wrapping_add(cursor.draws), SELECT);
    // 0 gives an infinite gap, which saturates.
    ((1.0 - draw).ln() / (1.0 - cursor.share).ln()) as u64
}

impl WorkKind for ColumnsWork {
    fn steps(&self) -> &'static [&'static str] {
        self.steps
    }

    fn step_of(&self, index: u64) -> StepId {
        Workload::step_of(self, index)
    }

    fn prepare_trial(&mut self, spec: &TrialSpec, _workers: u64) -> Result<(), EngineError> {
        self.policy = RetryPolicy { stop: !spec.inserts.keep_going, ..RetryPolicy::from_spec(spec) };
        self.missing = Mutex::default();
        for (rows, partitions) in &self.counts.0 {
            rows.store(0, Ordering::Relaxed);
            partitions.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn closing_notes(&self) -> Vec<Note> {
        let Some(MissingRows { reads, number }) = self.missing_rows() else { return Vec::new() };
        vec![Note {
            name: "missing-rows".to_owned(),
            message: format!("{reads} reads found no row, for example partition {number}"),
            hint: "write the whole population first: ops(insert=1) with -pop seq=1..COUNT".to_owned(),
        }]
    }

    fn sections(&self, _to_unix_ns: u64) -> Sections {
        let rows_of = |at: usize| {
            let (rows, partitions) = self.counts.read(at);
            (self.operations[at].name.to_owned(), StatementRows { rows, partitions })
        };
        let statements = (0..self.operations.len()).map(rows_of).collect();
        Sections { missing_rows: self.missing_rows(), statements, ..Sections::default() }
    }
}

impl<S: Statements> Work<S> for ColumnsWork {
    type Actor<'a>
        = ColumnsActor<'a, S>
    where
        S: 'a;

    fn actor<'a>(task: &'a Task<Self>, session: &'a mut S, _worker: usize) -> Self::Actor<'a> {
        ColumnsActor { task, session, cells: Cells::default(), unsent: false }
    }
}

/// One client's operations.
#[derive(Debug)]
pub struct ColumnsActor<'a, S> {
    task: &'a Task<ColumnsWork>,
    session: &'a mut S,
    cells: Cells,
    unsent: bool,
}

/// Sends an operation. An insert of several batches continues with the failed batch.
// One client performs an operation, and nothing else borrows its state.
#[allow(clippy::await_holding_refcell_ref)]
async fn send<S: Statements>(
    work: &ColumnsWork,
    session: &mut S,
    operation: &ColumnsOperation,
    cells: &mut Cells,
) -> Status {
    let at = operation.operation;
    let prepared = &work.operations[at];
    if prepared.operation.work != OperationWork::Insert {
        return session.execute(at, &operation.values, cells).await;
    }
    let mut state = operation.state.borrow_mut();
    while state.batch_rows > 0 {
        let rows = &state.batch[..state.batch_rows];
        let status = match rows {
            [(_, values)] => session.execute(at, values, cells).await,
            rows => session.execute_batch(prepared.batch, rows).await,
        };
        if !status.is_ok() {
            return status;
        }
        work.fill_batch(at, &mut state);
    }
    Status::Ok
}

impl<S: Statements> ColumnsActor<'_, S> {
    /// Keeps the message of rows that differ from the written ones.
    #[cold]
    fn explain(&self, operation: &ColumnsOperation, status: Status, message: &str) {
        let work = &self.task.work;
        if status == Status::NotFound {
            work.count_missing(operation.number);
        }
        let message = message.to_owned();
        self.task.failures.keep(StepId(operation.operation as u16), status, || Some(message.clone()));
        if work.policy.stop {
            let (name, key) = (work.operations[operation.operation].name, operation.number.to_string());
            self.task.scheduler.halt_because(|| TrialFailure::Operation {
                operation: name,
                key,
                status,
                message,
                attempts: 0,
            });
        }
    }
}

impl<S: Statements> Actor for ColumnsActor<'_, S> {
    type Operation = ColumnsOperation;

    async fn perform<T: Timer>(&mut self, operation: &ColumnsOperation, watch: &Stopwatch<'_, T>) -> Outcome {
        let work = &self.task.work;
        let prepared = &work.operations[operation.operation];
        let step = StepId(operation.operation as u16);
        let mut status = send(work, self.session, operation, &mut self.cells).await;
        let mut done_ns = watch.now_ns();
        self.unsent = false;
        if status.is_ok() {
            let validates = match prepared.operation.work {
                OperationWork::Validate => true,
                OperationWork::Query { validates, .. } => validates,
                _ => false,
            };
            if validates && let Err((difference, message)) = work.validate(operation, &self.cells) {
                status = difference;
                self.explain(operation, status, &message);
            }
            watch.step(step, status, watch.sent_ns, done_ns);
        } else {
            let number = operation.number.to_string();
            let retried = Retried { index: operation.index, step, name: prepared.name, key: number.as_bytes() };
            let cells = &mut self.cells;
            let attempt = async |session: &mut S| send(work, session, operation, cells).await;
            let first = (status, done_ns);
            (status, done_ns, self.unsent) =
                retry(self.task, &work.policy, self.session, watch, retried, first, attempt).await;
        }
        let (rows, partitions, bytes) = match prepared.operation.work {
            OperationWork::Insert => {
                let state = operation.state.borrow();
                let values = state.batch.first().map_or(0, |(_, values)| values.as_bytes().len());
                (state.rows, state.partitions, values as u64 * state.rows)
            }
            _ if prepared.operation.writes => (1, 1, operation.values.as_bytes().len() as u64),
            _ => {
                let rows = self.cells.rows() as u64;
                (rows, rows.min(1), self.cells.bytes() as u64)
            }
        };
        if status.is_ok()
            && watch.counted
            && let Some(counts) = work.counts.0.get(operation.operation)
        {
            counts.0.fetch_add(rows, Ordering::Relaxed);
            counts.1.fetch_add(partitions, Ordering::Relaxed);
        }
        Outcome { status, done_ns, rows, bytes }
    }

    fn unsent(&self) -> bool {
        self.unsent
    }

    async fn pause(&mut self) {
        self.session.pause().await;
    }

    async fn close(&mut self) -> (StepId, Status) {
        (StepId(self.task.work.operations.len() as u16), self.session.cleanup().await)
    }
}

/// A store of statements, as a target of statements with generated values.
#[derive(Debug)]
pub struct ColumnsTarget<S>(std::marker::PhantomData<fn() -> S>);

impl<S> ColumnsTarget<S> {
    /// The target of a type of store.
    #[allow(clippy::new_without_default, reason = "a target is no value")]
    pub const fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<S: StatementStore> Target<ColumnsWork> for ColumnsTarget<S> {
    fn driving(&self) -> Driving {
        Driving::for_store::<S>()
    }

    fn probe(&self, task: &Task<ColumnsWork>, borders: &Borders, context: ClientContext<'_>) {
        drive_thread(task, borders, ThreadTimer::default(), &mut NullStatements, context);
    }

    fn open(&self, options: &Options) -> Result<Opened<ColumnsWork>, EngineError> {
        open_statements::<S, ColumnsWork>(options, ColumnsWork::statements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_stress::distribution::parse_spec;

    #[test]
    fn strides_add_up() {
        for text in ["fixed(1)", "uniform(1..50)", "gaussian(1..10)"] {
            let strides = Strides::new(Some(&parse_spec(text).unwrap()), 7).unwrap();
            let mut sum = 0;
            for index in 0..1_000 {
                let (before, value) = strides.value_at(index);
                assert_eq!(before, sum, "{text} {index}");
                assert_eq!((strides.find(sum), strides.find(sum + value - 1)), (index, index));
                sum += value;
            }
        }
    }

    #[test]
    fn token_ranges_cover_the_ring_once() {
        for (tokens, factor) in [(&[][..], 1), (&[5, -7, i64::MAX][..], 3), (&[0][..], 1_000)] {
            let ranges = split_ring(tokens, factor);
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (i64::MIN, i64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
        assert_eq!(split_ring(&[0], 1_000).len(), 2_000);
    }

    #[test]
    fn random_parts_have_their_share() {
        let mut cursor = Cursor { share: 0.1, index: 3, ..Cursor::default() };
        let gaps: u64 = (0..10_000).map(|_| gap(1, &mut cursor)).sum();
        assert!((85_000..95_000).contains(&gaps), "{gaps}");
        cursor.share = 1e-7;
        let gaps: u64 = (0..100).map(|_| gap(1, &mut cursor)).sum();
        assert!(gaps > 100_000_000);
    }
}
