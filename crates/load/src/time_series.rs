//! YCSB's `TimeSeriesWorkload` as a pure function of the operation's index.
//!
//! A point belongs to a series (a metric and a value for each tag) and has a timestamp. In YCSB, each thread owns some
//! metrics and moves through time with them. Here, write i is the point at position i of the grid of all series at all
//! time steps, on any client. Together, the writes are identical to YCSB's: the same keys, tags, timestamps, field
//! names and clauses, in the order in which YCSB sends them with one thread (compared with the output of YCSB 0.17.0).
//!
//! The differences, and their reasons:
//!
//! - Queries read points that the load wrote (`insertcount` points, if that is less than `recordcount`), including
//!   delayed and sparse series. YCSB queries places in the full grid without delays, where it often finds nothing. With
//!   `randomwritetimestamporder`, YCSB calculates the times of queries from the time that its thread drew first.
//! - `recordcount` below the number of series: the run uses the existing points; YCSB exits at its first query.
//! - `randomtimeseriesorder` shuffles the order of writing and leaves the values of each tag unchanged; YCSB's load and
//!   run draw different values for a tag. It can be combined with `dataintegrity`, which YCSB refuses. The order does
//!   not depend on the seed (nor do the order of `randomwritetimestamporder` and the points omitted by `sparsity`),
//!   because a run's seed differs from its load's. YCSB shuffles again in every process.
//! - A tag with one value after a tag with several (`tagcardinality=2,1`): all series are written; YCSB omits some of
//!   them.
//! - Missing cardinalities are 1. In YCSB only the first is 1; the remaining ones are 0, and the run exits at its first
//!   query.
//! - `sparsity` is the share of missing points, as documented by YCSB (exactly, in decks of 100 to 50,000 positions).
//!   YCSB's code skips up to `sparsity` × (series of a metric) places before each write, and the run exits if this
//!   product is below 1.
//! - `randomwritetimestamporder`: after `recordcount` ÷ series + 1 time steps, the same number of steps follows; YCSB
//!   exits.
//! - From the first operation on, updates draw one of the loaded time steps of the next series. YCSB exits the whole
//!   process at an update before the first full pass over the series. Updates do not count as inserts; in YCSB an
//!   update consumes a turn, and the point of this turn is never inserted.
//! - `deleteproportion` has an effect; YCSB never deletes. Deletes proceed through the points in the order of writing,
//!   the oldest first, and queries and updates stay ahead of them.
//! - `groupbyfunction` works; YCSB fails at startup. There must be as many `groupbykeys` as tags, which is YCSB's
//!   intention.
//! - Scans pass the downsampling clause as reads do and as YCSB documents it (`YCSBDS=SUM300`); YCSB's scans pass
//!   `YCSBDS=SUM=300`.
//! - `queryrandomtimespan` with `querytimespan` below `timestampinterval` queries a span of 0; YCSB exits.
//! - `dataintegrity` derives a value from the point's own timestamp, also for delayed points and updates. YCSB writes
//!   these with a wrong timestamp, and then reports them as wrong. A read must return exactly the requested point; YCSB
//!   accepts any point that is internally consistent, and an empty point. One tag or no tags are allowed; YCSB exits.
//! - `valuetype=mixed`, which is in YCSB's template, means `mixednumbers`; YCSB refuses it. `tagcount=0` is allowed.
//! - There may be more clients than metrics.
//! - Refused with a message: `readmodifywriteproportion` (YCSB's threads exit at the first such operation), names too
//!   short to be different (YCSB uses one name for several series), and `delayedintervals=0` with delayed series (YCSB
//!   exits).
//!
//! As in YCSB, the run's inserts begin at the first point again. `querytimespan`, `delayedseries` and
//! `downsamplinginterval` are in the unit of timestamps, which is seconds also for `timestampunits=minutes` and longer
//! units. The key is the metric alone, so a store without support for time series keeps one record per metric.

mod check;
mod layout;
mod shape;
mod spec;
#[cfg(test)]
mod tests;
mod words;

pub use spec::{Downsampling, GroupBy, TimeSeriesSpec, TimeUnit, ValueType};

use crate::keys::{Chooser, Existing, KeyDistribution, KeyRange};
use crate::kind::{Kind, StepId};
use crate::kind_sequence::KindSequence;
use crate::operation::{Check, Workload};
use crate::random::{Draws, Purpose};
use crate::row::Row;
use crate::value_length::Lengths;
use crate::zipf::ScrambledZipfian;
use layout::Point;
use shape::SeriesShape;

/// One operation on time series in YCSB's form: the metric is the key, and the operation has either a point to write,
/// as fields, or a query, as clauses.
#[derive(Debug)]
pub struct SeriesOperation {
    /// The operation's number in the whole trial.
    pub index: u64,
    /// The kind of operation.
    pub kind: Kind,
    /// The text of the key: the metric; for a delete, also the tags and the time.
    pub key: Vec<u8>,
    /// The number of the series.
    pub series: u64,
    /// The point with its tags, for inserts and updates.
    pub row: Row,
    /// Tags, time, and processing of the points, for reads and scans. YCSB's bindings receive them as field names.
    pub clauses: Vec<String>,
    /// Number of records that a scan reads.
    pub scan_count: usize,
}

impl Default for SeriesOperation {
    fn default() -> Self {
        Self {
            index: 0,
            kind: Kind::Read,
            key: Vec::with_capacity(32),
            series: 0,
            row: Row::default(),
            clauses: Vec::new(),
            scan_count: 0,
        }
    }
}

/// The functions common to both phases of a time series workload.
pub trait SeriesWorkload: Workload<Operation = SeriesOperation> {
    /// Whether reads are checked. Called once per read, before the clock is read for the check.
    fn has_read_checks(&self) -> bool {
        false
    }

    /// Compares the fields read with the requested point; `None` if this workload does not check reads.
    fn verify_read(&self, _operation: &SeriesOperation, _read: &Row) -> Option<Check> {
        None
    }
}

/// The load phase, with one insert per point.
#[derive(Debug)]
pub struct TimeSeriesLoad {
    shape: SeriesShape,
}

impl TimeSeriesLoad {
    /// The load of a spec. Error messages have one line.
    pub fn new(spec: TimeSeriesSpec, seed: u64) -> Result<Self, String> {
        Ok(Self { shape: SeriesShape::new(spec, seed)? })
    }
}

impl Workload for TimeSeriesLoad {
    type Operation = SeriesOperation;

    fn step_names(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    fn step_of(&self, _index: u64) -> StepId {
        Kind::Insert.step()
    }

    #[inline]
    fn fill_operation(&self, index: u64, operation: &mut SeriesOperation) {
        let layout = &self.shape.layout;
        let point = layout.point(layout.position(index));
        operation.index = index;
        operation.kind = Kind::Insert;
        self.shape.set_key(operation, point);
        self.shape.write_row(operation, point);
    }

    fn operation_count(&self) -> Option<u64> {
        self.shape.spec.points_loaded()
    }
}

impl SeriesWorkload for TimeSeriesLoad {}

/// The run phase.
#[derive(Debug)]
pub struct TimeSeriesRun {
    shape: SeriesShape,
    kinds: KindSequence,
    /// Chooses the metrics that are read, by their position in the order of writing.
    chooser: Chooser,
    scan_length: Lengths,
    loaded: Loaded,
    /// Number of time steps that a delete may affect after the deleted point's own step.
    delete_reach: u64,
}

/// The loaded points that a run uses.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    points: u64,
    /// The position after the last point.
    end: u64,
    /// Number of complete time steps, at least 1.
    steps: u64,
    /// Number of metrics that have points at each of these steps.
    keys: u64,
}

impl TimeSeriesRun {
    /// The run of a spec. Error messages have one line.
    pub fn new(spec: TimeSeriesSpec, seed: u64) -> Result<Self, String> {
        spec.check_run()?;
        let shape = SeriesShape::new(spec, seed)?;
        let (spec, layout) = (&shape.spec, &shape.layout);
        let counted = [Kind::Read, Kind::Update, Kind::Insert, Kind::Delete];
        let kinds = KindSequence::new(seed, &spec.mix.weights(), &counted, spec.operations)
            .ok_or("one of the read, update, insert, scan and delete proportions must be above 0")?;
        let points = spec.count_loaded_points();
        let end = layout.position(points - 1) + 1;
        let steps = end / layout.series_count();
        let loaded = Loaded {
            points,
            end,
            steps: steps.max(1),
            keys: if steps == 0 { end.div_ceil(layout.per_key()) } else { spec.key_count },
        };
        let range = KeyRange { start: 0, count: loaded.keys, growth: 0 };
        let chooser = match spec.keys {
            // As in YCSB, the modulus is the number of metrics; for records, it is one more than their number.
            KeyDistribution::Zipfian => Chooser::zipfian(range, ScrambledZipfian::new(loaded.keys)),
            ref other => Chooser::new(other, range, loaded.keys),
        };
        let width = spec.range_width().unsigned_abs();
        let span = if spec.query_span > 0 { spec.query_span / width + 1 } else { 0 };
        // A delete of all values of a tag also affects series that are less late than the deleted series.
        let lateness = if spec.group_by.is_some() { spec.delayed_intervals } else { 0 };
        let delete_reach = span.saturating_add(lateness);
        Ok(Self { kinds, chooser, scan_length: Lengths::new(&spec.scan_length), loaded, delete_reach, shape })
    }

    /// The first time step that is not affected by the deletes before `index`, nor by the next few deletes.
    #[inline]
    fn first_step(&self, index: u64) -> u64 {
        if !self.kinds.has_kind(Kind::Delete) {
            return 0;
        }
        let gone = self.kinds.count_before(Kind::Delete, index) + self.shape.spec.delete_lag;
        let Some(last) = gone.checked_sub(1) else { return 0 };
        let layout = &self.shape.layout;
        let step = layout.position(last) / layout.series_count();
        step.saturating_add(self.delete_reach).saturating_add(1).min(self.loaded.steps - 1)
    }

    /// Draws a loaded time step.
    #[inline]
    fn choose_step(&self, index: u64, draws: &mut Draws) -> u64 {
        let first = self.first_step(index);
        first + draws.draw_below(self.loaded.steps - first)
    }

    /// Draws a loaded point at a position in `from..to`. If there is none because of sparsity, returns the next point.
    #[inline]
    fn pick_point(&self, from: u64, to: u64, draws: &mut Draws) -> Point {
        let layout = &self.shape.layout;
        let first = layout.points_before(from);
        let choice = layout.points_before(to.min(self.loaded.end)).saturating_sub(first).max(1);
        let nth = (first + draws.draw_below(choice)).min(self.loaded.points - 1);
        layout.point(layout.position(nth))
    }

    /// The point of the operation at `index`.
    #[inline]
    fn choose_point(&self, kind: Kind, index: u64, draws: &mut Draws) -> Point {
        let layout = &self.shape.layout;
        let key = match kind {
            Kind::Insert | Kind::Delete => return layout.point(layout.position(self.kinds.count_before(kind, index))),
            Kind::Update => {
                let series = self.kinds.count_before(kind, index) % layout.series_count().min(self.loaded.end);
                let position = self.choose_step(index, draws) * layout.series_count() + series;
                return self.pick_point(position, position + 1, draws);
            }
            Kind::Scan => draws.draw_below(self.loaded.keys),
            _ => {
                let all = Existing { first: 0, last: self.loaded.keys - 1 };
                self.chooser.choose_key(self.kinds.count_before(Kind::Read, index), all, draws)
            }
        };
        let from = self.choose_step(index, draws) * layout.series_count() + key * layout.per_key();
        self.pick_point(from, from + layout.per_key(), draws)
    }
}

impl Workload for TimeSeriesRun {
    type Operation = SeriesOperation;

    fn step_names(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    fn step_of(&self, index: u64) -> StepId {
        self.kinds.kind(index).step()
    }

    #[inline]
    fn fill_operation(&self, index: u64, operation: &mut SeriesOperation) {
        let shape = &self.shape;
        let kind = self.kinds.kind(index);
        operation.index = index;
        operation.kind = kind;
        let mut draws = Draws::new(shape.seed, index, Purpose::Key);
        let point = self.choose_point(kind, index, &mut draws);
        if kind == Kind::Delete {
            return shape.set_delete_key(operation, point, &mut draws);
        }
        shape.set_key(operation, point);
        match kind {
            Kind::Insert | Kind::Update => shape.write_row(operation, point),
            Kind::Scan => {
                operation.scan_count = self.scan_length.next_length(&mut draws);
                shape.fill_operation(operation, point, &mut draws);
            }
            _ => shape.fill_operation(operation, point, &mut draws),
        }
    }

    fn operation_count(&self) -> Option<u64> {
        self.shape.spec.operations
    }
}

impl SeriesWorkload for TimeSeriesRun {
    fn has_read_checks(&self) -> bool {
        self.shape.spec.integrity
    }

    fn verify_read(&self, operation: &SeriesOperation, read: &Row) -> Option<Check> {
        if !self.shape.spec.integrity || operation.kind != Kind::Read {
            return None;
        }
        let mut draws = Draws::new(self.shape.seed, operation.index, Purpose::Key);
        let point = self.choose_point(Kind::Read, operation.index, &mut draws);
        Some(self.shape.check_read(point, read))
    }
}
