//! Translates the properties of CoreWorkload and ConstantOccupancyWorkload.

use loadstone_load::core::{CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::value_length::{Length, Lengths};

use super::properties::Properties;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::{Phase, WorkSpec};

/// Number of most recent inserts per client that requests avoid.
pub const LAG_PER_CLIENT: u64 = 2;

fn length(properties: &Properties) -> Result<Length, EngineError> {
    let max = properties.parse_whole("fieldlength")?.unwrap_or(100) as usize;
    let min = properties.parse_whole("minfieldlength")?.unwrap_or(1) as usize;
    let distribution = properties.text("fieldlengthdistribution", "constant");
    Ok(match distribution.as_str() {
        "constant" => Length::Constant { bytes: max },
        "uniform" => Length::Uniform { min, max },
        "zipfian" => Length::Zipfian { min, max },
        "histogram" => histogram(&properties.text("fieldlengthhistogram", "hist.txt"))?,
        other => {
            return Err(properties.invalid_value(
                "fieldlengthdistribution",
                "constant, uniform, zipfian or histogram",
                other,
            ));
        }
    })
}

/// Reads YCSB's histogram file: `BlockSize<TAB>n`, then lines of `index<TAB>count` with the indexes in order.
fn histogram(file: &str) -> Result<Length, EngineError> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        EngineError::usage(format!("cannot read {file}: {error} (fieldlengthhistogram)"))
            .hint("set fieldlengthhistogram to a text file of BlockSize and counts")
    })?;
    let bad = |line: usize, expected: &str| {
        EngineError::usage(format!("{file}:{line}: expected {expected} (fieldlengthhistogram)"))
            .hint("write a line BlockSize<TAB>BYTES, then lines INDEX<TAB>COUNT from 0 on")
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let block = lines
        .next()
        .and_then(|(_, line)| line.strip_prefix("BlockSize")?.trim().parse::<usize>().ok())
        .ok_or_else(|| bad(1, "BlockSize, a tab and a number of bytes"))?;
    let mut counts = Vec::new();
    for (at, line) in lines {
        let expected = format!("{}, a tab and a count", counts.len());
        let pair = line
            .split_once(char::is_whitespace)
            .and_then(|(index, count)| Some((index.trim().parse::<usize>().ok()?, count.trim().parse::<u64>().ok()?)));
        match pair {
            Some((index, count)) if index == counts.len() => counts.push(count),
            _ => return Err(bad(at + 1, &expected)),
        }
    }
    Ok(Length::Histogram { block, counts })
}

/// `requestdistribution` and its parameters.
pub fn keys(properties: &Properties) -> Result<KeyDistribution, EngineError> {
    let name = properties.text("requestdistribution", "uniform");
    Ok(match name.as_str() {
        "uniform" => KeyDistribution::Uniform,
        "sequential" => KeyDistribution::Sequential,
        "zipfian" => KeyDistribution::Zipfian,
        "latest" => KeyDistribution::Latest,
        "hotspot" => KeyDistribution::Hotspot {
            data_fraction: properties.parse_real("hotspotdatafraction", 0.2)?,
            operation_fraction: properties.parse_real("hotspotopnfraction", 0.8)?,
        },
        "exponential" => KeyDistribution::Exponential {
            percentile: properties.parse_real("exponential.percentile", 95.0)?,
            fraction: properties.parse_real("exponential.frac", 0.857_142_857_1)?,
        },
        "truezipfian" => KeyDistribution::TrueZipfian { theta: properties.parse_real("zipfian.theta", 0.99)? },
        other => {
            let expected = "uniform, zipfian, latest, hotspot, sequential, exponential or truezipfian";
            return Err(properties.invalid_value("requestdistribution", expected, other));
        }
    })
}

/// The `…proportion` properties.
pub fn mix(properties: &Properties) -> Result<Mix, EngineError> {
    Ok(Mix {
        read: properties.parse_real("readproportion", 0.95)?,
        update: properties.parse_real("updateproportion", 0.05)?,
        insert: properties.parse_real("insertproportion", 0.0)?,
        scan: properties.parse_real("scanproportion", 0.0)?,
        read_modify_write: properties.parse_real("readmodifywriteproportion", 0.0)?,
        delete: properties.parse_real("deleteproportion", 0.0)?,
    })
}

/// Number of records that a scan reads.
pub fn scan_length(properties: &Properties) -> Result<Length, EngineError> {
    let (min, max) = (
        properties.parse_whole("minscanlength")?.unwrap_or(1),
        properties.parse_whole("maxscanlength")?.unwrap_or(1_000),
    );
    let (min, max) = (min as usize, max as usize);
    match properties.text("scanlengthdistribution", "uniform").as_str() {
        "uniform" => Ok(Length::Uniform { min, max }),
        "zipfian" => Ok(Length::Zipfian { min, max }),
        other => Err(properties.invalid_value("scanlengthdistribution", "uniform or zipfian", other)),
    }
}

/// Whether values identify the writes that made them, as a ledger requires.
fn versions(properties: &Properties) -> bool {
    properties.boolean("versions", false) || properties.trim_value("ledger").is_some()
}

/// A core workload, and the number of its operations. With `occupancy`, the numbers of records and operations are
/// calculated as in `ConstantOccupancyWorkload`.
pub fn core_spec(
    properties: &Properties,
    phase: Phase,
    clients: u64,
    occupancy: bool,
) -> Result<(WorkSpec, Option<u64>), EngineError> {
    let field_length = length(properties)?;
    let field_count = properties.parse_whole("fieldcount")?.unwrap_or(10) as usize;
    let mut records = properties.parse_whole("recordcount")?.unwrap_or(0);
    let mut wanted_operations = properties.parse_whole("operationcount")?.filter(|&n| n > 0);
    let insert_start = properties.parse_whole("insertstart")?.unwrap_or(0);
    let mut insert_count = properties.parse_whole("insertcount")?;
    if occupancy {
        let size = properties.parse_whole("disksize")?.unwrap_or(100_000_000) as f64;
        let object = Lengths::mean(&field_length) * field_count as f64;
        records = (properties.parse_real("occupancy", 0.9)? * (size / object.max(1.0))) as u64;
        insert_count = None;
        let ages = properties.parse_at_most("storageages", u64::MAX >> 2 >> (64 - records.leading_zeros()))?;
        wanted_operations = Some(ages.unwrap_or(10) * records);
        if records == 0 {
            return Err(EngineError::usage("disksize is too small for one record of this shape").hint("raise disksize"));
        }
    }
    if records == 0 && insert_count.is_none() {
        return Err(EngineError::usage("recordcount is not set")
            .hint("set it to the number of records that the load wrote: -p recordcount=1000"));
    }
    let insert_count = insert_count.unwrap_or(records.saturating_sub(insert_start));
    if records == 0 {
        records = insert_start.saturating_add(insert_count);
    }
    let operations = match phase {
        Phase::Load => Some(insert_count),
        Phase::Run => wanted_operations,
    };
    let order =
        if properties.text("insertorder", "hashed") == "hashed" { InsertOrder::Hashed } else { InsertOrder::Ordered };
    let spec = CoreSpec {
        table: properties.text("table", "usertable"),
        records,
        insert_start,
        insert_count,
        field_count,
        field_name_prefix: properties.text("fieldnameprefix", "field"),
        field_length,
        read_all_fields: properties.boolean("readallfields", true),
        write_all_fields: properties.boolean("writeallfields", false),
        integrity: properties.boolean("dataintegrity", false),
        versions: versions(properties),
        mix: mix(properties)?,
        keys: keys(properties)?,
        insert_order: order,
        zero_padding: properties.parse_whole("zeropadding")?.unwrap_or(1) as usize,
        scan_length: scan_length(properties)?,
        operations,
        insert_lag: properties.parse_whole("insertlag")?.unwrap_or(LAG_PER_CLIENT * clients),
    };
    Ok((WorkSpec::Records(spec), operations))
}
