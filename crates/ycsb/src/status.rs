//! YCSB's status lines.

use std::collections::BTreeMap;

use super::config::Reporting;
use super::measure::{Measure, Metric};
use super::report::{HdrFigures, part_prefix, value_at_percentile};
use loadstone_load::java::number;

/// Writes status lines, and stores the figures of the last line.
#[derive(Debug, Default)]
pub struct StatusLine {
    last: BTreeMap<String, Vec<Measure>>,
    last_done: u64,
}

/// The progress that a status line reports.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start, ns.
    pub elapsed_ns: u64,
    /// Time since the last line, ns. The last line of a run may follow the line before it immediately.
    pub interval_ns: u64,
    /// Number of operations performed.
    pub done: u64,
    /// Total number of operations, if known.
    pub of: Option<u64>,
}

impl StatusLine {
    /// The next line, without a line end.
    pub fn next(&mut self, time: &str, progress: Progress, metrics: &[Metric], reporting: &Reporting) -> String {
        let Progress { elapsed_ns, interval_ns, done, of } = progress;
        let mut line = format!("{}{time} {} sec: {done} operations; ", reporting.label, elapsed_ns / 1_000_000_000);
        if done > 0 && interval_ns > 0 {
            let current = 1e9 * (done - self.last_done.min(done)) as f64 / interval_ns as f64;
            line.push_str(&format!("{} current ops/sec; ", number::format_decimal(current)));
            let rate = 1e9 * done as f64 / elapsed_ns as f64;
            let left = of.unwrap_or(done).saturating_sub(done);
            // YCSB makes an estimate even before any operation has finished: 106751991167300 days.
            if left > 0 && rate > 0.0 {
                line.push_str(&format!("est completion in {}", remaining((left as f64 / rate).ceil() as u64)));
            }
        }
        for metric in metrics {
            let earlier = self.last.get(&metric.name);
            let parts: Vec<String> = metric
                .measures
                .iter()
                .enumerate()
                .map(|(at, measure)| {
                    let name = format!("{}{}", part_prefix(measure, reporting), metric.name);
                    summary(&name, measure, earlier.and_then(|parts| parts.get(at)))
                })
                .collect();
            line.push_str(&parts.join("\n"));
            line.push(' ');
        }
        self.last = metrics.iter().map(|metric| (metric.name.clone(), metric.measures.clone())).collect();
        self.last_done = done;
        line
    }
}

/// Summarizes the latencies added since the last line.
fn summary(name: &str, now: &Measure, earlier: Option<&Measure>) -> String {
    match (now, earlier) {
        (Measure::Hdr(now), earlier) => {
            let new = match earlier {
                Some(Measure::Hdr(old)) => now.subtract_earlier(old),
                _ => now.clone(),
            };
            let figures = HdrFigures::new(&new);
            let at = |percentile| value_at_percentile(&new, percentile);
            format!(
                "[{name}: Count={}, Max={}, Min={}, Avg={}, 90={}, 99={}, 99.9={}, 99.99={}]",
                figures.count,
                figures.max,
                figures.min,
                number::format_decimal(figures.mean),
                at(90.0),
                at(99.0),
                at(99.9),
                at(99.99)
            )
        }
        (Measure::Histogram(_) | Measure::Series(_), earlier) => {
            let (count, sum) = window(now, earlier);
            if count == 0 {
                return String::new();
            }
            format!("[{name} AverageLatency(us)={}]", number::format_decimal(sum as f64 / count as f64))
        }
        (Measure::Raw(_), earlier) => {
            let (count, sum) = window(now, earlier);
            if count == 0 {
                return String::new();
            }
            let mean = number::format_decimals(sum as f64 / count as f64, 2);
            format!("{name} count: {count}, average latency(us): {mean}")
        }
    }
}

fn window(now: &Measure, earlier: Option<&Measure>) -> (u64, u64) {
    let sums = |measure: &Measure| match measure {
        Measure::Histogram(buckets) => (buckets.moments.count, buckets.moments.sum),
        Measure::Series(series) => (series.moments.count, series.moments.sum),
        Measure::Raw(raw) => (raw.moments.count, raw.moments.sum),
        Measure::Hdr(reading) => (reading.count(), u64::try_from(reading.sum()).unwrap_or(u64::MAX)),
    };
    let (count, sum) = sums(now);
    let (old_count, old_sum) = earlier.map_or((0, 0), sums);
    (count - old_count, sum - old_sum)
}

/// YCSB's text for a number of seconds, including its incorrect singular: `2 second ` but `12 seconds `.
fn remaining(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let mut text = String::new();
    let mut part = |n: u64, unit: &str| {
        if n > 0 {
            text.push_str(&format!("{n} {unit}{} ", if n == 1 { "" } else { "s" }));
        }
    };
    part(days, "day");
    part(hours, "hour");
    if days == 0 {
        part(minutes, "minute");
    }
    if text.is_empty() {
        let digits = seconds.to_string();
        text = format!("{digits} {} ", if digits.len() == 1 { "second" } else { "seconds" });
    }
    text
}

/// Formats a Unix time in ms as local time, `yyyy-MM-dd HH:mm:ss:SSS`.
pub fn local_time(unix_ms: u64) -> String {
    let seconds = (unix_ms / 1_000) as libc::time_t;
    // SAFETY: both structs are local, and localtime_r fills the second.
    let time = unsafe {
        let mut time = std::mem::zeroed::<libc::tm>();
        libc::localtime_r(&raw const seconds, &raw mut time);
        time
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}:{:03}",
        time.tm_year + 1_900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
        unix_ms % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_worded_as_in_ycsb() {
        for (seconds, text) in [
            (0, "0 second "),
            (2, "2 second "),
            (12, "12 seconds "),
            (60, "1 minute "),
            (540, "9 minutes "),
            (8_100, "2 hours 15 minutes "),
            (86_400 * 2 + 3_600, "2 days 1 hour "),
        ] {
            assert_eq!(remaining(seconds), text);
        }
    }
}
