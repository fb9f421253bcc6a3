//! From YCSB's properties to a TrialSpec and to how it is reported.

use loadstone_load::core::{CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::pace::{Arrival, PaceSpec, RatePiece};
use loadstone_load::Segment;
use loadstone_load::values::{Length, Lengths};

use super::args::{Args, Command};
use super::config::{Exporter, Interval, Reporting};
use super::props::Props;
use super::{bindings, known, suggest, time_series};
use crate::error::EngineError;
use crate::sink::Sink;
use crate::spec::{DurabilitySpec, InsertSpec, Phase, StoreSpec, TrialSpec, Until, VERSION, WorkloadSpec};

/// Requests stay this many inserts per client behind the newest.
const LAG_PER_CLIENT: u64 = 2;
/// Without `-s` nothing looks at intervals; the conductor wakes once in a while all the same.
const QUIET_INTERVAL_MS: u64 = 3_600_000;

/// What a command line means.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated {
    /// What is run.
    pub spec: TrialSpec,
    /// How it is reported.
    pub reporting: Reporting,
    /// Lines for stderr.
    pub warnings: Vec<String>,
    /// Share of failed operations that still exits 0.
    pub tolerated: f64,
}

/// Understands a command line.
pub fn translate(args: &Args, props: &Props) -> Result<Translated, EngineError> {
    let store = bindings::resolve(&args.store)?;
    let mut warnings = props.warnings.clone();
    unknown_properties(args, props, store, &mut warnings)?;
    let phase = if args.command == Command::Load { Phase::Load } else { Phase::Run };
    let seed = props.whole("seed")?.unwrap_or_else(crate::clock::unix_ns);
    let mut clients = props.whole("threadcount")?.unwrap_or(1);
    let class = props.text("workload", "CoreWorkload");
    let (workload, operations) = match class.rsplit('.').next().unwrap_or_default() {
        "TimeSeriesWorkload" => time_series::translate(props, phase, clients)?,
        "CoreWorkload" => core(props, phase, clients, false)?,
        "ConstantOccupancyWorkload" => core(props, phase, clients, true)?,
        _ => {
            return Err(props
                .bad("workload", "a workload class", &class)
                .hint("there are CoreWorkload, ConstantOccupancyWorkload and TimeSeriesWorkload"));
        }
    };
    if let Some(operations) = operations.filter(|&n| n > 0 && n < clients) {
        warnings.push(format!("threadcount {clients} is more than there are operations: {operations} clients run"));
        clients = operations;
    }
    let seconds = props.whole("maxexecutiontime")?.filter(|&s| s > 0).map(|s| s as f64);
    let warmup_seconds = props.real("warmuptime", 0.0)?;
    if phase == Phase::Load && warmup_seconds > 0.0 {
        return Err(EngineError::usage("warmuptime is for run: a load counts every record").hint("leave it out"));
    }
    if phase == Phase::Run && operations == Some(0) {
        return Err(EngineError::usage("there is nothing to do: operationcount is 0").hint("set operationcount"));
    }
    let (sinks, reporting) = reporting(props, &mut warnings)?;
    let spec = TrialSpec {
        spec: VERSION,
        store: StoreSpec { name: store.to_owned(), properties: store_properties(props), durability: durability(props)? },
        phase,
        workload,
        clients,
        pace: pace(props)?,
        until: Until { operations, seconds },
        warmup_seconds,
        segment: match props.trimmed("segment") {
            None => Segment::default(),
            Some(text) => Segment::parse(text)
                .map_err(|error| EngineError::usage(error).hint("segment=0/4 is the first of four"))?,
        },
        seed,
        inserts: InsertSpec {
            retries: props.whole("core_workload_insertion_retry_limit")?.unwrap_or(0),
            retry_seconds: props.real("core_workload_insertion_retry_interval", 3.0)?,
            keep_going: props.boolean("core_workload_insertion_keep_going_on_error", false),
        },
        spin: props.boolean("spin.sleep", false),
        executors: props.whole("executors")?.unwrap_or(0),
        sinks,
        interval_ms: reporting.status_seconds.map_or(QUIET_INTERVAL_MS, |s| s * 1_000),
        lease_ms: None,
        wait_for_start: false,
        settle: props.boolean("settle", false),
    };
    spec.check()?;
    let tolerated = props.real("failures.tolerated", 0.0)?;
    Ok(Translated { spec, reporting, warnings, tolerated })
}

/// Everything goes to the store but what the door itself understands.
fn store_properties(props: &Props) -> std::collections::BTreeMap<String, String> {
    let mut all = props.all();
    all.retain(|name, _| !known::KNOWN.iter().any(|known| known.name == name));
    all
}

fn unknown_properties(
    args: &Args,
    props: &Props,
    store: &str,
    warnings: &mut Vec<String>,
) -> Result<(), EngineError> {
    for name in props.names().filter(|name| !known::knows(name, store)) {
        let value = props.get(name).unwrap_or_default();
        let (message, hint) = match suggest::did_you_mean(name, known::names(store)) {
            // A report's script says `-p threads=10`; YCSB took no notice and ran one thread.
            Some("threadcount") if name == "threads" => (
                format!("threads={value} has no effect, here as in YCSB: 1 client runs ({})", props.origin(name)),
                format!("use -threads {value} or -p threadcount={value}"),
            ),
            Some(near) => (
                format!("neither the workload nor the store {store} knows {name} ({})", props.origin(name)),
                format!("did you mean {near}?"),
            ),
            None => (
                format!("neither the workload nor the store {store} knows {name} ({})", props.origin(name)),
                "it has no effect".to_owned(),
            ),
        };
        if args.strict {
            return Err(EngineError::usage(message).hint(hint));
        }
        warnings.push(format!("{message}; {hint}"));
    }
    for known in known::KNOWN.iter().filter(|k| k.source == known::Source::YcsbIdle) {
        if props.boolean(known.name, false) && known.name != "dotransactions" {
            warnings.push(format!("{} has no effect: {}", known.name, known.meaning));
        }
    }
    for (option, value) in [("-cp", &args.class_path), ("-jvm-args", &args.jvm_args)] {
        if value.is_some() {
            warnings.push(format!("{option} has no effect: the store {store} does not run in a JVM"));
        }
    }
    Ok(())
}

fn durability(props: &Props) -> Result<DurabilitySpec, EngineError> {
    match props.trimmed("durability") {
        None | Some("os") => Ok(DurabilitySpec::Os),
        Some("none") => Ok(DurabilitySpec::None),
        Some("device") => Ok(DurabilitySpec::Device),
        Some(other) => Err(props.bad("durability", "none, os or device", other)),
    }
}

fn length(props: &Props) -> Result<Length, EngineError> {
    let max = props.whole("fieldlength")?.unwrap_or(100) as usize;
    let min = props.whole("minfieldlength")?.unwrap_or(1) as usize;
    let distribution = props.text("fieldlengthdistribution", "constant");
    Ok(match distribution.as_str() {
        "constant" => Length::Constant { bytes: max },
        "uniform" | "zipfian" if min > max => {
            return Err(EngineError::usage(format!("minfieldlength {min} is above fieldlength {max}")));
        }
        "uniform" => Length::Uniform { min, max },
        "zipfian" => Length::Zipfian { min, max },
        "histogram" => histogram(&props.text("fieldlengthhistogram", "hist.txt"))?,
        other => return Err(props.bad("fieldlengthdistribution", "constant, uniform, zipfian or histogram", other)),
    })
}

/// Reads YCSB's histogram file: `BlockSize<TAB>n`, then `index<TAB>count`, indexes in order.
fn histogram(file: &str) -> Result<Length, EngineError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| EngineError::usage(format!("cannot read {file}: {error} (fieldlengthhistogram)")))?;
    let bad = |line: usize, wanted: &str| EngineError::usage(format!("{file}:{line}: expected {wanted}"));
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let block = lines
        .next()
        .and_then(|(_, line)| line.strip_prefix("BlockSize")?.trim().parse::<usize>().ok())
        .filter(|&block| block > 0)
        .ok_or_else(|| bad(1, "BlockSize, a tab and a number of bytes"))?;
    let mut counts = Vec::new();
    for (at, line) in lines {
        let wanted = format!("{}, a tab and a count", counts.len());
        let pair = line.split_once(char::is_whitespace).and_then(|(index, count)| {
            Some((index.trim().parse::<usize>().ok()?, count.trim().parse::<u64>().ok()?))
        });
        match pair {
            Some((index, count)) if index == counts.len() => counts.push(count),
            _ => return Err(bad(at + 1, &wanted)),
        }
    }
    if counts.iter().sum::<u64>() == 0 {
        return Err(EngineError::usage(format!("{file} counts nothing")));
    }
    Ok(Length::Histogram { block, counts })
}

fn keys(props: &Props) -> Result<KeyDistribution, EngineError> {
    let name = props.text("requestdistribution", "uniform");
    Ok(match name.as_str() {
        "uniform" => KeyDistribution::Uniform,
        "sequential" => KeyDistribution::Sequential,
        "zipfian" => KeyDistribution::Zipfian,
        "latest" => KeyDistribution::Latest,
        "hotspot" => KeyDistribution::Hotspot {
            data_fraction: fraction(props, "hotspotdatafraction", 0.2)?,
            operation_fraction: fraction(props, "hotspotopnfraction", 0.8)?,
        },
        "exponential" => {
            let percentile = props.real("exponential.percentile", 95.0)?;
            if !(percentile > 0.0 && percentile < 100.0) {
                return Err(props.bad("exponential.percentile", "between 0 and 100", &percentile.to_string()));
            }
            KeyDistribution::Exponential { percentile, fraction: props.real("exponential.frac", 0.857_142_857_1)? }
        }
        "truezipfian" => {
            let theta = props.real("zipfian.theta", 0.99)?;
            if !(0.01..=10.0).contains(&theta) {
                return Err(props.bad("zipfian.theta", "between 0.01 and 10", &theta.to_string()));
            }
            KeyDistribution::TrueZipfian { theta }
        }
        other => {
            let wanted = "uniform, zipfian, latest, hotspot, sequential, exponential or truezipfian";
            return Err(props.bad("requestdistribution", wanted, other));
        }
    })
}

fn fraction(props: &Props, name: &str, default: f64) -> Result<f64, EngineError> {
    let value = props.real(name, default)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(props.bad(name, "between 0 and 1", &value.to_string())) }
}

/// A core workload and the number of its operations; with `occupancy`, `ConstantOccupancyWorkload`'s numbers.
fn core(
    props: &Props,
    phase: Phase,
    clients: u64,
    occupancy: bool,
) -> Result<(WorkloadSpec, Option<u64>), EngineError> {
    let field_length = length(props)?;
    let field_count = props.whole("fieldcount")?.unwrap_or(10) as usize;
    let mut records = props.whole("recordcount")?.unwrap_or(0);
    let mut wanted_operations = props.whole("operationcount")?.filter(|&n| n > 0);
    let insert_start = props.whole("insertstart")?.unwrap_or(0);
    let mut insert_count = props.whole("insertcount")?;
    if occupancy {
        let size = props.whole("disksize")?.unwrap_or(100_000_000) as f64;
        let object = Lengths::mean(&field_length) * field_count as f64;
        records = (props.real("occupancy", 0.9)? * (size / object.max(1.0))) as u64;
        insert_count = None;
        wanted_operations = Some(props.whole("storageages")?.unwrap_or(10) * records);
        if records == 0 {
            return Err(EngineError::usage("disksize holds not one record of this shape").hint("raise disksize"));
        }
    }
    if records == 0 && insert_count.is_none() {
        return Err(EngineError::usage("recordcount is not set").hint("a run needs the number of the load: -p recordcount=1000"));
    }
    if insert_start > records && insert_count.is_none() {
        return Err(EngineError::usage(format!("insertstart {insert_start} is beyond recordcount {records}"))
            .hint("recordcount is the number of records after the whole load"));
    }
    let insert_count = insert_count.unwrap_or(records - insert_start.min(records));
    if records > 0 && insert_start.saturating_add(insert_count) > records {
        return Err(EngineError::usage(format!(
            "insertstart + insertcount = {insert_start} + {insert_count} is beyond recordcount {records}"
        ))
        .hint("recordcount is the number of records after the whole load"));
    }
    let records = records.max(insert_start + insert_count);
    let operations = match phase {
        Phase::Load => Some(insert_count),
        Phase::Run => wanted_operations,
    };
    let proportion = |name: &str, default: f64| {
        props.real(name, default).and_then(|value| {
            if value >= 0.0 { Ok(value) } else { Err(props.bad(name, "at least 0", &value.to_string())) }
        })
    };
    let (min, max) = (props.whole("minscanlength")?.unwrap_or(1), props.whole("maxscanlength")?.unwrap_or(1_000));
    let (min, max) = (min as usize, max as usize);
    if min > max {
        return Err(EngineError::usage(format!("minscanlength {min} is above maxscanlength {max}")));
    }
    let scan_length = match props.text("scanlengthdistribution", "uniform").as_str() {
        "uniform" => Length::Uniform { min, max },
        "zipfian" => Length::Zipfian { min, max },
        other => return Err(props.bad("scanlengthdistribution", "uniform or zipfian", other)),
    };
    let order = if props.text("insertorder", "hashed") == "hashed" { InsertOrder::Hashed } else { InsertOrder::Ordered };
    let spec = CoreSpec {
        table: props.text("table", "usertable"),
        records,
        insert_start,
        insert_count,
        field_count,
        field_name_prefix: props.text("fieldnameprefix", "field"),
        field_length,
        read_all_fields: props.boolean("readallfields", true),
        write_all_fields: props.boolean("writeallfields", false),
        integrity: props.boolean("dataintegrity", false),
        mix: Mix {
            read: proportion("readproportion", 0.95)?,
            update: proportion("updateproportion", 0.05)?,
            insert: proportion("insertproportion", 0.0)?,
            scan: proportion("scanproportion", 0.0)?,
            read_modify_write: proportion("readmodifywriteproportion", 0.0)?,
            delete: proportion("deleteproportion", 0.0)?,
        },
        keys: keys(props)?,
        insert_order: order,
        zero_padding: props.whole("zeropadding")?.unwrap_or(1).min(256) as usize,
        scan_length,
        operations,
        insert_lag: props.whole("insertlag")?.unwrap_or(LAG_PER_CLIENT * clients),
    };
    Ok((WorkloadSpec::Core(spec), operations))
}

fn pace(props: &Props) -> Result<PaceSpec, EngineError> {
    let arrival = match props.text("arrival", "uniform").as_str() {
        "uniform" => Arrival::Uniform,
        "poisson" => Arrival::Poisson,
        other => return Err(props.bad("arrival", "uniform or poisson", other)),
    };
    let set: Vec<&str> =
        ["rate.ramp", "rate.steps"].into_iter().filter(|name| props.trimmed(name).is_some()).collect();
    let target = props.real("target", 0.0)?;
    if set.len() + usize::from(target > 0.0) > 1 {
        return Err(EngineError::usage("target, rate.ramp and rate.steps exclude each other").hint("keep one of them"));
    }
    let parts = |name: &str, text: &str, wanted: &str, count: usize| -> Result<Vec<f64>, EngineError> {
        let numbers: Vec<f64> = text.split(':').filter_map(|n| n.trim().parse().ok()).collect();
        if numbers.len() == count && text.split(':').count() == count {
            Ok(numbers)
        } else {
            Err(props.bad(name, wanted, text))
        }
    };
    if let Some(text) = props.trimmed("rate.ramp") {
        let ramp = parts("rate.ramp", text, "FROM:TO:SECONDS", 3)?;
        let rate = vec![RatePiece { from: ramp[0], to: ramp[1], seconds: ramp[2] }];
        return Ok(PaceSpec::Open { rate, arrival });
    }
    if let Some(text) = props.trimmed("rate.steps") {
        let mut rate = Vec::new();
        for step in text.split(',') {
            let step = parts("rate.steps", step, "RATE:SECONDS,RATE:SECONDS", 2)?;
            rate.push(RatePiece { from: step[0], to: step[0], seconds: step[1] });
        }
        return Ok(PaceSpec::Open { rate, arrival });
    }
    if target < 0.0 {
        return Err(props.bad("target", "at least 0", &target.to_string()));
    }
    Ok(if target > 0.0 {
        PaceSpec::Open { rate: vec![RatePiece { from: target, to: target, seconds: 0.0 }], arrival }
    } else {
        PaceSpec::Closed
    })
}

fn reporting(props: &Props, warnings: &mut Vec<String>) -> Result<(Vec<Sink>, Reporting), EngineError> {
    let buckets = props.whole("histogram.buckets")?.unwrap_or(1_000) as usize;
    let granularity_ms = props.whole("timeseries.granularity")?.unwrap_or(1_000).max(1);
    let kind = props.text("measurementtype", "hdrhistogram");
    let sinks = match kind.as_str() {
        "hdrhistogram" => vec![Sink::YcsbHdrUs],
        "histogram" => vec![Sink::YcsbHistogram { buckets }],
        "hdrhistogram+histogram" => vec![Sink::YcsbHdrUs, Sink::YcsbHistogram { buckets }],
        "hdrhistogram+raw" => vec![Sink::YcsbHdrUs, Sink::YcsbRaw],
        "timeseries" => vec![Sink::YcsbSeries { granularity_ms }],
        "raw" => vec![Sink::YcsbRaw],
        other => {
            let wanted = "hdrhistogram, histogram, hdrhistogram+histogram, hdrhistogram+raw, timeseries or raw";
            return Err(props.bad("measurementtype", wanted, other));
        }
    };
    let interval = match props.text("measurement.interval", "op").as_str() {
        "op" => Interval::Op,
        "intended" => Interval::Intended,
        "both" => Interval::Both,
        other => return Err(props.bad("measurement.interval", "op, intended or both", other)),
    };
    let percentiles = props.text("hdrhistogram.percentiles", "50,95,99");
    let parsed: Option<Vec<f64>> = percentiles
        .split(',')
        .map(|text| text.trim().parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p)))
        .collect();
    let percentiles = parsed.unwrap_or_else(|| {
        warnings.push(format!("hdrhistogram.percentiles \"{percentiles}\" are no percentiles; 50,95,99 are used"));
        vec![50.0, 95.0, 99.0]
    });
    let exporter = props.text("exporter", "text");
    let exporter = match exporter.rsplit('.').next().unwrap_or_default() {
        "text" | "TextMeasurementsExporter" => Exporter::Text,
        "json" | "JSONMeasurementsExporter" => Exporter::Json,
        "jsonarray" | "JSONArrayMeasurementsExporter" => Exporter::JsonArray,
        _ => {
            warnings.push(format!("there is no exporter {exporter}; the text exporter is used"));
            Exporter::Text
        }
    };
    let interval_seconds = props.whole("status.interval")?.unwrap_or(10).max(1);
    let hdr_files = props.boolean("hdrhistogram.fileoutput", false);
    let reporting = Reporting {
        sinks: sinks.clone(),
        interval,
        percentiles,
        verbose: props.boolean("measurement.histogram.verbose", false),
        each_error: props.boolean("reportlatencyforeacherror", false),
        tracked: props
            .text("latencytrackederrors", "")
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        exporter,
        export_file: props.trimmed("exportfile").map(str::to_owned),
        raw_file: props.trimmed("measurement.raw.output_file").map(str::to_owned),
        raw_no_summary: props.boolean("measurement.raw.no_summary", false),
        hdr_files: hdr_files.then(|| props.text("hdrhistogram.output.path", "")),
        status_seconds: props.boolean("status", false).then_some(interval_seconds),
        label: props.get("label").unwrap_or_default().to_owned(),
    };
    Ok((sinks, reporting))
}
