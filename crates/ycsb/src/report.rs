//! YCSB's final report, with lines such as `[READ], Operations, 99830`, or in JSON.

use loadstone_load::histogram::Reading;
use loadstone_session::Collections;

use super::config::{Exporter, Reporting};
use super::measure::{Buckets, Measure, Metric, Moments, Raw, Series};
use loadstone_load::java::number;

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(i64),
    /// A number that Java would print as a double.
    Real(f64),
}

/// One line with a metric, a measurement and a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The metric, such as `READ`.
    pub metric: String,
    /// The measurement, such as `Operations`.
    pub measurement: String,
    /// The value, such as `99830`.
    pub value: Value,
}

/// The figures of the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overall {
    /// Length of the measured window, ns.
    pub measured_ns: u64,
    /// Number of operations that succeeded.
    pub succeeded: u64,
    /// Garbage collections in this process during the window.
    pub collections: Vec<Collections>,
}

/// The report's lines.
pub fn lines(overall: &Overall, metrics: &[Metric], reporting: &Reporting) -> Vec<Line> {
    let mut out = Vec::new();
    let mut line = |metric: &str, measurement: &str, value: Value| {
        out.push(Line { metric: metric.to_owned(), measurement: measurement.to_owned(), value });
    };
    let ms = overall.measured_ns as f64 / 1e6;
    line("OVERALL", "RunTime(ms)", Value::Whole(ms.round() as i64));
    let rate = overall.succeeded as f64 * 1e9 / overall.measured_ns as f64;
    line("OVERALL", "Throughput(ops/sec)", Value::Real(rate));
    let share = |time_ms: u64| Value::Real(100.0 * time_ms as f64 / ms);
    for collector in &collectors(overall) {
        let name = collector.collector.replace(' ', "_");
        line(&format!("TOTAL_GCS_{name}"), "Count", Value::Whole(collector.count as i64));
        line(&format!("TOTAL_GC_TIME_{name}"), "Time(ms)", Value::Whole(collector.time_ms as i64));
        line(&format!("TOTAL_GC_TIME_%_{name}"), "Time(%)", share(collector.time_ms));
    }
    let total = |part: fn(&Collections) -> u64| overall.collections.iter().map(part).sum::<u64>();
    line("TOTAL_GCs", "Count", Value::Whole(total(|collector| collector.count) as i64));
    line("TOTAL_GC_TIME", "Time(ms)", Value::Whole(total(|collector| collector.time_ms) as i64));
    line("TOTAL_GC_TIME_%", "Time(%)", share(total(|collector| collector.time_ms)));
    for metric in metrics {
        for (at, measure) in metric.measures.iter().enumerate() {
            let name = format!("{}{}", part_prefix(measure, reporting), metric.name);
            let returns = metric.returns.iter().map(|&(status, count)| (status.name(), count));
            let censored = (metric.censored > 0).then_some(("CENSORED", metric.censored));
            let returns: Vec<Line> = returns
                .chain(censored)
                .filter(|_| at == 0)
                .map(|(status, count)| Line {
                    metric: name.clone(),
                    measurement: format!("Return={status}"),
                    value: Value::Whole(count as i64),
                })
                .collect();
            measure_lines(&name, measure, returns, reporting, &mut out);
        }
    }
    out
}

/// The collectors to report. If there are none, these are the collectors of a default JVM, because scripts expect these
/// lines.
fn collectors(overall: &Overall) -> Vec<Collections> {
    if !overall.collections.is_empty() {
        return overall.collections.clone();
    }
    ["G1 Young Generation", "G1 Old Generation"]
        .map(|name| Collections { collector: name.to_owned(), count: 0, time_ms: 0 })
        .into()
}

/// The prefix of a metric's name for one part of a combined measurement type.
pub fn part_prefix(measure: &Measure, reporting: &Reporting) -> &'static str {
    if reporting.sinks.len() < 2 {
        return "";
    }
    match measure {
        Measure::Hdr(_) => "Hdr",
        Measure::Histogram(_) => "Bucket",
        Measure::Series(_) => "Series",
        Measure::Raw(_) => "Raw",
    }
}

fn measure_lines(name: &str, measure: &Measure, returns: Vec<Line>, reporting: &Reporting, out: &mut Vec<Line>) {
    let line =
        |measurement: &str, value: Value| Line { metric: name.to_owned(), measurement: measurement.to_owned(), value };
    match measure {
        Measure::Hdr(reading) => {
            let figures = HdrFigures::new(reading);
            out.push(line("Operations", Value::Whole(figures.count as i64)));
            out.push(line("AverageLatency(us)", Value::Real(figures.mean)));
            out.push(line("MinLatency(us)", Value::Whole(figures.min as i64)));
            out.push(line("MaxLatency(us)", Value::Whole(figures.max as i64)));
            for &percentile in &reporting.percentiles {
                let value = value_at_percentile(reading, percentile);
                out.push(line(&percentile_label(percentile), Value::Whole(value as i64)));
            }
            out.extend(returns);
            if reporting.verbose {
                out.extend(
                    reading.bucket_ranges().map(|(_, highest, n)| line(&highest.to_string(), Value::Real(n as f64))),
                );
            }
        }
        Measure::Histogram(buckets) => histogram_lines(&line, buckets, returns, reporting, out),
        Measure::Series(series) => {
            moments_lines(&line, &series.moments, out);
            out.extend(returns);
            if series.moments.count == 0 {
                out.push(line("0", Value::Real(f64::NAN)));
            }
            out.extend(series_units(series, reporting).map(|(ms, mean)| line(&ms.to_string(), Value::Real(mean))));
        }
        Measure::Raw(raw) => {
            out.push(line("Total Operations", Value::Whole(raw.moments.count as i64)));
            if !reporting.raw_no_summary && raw.moments.count > 0 {
                raw_lines(&line, raw, out);
            }
            out.extend(returns);
        }
    }
}

fn moments_lines(line: &impl Fn(&str, Value) -> Line, moments: &Moments, out: &mut Vec<Line>) {
    out.push(line("Operations", Value::Whole(moments.count as i64)));
    out.push(line("AverageLatency(us)", Value::Real(moments.mean())));
    end_lines(line, moments, out);
}

/// Adds the lines for minimum and maximum, which are −1 without values, as in YCSB.
fn end_lines(line: &impl Fn(&str, Value) -> Line, moments: &Moments, out: &mut Vec<Line>) {
    let (min, max) = if moments.count == 0 { (-1, -1) } else { (moments.min as i64, moments.max as i64) };
    out.push(line("MinLatency(us)", Value::Whole(min)));
    out.push(line("MaxLatency(us)", Value::Whole(max)));
}

fn histogram_lines(
    line: &impl Fn(&str, Value) -> Line,
    buckets: &Buckets,
    returns: Vec<Line>,
    reporting: &Reporting,
    out: &mut Vec<Line>,
) {
    let moments = buckets.moments;
    let count = moments.count as f64;
    out.push(line("Operations", Value::Whole(moments.count as i64)));
    out.push(line("AverageLatency(us)", Value::Real(moments.mean())));
    let variance = buckets.squares as f64 / count - moments.mean().powi(2);
    out.push(line("LatencyVariance(us)", Value::Real(variance)));
    end_lines(line, &moments, out);
    let (overflow, within) = buckets.counts.split_last().map_or((0, &[][..]), |(last, rest)| (*last, rest));
    // If a percentile is in the overflow bucket, it has no line.
    for (label, share) in [("95thPercentileLatency(us)", 0.95), ("99thPercentileLatency(us)", 0.99)] {
        let mut count_so_far = 0;
        let at = within.iter().position(|n| {
            count_so_far += n;
            count_so_far as f64 / count >= share
        });
        out.extend(at.map(|ms| line(label, Value::Whole(ms as i64 * 1_000))));
    }
    out.extend(returns);
    if reporting.verbose {
        out.extend(within.iter().enumerate().map(|(ms, &n)| line(&ms.to_string(), Value::Whole(n as i64))));
        out.push(line(&format!(">{}", within.len()), Value::Whole(overflow as i64)));
    }
}

fn series_units<'a>(series: &'a Series, reporting: &Reporting) -> impl Iterator<Item = (u64, f64)> + 'a {
    use loadstone_wire::sink::Sink;
    let granularity = reporting.sinks.iter().find_map(|sink| match sink {
        Sink::YcsbSeries { granularity_ms } => Some(*granularity_ms),
        _ => None,
    });
    let first = series.units.keys().next().copied().unwrap_or(0);
    series
        .units
        .iter()
        .map(move |(unit, (n, sum))| ((unit - first) * granularity.unwrap_or(1_000), *sum as f64 / *n as f64))
}

fn raw_lines(line: &impl Fn(&str, Value) -> Line, raw: &Raw, out: &mut Vec<Line>) {
    let mut sorted: Vec<u64> = raw.points.iter().map(|&(_, us)| us).collect();
    sorted.sort_unstable();
    out.push(line("Below is a summary of latency in microseconds:", Value::Whole(-1)));
    out.push(line("Average", Value::Real(raw.moments.mean())));
    out.push(line("Min", Value::Whole(raw.moments.min as i64)));
    out.push(line("Max", Value::Whole(raw.moments.max as i64)));
    for (label, share) in [
        ("p1", 0.01),
        ("p5", 0.05),
        ("p50", 0.5),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ] {
        let at = (sorted.len() as f64 * share) as usize;
        out.extend(sorted.get(at).map(|&us| line(label, Value::Whole(us as i64))));
    }
}

/// Formats YCSB's message about where raw operations are written. YCSB prints it on stdout, once per metric.
pub fn raw_announcement(metrics: &[Metric], reporting: &Reporting) -> String {
    let place = match &reporting.raw_file {
        None => "stdout.".to_owned(),
        Some(file) => format!("result file: {file}"),
    };
    let raw = metrics.iter().flat_map(|metric| &metric.measures).filter(|m| matches!(m, Measure::Raw(_)));
    raw.map(|_| format!("Raw data measurement: will output to {place}\n")).collect()
}

/// The raw operations in the format of YCSB's raw sink, metric by metric.
pub fn raw_text(metrics: &[Metric], reporting: &Reporting) -> String {
    let mut text = String::new();
    for metric in metrics {
        for measure in &metric.measures {
            if let Measure::Raw(raw) = measure {
                let name = format!("{}{}", part_prefix(measure, reporting), metric.name);
                text.push_str(&format!("{name} latency raw data: op, timestamp(ms), latency(us)\n"));
                for (ms, us) in &raw.points {
                    text.push_str(&format!("{name},{ms},{us}\n"));
                }
            }
        }
    }
    text
}

/// YCSB's figures from an HDR histogram in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HdrFigures {
    /// Number of values.
    pub count: u64,
    /// Mean, calculated from the midpoints of the buckets.
    pub mean: f64,
    /// Lowest value of the lowest bucket; Java's largest long if there are no values.
    pub min: u64,
    /// Highest value of the highest bucket.
    pub max: u64,
}

impl HdrFigures {
    /// The figures of a reading.
    pub fn new(reading: &Reading) -> Self {
        let (mut count, mut sum) = (0u64, 0f64);
        let (mut min, mut max) = (i64::MAX as u64, 0);
        for (lowest, highest, n) in reading.bucket_ranges() {
            count += n;
            let middle = lowest + (highest - lowest).div_ceil(2);
            sum += middle as f64 * n as f64;
            min = min.min(lowest);
            max = highest;
        }
        Self { count, mean: sum / count as f64, min, max }
    }
}

/// A percentile as calculated by `HdrHistogram` 2.1.4: the rank is rounded to the nearest integer, and the result is
/// the highest value in the bucket with this rank.
pub fn value_at_percentile(reading: &Reading, percentile: f64) -> u64 {
    let total = reading.count();
    let rank = ((percentile.clamp(0.0, 100.0) / 100.0 * total as f64 + 0.5) as u64).max(1);
    let mut count_so_far = 0;
    for (lowest, highest, n) in reading.bucket_ranges() {
        count_so_far += n;
        if count_so_far >= rank {
            return if percentile == 0.0 { lowest } else { highest };
        }
    }
    0
}

/// The name of a percentile's line: `50thPercentileLatency(us)`, `1st…`, `11th…`, `99.9PercentileLatency(us)`.
///
/// Source: `OneMeasurementHdrHistogram.ordinal` of YCSB 0.17.0. It throws an `ArrayIndexOutOfBoundsException` for a
/// negative whole percentile that does not end in 0; Loadstone uses `th`.
pub fn percentile_label(percentile: f64) -> String {
    // NaN and infinities leave a remainder that is not zero, as in Java.
    if percentile % 1.0 != 0.0 {
        return format!("{}PercentileLatency(us)", number::format_double(percentile));
    }
    let whole = percentile as i32;
    let suffix = match (whole % 100, whole % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{whole}{suffix}PercentileLatency(us)")
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Whole(number) => number.to_string(),
        Value::Real(number) => number::format_double(*number),
    }
}

/// The report in the format of one of YCSB's exporters.
pub fn render(lines: &[Line], exporter: Exporter) -> String {
    let object = |line: &Line| {
        let value = match &line.value {
            Value::Real(number) if !number.is_finite() => format!("\"{}\"", number::format_double(*number)),
            value => value_text(value),
        };
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        format!(
            "{{\n  \"metric\" : {},\n  \"measurement\" : {},\n  \"value\" : {value}\n}}",
            quote(&line.metric),
            quote(&line.measurement)
        )
    };
    match exporter {
        Exporter::Text => lines
            .iter()
            .map(|line| format!("[{}], {}, {}\n", line.metric, line.measurement, value_text(&line.value)))
            .collect(),
        Exporter::Json => lines.iter().map(object).collect::<Vec<_>>().join(" "),
        Exporter::JsonArray => format!("[ {} ]", lines.iter().map(object).collect::<Vec<_>>().join(", ")),
    }
}
