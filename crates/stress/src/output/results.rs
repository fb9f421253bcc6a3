//! The `Results:` block.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rows::{Figures, Garbage};
use crate::compat::Compat;
use crate::number::{format_count, format_decimals, group_thousands};

/// The figures of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The figures of all operations.
    pub total: Figures,
    /// The figures of each kind of operation, by name.
    pub kinds: Vec<(String, Figures)>,
    /// Garbage collections in the servers.
    pub garbage: Garbage,
    /// Length of the run in ms.
    pub run_time_ms: u64,
}

/// The results, from the two empty lines before them to the empty line before `END`. In the format of 3.0, they have no
/// units and no commas.
#[must_use]
pub fn render_results(summary: &Summary, compat: Compat) -> String {
    if compat == Compat::V3_0 { render_3_0(summary) } else { render_units(summary) }
}

type Pick = fn(&Figures) -> f64;

const LATENCIES: [(&str, Pick); 6] = [
    ("mean", |figures| figures.mean_ms),
    ("median", |figures| figures.median_ms),
    ("95th percentile", |figures| figures.p95_ms),
    ("99th percentile", |figures| figures.p99_ms),
    ("99.9th percentile", |figures| figures.p999_ms),
    ("max", |figures| figures.max_ms),
];

/// Renders `[READ: 1,495 op/s, WRITE: …]`, sorted by name.
fn render_kinds(summary: &Summary, separator: &str, render: impl Fn(&Figures) -> String) -> String {
    let mut kinds: Vec<_> = summary.kinds.iter().collect();
    kinds.sort_by(|a, b| a.0.cmp(&b.0));
    let kinds: Vec<String> =
        kinds.iter().map(|(name, figures)| format!("{name}:{separator}{}", render(figures))).collect();
    format!("[{}]", kinds.join(", "))
}

fn render_units(summary: &Summary) -> String {
    let Summary { total, garbage, .. } = summary;
    let mut text = String::from("\n\nResults:\n");
    let mut line = |label: &str, value: String| text.push_str(&format!("{label:<26}: {value}\n"));
    let rates: [(&str, &str, &str, Pick); 3] = [
        ("Op rate", "op/s", "op/s ", Figures::operation_rate),
        ("Partition rate", "pk/s", "pk/s ", Figures::partition_rate),
        ("Row rate", "row/s", "row/s", Figures::row_rate),
    ];
    for (label, unit, padded, pick) in rates {
        let rate = |figures: &Figures| group_thousands(&format_decimals(pick(figures), 0));
        let kinds = render_kinds(summary, " ", |figures| format!("{} {unit}", rate(figures)));
        line(label, format!("{:>8} {padded} {kinds}", rate(total)));
    }
    for (label, pick) in LATENCIES {
        let kinds =
            render_kinds(summary, " ", |figures| format!("{} ms", group_thousands(&format_decimals(pick(figures), 1))));
        line(&format!("Latency {label}"), format!("{:>6} ms {kinds}", format_decimals(pick(total), 1)));
    }
    for (label, pick) in [
        ("Total partitions", (|figures| figures.partitions) as fn(&Figures) -> u64),
        ("Total errors", |figures| figures.errors),
    ] {
        let kinds = render_kinds(summary, " ", |figures| format_count(pick(figures)));
        line(label, format!("{:>10} {kinds}", format_count(pick(total))));
    }
    let decimals = |value: f64, decimals: usize| group_thousands(&format_decimals(value, decimals));
    line("Total GC count", decimals(garbage.count, 0));
    line("Total GC memory", render_memory(garbage.bytes));
    line("Total GC time", format!("{:>6} seconds", decimals(garbage.sum_ms / 1_000.0, 1)));
    line("Avg GC time", format!("{:>6} ms", decimals(garbage.sum_ms / garbage.count, 1)));
    line("StdDev GC time", format!("{:>6} ms", decimals(garbage.deviation_ms, 1)));
    line("Total operation time", render_time(summary.run_time_ms));
    text.push('\n');
    text
}

fn render_3_0(summary: &Summary) -> String {
    let Summary { total, garbage, .. } = summary;
    let mut text = String::from("\n\nResults:\n");
    let mut line = |label: &str, value: String| text.push_str(&format!("{label:<26}: {value}\n"));
    let rates: [(&str, Pick); 3] = [
        ("op rate", Figures::operation_rate),
        ("partition rate", Figures::partition_rate),
        ("row rate", Figures::row_rate),
    ];
    let mut figures_line = |label: &str, pick: &dyn Fn(&Figures) -> String| {
        line(label, format!("{} {}", pick(total), render_kinds(summary, "", pick)));
    };
    for (label, pick) in rates {
        figures_line(label, &|figures| format_decimals(pick(figures), 0));
    }
    for (label, pick) in LATENCIES {
        figures_line(&format!("latency {label}"), &|figures| format_decimals(pick(figures), 1));
    }
    figures_line("Total partitions", &|figures| figures.partitions.to_string());
    figures_line("Total errors", &|figures| figures.errors.to_string());
    line("total gc count", format_decimals(garbage.count, 0));
    line("total gc mb", format_decimals(garbage.bytes / f64::from(1 << 20), 0));
    line("total gc time (s)", format_decimals(garbage.sum_ms / 1_000.0, 0));
    line("avg gc time(ms)", format_decimals(garbage.sum_ms / garbage.count, 0));
    line("stdev gc time(ms)", format_decimals(garbage.deviation_ms, 0));
    line("Total operation time", render_time(summary.run_time_ms));
    text.push('\n');
    text
}

/// Formats bytes as `FBUtilities.prettyPrintMemory` does.
fn render_memory(bytes: f64) -> String {
    let (kib, mib, gib) = (1_024.0, 1_048_576.0, 1_073_741_824.0);
    let bytes = bytes.trunc();
    let (size, unit) = if bytes >= gib {
        (bytes / gib, "GiB")
    } else if bytes >= mib {
        (bytes / mib, "MiB")
    } else {
        (bytes / kib, "KiB")
    };
    format!("{} {unit}", format_decimals(size, 3))
}

/// Formats a time as `HH:mm:ss`, truncated.
fn render_time(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::super::rows::samples::{READ, THROTTLED, WRITE};
    use super::*;

    /// Figures whose printed form equals the results of the sample.
    fn summary(sample: &str, kind: &str, run_time_ms: u64) -> Summary {
        let values: Vec<f64> = sample
            .split("Results:\n")
            .nth(1)
            .unwrap()
            .lines()
            .take(11)
            .map(|line| {
                let value = line.split_once(": ").unwrap().1.trim_start();
                value.split(' ').next().unwrap().replace(',', "").parse().unwrap()
            })
            .collect();
        let seconds = 1_000.0;
        let total = Figures {
            operations: (values[0] * seconds) as u64,
            // The tool prints the number and the rate of partitions. In the sample, the rate follows from the number.
            partitions: values[9] as u64,
            rows: (values[2] * seconds) as u64,
            errors: values[10] as u64,
            seconds,
            mean_ms: values[3],
            median_ms: values[4],
            p95_ms: values[5],
            p99_ms: values[6],
            p999_ms: values[7],
            max_ms: values[8],
        };
        Summary { total, kinds: vec![(kind.to_owned(), total)], garbage: Garbage::default(), run_time_ms }
    }

    fn compare(sample: &str, kind: &str, run_time_ms: u64, seconds: f64) {
        let mut summary = summary(sample, kind, run_time_ms);
        let scale = |figures: &mut Figures| {
            figures.seconds = seconds;
            figures.operations = figures.partitions;
            figures.rows = figures.partitions;
        };
        scale(&mut summary.total);
        scale(&mut summary.kinds[0].1);
        let start = sample.find("\n\nResults:").unwrap();
        let end = sample.find("END\n").unwrap();
        assert_eq!(render_results(&summary, Compat::V4), sample[start..end]);
    }

    #[test]
    fn results_of_real_runs_are_reproduced() {
        compare(WRITE, "WRITE", 114_200, 114.16);
        compare(THROTTLED, "WRITE", 60_300, 60.3);
        compare(READ, "READ", 133_700, 133.74);
    }

    /// Output of 3.3 with Cassandra 5.0.9.
    #[test]
    fn results_of_3_0_are_reproduced() {
        let total = Figures {
            operations: 3_000,
            partitions: 3_000,
            rows: 3_000,
            errors: 0,
            seconds: 9.26,
            mean_ms: 11.7,
            median_ms: 5.1,
            p95_ms: 40.5,
            p99_ms: 86.8,
            p999_ms: 173.8,
            max_ms: 259.1,
        };
        let summary = Summary {
            total,
            kinds: vec![("WRITE".to_owned(), total)],
            garbage: Garbage::default(),
            run_time_ms: 9_260,
        };
        assert_eq!(render_results(&summary, Compat::V3_0) + "END\n", include_str!("../../fixtures/results-3.3.txt"));
    }

    /// The parser of the 2016 scale test reads the text from `op rate` to `END`, splits lines at the colon and drops
    /// the brackets. ScyllaDB's parser expects lower-case labels and drops commas.
    #[test]
    fn results_pass_through_known_parsers() {
        let total =
            Figures { operations: 12_345, partitions: 12_345, rows: 12_345, seconds: 10.0, ..Figures::default() };
        let summary = Summary {
            total,
            kinds: vec![("WRITE".to_owned(), total)],
            garbage: Garbage::default(),
            run_time_ms: 10_000,
        };
        for compat in [Compat::V3_0, Compat::V4] {
            let text = render_results(&summary, compat);
            let value = |label: &str| {
                let line = text.lines().find(|line| line.to_lowercase().starts_with(label)).unwrap();
                let value = line.split_once(':').unwrap().1.split('[').next().unwrap().replace(',', "");
                value.split_whitespace().next().unwrap().parse::<f64>().unwrap()
            };
            assert_eq!(value("total partitions") as u64, 12_345);
            assert_eq!(value("total errors") as u64, 0);
            assert_eq!(value("op rate") as u64, 1_235);
        }
    }

    #[test]
    fn several_kinds_are_sorted() {
        let figures = Figures { operations: 10, seconds: 1.0, ..Figures::default() };
        let summary = Summary {
            total: figures,
            kinds: vec![("WRITE".to_owned(), figures), ("READ".to_owned(), figures)],
            garbage: Garbage { count: 4.0, max_ms: 20.0, sum_ms: 50.0, deviation_ms: 2.0, bytes: 3.5e9 },
            run_time_ms: 3_725_999,
        };
        let text = render_results(&summary, Compat::V4);
        for line in [
            "Op rate                   :       10 op/s  [READ: 10 op/s, WRITE: 10 op/s]\n",
            "Total GC count            : 4\n",
            "Total GC memory           : 3.260 GiB\n",
            "Total GC time             :    0.1 seconds\n",
            "Avg GC time               :   12.5 ms\n",
            "Total operation time      : 01:02:05\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
