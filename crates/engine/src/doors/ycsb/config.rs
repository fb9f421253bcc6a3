//! How a run is reported: the properties that change what is printed and not what is done.

use crate::sink::Sink;

/// `measurement.interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// From sending.
    Op,
    /// From the due time.
    Intended,
    /// Both.
    Both,
}

/// `exporter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// `[READ], Operations, 1`.
    Text,
    /// Objects one after the other, as YCSB writes them: no valid JSON document.
    Json,
    /// An array of the same objects.
    JsonArray,
}

/// How a run is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// `measurementtype`, as sinks: one, or two for a combined type.
    pub sinks: Vec<Sink>,
    /// `measurement.interval`.
    pub interval: Interval,
    /// `hdrhistogram.percentiles`.
    pub percentiles: Vec<f64>,
    /// `measurement.histogram.verbose`.
    pub verbose: bool,
    /// `reportlatencyforeacherror`.
    pub each_error: bool,
    /// `latencytrackederrors`.
    pub tracked: Vec<String>,
    /// `exporter`.
    pub exporter: Exporter,
    /// `exportfile`; stdout if none.
    pub export_file: Option<String>,
    /// `measurement.raw.output_file`; stdout if none.
    pub raw_file: Option<String>,
    /// `measurement.raw.no_summary`.
    pub raw_no_summary: bool,
    /// `hdrhistogram.fileoutput` with `hdrhistogram.output.path`: the prefix of the files.
    pub hdr_files: Option<String>,
    /// `status` and `status.interval`: seconds between status lines.
    pub status_seconds: Option<u64>,
    /// `label`.
    pub label: String,
}
