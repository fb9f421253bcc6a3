//! Statements with values from column generators: the user profiles of cassandra-stress, and the lab's statements.

mod insert;
mod ranges;
mod sending;
mod strides;
mod validation;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::{StepId, Workload};
use loadstone_session::EngineError;
use loadstone_session::statements::{BatchKind, Statement, Statements, Values};
use loadstone_stress::columns::{BatchType, ColumnsSpec, ConditionRead, Fields, OperationWork, Plan, PlannedOperation};
use loadstone_stress::distribution::{Distribution, RatioSpec};
use loadstone_stress::partition::{ColumnPlace, PartitionGenerator};
use loadstone_stress::population::{Population, Selection};
use loadstone_stress::random::mix_seed;
use loadstone_stress::spec::Invalid;

use crate::statement_actor::{StatementActor, StatementState};
use insert::InsertCursor;
use loadstone_measure::task::{Task, Work, WorkKind};
use loadstone_wire::event::{Note, Sections, StatementRows};
use loadstone_wire::spec::TrialSpec;
use ranges::{Scan, TokenRanges};
use strides::Strides;

/// These constants separate random draws by purpose.
const RUN: u64 = 0x7275_6e73;
const ROW: u64 = 0x726f_7773;
const SHUFFLE: u64 = 0x7368_7566;

/// The row and partition counts for each operation so far.
#[derive(Debug, Default)]
pub struct OperationCounts(Vec<(AtomicU64, AtomicU64)>);

impl OperationCounts {
    /// Creates counts, all of them 0, for the given number of operations.
    pub fn new(operations: usize) -> Self {
        Self((0..operations).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect())
    }

    /// The row and partition counts for an operation.
    pub fn read_counts(&self, operation: usize) -> (u64, u64) {
        self.0
            .get(operation)
            .map_or((0, 0), |(rows, partitions)| (rows.load(Ordering::Relaxed), partitions.load(Ordering::Relaxed)))
    }
}

/// The number of operations that together take at least this number of partitions; on average, if the spec has several
/// operations.
pub fn count_operations(spec: &ColumnsSpec, partitions: u64, seed: u64) -> Result<u64, EngineError> {
    let mut weighted = spec.operations.iter().filter(|operation| operation.weight > 0.0);
    let (Some(only), None, 1..) = (weighted.next(), weighted.next(), partitions) else {
        return Ok((partitions as f64 / spec.partitions_per_operation()).ceil() as u64);
    };
    let table = spec.tables.iter().find(|table| table.name == only.table && only.work == OperationWork::Insert);
    let strides = Strides::new(table.and_then(|table| table.insert.partitions.as_ref()), seed);
    strides
        .map(|strides| strides.find_stride(partitions - 1) + 1)
        .map_err(|reason| usage_error(Invalid { field: "tables", reason }))
}

/// An operation with the data that is computed only once.
#[derive(Debug)]
struct Prepared {
    operation: PlannedOperation,
    name: &'static str,
    /// The sum of the weights up to and including this operation, as a share of the total.
    share: f64,
    partitions: Strides,
    batch: BatchKind,
    /// The number of the statement that reads the columns in the operation's conditions; not used without conditions.
    read_statement: usize,
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
    /// Whether there is exactly one operation: each of its executions then takes the next places in the population.
    is_dense: bool,
    stride_max: u64,
    /// Number of places in the population, if it has an end.
    places_max: u64,
    /// Number of partitions whose visits alternate (`revisit`).
    group: u64,
    generators: Generators,
    ranges: TokenRanges,
    seed: u64,
    state: StatementState,
    counts: Arc<OperationCounts>,
}

/// The generators of one client.
#[derive(Clone, Debug)]
struct Generators {
    population: Population,
    tables: Vec<PartitionGenerator>,
    /// For each table: the share of rows that are written; `None`: all rows.
    select: Vec<Option<(Distribution, RatioSpec)>>,
    /// For each table: the share of a written row's columns that have values; `None`: all columns.
    population_ratio: Vec<Option<(Distribution, RatioSpec)>>,
}

fn usage_error(Invalid { field, reason }: Invalid) -> EngineError {
    EngineError::usage(format!("work.{field}: {reason}"))
}

impl ColumnsWork {
    /// Creates the work from a spec and its plan, in which the statements are already bound. `tokens` are the tokens of
    /// the ring, for token ranges.
    pub fn new(
        spec: &ColumnsSpec,
        plan: Plan,
        tokens: &[i64],
        seed: u64,
        counts: Arc<OperationCounts>,
    ) -> Result<Self, EngineError> {
        let total: f64 = plan.operations.iter().map(|operation| operation.weight).sum();
        let mut share = 0.0;
        let mut operations = Vec::new();
        let refuse = |reason: String| usage_error(Invalid { field: "tables", reason });
        for (at, operation) in plan.operations.iter().enumerate() {
            share += operation.weight / total;
            let insert = &spec.tables[operation.table].insert;
            let is_insert = operation.work == OperationWork::Insert;
            let partitions = insert.partitions.as_ref().filter(|_| is_insert);
            operations.push(Prepared {
                operation: operation.clone(),
                // The names of steps must be static. Few names are leaked, because a process runs only a few trials.
                name: Box::leak(operation.name.clone().into_boxed_str()),
                share: if at + 1 == plan.operations.len() { f64::INFINITY } else { share },
                partitions: Strides::new(partitions, seed).map_err(refuse)?,
                batch: match insert.batch {
                    BatchType::Logged => BatchKind::Logged,
                    BatchType::Unlogged => BatchKind::Unlogged,
                    BatchType::Counter => BatchKind::Counter,
                },
                read_statement: 0,
            });
        }
        let names: Vec<&'static str> = operations.iter().map(|operation| operation.name).chain(["CLEANUP"]).collect();
        let mut statements: Vec<Statement> = plan
            .operations
            .iter()
            .map(|operation| Statement {
                text: operation.text.clone(),
                writes: operation.writes,
                // The values of a batch can only be bound to prepared statements.
                prepared: !spec.unprepared || operation.work == OperationWork::Insert,
            })
            .collect();
        for operation in &mut operations {
            if let Some(read) = &operation.operation.condition_read {
                operation.read_statement = statements.len();
                let (text, prepared) = (read.text.clone(), !spec.unprepared);
                statements.push(Statement { text, writes: false, prepared });
            }
        }
        let ratio = |ratio: &Option<RatioSpec>| match ratio {
            Some(ratio) if !ratio.is_full() => {
                ratio.distribution.sampler().map(|sampler| Some((sampler, ratio.clone())))
            }
            _ => Ok(None),
        };
        let population = spec.population(seed).map_err(usage_error)?;
        let revisit = spec.revisit.range().map_or(1, |(min, max)| max.saturating_sub(min).saturating_add(1) as u64);
        let group = population.length().map_or(revisit, |length| length.min(revisit)).max(1);
        let inserts = spec.tables.iter().map(|table| &table.insert);
        let generators = Generators {
            population,
            tables: plan.generators(spec).map_err(usage_error)?,
            select: inserts.clone().map(|insert| ratio(&insert.select)).collect::<Result<_, _>>().map_err(refuse)?,
            population_ratio: inserts
                .map(|insert| ratio(&insert.row_population))
                .collect::<Result<_, _>>()
                .map_err(refuse)?,
        };
        let places_max = match &spec.population {
            Selection::Sequence { wrap: false, .. } => {
                generators.population.length().unwrap_or(u64::MAX).saturating_mul(u64::from(spec.visits))
            }
            _ => u64::MAX,
        };
        let stride_max = operations.iter().map(|operation| operation.partitions.max()).max().unwrap_or(1);
        Ok(Self {
            runs: Strides::new(spec.clustering.as_ref().filter(|_| operations.len() > 1), seed).map_err(refuse)?,
            is_dense: operations.len() == 1,
            stride_max,
            places_max,
            group,
            steps: Box::leak(names.into_boxed_slice()),
            statements: statements.into(),
            generators,
            ranges: TokenRanges::new(tokens, spec.split_factor.max(1)),
            spec: spec.clone(),
            plan,
            operations,
            seed,
            state: StatementState::default(),
            counts,
        })
    }

    #[inline]
    fn operation_at(&self, index: u64) -> usize {
        if self.operations.len() == 1 {
            return 0;
        }
        let run = self.runs.find_stride(index);
        let draw = strides::draw_uniform(self.seed, run, RUN);
        self.operations.partition_point(|operation| operation.share <= draw)
    }

    /// The first place in the population that an operation takes, and the number of places.
    #[inline]
    fn place_range(&self, index: u64, operation: usize) -> (u64, u64) {
        let partitions = &self.operations[operation].partitions;
        let (first, count) = partitions.value_at(index);
        if self.is_dense {
            (first, count.min(self.places_max.saturating_sub(first)))
        } else {
            (index.wrapping_mul(self.stride_max), count)
        }
    }

    /// The place of a partition and the number of its visit. Every partition in a group is visited once before any of
    /// them is visited again.
    #[inline]
    fn visit_place(&self, place: u64) -> (u64, u64) {
        let visits = u64::from(self.spec.visits);
        if visits == 1 {
            return (place, 0);
        }
        let round = self.group * visits;
        let rest = place % round;
        (place / round * self.group + rest % self.group, rest / self.group)
    }
}

/// The part of an operation that its attempts modify.
#[derive(Debug, Default)]
struct State {
    generators: Option<Box<Generators>>,
    /// The rows to be sent next: the first `batch_rows` entries of the buffer.
    batch: Vec<(usize, Values)>,
    batch_rows: usize,
    cursor: InsertCursor,
    /// One scan per operation.
    scans: Vec<Scan>,
    rows: u64,
    partitions: u64,
    scratch: Vec<u8>,
}

/// An operation, in reused buffers.
#[derive(Debug, Default)]
pub struct ColumnsOperation {
    index: u64,
    operation: usize,
    /// The number of the operation's first partition.
    number: i64,
    values: Values,
    state: RefCell<State>,
}

impl Workload for ColumnsWork {
    type Operation = ColumnsOperation;

    fn step_names(&self) -> &'static [&'static str] {
        self.steps
    }

    fn fill_operation(&self, index: u64, operation: &mut ColumnsOperation) {
        let at = self.operation_at(index);
        let (first, count) = self.place_range(index, at);
        (operation.index, operation.operation) = (index, at);
        let ColumnsOperation { values, state, number, .. } = operation;
        let state = state.get_mut();
        (state.rows, state.partitions, state.batch_rows) = (0, 0, 0);
        let generators = state.generators.get_or_insert_with(|| Box::new(self.generators.clone()));
        *number = generators.population.number_at(self.visit_place(first).0).unwrap_or_default();
        values.clear();
        match &self.operations[at].operation.work {
            OperationWork::Insert => {
                state.cursor = InsertCursor::new(index, first..first + count);
                self.fill_batch(at, state);
            }
            OperationWork::TokenRange { page_rows, .. } => {
                if state.scans.len() <= at {
                    state.scans.resize_with(self.operations.len(), Scan::default);
                }
                let ((from, to), page) = state.scans[at].request_page(&self.ranges, *page_rows);
                values.push(&from.to_be_bytes());
                values.push(&to.to_be_bytes());
                values.page = Some(page);
            }
            work => {
                let fields = if let OperationWork::Query { fields, .. } = work { *fields } else { Fields::Samerow };
                let row = self.open_query(index, at, *number, generators);
                let PlannedOperation { table, markers, condition_read, .. } = &self.operations[at].operation;
                let generator = &mut generators.tables[*table];
                if fields == Fields::Samerow {
                    fill_row(generator, row, markers, values);
                } else {
                    for (draw, place) in markers.iter().enumerate() {
                        let row = self.draw_row(index, draw as u64, generator.rows());
                        fill_row(generator, row, std::slice::from_ref(place), values);
                    }
                }
                if let Some(ConditionRead { keys, .. }) = condition_read {
                    state.batch.resize_with(2, Default::default);
                    let (statement, values) = &mut state.batch[0];
                    *statement = self.operations[at].read_statement;
                    values.clear();
                    fill_row(generator, row, keys, values);
                }
            }
        }
    }

    fn step_of(&self, index: u64) -> StepId {
        StepId(self.operation_at(index) as u16)
    }

    fn operation_count(&self) -> Option<u64> {
        match self.places_max {
            u64::MAX => None,
            places if self.is_dense => Some(self.operations[0].partitions.find_stride(places - 1) + 1),
            places => Some(places / self.stride_max),
        }
    }

    fn any_order(&self) -> bool {
        true
    }
}

impl ColumnsWork {
    /// Opens the partition of a query and draws a row; `None` if the partition has no rows.
    fn open_query(&self, index: u64, at: usize, number: i64, generators: &mut Generators) -> Option<u64> {
        let generator = &mut generators.tables[self.operations[at].operation.table];
        let seed = generators.population.seed_of(number);
        // If the distributions allow too many values to shuffle, the trial has already been refused.
        let is_open = generator.open(seed, |below| mix_seed(self.seed, number as u64, SHUFFLE) as u64 % below).is_ok();
        if is_open { self.draw_row(index, 0, generator.rows()) } else { None }
    }

    fn draw_row(&self, index: u64, draw: u64, rows: u64) -> Option<u64> {
        (mix_seed(self.seed, index, ROW.wrapping_add(draw << 32)) as u64).checked_rem(rows)
    }
}

/// Appends the columns of a row to `values`.
fn fill_row(generator: &mut PartitionGenerator, row: Option<u64>, places: &[ColumnPlace], values: &mut Values) {
    if let Some(row) = row {
        generator.seek(row);
    }
    for place in places {
        match (place, row) {
            (ColumnPlace::Key(key), _) => values.push(generator.key(*key)),
            (_, None) => values.push_null(),
            (place, Some(_)) => values.push_with(|out| generator.append(*place, out)),
        }
    }
}

impl WorkKind for ColumnsWork {
    fn prepare_trial(&mut self, spec: &TrialSpec, workers: u64) -> Result<(), EngineError> {
        self.state = StatementState::new(spec, workers)?;
        self.ranges.restart_ranges(spec.segment);
        for (rows, partitions) in &self.counts.0 {
            rows.store(0, Ordering::Relaxed);
            partitions.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn closing_notes(&self) -> Vec<Note> {
        self.state.missing.describe_misses("write the whole population first: ops(insert=1) with -pop seq=1..COUNT")
    }

    fn summary_sections(&self, _to_unix_ns: u64) -> Sections {
        let rows_of = |at: usize| {
            let (rows, partitions) = self.counts.read_counts(at);
            (self.operations[at].name.to_owned(), StatementRows { rows, partitions })
        };
        let statements = (0..self.operations.len()).map(rows_of).collect();
        Sections { missing_rows: self.state.missing.missing_rows(), statements, ..Sections::default() }
    }
}

impl<S: Statements> Work<S> for ColumnsWork {
    type Actor<'a>
        = StatementActor<'a, S, Self>
    where
        S: 'a;

    fn create_actor<'a>(task: &'a Task<Self>, session: &'a mut S, worker: usize) -> Self::Actor<'a> {
        StatementActor::new(task, session, worker)
    }
}
