//! The properties of CoreWorkload and ConstantOccupancyWorkload.

use loadstone_load::core::{CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::values::{Length, Lengths};

use super::properties::Properties;
use crate::error::EngineError;
use crate::spec::{Phase, WorkSpec};

/// Requests stay this many inserts per client behind the newest.
pub const LAG_PER_CLIENT: u64 = 2;

fn length(properties: &Properties) -> Result<Length, EngineError> {
    let max = properties.whole("fieldlength")?.unwrap_or(100) as usize;
    let min = properties.whole("minfieldlength")?.unwrap_or(1) as usize;
    let distribution = properties.text("fieldlengthdistribution", "constant");
    Ok(match distribution.as_str() {
        "constant" => Length::Constant { bytes: max },
        "uniform" | "zipfian" if min > max => {
            return Err(EngineError::usage(format!("minfieldlength {min} is above fieldlength {max}"))
                .hint("raise fieldlength"));
        }
        "uniform" => Length::Uniform { min, max },
        "zipfian" => Length::Zipfian { min, max },
        "histogram" => histogram(&properties.text("fieldlengthhistogram", "hist.txt"))?,
        other => {
            return Err(properties.bad("fieldlengthdistribution", "constant, uniform, zipfian or histogram", other));
        }
    })
}

/// Reads YCSB's histogram file: `BlockSize<TAB>n`, then `index<TAB>count`, indexes in order.
fn histogram(file: &str) -> Result<Length, EngineError> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        EngineError::usage(format!("cannot read {file}: {error} (fieldlengthhistogram)"))
            .hint("set fieldlengthhistogram to a text file of BlockSize and counts")
    })?;
    let bad = |line: usize, wanted: &str| {
        EngineError::usage(format!("{file}:{line}: expected {wanted} (fieldlengthhistogram)"))
            .hint("write a line BlockSize<TAB>BYTES, then lines INDEX<TAB>COUNT from 0 on")
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let block = lines
        .next()
        .and_then(|(_, line)| line.strip_prefix("BlockSize")?.trim().parse::<usize>().ok())
        .filter(|&block| block > 0 && block <= 1 << 30)
        .ok_or_else(|| bad(1, "BlockSize, a tab and a number of bytes"))?;
    let mut counts = Vec::new();
    for (at, line) in lines {
        let wanted = format!("{}, a tab and a count", counts.len());
        // Limited so that the sum of the counts does not overflow: no file has 2^48 fields of one length.
        let pair = line.split_once(char::is_whitespace).and_then(|(index, count)| {
            Some((
                index.trim().parse::<usize>().ok()?,
                count.trim().parse::<u64>().ok().filter(|&count| count < 1 << 48)?,
            ))
        });
        match pair {
            Some((index, count)) if index == counts.len() => counts.push(count),
            _ => return Err(bad(at + 1, &wanted)),
        }
    }
    if counts.iter().sum::<u64>() == 0 {
        return Err(EngineError::usage(format!("{file} has no counts above 0 (fieldlengthhistogram)"))
            .hint("set at least one count above 0"));
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
            data_fraction: fraction(properties, "hotspotdatafraction", 0.2)?,
            operation_fraction: fraction(properties, "hotspotopnfraction", 0.8)?,
        },
        "exponential" => {
            let percentile = properties.real("exponential.percentile", 95.0)?;
            if !(percentile > 0.0 && percentile < 100.0) {
                return Err(properties.bad("exponential.percentile", "between 0 and 100", &percentile.to_string()));
            }
            KeyDistribution::Exponential {
                percentile,
                fraction: properties.within("exponential.frac", 0.857_142_857_1, 1e-9, 1e9)?,
            }
        }
        "truezipfian" => {
            let theta = properties.real("zipfian.theta", 0.99)?;
            if !(0.01..=10.0).contains(&theta) {
                return Err(properties.bad("zipfian.theta", "between 0.01 and 10", &theta.to_string()));
            }
            KeyDistribution::TrueZipfian { theta }
        }
        other => {
            let wanted = "uniform, zipfian, latest, hotspot, sequential, exponential or truezipfian";
            return Err(properties.bad("requestdistribution", wanted, other));
        }
    })
}

fn fraction(properties: &Properties, name: &str, default: f64) -> Result<f64, EngineError> {
    let value = properties.real(name, default)?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(properties.bad(name, "between 0 and 1", &value.to_string()))
    }
}

/// The `…proportion` properties.
pub fn mix(properties: &Properties) -> Result<Mix, EngineError> {
    let proportion = |name: &str, default: f64| {
        properties.real(name, default).and_then(|value| {
            if value >= 0.0 { Ok(value) } else { Err(properties.bad(name, "at least 0", &value.to_string())) }
        })
    };
    Ok(Mix {
        read: proportion("readproportion", 0.95)?,
        update: proportion("updateproportion", 0.05)?,
        insert: proportion("insertproportion", 0.0)?,
        scan: proportion("scanproportion", 0.0)?,
        read_modify_write: proportion("readmodifywriteproportion", 0.0)?,
        delete: proportion("deleteproportion", 0.0)?,
    })
}

/// How many records a scan reads.
pub fn scan_length(properties: &Properties) -> Result<Length, EngineError> {
    let (min, max) =
        (properties.whole("minscanlength")?.unwrap_or(1), properties.whole("maxscanlength")?.unwrap_or(1_000));
    let (min, max) = (min as usize, max as usize);
    if min > max {
        return Err(
            EngineError::usage(format!("minscanlength {min} is above maxscanlength {max}")).hint("raise maxscanlength")
        );
    }
    match properties.text("scanlengthdistribution", "uniform").as_str() {
        "uniform" => Ok(Length::Uniform { min, max }),
        "zipfian" => Ok(Length::Zipfian { min, max }),
        other => Err(properties.bad("scanlengthdistribution", "uniform or zipfian", other)),
    }
}

/// Whether values name their writes, which a ledger needs.
fn versions(properties: &Properties) -> bool {
    properties.boolean("versions", false) || properties.trimmed("ledger").is_some()
}

/// A core workload and the number of its operations; with `occupancy`, `ConstantOccupancyWorkload`'s numbers.
pub fn core(
    properties: &Properties,
    phase: Phase,
    clients: u64,
    occupancy: bool,
) -> Result<(WorkSpec, Option<u64>), EngineError> {
    let field_length = length(properties)?;
    let field_count = properties.whole("fieldcount")?.unwrap_or(10) as usize;
    let mut records = properties.whole("recordcount")?.unwrap_or(0);
    let mut wanted_operations = properties.whole("operationcount")?.filter(|&n| n > 0);
    let insert_start = properties.whole("insertstart")?.unwrap_or(0);
    let mut insert_count = properties.whole("insertcount")?;
    if occupancy {
        let size = properties.whole("disksize")?.unwrap_or(100_000_000) as f64;
        let object = Lengths::mean(&field_length) * field_count as f64;
        records = (properties.real("occupancy", 0.9)? * (size / object.max(1.0))) as u64;
        insert_count = None;
        let ages = properties.at_most("storageages", u64::MAX >> 2 >> (64 - records.leading_zeros()))?;
        wanted_operations = Some(ages.unwrap_or(10) * records);
        if records == 0 {
            return Err(EngineError::usage("disksize is too small for one record of this shape").hint("raise disksize"));
        }
    }
    if records == 0 && insert_count.is_none() {
        return Err(EngineError::usage("recordcount is not set")
            .hint("set it to the number of records of the load: -p recordcount=1000"));
    }
    if insert_start > records && insert_count.is_none() {
        return Err(EngineError::usage(format!("insertstart {insert_start} is beyond recordcount {records}"))
            .hint("set recordcount to the number of records after the whole load"));
    }
    let insert_count = insert_count.unwrap_or(records - insert_start.min(records));
    if records > 0 && insert_start.saturating_add(insert_count) > records {
        return Err(EngineError::usage(format!(
            "insertstart + insertcount = {insert_start} + {insert_count} is beyond recordcount {records}"
        ))
        .hint("set recordcount to the number of records after the whole load"));
    }
    let records = records.max(insert_start + insert_count);
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
        zero_padding: properties.whole("zeropadding")?.unwrap_or(1) as usize,
        scan_length: scan_length(properties)?,
        operations,
        insert_lag: properties.whole("insertlag")?.unwrap_or(LAG_PER_CLIENT * clients),
    };
    Ok((WorkSpec::Records(spec), operations))
}
