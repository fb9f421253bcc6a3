//! Calculates YCSB's metrics from the recorders: their names, order and figures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use loadstone_load::histogram::{Reading, Table};
use loadstone_load::java::concurrent_hash_map_order;
use loadstone_load::{Kind, Status};

use super::config::{Interval, Reporting};
use loadstone_measure::observer::Censored;
use loadstone_measure::recorder::Recorder;
use loadstone_measure::sink::YcsbTable;
use loadstone_wire::sink::Sink;

/// One of YCSB's measurements, added over all workers.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// `hdrhistogram`, µs.
    Hdr(Reading),
    /// `histogram`.
    Histogram(Buckets),
    /// `timeseries`.
    Series(Series),
    /// `raw`.
    Raw(Raw),
}

/// Exact sums, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// The minimum; `i64::MAX` if there are no values, as in YCSB's output.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, min: i64::MAX as u64, max: 0 }
    }
}

impl Moments {
    fn add_moments(&mut self, (count, sum, min, max): (u64, u64, u64, u64)) {
        if count > 0 {
            *self =
                Self { count: self.count + count, sum: self.sum + sum, min: self.min.min(min), max: self.max.max(max) };
        }
    }

    /// The mean; NaN if there are no values.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }
}

/// Buckets of 1 ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// One count per ms; the last count is for all larger values.
    pub counts: Vec<u64>,
    /// Exact sums.
    pub moments: Moments,
    /// Sum of squares, µs².
    pub squares: u64,
}

/// Means over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Count and sum for each unit of wall-clock time.
    pub units: BTreeMap<u64, (u64, u64)>,
    /// Exact sums.
    pub moments: Moments,
}

/// Every operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw {
    /// Unix time of completion in ms and latency in µs, in chronological order.
    pub points: Vec<(u64, u64)>,
    /// Exact sums.
    pub moments: Moments,
}

impl Measure {
    /// The number of operations.
    pub fn count(&self) -> u64 {
        match self {
            Self::Hdr(reading) => reading.count(),
            Self::Histogram(Buckets { moments, .. }) | Self::Series(Series { moments, .. }) => moments.count,
            Self::Raw(raw) => raw.moments.count,
        }
    }

    fn merge_measure(&mut self, other: Self) {
        match (self, other) {
            (Self::Hdr(mine), Self::Hdr(added)) => mine.merge_reading(&added),
            (Self::Histogram(mine), Self::Histogram(added)) => {
                if mine.counts.len() < added.counts.len() {
                    mine.counts.resize(added.counts.len(), 0);
                }
                mine.counts.iter_mut().zip(&added.counts).for_each(|(a, b)| *a += b);
                mine.squares += added.squares;
                add_moments(&mut mine.moments, added.moments);
            }
            (Self::Series(mine), Self::Series(added)) => {
                for (unit, (count, sum)) in added.units {
                    let total = mine.units.entry(unit).or_default();
                    *total = (total.0 + count, total.1 + sum);
                }
                add_moments(&mut mine.moments, added.moments);
            }
            (Self::Raw(mine), Self::Raw(added)) => {
                mine.points.extend(added.points);
                mine.points.sort_by_key(|&(ms, _)| ms);
                add_moments(&mut mine.moments, added.moments);
            }
            // All recorders have the same sinks.
            _ => {}
        }
    }
}

fn add_moments(mine: &mut Moments, added: Moments) {
    mine.add_moments((added.count, added.sum, added.min, added.max));
}

/// A metric in the report: READ, UPDATE-FAILED, Intended-READ …
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name without the `Hdr`, `Bucket` or `Raw` of combined types.
    pub name: String,
    /// One measure, or two for a combined type.
    pub measures: Vec<Measure>,
    /// Count of each status, in YCSB's order.
    pub returns: Vec<(Status, u64)>,
    /// Number of values that are lower bounds, because the completion of the operation was not observed.
    pub censored: u64,
}

/// The order of the statuses in YCSB's `ConcurrentHashMap`. Statuses that YCSB does not know come last.
const STATUS_ORDER: [Status; Status::COUNT] = [
    Status::Timeout,
    Status::Ok,
    Status::NotImplemented,
    Status::BadRequest,
    Status::Forbidden,
    Status::UnexpectedState,
    Status::ServiceUnavailable,
    Status::BatchedOk,
    Status::NotFound,
    Status::Error,
    Status::NotYet,
    Status::NoSpace,
];

/// The metrics in the recorders, in YCSB's order.
pub fn metrics(recorders: &[Arc<Recorder>], reporting: &Reporting) -> Vec<Metric> {
    let (op, intended) = match reporting.interval {
        Interval::Op => (true, false),
        Interval::Intended => (false, true),
        Interval::Both => (true, true),
    };
    let mut all = Vec::new();
    if op {
        all.extend(series(recorders, reporting, "", false));
    }
    if intended {
        // Without a rate, the intended start of an operation is its actual start.
        all.extend(series(recorders, reporting, if op { "Intended-" } else { "" }, true));
    }
    all
}

/// Adds to the intended latencies the lower bounds of operations whose completion was not observed. YCSB omits these
/// operations.
pub fn add_censored(metrics: &mut [Metric], censored: &Censored, reporting: &Reporting) {
    let prefix = match reporting.interval {
        Interval::Op => return,
        Interval::Intended => "",
        Interval::Both => "Intended-",
    };
    for (step, [_, bounds, _]) in &censored.bounds {
        let name = format!("{prefix}{}", Kind::ALL[usize::from(step.0)].name());
        for metric in metrics.iter_mut().filter(|metric| metric.name == name) {
            metric.censored += bounds.count();
            for measure in &mut metric.measures {
                if let Measure::Hdr(reading) = measure {
                    bounds.bucket_ranges().for_each(|(least_ns, _, n)| reading.record_n(least_ns / 1_000, n));
                }
            }
        }
    }
}

fn series(recorders: &[Arc<Recorder>], reporting: &Reporting, prefix: &str, intended: bool) -> Vec<Metric> {
    // The measures by plain name, one per sink. YCSB's maps use the plain name, and the prefix is only displayed.
    let mut slots_by_name: BTreeMap<String, Vec<Option<Measure>>> = BTreeMap::new();
    let mut returns: BTreeMap<Kind, BTreeMap<Status, u64>> = BTreeMap::new();
    let sinks = recorders.first().map_or(0, |recorder| recorder.ycsb.len());
    for recorder in recorders {
        for (sink, ycsb) in recorder.ycsb.iter().enumerate() {
            let table = if intended { ycsb.intended.as_ref().unwrap_or(&ycsb.op) } else { &ycsb.op };
            for (kind, status, measure) in cells(table) {
                if sink == 0 && !matches!(kind, Kind::Cleanup | Kind::ReadModifyWrite) {
                    *returns.entry(kind).or_default().entry(status).or_default() += measure.count();
                }
                let slots =
                    slots_by_name.entry(metric_name(kind, status, reporting)).or_insert_with(|| vec![None; sinks]);
                match &mut slots[sink] {
                    Some(sum) => sum.merge_measure(measure),
                    slot => *slot = Some(measure),
                }
            }
        }
    }
    // If every operation of a kind failed, YCSB still lists this kind, with zero operations.
    for kind in returns.keys() {
        slots_by_name
            .entry(kind.name().to_owned())
            .or_insert_with(|| reporting.sinks.iter().map(|s| Some(empty(s))).collect());
    }
    // Names in the same bin of Java's map are in the order of their first use: plain names, then failures, then
    // CLEANUP.
    let plain = |name: &String| Kind::ALL.iter().position(|kind| kind.name() == name);
    let mut names: Vec<String> = slots_by_name.keys().cloned().collect();
    names.sort_by_key(|name| match plain(name) {
        Some(at) if Kind::ALL[at] == Kind::Cleanup => (2, 0),
        Some(at) => (0, at),
        None => (1, 0),
    });
    concurrent_hash_map_order(&names)
        .into_iter()
        .map(|i| {
            let name = &names[i];
            let counts = plain(name).and_then(|at| returns.get(&Kind::ALL[at]));
            // If both series exist, the statuses belong to the plain series.
            let counts = counts.filter(|_| prefix.is_empty());
            Metric {
                // If a worker was read between its writes to two sinks, it may have written only one of them.
                measures: (slots_by_name.remove(name).unwrap_or_default().into_iter().zip(&reporting.sinks))
                    .map(|(measure, sink)| measure.unwrap_or_else(|| empty(sink)))
                    .collect(),
                returns: STATUS_ORDER.iter().filter_map(|s| Some((*s, *counts?.get(s)?))).collect(),
                censored: 0,
                name: format!("{prefix}{name}"),
            }
        })
        .collect()
}

fn metric_name(kind: Kind, status: Status, reporting: &Reporting) -> String {
    // YCSB reports its checks as one series, whatever their result. The counts of return values show the results.
    if status.is_ok() || kind == Kind::Verify {
        return kind.name().to_owned();
    }
    let tracked = reporting.each_error || reporting.tracked.iter().any(|name| name == status.name());
    if tracked || status == Status::NotYet {
        format!("{}-{}", kind.name(), status.name())
    } else {
        format!("{}-FAILED", kind.name())
    }
}

fn empty(sink: &Sink) -> Measure {
    match sink {
        Sink::HdrNs | Sink::YcsbHdrUs => Measure::Hdr(Reading::default()),
        Sink::YcsbHistogram { buckets } => {
            Measure::Histogram(Buckets { counts: vec![0; buckets + 1], ..Buckets::default() })
        }
        Sink::YcsbSeries { .. } => Measure::Series(Series::default()),
        Sink::YcsbRaw => Measure::Raw(Raw::default()),
    }
}

fn cells(table: &YcsbTable) -> Vec<(Kind, Status, Measure)> {
    fn list_measures<T>(table: &Table<T>, read: impl Fn(&T) -> Measure) -> Vec<(Kind, Status, Measure)> {
        let cells = table.entries().map(|(step, status, cell)| (Kind::ALL[usize::from(step.0)], status, read(cell)));
        cells.collect()
    }
    let moments = |cell: &loadstone_measure::sink::LatencySums| {
        let mut all = Moments::default();
        all.add_moments(cell.get());
        all
    };
    match table {
        YcsbTable::Hdr(table) => list_measures(table, |grid| {
            let mut reading = Reading::default();
            reading.add_grid(grid);
            Measure::Hdr(reading)
        }),
        YcsbTable::Histogram(_, table) => list_measures(table, |cell| {
            Measure::Histogram(Buckets {
                counts: cell.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
                moments: moments(&cell.moments),
                squares: cell.squares.load(Ordering::Relaxed),
            })
        }),
        YcsbTable::Series(_, table) => list_measures(table, |cell| {
            let mut units: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
            for &(unit, count, sum) in &*cell.units.lock().unwrap_or_else(PoisonError::into_inner) {
                let total = units.entry(unit).or_default();
                *total = (total.0 + count, total.1 + sum);
            }
            Measure::Series(Series { units, moments: moments(&cell.moments) })
        }),
        YcsbTable::Raw(table) => list_measures(table, |cell| {
            let points = cell.points.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Measure::Raw(Raw { points, moments: moments(&cell.moments) })
        }),
    }
}
