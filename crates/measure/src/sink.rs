//! Recordings that make YCSB's formats exact, in addition to Loadstone's histograms.
//!
//! YCSB counts whole microseconds. Re-bucketing Loadstone's nanoseconds would change YCSB's minima, maxima and means.
//! The front end therefore requests a separate sink, which receives every latency as YCSB does: truncated to µs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::histogram::{Grid, Table};
use loadstone_load::{Kind, Status, StepId};
use loadstone_wire::sink::Sink;

/// The times of a step, ns.
#[derive(Clone, Copy, Debug)]
pub struct StepTimes {
    /// Time at which the step's operation was due (closed loop: sent); `sent` for a step outside an operation.
    pub due: u64,
    /// Time at which the step was sent.
    pub sent: u64,
    /// Time at which the answer arrived.
    pub done: u64,
}

/// A worker's recording for one of YCSB's sinks: by service time (YCSB's *op* interval) and, with a rate, by response
/// time (YCSB's *intended* interval).
#[derive(Debug)]
pub struct YcsbMeasurements {
    /// Recordings of done − sent.
    pub op: YcsbTable,
    /// Recordings of done − due; with a rate only.
    pub intended: Option<YcsbTable>,
    to_unix_ns: u64,
}

/// The recordings of a sink by step and status.
#[derive(Debug)]
pub enum YcsbTable {
    /// See [`Sink::YcsbHdrUs`].
    Hdr(Table),
    /// See [`Sink::YcsbHistogram`].
    Histogram(usize, Table<LatencyBuckets>),
    /// See [`Sink::YcsbSeries`].
    Series(u64, Table<LatencySeries>),
    /// See [`Sink::YcsbRaw`].
    Raw(Table<RawLatencies>),
}

impl YcsbMeasurements {
    /// Measurements for one of YCSB's sinks; `None` for Loadstone's sink.
    pub fn new(sink: &Sink, steps: usize, open: bool, to_unix_ns: u64) -> Option<Self> {
        let op = YcsbTable::new(sink, steps)?;
        let intended = if open { YcsbTable::new(sink, steps) } else { None };
        Some(Self { op, intended, to_unix_ns })
    }

    /// Records a step.
    #[inline]
    pub fn record_times(&self, step: StepId, status: Status, times: StepTimes) {
        // YCSB counts a read-modify-write as successful whatever the status of its two halves, which are reported
        // separately.
        let status = if step == Kind::ReadModifyWrite.step() { Status::Ok } else { status };
        let unix_ms = || (times.done.wrapping_add(self.to_unix_ns)) / 1_000_000;
        self.op.record_latency(step, status, times.done.saturating_sub(times.sent) / 1_000, unix_ms);
        if let Some(intended) = &self.intended {
            intended.record_latency(step, status, times.done.saturating_sub(times.due) / 1_000, unix_ms);
        }
    }
}

impl YcsbTable {
    fn new(sink: &Sink, steps: usize) -> Option<Self> {
        Some(match sink {
            Sink::HdrNs => return None,
            Sink::YcsbHdrUs => Self::Hdr(Table::new(steps)),
            Sink::YcsbHistogram { buckets } => Self::Histogram(*buckets, Table::new(steps)),
            Sink::YcsbSeries { granularity_ms } => Self::Series(*granularity_ms, Table::new(steps)),
            Sink::YcsbRaw => Self::Raw(Table::new(steps)),
        })
    }

    #[inline]
    fn record_latency(&self, step: StepId, status: Status, us: u64, unix_ms: impl Fn() -> u64) {
        match self {
            Self::Hdr(table) => table.cell_or_insert(step, status, Grid::default).record_value(us),
            Self::Histogram(buckets, table) => {
                table.cell_or_insert(step, status, || LatencyBuckets::new(*buckets)).record_latency(us);
            }
            Self::Series(granularity, table) => {
                table
                    .cell_or_insert(step, status, LatencySeries::default)
                    .record_latency(us, unix_ms() / (*granularity).max(1));
            }
            Self::Raw(table) => table.cell_or_insert(step, status, RawLatencies::default).record_latency(us, unix_ms()),
        }
    }
}

/// Count, sum, minimum and maximum, which a single thread writes.
#[derive(Debug)]
pub struct LatencySums {
    count: AtomicU64,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for LatencySums {
    fn default() -> Self {
        Self { count: 0.into(), sum: 0.into(), min: u64::MAX.into(), max: 0.into() }
    }
}

impl LatencySums {
    fn record_latency(&self, us: u64) {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        self.count.store(get(&self.count) + 1, Ordering::Relaxed);
        self.sum.store(get(&self.sum) + us, Ordering::Relaxed);
        self.min.store(get(&self.min).min(us), Ordering::Relaxed);
        self.max.store(get(&self.max).max(us), Ordering::Relaxed);
    }

    /// Count, sum, minimum and maximum, µs.
    pub fn get(&self) -> (u64, u64, u64, u64) {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        (get(&self.count), get(&self.sum), get(&self.min), get(&self.max))
    }
}

/// Buckets of 1 ms with exact sums.
#[derive(Debug)]
pub struct LatencyBuckets {
    /// One count per ms; the last count is for all larger values.
    pub counts: Vec<AtomicU64>,
    /// Exact count, sum, minimum and maximum.
    pub moments: LatencySums,
    /// Sum of squares, µs².
    pub squares: AtomicU64,
}

impl LatencyBuckets {
    fn new(buckets: usize) -> Self {
        let mut counts = Vec::new();
        counts.resize_with(buckets + 1, AtomicU64::default);
        Self { counts, moments: LatencySums::default(), squares: AtomicU64::default() }
    }

    fn record_latency(&self, us: u64) {
        let at = ((us / 1_000) as usize).min(self.counts.len() - 1);
        self.counts[at].store(self.counts[at].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.moments.record_latency(us);
        let squares = self.squares.load(Ordering::Relaxed).wrapping_add(us.wrapping_mul(us));
        self.squares.store(squares, Ordering::Relaxed);
    }
}

/// Sums per unit of time. This format requires a lock, which is taken only by the single writer and, at the end, by the
/// report.
#[derive(Debug, Default)]
pub struct LatencySeries {
    /// For each unit of wall-clock time: its number, the count, and the sum in µs; in the order of recording.
    pub units: Mutex<Vec<(u64, u64, u64)>>,
    /// Exact count, sum, minimum and maximum.
    pub moments: LatencySums,
}

impl LatencySeries {
    fn record_latency(&self, us: u64, unit: u64) {
        self.moments.record_latency(us);
        let mut units = self.units.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match units.last_mut() {
            Some(last) if last.0 == unit => (last.1, last.2) = (last.1 + 1, last.2 + us),
            _ => units.push((unit, 1, us)),
        }
    }
}

/// Every operation: the Unix time of its completion in ms, and its latency in µs. This format has a lock, as
/// [`LatencySeries`] does, and its memory grows with the length of the run.
#[derive(Debug, Default)]
pub struct RawLatencies {
    /// The points in the order in which this worker's operations finished.
    pub points: Mutex<Vec<(u64, u64)>>,
    /// Exact count, sum, minimum and maximum.
    pub moments: LatencySums,
}

impl RawLatencies {
    fn record_latency(&self, us: u64, unix_ms: u64) {
        self.moments.record_latency(us);
        self.points.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((unix_ms, us));
    }
}
