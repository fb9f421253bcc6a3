//! Translates the properties of TimeSeriesWorkload.

use loadstone_load::time_series::{Downsampling, GroupBy, TimeSeriesSpec, TimeUnit, ValueType};
use loadstone_load::value_length::Length;

use super::core_workload::{LAG_PER_CLIENT, keys, mix};
use super::properties::Properties;
use loadstone_measure::clock::unix_ns;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::{Phase, WorkSpec};

/// A time series workload, and the number of its operations.
pub fn translate(properties: &Properties, phase: Phase, clients: u64) -> Result<(WorkSpec, Option<u64>), EngineError> {
    let base = TimeSeriesSpec::default();
    let positive = |name: &str| properties.parse_whole(name).map(|number| number.filter(|&n| n > 0));
    let parsed = |name: &str, error: String| EngineError::usage(error).hint(format!("change {name}"));
    let units = match properties.trim_value("timestampunits") {
        Some(text) => TimeUnit::parse(text).map_err(|error| parsed("timestampunits", error))?,
        None => base.units,
    };
    let value_type = match properties.trim_value("valuetype") {
        Some(text) => ValueType::parse(text).map_err(|error| parsed("valuetype", error))?,
        None => base.value_type,
    };
    let integrity = properties.boolean("dataintegrity", false);
    let mut spec = TimeSeriesSpec {
        table: properties.text("table", &base.table),
        records: positive("recordcount")?,
        insert_count: positive("insertcount")?,
        operations: positive("operationcount")?,
        start: properties.parse_whole("insertstart")?.map(|start| start as i64),
        key_count: properties.parse_whole("fieldcount")?.unwrap_or(base.key_count),
        key_length: parse_size(properties, "fieldlength", base.key_length)?,
        tag_count: parse_size(properties, "tagcount", base.tag_count)?,
        tag_cardinality: match properties.trim_value("tagcardinality") {
            Some(text) => parse_list(properties, "tagcardinality", text)?,
            None => base.tag_cardinality.clone(),
        },
        tag_key_length: parse_size(properties, "tagkeylength", base.tag_key_length)?,
        tag_value_length: parse_size(properties, "tagvaluelength", base.tag_value_length)?,
        interval: properties.parse_whole("timestampinterval")?.unwrap_or(base.interval),
        units,
        timestamp_key: properties.text("timestampkey", &base.timestamp_key),
        value_key: properties.text("valuekey", &base.value_key),
        tag_pair_delimiter: properties.text("tagpairdelimiter", &base.tag_pair_delimiter),
        delete_delimiter: properties.text("deletedelimiter", &base.delete_delimiter),
        random_time_order: properties.boolean("randomwritetimestamporder", base.random_time_order),
        random_series_order: properties.boolean("randomtimeseriesorder", base.random_series_order),
        value_type,
        sparsity: properties.parse_real("sparsity", base.sparsity)?,
        delayed_series: properties.parse_real("delayedseries", base.delayed_series)?,
        delayed_intervals: properties.parse_whole("delayedintervals")?.unwrap_or(base.delayed_intervals),
        query_span: properties.parse_whole("querytimespan")?.unwrap_or(base.query_span),
        query_random_span: properties.boolean("queryrandomtimespan", base.query_random_span),
        query_span_delimiter: properties.text("querytimespandelimiter", &base.query_span_delimiter),
        group_by_key: properties.text("groupbykey", &base.group_by_key),
        group_by: group_by(properties)?,
        downsampling_key: properties.text("downsamplingkey", &base.downsampling_key),
        downsampling: downsampling(properties)?,
        integrity,
        mix: mix(properties)?,
        keys: keys(properties)?,
        scan_length: scan_length(properties)?,
        delete_lag: LAG_PER_CLIENT * clients,
    };
    if spec.start.is_none() && !integrity {
        spec.start = Some(spec.default_start((unix_ns() / 1_000_000) as i64));
    }
    let operations = match phase {
        Phase::Load => spec.insert_count.or(spec.records),
        Phase::Run => spec.operations,
    };
    if phase == Phase::Load && operations.is_none() {
        return Err(EngineError::usage("recordcount is not set").hint("use -p recordcount=1000 for a thousand points"));
    }
    Ok((WorkSpec::TimeSeries(spec), operations))
}

fn parse_size(properties: &Properties, name: &str, default: usize) -> Result<usize, EngineError> {
    Ok(properties.parse_whole(name)?.map_or(default, |number| number as usize))
}

fn parse_list(properties: &Properties, name: &str, text: &str) -> Result<Vec<u64>, EngineError> {
    let numbers: Option<Vec<u64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    numbers.ok_or_else(|| properties.invalid_value(name, "whole numbers separated by commas", text))
}

fn group_by(properties: &Properties) -> Result<Option<GroupBy>, EngineError> {
    let Some(function) = properties.trim_value("groupbyfunction") else { return Ok(None) };
    let keys = properties.text("groupbykeys", "");
    let tags = parse_list(properties, "groupbykeys", &keys)?.into_iter().map(|flag| flag != 0).collect();
    Ok(Some(GroupBy { function: function.to_owned(), tags }))
}

fn downsampling(properties: &Properties) -> Result<Option<Downsampling>, EngineError> {
    let Some(function) = properties.trim_value("downsamplingfunction") else { return Ok(None) };
    let interval = properties.parse_whole("downsamplinginterval")?.unwrap_or(0);
    if interval == 0 {
        return Err(EngineError::usage("downsamplingfunction needs downsamplinginterval")
            .hint("add -p downsamplinginterval=300"));
    }
    Ok(Some(Downsampling { function: function.to_owned(), interval }))
}

fn scan_length(properties: &Properties) -> Result<Length, EngineError> {
    let max = properties.parse_whole("maxscanlength")?.unwrap_or(1_000) as usize;
    Ok(match properties.text("scanlengthdistribution", "uniform").as_str() {
        "zipfian" => Length::Zipfian { min: 1, max },
        _ => Length::Uniform { min: 1, max },
    })
}
