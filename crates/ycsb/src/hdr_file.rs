//! `hdrhistogram.fileoutput`: one interval log per metric, which every `HdrHistogram` tool can read.
//!
//! YCSB writes V1 payloads; on Java 11 and later, it throws an exception instead. The logs written here have V2
//! payloads, which the same tools can read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use loadstone_load::histogram::Reading;

use super::measure::{Measure, Metric};
use super::report::HdrFigures;
use loadstone_measure::clock::{Clock, Monotonic, unix_ns};
use loadstone_measure::observer::Interval;
use loadstone_wire::error::EngineError;
use loadstone_wire::event::encode;

/// The logs of a run.
#[derive(Debug)]
pub struct HdrFiles {
    prefix: String,
    start_unix_ns: u64,
    logs: BTreeMap<String, (String, Reading)>,
}

impl HdrFiles {
    /// Creates logs named `prefix` + metric + `.hdr`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), start_unix_ns: 0, logs: BTreeMap::new() }
    }

    /// Sets the start of the logs: the start of the window, ns on the monotonic clock.
    pub fn begin(&mut self, first_ns: u64) {
        self.start_unix_ns = unix_ns().wrapping_add(first_ns).wrapping_sub(Monotonic.now_ns());
    }

    /// Adds an interval.
    pub fn interval(&mut self, metrics: &[Metric], interval: &Interval<'_>) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let start = self.start_unix_ns;
        for metric in metrics {
            for measure in &metric.measures {
                let Measure::Hdr(now) = measure else { continue };
                let (text, last) = self.logs.entry(metric.name.clone()).or_insert_with(|| {
                    let head = format!(
                        "#[Logging for: {}]\n#[Histogram log format version 1.3]\n\
                         #[StartTime: {:.3} (seconds since epoch)]\n\
                         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
                        metric.name,
                        seconds(start)
                    );
                    (head, Reading::default())
                });
                let new = now.subtract_earlier(last);
                let _ = writeln!(
                    text,
                    "{:.3},{:.3},{:.3},{}",
                    seconds(interval.start_ns),
                    seconds(interval.length_ns),
                    HdrFigures::new(&new).max as f64 / 1e6,
                    encode(&new)
                );
                *last = now.clone();
            }
        }
    }

    /// Writes the files.
    pub fn finish(self) -> Result<(), EngineError> {
        for (metric, (text, _)) in self.logs {
            let path = format!("{}{metric}.hdr", self.prefix);
            fs::write(&path, text).map_err(|error| {
                EngineError::failed(format!("cannot write {path}: {error} (hdrhistogram.output.path)"))
            })?;
        }
        Ok(())
    }
}
