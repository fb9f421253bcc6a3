//! The header, and the rows for each interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compat::Compat;
use crate::number::format_decimals;

/// Counts, rates and latencies of one kind of operation, or of all kinds, over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "units are in the names")]
pub struct Figures {
    /// Number of operations, including failed operations.
    pub operations: u64,
    /// Number of partitions of successful operations; a failed write counts as one.
    pub partitions: u64,
    /// Number of rows, counted like partitions.
    pub rows: u64,
    /// Number of failed operations.
    pub errors: u64,
    /// The time by which counts are divided to give rates.
    pub seconds: f64,
    pub mean_ms: f64,
    pub median_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl Figures {
    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// Operations per second; NaN if the time is 0.
    #[must_use]
    pub fn operation_rate(&self) -> f64 {
        self.rate(self.operations)
    }

    /// Operations that succeeded, per second.
    #[must_use]
    pub fn success_rate(&self) -> f64 {
        self.rate(self.operations - self.errors)
    }

    /// Number of partitions per second.
    #[must_use]
    pub fn partition_rate(&self) -> f64 {
        self.rate(self.partitions)
    }

    /// Number of rows per second.
    #[must_use]
    pub fn row_rate(&self) -> f64 {
        self.rate(self.rows)
    }

    /// The rate that [`super::Uncertainty`] uses: rows divided by the time minus the maximum latency.
    #[must_use]
    pub fn net_row_rate(&self) -> f64 {
        self.rows as f64 / (self.seconds - self.max_ms / 1_000.0)
    }
}

/// Garbage collections in the servers; all values are 0 if they were not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "units are in the names")]
pub struct Garbage {
    pub count: f64,
    pub max_ms: f64,
    pub sum_ms: f64,
    /// Standard deviation of the collection times.
    pub deviation_ms: f64,
    pub bytes: f64,
}

/// A row: the figures of an interval, and the totals since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The name of the row: `READ`, `total` …
    pub name: String,
    /// The figures of the interval.
    pub figures: Figures,
    /// Number of operations since the start.
    pub total_operations: u64,
    /// Time since the start, ms.
    pub run_time_ms: u64,
}

/// The names of the values in a row.
pub const METRICS: [&str; 19] = [
    "type",
    "total ops",
    "op/s",
    "pk/s",
    "row/s",
    "mean",
    "med",
    ".95",
    ".99",
    ".999",
    "max",
    "time",
    "stderr",
    "errors",
    "gc: #",
    "max ms",
    "sum ms",
    "sdv ms",
    "mb",
];
const WIDTHS: [usize; 18] = [10, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7, 9, 7, 7, 8, 8, 8, 8];

/// The width of the first column, in characters.
const fn name_width(compat: Compat) -> usize {
    match compat {
        Compat::V3_0 | Compat::V3_11 => 10,
        Compat::V4 | Compat::V5 => 50,
    }
}

/// The header, preceded by `prefix`, which is empty outside the auto table.
#[must_use]
pub fn render_header(prefix: &str, compat: Compat) -> String {
    let cells: Vec<String> = METRICS[1..].iter().zip(WIDTHS).map(|(name, width)| format!("{name:>width$}")).collect();
    format!("{prefix}{:<width$}{}\n", METRICS[0], cells.join(","), width = name_width(compat))
}

/// The rows of an interval. If several kinds of operations occurred, there is one row for each of these kinds, followed
/// by the total; otherwise, there is only the total. The result is empty if the interval has no operations.
/// `uncertainty` is the relative standard error so far.
#[must_use]
pub fn render_interval(
    kinds: &[Interval],
    total: &Interval,
    garbage: &Garbage,
    uncertainty: f64,
    compat: Compat,
) -> String {
    if total.figures.operations == 0 {
        return String::new();
    }
    let mut kinds: Vec<&Interval> = if kinds.len() > 1 { kinds.iter().collect() } else { Vec::new() };
    kinds.sort_by(|a, b| a.name.cmp(&b.name));
    kinds.into_iter().chain([total]).map(|interval| render_row("", interval, garbage, uncertainty, compat)).collect()
}

/// One row, including the line end.
pub(super) fn render_row(
    prefix: &str,
    interval: &Interval,
    garbage: &Garbage,
    uncertainty: f64,
    compat: Compat,
) -> String {
    let Interval { name, figures, total_operations, run_time_ms } = interval;
    // The tool divides in single precision.
    let seconds = f64::from(*run_time_ms as f32 / 1_000.0);
    let cells = [
        total_operations.to_string(),
        format_decimals(figures.operation_rate(), 0),
        format_decimals(figures.partition_rate(), 0),
        format_decimals(figures.row_rate(), 0),
        format_decimals(figures.mean_ms, 1),
        format_decimals(figures.median_ms, 1),
        format_decimals(figures.p95_ms, 1),
        format_decimals(figures.p99_ms, 1),
        format_decimals(figures.p999_ms, 1),
        format_decimals(figures.max_ms, 1),
        format_decimals(seconds, 1),
        format_decimals(uncertainty, 5),
        figures.errors.to_string(),
        format_decimals(garbage.count, 0),
        format_decimals(garbage.max_ms, 0),
        format_decimals(garbage.sum_ms, 0),
        format_decimals(garbage.deviation_ms, 0),
        format_decimals(garbage.bytes / f64::from(1 << 20), 0),
    ];
    let cells: Vec<String> = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}")).collect();
    format!("{prefix}{:<width$}{}\n", format!("{name},"), cells.join(","), width = name_width(compat))
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    pub const WRITE: &str = include_str!("../../fixtures/write.txt");
    pub const THROTTLED: &str = include_str!("../../fixtures/write-throttled.txt");
    pub const READ: &str = include_str!("../../fixtures/read.txt");

    /// The numbers of a printed row.
    pub fn cells(row: &str) -> Vec<f64> {
        row.split(',').skip(1).map(|cell| cell.trim().parse().unwrap()).collect()
    }

    /// Figures whose printed form equals a row of the sample.
    pub fn interval(row: &str) -> (Interval, f64) {
        let cells = cells(row);
        let seconds = 1.0;
        let figures = Figures {
            operations: cells[1] as u64,
            partitions: cells[2] as u64,
            rows: cells[3] as u64,
            errors: cells[12] as u64,
            seconds,
            mean_ms: cells[4],
            median_ms: cells[5],
            p95_ms: cells[6],
            p99_ms: cells[7],
            p999_ms: cells[8],
            max_ms: cells[9],
        };
        let name = row.split(',').next().unwrap().to_owned();
        let interval = Interval {
            name,
            figures,
            total_operations: cells[0] as u64,
            run_time_ms: (cells[10] * 1_000.0).round() as u64,
        };
        (interval, cells[11])
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{READ, THROTTLED, WRITE, interval};
    use super::*;

    #[test]
    fn rows_of_real_runs_are_reproduced() {
        let mut count = 0;
        for sample in [WRITE, THROTTLED, READ] {
            assert!(sample.contains(&render_header("", Compat::V4)));
            for row in sample.lines().filter(|line| line.starts_with("total,")) {
                let (interval, uncertainty) = interval(row);
                let rendered = render_interval(&[], &interval, &Garbage::default(), uncertainty, Compat::V4);
                assert_eq!(rendered, format!("{row}\n"));
                count += 1;
            }
        }
        assert_eq!(count, 63);
    }

    #[test]
    fn header_of_3_has_a_narrow_name() {
        assert!(render_header("", Compat::V3_0).starts_with("type       total ops,    op/s,"));
    }

    #[test]
    fn several_kinds_have_a_row_each() {
        let named = |name: &str| Interval {
            name: name.to_owned(),
            figures: Figures { operations: 1, seconds: 1.0, ..Figures::default() },
            total_operations: 1,
            run_time_ms: 1_000,
        };
        let render = |kinds: &[Interval]| {
            let rows = render_interval(kinds, &named("total"), &Garbage::default(), 0.0, Compat::V4);
            rows.lines().map(|row| row.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(render(&[named("WRITE"), named("READ")]), ["READ", "WRITE", "total"]);
        assert_eq!(render(&[named("WRITE")]), ["total"]);
    }

    #[test]
    fn interval_without_operations_prints_nothing() {
        let empty = Interval {
            name: "total".to_owned(),
            figures: Figures { seconds: 1.0, ..Figures::default() },
            total_operations: 9,
            run_time_ms: 5_000,
        };
        assert_eq!(render_interval(&[], &empty, &Garbage::default(), 0.0, Compat::V4), "");
    }
}
