//! Translates YCSB's properties into a TrialSpec and reporting settings.

use loadstone_load::core::Mix;
use loadstone_load::kind_sequence::KindSequence;
use loadstone_load::pace::PaceSpec;
use loadstone_load::random::mix_bits;
use loadstone_load::{Refusal, Segment};

use super::args::{Args, Command};
use super::config::{Interval, Reporting, reporting};
use super::core_workload::core_spec;
use super::known_properties::{KNOWN, check_names};
use super::properties::Properties;
use super::{bindings, hosted, rate, time_series};
use loadstone_wire::error::{EngineError, count_noun};
use loadstone_wire::spec::{Durability, InsertSpec, LedgerSpec, Phase, StoreSpec, TrialSpec, Until, WorkSpec};

/// Length of an interval without `-s`, ms: no intervals are read, but the conductor still wakes occasionally.
const QUIET_INTERVAL_MS: u64 = 3_600_000;

/// The property that corresponds to each field that a refusal can name. `pace.rate` corresponds to several properties.
const PROPERTIES: &[(&str, &str)] = &[
    ("segment", "segment"),
    ("interval_ms", "status.interval"),
    ("clients", "threadcount"),
    ("until.operations", "operationcount"),
    ("until.seconds", "maxexecutiontime"),
    ("warmup_seconds", "warmuptime"),
    ("inserts.retry_seconds", "core_workload_insertion_retry_interval"),
    ("inserts.retries", "core_workload_insertion_retry_limit"),
    ("ledger", "ledger"),
    ("sinks.buckets", "histogram.buckets"),
    ("sinks.granularity_ms", "timeseries.granularity"),
    ("work.records", "recordcount"),
    ("work.insert_start", "insertstart"),
    ("work.insert_count", "insertcount"),
    ("work.field_count", "fieldcount"),
    ("work.field_length", "fieldlength"),
    ("work.field_length.distribution", "fieldlengthdistribution"),
    ("work.field_length.min", "minfieldlength"),
    ("work.field_length.max", "fieldlength"),
    ("work.field_length.block", "fieldlengthhistogram"),
    ("work.field_length.counts", "fieldlengthhistogram"),
    ("work.zero_padding", "zeropadding"),
    ("work.integrity", "dataintegrity"),
    ("work.versions", "versions"),
    ("work.scan_length.min", "minscanlength"),
    ("work.scan_length.max", "maxscanlength"),
    ("work.keys.data_fraction", "hotspotdatafraction"),
    ("work.keys.operation_fraction", "hotspotopnfraction"),
    ("work.keys.percentile", "exponential.percentile"),
    ("work.keys.fraction", "exponential.frac"),
    ("work.keys.theta", "zipfian.theta"),
    ("work.mix.read", "readproportion"),
    ("work.mix.update", "updateproportion"),
    ("work.mix.insert", "insertproportion"),
    ("work.mix.scan", "scanproportion"),
    ("work.mix.read_modify_write", "readmodifywriteproportion"),
    ("work.mix.delete", "deleteproportion"),
];

/// The result of translating a command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated {
    /// The trial.
    pub spec: TrialSpec,
    /// How the run is reported.
    pub reporting: Reporting,
    /// Warnings to print on stderr.
    pub warnings: Vec<String>,
    /// Share of failed operations up to which the exit code is still 0.
    pub tolerated: f64,
    /// Whether a rate that was not held is a failure.
    pub strict: bool,
}

/// Translates a command line.
pub fn translate(args: &Args, properties: &Properties) -> Result<Translated, EngineError> {
    let store = bindings::find_store(&args.store, args.class())?;
    let mut warnings = properties.warnings.clone();
    check_names(args, properties, store, &mut warnings)?;
    let phase = if args.command == Command::Load { Phase::Load } else { Phase::Run };
    let seed = properties.parse_whole("seed")?.unwrap_or_else(loadstone_measure::clock::unix_ns);
    let mut clients = properties.parse_whole("threadcount")?.unwrap_or(1);
    let class = properties.text("workload", "CoreWorkload");
    let (work, operations) = match class.rsplit('.').next().unwrap_or_default() {
        "TimeSeriesWorkload" => time_series::translate(properties, phase, clients)?,
        "CoreWorkload" => core_spec(properties, phase, clients, false)?,
        "ConstantOccupancyWorkload" => core_spec(properties, phase, clients, true)?,
        _ => {
            return Err(properties
                .invalid_value("workload", "a workload class", &class)
                .hint("use CoreWorkload, ConstantOccupancyWorkload or TimeSeriesWorkload"));
        }
    };
    if matches!(&work, WorkSpec::Records(core) if core.versions) && properties.trim_value("seed").is_none() {
        return Err(EngineError::usage("versions and ledger need a seed, which is part of every value")
            .hint("give the load and the run the same seed: -p seed=1"));
    }
    let mix = match &work {
        WorkSpec::Records(core) => Some(&core.mix),
        WorkSpec::TimeSeries(series) => Some(&series.mix),
        _ => None,
    };
    if let Some(mix) = mix.filter(|_| phase == Phase::Run) {
        warnings.extend(describe_scaling(mix));
        warnings.extend(mix.too_rare().map(|share| {
            format!(
                "a proportion of {share:e} is rounded up to 1 in {}, the smallest possible share",
                KindSequence::RAREST
            )
        }));
    }
    if let Some(operations) = operations.filter(|&n| n > 0 && n < clients) {
        warnings.push(format!(
            "threadcount {clients} is above the number of operations: using {}",
            count_noun(operations, "client")
        ));
        clients = operations;
    }
    let seconds = properties.parse_whole("maxexecutiontime")?.filter(|&s| s > 0).map(|s| s as f64);
    let warmup_seconds = properties.parse_real("warmuptime", 0.0)?;
    let segment = match properties.trim_value("segment") {
        None => Segment::default(),
        Some(text) => Segment::parse(text)
            .map_err(|error| EngineError::usage(error).hint("write segment=0/4 for the first of four"))?,
    };
    let run = run_number(properties, phase, &work, segment)?;
    let (sinks, reporting) = reporting(properties, &mut warnings)?;
    let pace = rate::pace(properties)?;
    if pace != PaceSpec::Closed && reporting.interval == Interval::Op && !args.print_spec {
        // YCSB's default hides the wait of operations that are sent late.
        warnings.push(
            "at a target rate, these latencies exclude the wait before an operation is sent: \
             -p measurement.interval=both adds it"
                .to_owned(),
        );
    }
    let store = StoreSpec {
        name: store.to_owned(),
        properties: store_properties(args, properties, store),
        durability: durability(properties, store)?,
    };
    let spec = TrialSpec {
        phase,
        clients,
        pace,
        until: Until { operations, seconds },
        warmup_seconds,
        segment,
        inserts: InsertSpec {
            retries: properties.parse_whole("core_workload_insertion_retry_limit")?.unwrap_or(0),
            retry_seconds: properties.parse_real("core_workload_insertion_retry_interval", 3.0)?,
            delays: None,
            keep_going: properties.boolean("core_workload_insertion_keep_going_on_error", false),
        },
        spin: properties.boolean("spin.sleep", false),
        executors: properties.parse_whole("executors")?.unwrap_or(0),
        sinks,
        interval_ms: reporting.status_seconds.map_or(QUIET_INTERVAL_MS, |s| s.saturating_mul(1_000)),
        settle: properties.boolean("settle", false),
        run,
        // A load has no ledger, because the versions in its values are sufficient.
        ledger: properties
            .trim_value("ledger")
            .filter(|_| phase == Phase::Run)
            .map(|file| LedgerSpec { file: file.to_owned() }),
        ..TrialSpec::new(store, work, seed)
    };
    spec.validate().map_err(|refusal| refuse_properties(&refusal, properties))?;
    let tolerated = properties.parse_within("failures.tolerated", 0.0, 0.0, 1.0)?;
    Ok(Translated { spec, reporting, warnings, tolerated, strict: args.strict })
}

/// The shares of the operations if the proportions do not sum to 1. YCSB also scales them, silently.
fn describe_scaling(mix: &Mix) -> Option<String> {
    let used = || mix.weights().into_iter().filter(|&(_, weight)| weight > 0.0);
    let total: f64 = used().map(|(_, weight)| weight).sum();
    if total <= 0.0 || (total - 1.0).abs() < 1e-6 {
        return None;
    }
    let shares: Vec<String> =
        used().map(|(kind, weight)| format!("{:.1} % {}", 100.0 * weight / total, kind.name())).collect();
    let total = (total * 1e6).round() / 1e6;
    Some(format!("the proportions sum to {total}, so they are scaled: {}", shares.join(", ")))
}

/// The number of a run whose values identify their writes, random if the property is not set; `None` for other runs and
/// for loads.
fn run_number(
    properties: &Properties,
    phase: Phase,
    work: &WorkSpec,
    segment: Segment,
) -> Result<Option<u64>, EngineError> {
    let number = properties.parse_whole("runnumber")?;
    if phase == Phase::Load || !matches!(work, WorkSpec::Records(core) if core.versions) {
        return Ok(None);
    }
    if number.is_none() && segment.n > 1 && properties.trim_value("ledger").is_some() {
        return Err(EngineError::usage(
            "segments with ledgers need the number of their run, which is part of every value",
        )
        .hint("give all segments the same new number, for example -p runnumber=$(date +%s)"));
    }
    // The number has 53 bits, because JSON readers in other languages do not support more.
    Ok(Some(number.unwrap_or_else(|| mix_bits(loadstone_measure::clock::unix_ns()) >> 11)))
}

/// Translates a refusal into YCSB's names, and adds the origin of the first property.
fn refuse_properties(refusal: &Refusal, properties: &Properties) -> EngineError {
    let property = |field: &str| match field {
        "pace.rate" => rate::property(properties).to_owned(),
        _ => PROPERTIES.iter().find(|(path, _)| *path == field).map_or(field, |(_, property)| property).to_owned(),
    };
    let place = refusal.field().map(|field| properties.origin(&property(field))).filter(|place| !place.is_empty());
    let Refusal { message, hint } = refusal.rename_fields(property);
    EngineError::usage(message + &place.map_or_else(String::new, |place| format!(" ({place})"))).hint(hint)
}

/// The store receives all properties that the front end does not interpret. Stores in a JVM also receive interpreted
/// properties.
fn store_properties(args: &Args, properties: &Properties, store: &str) -> std::collections::BTreeMap<String, String> {
    let mut all = properties.all();
    if hosted::is_hosted(store) {
        hosted::add_properties(&mut all, args, store);
    }
    all.retain(|name, _| hosted::is_taken(name, store) || !KNOWN.iter().any(|known| known.name == name));
    all
}

fn durability(properties: &Properties, store: &str) -> Result<Durability, EngineError> {
    let text = properties.trim_value("durability");
    if let Some(level) = text.and_then(|text| hosted::durability(text, store)) {
        return Ok(level);
    }
    let Some(text) = text else { return Ok(Durability::default()) };
    Durability::parse(text).ok_or_else(|| properties.invalid_value("durability", "none, os or device", text))
}

#[cfg(test)]
mod tests;
