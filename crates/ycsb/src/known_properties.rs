//! Every property that the YCSB front end knows, with its default and its meaning. Suggestions, warnings and
//! docs/reference/ycsb-properties.md are based on this list.

use super::args::Args;
use super::hosted;
use super::properties::Properties;
use loadstone_wire::error::EngineError;
use loadstone_wire::suggest;

/// A property.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub name: &'static str,
    /// The default value, as text.
    pub default: &'static str,
    pub meaning: &'static str,
    /// The origin of the property.
    pub source: Source,
}

/// The origin of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A property of YCSB 0.17.0 with the same meaning.
    Ycsb,
    /// A property of YCSB 0.17.0 that is accepted but has no effect here, for the reason stated in its meaning.
    YcsbIdle,
    /// A property added by Loadstone.
    Extension,
}

const fn ycsb(name: &'static str, default: &'static str, meaning: &'static str) -> Known {
    Known { name, default, meaning, source: Source::Ycsb }
}
const fn idle(name: &'static str, default: &'static str, meaning: &'static str) -> Known {
    Known { name, default, meaning, source: Source::YcsbIdle }
}
const fn loadstone(name: &'static str, default: &'static str, meaning: &'static str) -> Known {
    Known { name, default, meaning, source: Source::Extension }
}

/// The properties of the client and of the workloads.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    // Client
    ycsb("workload", "site.ycsb.workloads.CoreWorkload", "class of the workload: CoreWorkload, ConstantOccupancyWorkload or TimeSeriesWorkload"),
    ycsb("db", "", "class of the binding (-db); it runs in the JVM host, unless it is YCSB's class for the store"),
    ycsb("recordcount", "0", "records in the table: what a load writes and a run chooses from"),
    ycsb("operationcount", "0", "operations of a run, over all clients; 0: no limit"),
    ycsb("insertcount", "recordcount - insertstart", "records that this load writes, and the width of the range that a run chooses from"),
    ycsb("insertstart", "0", "first record number"),
    ycsb("threadcount", "1", "clients"),
    ycsb("target", "0", "operations per second over all clients; 0: closed loop"),
    ycsb("maxexecutiontime", "0", "measured seconds; 0: no limit"),
    idle("dotransactions", "true", "the word load or run on the command line decides"),
    ycsb("status", "false", "print the status while running (-s)"),
    ycsb("status.interval", "10", "seconds between status lines"),
    ycsb("label", "", "text before each status line (-l)"),
    ycsb("exporter", "text", "TextMeasurementsExporter, JSONMeasurementsExporter or JSONArrayMeasurementsExporter, or text, json, jsonarray"),
    ycsb("exportfile", "stdout", "file for the report"),
    ycsb("measurementtype", "hdrhistogram", "hdrhistogram, histogram, timeseries, raw, hdrhistogram+histogram or hdrhistogram+raw"),
    ycsb("measurement.interval", "op", "op: from the send; intended: from the due time; both"),
    idle("measurement.trackjvm", "false", "garbage collectors of a JVM store are always reported"),
    ycsb("measurement.histogram.verbose", "false", "print every bucket"),
    ycsb("hdrhistogram.percentiles", "50,95,99", "percentiles of the report (YCSB: 95,99)"),
    ycsb("hdrhistogram.fileoutput", "false", "write PREFIX + METRIC.hdr"),
    ycsb("hdrhistogram.output.path", "", "PREFIX of hdrhistogram.fileoutput; a directory needs a trailing slash"),
    ycsb("histogram.buckets", "1000", "number of buckets, of 1 ms each"),
    ycsb("timeseries.granularity", "1000", "length of a time unit, ms"),
    ycsb("measurement.raw.output_file", "stdout", "file to which raw operations are appended"),
    ycsb("measurement.raw.no_summary", "false", "print no summary of raw operations"),
    ycsb("reportlatencyforeacherror", "false", "a metric per status instead of one X-FAILED"),
    ycsb("latencytrackederrors", "", "statuses with a separate metric"),
    ycsb("spin.sleep", "false", "spin instead of sleeping while waiting for a due time"),
    idle("debug", "false", "has no effect here"),
    idle("test", "false", "has no effect here"),
    // CoreWorkload
    ycsb("table", "usertable", "the table"),
    ycsb("fieldcount", "10", "fields of a record"),
    ycsb("fieldnameprefix", "field", "prefix of the field names, followed by a number"),
    ycsb("fieldlength", "100", "length of a field, bytes; the maximum for uniform and zipfian"),
    ycsb("minfieldlength", "1", "minimum length for uniform and zipfian, bytes"),
    ycsb("fieldlengthdistribution", "constant", "constant, uniform, zipfian or histogram"),
    ycsb("fieldlengthhistogram", "hist.txt", "file with the histogram of field lengths"),
    ycsb("readallfields", "true", "read all fields, or one"),
    ycsb("writeallfields", "false", "update all fields, or one"),
    ycsb("dataintegrity", "false", "values are derived from key and field; reads are checked"),
    ycsb("readproportion", "0.95", "share of reads"),
    ycsb("updateproportion", "0.05", "share of updates"),
    ycsb("insertproportion", "0", "share of inserts"),
    ycsb("scanproportion", "0", "share of scans"),
    ycsb("readmodifywriteproportion", "0", "share of read-modify-writes"),
    ycsb("requestdistribution", "uniform", "uniform, zipfian, latest, hotspot, sequential, exponential; or truezipfian"),
    ycsb("zeropadding", "1", "minimum digits of a key's number"),
    ycsb("insertorder", "hashed", "hashed; anything else: ordered"),
    ycsb("minscanlength", "1", "shortest scan, records"),
    ycsb("maxscanlength", "1000", "longest scan, records"),
    ycsb("scanlengthdistribution", "uniform", "uniform or zipfian"),
    ycsb("hotspotdatafraction", "0.2", "share of the records that are hot"),
    ycsb("hotspotopnfraction", "0.8", "share of the operations on hot records"),
    ycsb("exponential.percentile", "95", "percentage of the operations that access the share exponential.frac of the records"),
    ycsb("exponential.frac", "0.8571428571", "share of the records that exponential.percentile percent of the operations access"),
    ycsb("core_workload_insertion_retry_limit", "0", "retries of a failed insert"),
    ycsb("core_workload_insertion_retry_interval", "3", "mean seconds before each retry"),
    ycsb("core_workload_insertion_keep_going_on_error", "false", "a load continues after an insert whose last attempt failed"),
    // ConstantOccupancyWorkload
    ycsb("disksize", "100000000", "bytes of storage (ConstantOccupancyWorkload)"),
    ycsb("storageages", "10", "number of overwrites (ConstantOccupancyWorkload)"),
    ycsb("occupancy", "0.9", "share of disksize in use (ConstantOccupancyWorkload)"),
    // TimeSeriesWorkload
    ycsb("timestampunits", "SECONDS", "unit of timestamps (TimeSeriesWorkload, like all properties down to downsamplinginterval)"),
    ycsb("timestampinterval", "60", "units between two time steps"),
    ycsb("timestampkey", "YCSBTS", "field of the timestamp"),
    ycsb("valuekey", "YCSBV", "field of the value"),
    ycsb("tagcount", "4", "tags of a series"),
    ycsb("tagcardinality", "1, 2, 4, 8", "values of each tag"),
    ycsb("tagkeylength", "8", "letters of a tag's name"),
    ycsb("tagvaluelength", "8", "letters of a tag's value"),
    ycsb("tagpairdelimiter", "=", "delimiter between name and value in queries"),
    ycsb("deletedelimiter", ":", "delimiter between the parts of a delete's key"),
    ycsb("randomwritetimestamporder", "false", "write time steps in random order"),
    ycsb("randomtimeseriesorder", "true", "write the series of a time step in random order"),
    ycsb("valuetype", "floats", "floats, integers or mixed"),
    ycsb("sparsity", "0.0", "share of omitted points"),
    ycsb("delayedseries", "0.10", "share of the series that are late"),
    ycsb("delayedintervals", "5", "late series are 0 to this number − 1 intervals late"),
    ycsb("querytimespan", "0", "length of a query, units"),
    ycsb("queryrandomtimespan", "false", "draw the length at random"),
    ycsb("querytimespandelimiter", ",", "delimiter between the two timestamps of a query"),
    ycsb("groupbyfunction", "", "name of the group-by function"),
    ycsb("groupbykey", "YCSBGB", "name of the group-by clause"),
    ycsb("groupbykeys", "", "tags to group by"),
    ycsb("downsamplingfunction", "", "name of the downsampling function"),
    ycsb("downsamplingkey", "YCSBDS", "name of the downsampling clause"),
    ycsb("downsamplinginterval", "0", "interval of downsampling, units"),
    // Extensions
    loadstone("deleteproportion", "0", "share of deletes; they remove the oldest records"),
    loadstone("seed", "drawn", "seed of all random choices"),
    loadstone("warmuptime", "0", "seconds before measuring"),
    loadstone("arrival", "uniform", "spacing of due times: uniform or poisson"),
    loadstone("rate.ramp", "", "FROM:TO:SECONDS: a rate that changes linearly, then stays at TO"),
    loadstone("rate.steps", "", "RATE:SECONDS,RATE:SECONDS: rates in steps; the last rate continues"),
    loadstone("segment", "0/1", "k/n: run the k-th of n shares"),
    loadstone("durability", "os", "the event that writes survive: none, os (a process crash) or device (a power failure or kernel crash)"),
    loadstone("zipfian.theta", "0.99", "exponent of truezipfian"),
    loadstone("insertlag", "2 x threadcount", "number of most recent inserts that requests avoid"),
    loadstone(
        "executors",
        "min(processors, clients / 32)",
        "executors, for stores that are not driven by a thread per client",
    ),
    loadstone("versions", "false", "values begin with the write that made them, and reads are checked; load and run need the same seed"),
    loadstone("ledger", "", "file in which a run records its writes, so that lost writes can be found; implies versions"),
    loadstone("runnumber", "drawn", "number of the run, on which every value of a run with versions depends: the same for all segments, different for each run"),
    loadstone("settle", "false", "wait until the store is idle before ending"),
    loadstone("failures.tolerated", "0", "share of failed operations up to which the exit code is 0"),
];

/// Whether the YCSB front end or this store supports a property.
fn is_known(name: &str, store: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name)
        || loadstone_registry::describe_store(store).is_some_and(|about| about.has_property(name))
}

/// The names of all properties that are supported with this store.
fn list_names(store: &str) -> impl Iterator<Item = &'static str> {
    let properties = loadstone_registry::describe_store(store).map_or(&[][..], |about| about.properties);
    let names = properties.iter().map(|property| property.name).filter(|name| !name.ends_with('*'));
    KNOWN.iter().map(|known| known.name).chain(names)
}

/// Reports properties that are unknown or have no effect: with `-strict`, an unknown property is an error.
pub fn check_names(
    args: &Args,
    properties: &Properties,
    store: &str,
    warnings: &mut Vec<String>,
) -> Result<(), EngineError> {
    for name in properties.names().filter(|name| !is_known(name, store)) {
        let value = properties.get(name).unwrap_or_default();
        let (message, hint) = match suggest::did_you_mean(name, list_names(store)) {
            // The script in one report uses `-p threads=10`. YCSB ignored this property and ran one thread.
            Some("threadcount") if name == "threads" => (
                format!("threads={value} has no effect, here as in YCSB: 1 client runs ({})", properties.origin(name)),
                format!("use -threads {value} or -p threadcount={value}"),
            ),
            Some(near) => (
                format!("unknown property {name} for the store {store} ({})", properties.origin(name)),
                format!("did you mean {near}?"),
            ),
            None => (
                format!("unknown property {name} for the store {store} ({})", properties.origin(name)),
                "leave it out, as it has no effect".to_owned(),
            ),
        };
        if args.strict {
            return Err(EngineError::usage(message).hint(hint));
        }
        warnings.push(format!("{message}; {hint}"));
    }
    for known in KNOWN.iter().filter(|known| known.source == Source::YcsbIdle) {
        if properties.boolean(known.name, false) && known.name != "dotransactions" {
            warnings.push(format!("{} has no effect: {}", known.name, known.meaning));
        }
    }
    if let Some(class) = properties.trim_value("db").filter(|_| args.class().is_none() && args.store != "jvm") {
        let origin = properties.origin("db");
        warnings.push(format!("db={class} has no effect in a file, here as in YCSB ({origin}); use -db {class}"));
    }
    for (option, value) in [("-cp", &args.class_path), ("-jvm-args", &args.jvm_options)] {
        if value.is_some() && !hosted::is_hosted(store) {
            warnings.push(format!("{option} has no effect: the store {store} does not run in a JVM"));
        }
    }
    Ok(())
}
