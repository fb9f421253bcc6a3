//! The results: Hadoop's block without changes, followed by figures that Hadoop omits.

use std::time::Duration;

use loadstone_load::java::number::format_decimal;
use loadstone_wire::files::{FilesSummary, Reached};

/// Number of bytes in Hadoop's MB.
pub const MB: f64 = 1_048_576.0;
/// The unit of rates, as in Hadoop's lines.
pub const MB_PER_SECOND: &str = "mb/sec (2^20)";

/// Hadoop's block (`TestDFSIO.analyzeResult` in 3.4), as appended to `-resFile`.
pub fn render_hadoop(test: &str, date: &str, files: &FilesSummary, wall: Duration) -> String {
    let tasks = files.done as f64;
    let mean = files.rate_sum / tasks;
    let deviation = (files.rate_square_sum / tasks - mean * mean).abs().sqrt();
    let throughput = files.bytes as f64 / MB / (files.task_ns as f64 / 1e9);
    // Hadoop calculates this in single precision.
    let processed = f64::from(files.bytes as f32 / MB as f32);
    let seconds = f64::from(wall.as_millis() as f32 / 1_000.0);
    format!(
        "----- TestDFSIO ----- : {test}\n            Date & time: {date}\n        Number of files: {}\n \
         Total MBytes processed: {}\n      Throughput mb/sec: {}\n Average IO rate mb/sec: {}\n  \
         IO rate std deviation: {}\n     Test exec time sec: {}\n\n",
        files.done,
        format_decimal(processed),
        format_decimal(throughput),
        format_decimal(mean),
        format_decimal(deviation),
        format_decimal(seconds),
    )
}

/// Formats a time as `EEE MMM dd HH:mm:ss zzz yyyy` in local time, like Java's `Date`.
pub fn java_date(unix_seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = unix_seconds as libc::time_t;
    // SAFETY: both structs are local. localtime_r fills the second, whose time zone is a string that remains valid.
    let (time, zone) = unsafe {
        let mut time = std::mem::zeroed::<libc::tm>();
        libc::localtime_r(&raw const seconds, &raw mut time);
        let zone = if time.tm_zone.is_null() { c"UTC" } else { std::ffi::CStr::from_ptr(time.tm_zone) };
        (time, zone.to_string_lossy().into_owned())
    };
    format!(
        "{} {} {:02} {:02}:{:02}:{:02} {zone} {}",
        DAYS[time.tm_wday.rem_euclid(7) as usize],
        MONTHS[time.tm_mon.rem_euclid(12) as usize],
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
        time.tm_year + 1_900,
    )
}

/// Formats the rate of `bytes` in `ns`, in [`MB_PER_SECOND`].
fn format_rate(bytes: u64, ns: u64) -> String {
    if ns == 0 { "-".to_owned() } else { format!("{:.2}", bytes as f64 / MB / (ns as f64 / 1e9)) }
}

/// Minimum number of intervals; with fewer, no median is reported.
const INTERVALS_MIN: usize = 3;

/// One interval of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalBytes {
    /// Start of the interval, in seconds after the start of the run.
    pub start: f64,
    /// Length of the interval, seconds.
    pub seconds: f64,
    pub bytes: f64,
    /// Whether all clients were still working at the end of the interval.
    pub busy: bool,
}

/// The lowest rate and the median rate of the intervals, in [`MB_PER_SECOND`]. Also returns a warning if a rate was
/// below half of the median (or of the mean, if no bytes were transferred in most intervals). Only intervals in which
/// all clients were working count, because fewer clients transfer fewer bytes.
pub fn summarize_throughput(intervals: &[IntervalBytes]) -> Option<(String, Option<String>)> {
    let busy = &intervals[..=intervals.iter().rposition(|interval| interval.busy)?];
    let rates: Vec<f64> = busy.iter().map(|interval| interval.bytes / MB / interval.seconds).collect();
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let median = *sorted.get(sorted.len() / 2).filter(|_| sorted.len() >= INTERVALS_MIN)?;
    let [bytes, seconds] =
        busy.iter().fold([0.0; 2], |[bytes, seconds], interval| [bytes + interval.bytes, seconds + interval.seconds]);
    let mean = bytes / MB / seconds;
    let (name, usual) = if median > 0.0 { ("median", median) } else { ("mean", mean) };
    let low = |&i: &usize| rates[i] < usual / 2.0;
    let least = (0..rates.len()).min_by(|&a, &b| rates[a].total_cmp(&rates[b]))?;
    let line = format!("{:.2} at {:.0} s, {median:.2}", rates[least], busy[least].start);
    let warning = (0..rates.len()).find(low).map(|first| {
        let seconds: f64 = (0..rates.len()).filter(low).map(|i| busy[i].seconds).sum();
        format!(
            "throughput was below half of its {name} of {usual:.2} {MB_PER_SECOND} for {seconds:.0} s, \
             first at {:.0} s; lowest: {:.2} {MB_PER_SECOND} at {:.0} s",
            busy[first].start, rates[least], busy[least].start
        )
    });
    Some((line, warning))
}

/// The number of files that were not begun, if there are `expected` files.
pub fn count_unstarted(files: &FilesSummary, expected: u64) -> u64 {
    expected.saturating_sub(files.done + files.failed + files.unfinished)
}

/// The figures that Hadoop omits, one per line. `expected` is the expected number of files.
pub fn aggregate_rows(files: &FilesSummary, expected: u64) -> Vec<(String, String)> {
    let mut lines = vec![(
        "files done, failed, unfinished, not started".to_owned(),
        format!("{}, {}, {}, {}", files.done, files.failed, files.unfinished, count_unstarted(files, expected)),
    )];
    let since = |at: Option<u64>| Some(at?.saturating_sub(files.first_start_unix_ns?));
    if let Some(ns) = since(files.last_done_unix_ns) {
        lines.push((format!("aggregate {MB_PER_SECOND}, first start to last done"), format_rate(files.bytes, ns)));
    }
    // The bytes transferred by this time include bytes of files that failed later.
    if let Some(ns) = since(files.first_done_unix_ns).filter(|_| files.failed == 0) {
        lines.push((
            format!("aggregate {MB_PER_SECOND}, first start to first done"),
            format_rate(files.first_done_bytes, ns),
        ));
    }
    if let (Some(least), Some(most)) = (files.rate_min, files.rate_max) {
        lines.push((format!("{MB_PER_SECOND} of a file, least to most"), format!("{least:.2} to {most:.2}")));
    }
    let mut reached = |name: &str, reached: &Reached| {
        if let Some(ns) = since(reached.last_unix_ns) {
            lines.push((format!("aggregate {MB_PER_SECOND}, until {name}"), format_rate(reached.bytes, ns)));
        }
    };
    reached("the last call returned", &files.returned);
    reached("the file system had it (flush)", &files.flushed);
    reached("the devices had it (sync)", &files.durable);
    reached("closed", &files.closed);
    if files.unverified > 0 {
        lines.push((
            "files not compared, compared in part".to_owned(),
            format!("{}, {}", files.foreign, files.unverified - files.foreign),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_equals_hadoops_exactly() {
        let files = FilesSummary {
            done: 4,
            bytes: 256 << 20,
            task_ns: 8_025_000_000,
            rate_sum: 130.12,
            rate_square_sum: 4.0 * (32.53 * 32.53 + 4.76 * 4.76),
            ..FilesSummary::default()
        };
        let expected = include_str!("../fixtures/testdfsio-write.txt");
        assert_eq!(
            render_hadoop("write", "Sat Nov 21 09:41:36 UTC 2026", &files, Duration::from_millis(14_440)),
            expected
        );
    }

    #[test]
    fn throughput_drop_is_reported_with_time_and_depth() {
        let run = |rates: &[f64], busy: usize| {
            let interval_bytes = |(i, rate): (usize, &f64)| IntervalBytes {
                start: i as f64,
                seconds: 1.0,
                bytes: rate * MB,
                busy: i < busy,
            };
            summarize_throughput(&rates.iter().enumerate().map(interval_bytes).collect::<Vec<_>>())
        };
        assert_eq!(run(&[100.0, 98.0, 0.5], 2), None, "too short");
        // Clients that have stopped transfer no bytes.
        assert_eq!(run(&[100.0, 98.0, 60.0, 99.0, 1.0], 4), Some(("60.00 at 2 s, 99.00".to_owned(), None)));
        let (line, warning) = run(&[100.0, 98.0, 30.0, 0.0, 99.0, 101.0, 97.0], 7).unwrap();
        assert_eq!(line, "0.00 at 3 s, 98.00");
        let expected =
            "below half of its median of 98.00 mb/sec (2^20) for 2 s, first at 2 s; lowest: 0.00 mb/sec (2^20) at 3 s";
        assert!(warning.as_ref().is_some_and(|warning| warning.ends_with(expected)), "{warning:?}");
        let stalled = run(&[80.0, 0.0, 0.0, 0.0], 4).and_then(|(_, warning)| warning).unwrap();
        assert!(stalled.contains("below half of its mean of 20.00 mb/sec (2^20) for 3 s, first at 1 s"), "{stalled}");
    }

    #[test]
    fn figures_are_printed_as_by_java() {
        let printed = [0.0, 0.5, 31.9, 256.0, 1_803.994, 0.125, 0.375, 1e9].map(format_decimal);
        assert_eq!(printed, ["0", "0.5", "31.9", "256", "1803.99", "0.12", "0.38", "1000000000"]);
    }
}
