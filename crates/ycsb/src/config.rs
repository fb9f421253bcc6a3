//! How a run is reported: the properties that affect only the output.

use super::properties::Properties;
use loadstone_wire::error::EngineError;
use loadstone_wire::sink::Sink;

/// The values of `measurement.interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// The time from sending an operation to its answer.
    Op,
    /// The time from the due time of an operation to its answer.
    Intended,
    Both,
}

/// The values of `exporter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// Lines such as `[READ], Operations, 1`.
    Text,
    /// Concatenated objects, as in YCSB: this is not a valid JSON document.
    Json,
    /// A JSON array of the objects that `Json` concatenates.
    JsonArray,
}

/// How a run is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// `measurementtype`, as sinks: one sink, or two for a combined type.
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
    pub exporter: Exporter,
    /// `exportfile`; stdout if absent.
    pub export_file: Option<String>,
    /// `measurement.raw.output_file`; stdout if absent.
    pub raw_file: Option<String>,
    /// `measurement.raw.no_summary`.
    pub raw_no_summary: bool,
    /// `hdrhistogram.fileoutput` with `hdrhistogram.output.path`: the prefix of the files.
    pub hdr_files: Option<String>,
    /// `status` and `status.interval`: number of seconds between status lines.
    pub status_seconds: Option<u64>,
    pub label: String,
}

/// Interprets the properties that affect reporting. Also returns the required sinks.
pub fn reporting(properties: &Properties, warnings: &mut Vec<String>) -> Result<(Vec<Sink>, Reporting), EngineError> {
    let buckets = properties.parse_whole("histogram.buckets")?.unwrap_or(1_000) as usize;
    let granularity_ms = properties.parse_whole("timeseries.granularity")?.unwrap_or(1_000).max(1);
    let kind = properties.text("measurementtype", "hdrhistogram");
    let sinks = match kind.as_str() {
        "hdrhistogram" => vec![Sink::YcsbHdrUs],
        "histogram" => vec![Sink::YcsbHistogram { buckets }],
        "hdrhistogram+histogram" => vec![Sink::YcsbHdrUs, Sink::YcsbHistogram { buckets }],
        "hdrhistogram+raw" => vec![Sink::YcsbHdrUs, Sink::YcsbRaw],
        "timeseries" => vec![Sink::YcsbSeries { granularity_ms }],
        "raw" => vec![Sink::YcsbRaw],
        other => {
            let expected = "hdrhistogram, histogram, hdrhistogram+histogram, hdrhistogram+raw, timeseries or raw";
            return Err(properties.invalid_value("measurementtype", expected, other));
        }
    };
    let interval = match properties.text("measurement.interval", "op").as_str() {
        "op" => Interval::Op,
        "intended" => Interval::Intended,
        "both" => Interval::Both,
        other => return Err(properties.invalid_value("measurement.interval", "op, intended or both", other)),
    };
    let percentiles = properties.text("hdrhistogram.percentiles", "50,95,99");
    let parsed: Option<Vec<f64>> = percentiles
        .split(',')
        .map(|text| text.trim().parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p)))
        .collect();
    let percentiles = parsed.unwrap_or_else(|| {
        warnings.push(format!("hdrhistogram.percentiles must be percentiles, got \"{percentiles}\"; using 50,95,99"));
        vec![50.0, 95.0, 99.0]
    });
    let exporter = properties.text("exporter", "text");
    let exporter = match exporter.rsplit('.').next().unwrap_or_default() {
        "text" | "TextMeasurementsExporter" => Exporter::Text,
        "json" | "JSONMeasurementsExporter" => Exporter::Json,
        "jsonarray" | "JSONArrayMeasurementsExporter" => Exporter::JsonArray,
        _ => {
            warnings.push(format!("there is no exporter {exporter}; using the text exporter"));
            Exporter::Text
        }
    };
    let interval_seconds = properties.parse_whole("status.interval")?.unwrap_or(10).max(1);
    let hdr_files = properties.boolean("hdrhistogram.fileoutput", false);
    let reporting = Reporting {
        sinks: sinks.clone(),
        interval,
        percentiles,
        verbose: properties.boolean("measurement.histogram.verbose", false),
        each_error: properties.boolean("reportlatencyforeacherror", false),
        tracked: properties
            .text("latencytrackederrors", "")
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        exporter,
        export_file: properties.trim_value("exportfile").map(str::to_owned),
        raw_file: properties.trim_value("measurement.raw.output_file").map(str::to_owned),
        raw_no_summary: properties.boolean("measurement.raw.no_summary", false),
        hdr_files: hdr_files.then(|| properties.text("hdrhistogram.output.path", "")),
        status_seconds: properties.boolean("status", false).then_some(interval_seconds),
        label: properties.get("label").unwrap_or_default().to_owned(),
    };
    Ok((sinks, reporting))
}
