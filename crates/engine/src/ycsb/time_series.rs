//! TimeSeriesWorkload's properties.

use loadstone_load::time_series::{Downsampling, GroupBy, TimeSeriesSpec, TimeUnit, ValueType};
use loadstone_load::values::Length;

use super::core_workload::{LAG_PER_CLIENT, keys, mix};
use super::props::Props;
use crate::clock::unix_ns;
use crate::error::EngineError;
use crate::spec::{Phase, WorkSpec};

/// A time series workload and the number of its operations.
pub fn translate(props: &Props, phase: Phase, clients: u64) -> Result<(WorkSpec, Option<u64>), EngineError> {
    let base = TimeSeriesSpec::default();
    let positive = |name: &str| props.whole(name).map(|number| number.filter(|&n| n > 0));
    let parsed = |name: &str, error: String| EngineError::usage(error).hint(format!("change {name}"));
    let units = match props.trimmed("timestampunits") {
        Some(text) => TimeUnit::parse(text).map_err(|error| parsed("timestampunits", error))?,
        None => base.units,
    };
    let value_type = match props.trimmed("valuetype") {
        Some(text) => ValueType::parse(text).map_err(|error| parsed("valuetype", error))?,
        None => base.value_type,
    };
    let integrity = props.boolean("dataintegrity", false);
    let mut spec = TimeSeriesSpec {
        table: props.text("table", &base.table),
        records: positive("recordcount")?,
        insert_count: positive("insertcount")?,
        operations: positive("operationcount")?,
        start: props.whole("insertstart")?.map(|start| start as i64),
        key_count: props.whole("fieldcount")?.unwrap_or(base.key_count),
        key_length: size(props, "fieldlength", base.key_length)?,
        tag_count: size(props, "tagcount", base.tag_count)?,
        tag_cardinality: match props.trimmed("tagcardinality") {
            Some(text) => list(props, "tagcardinality", text)?,
            None => base.tag_cardinality.clone(),
        },
        tag_key_length: size(props, "tagkeylength", base.tag_key_length)?,
        tag_value_length: size(props, "tagvaluelength", base.tag_value_length)?,
        interval: props.whole("timestampinterval")?.unwrap_or(base.interval),
        units,
        timestamp_key: props.text("timestampkey", &base.timestamp_key),
        value_key: props.text("valuekey", &base.value_key),
        tag_pair_delimiter: props.text("tagpairdelimiter", &base.tag_pair_delimiter),
        delete_delimiter: props.text("deletedelimiter", &base.delete_delimiter),
        random_time_order: props.boolean("randomwritetimestamporder", base.random_time_order),
        random_series_order: props.boolean("randomtimeseriesorder", base.random_series_order),
        value_type,
        sparsity: props.real("sparsity", base.sparsity)?,
        delayed_series: props.real("delayedseries", base.delayed_series)?,
        delayed_intervals: props.whole("delayedintervals")?.unwrap_or(base.delayed_intervals),
        query_span: props.whole("querytimespan")?.unwrap_or(base.query_span),
        query_random_span: props.boolean("queryrandomtimespan", base.query_random_span),
        query_span_delimiter: props.text("querytimespandelimiter", &base.query_span_delimiter),
        group_by_key: props.text("groupbykey", &base.group_by_key),
        group_by: group_by(props)?,
        downsampling_key: props.text("downsamplingkey", &base.downsampling_key),
        downsampling: downsampling(props)?,
        integrity,
        mix: mix(props)?,
        keys: keys(props)?,
        scan_length: scan_length(props)?,
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
        return Err(EngineError::usage("recordcount is not set").hint("-p recordcount=1000 loads a thousand points"));
    }
    Ok((WorkSpec::TimeSeries(spec), operations))
}

fn size(props: &Props, name: &str, default: usize) -> Result<usize, EngineError> {
    Ok(props.whole(name)?.map_or(default, |number| number as usize))
}

fn list(props: &Props, name: &str, text: &str) -> Result<Vec<u64>, EngineError> {
    let numbers: Option<Vec<u64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    numbers.ok_or_else(|| props.bad(name, "whole numbers with commas between", text))
}

fn group_by(props: &Props) -> Result<Option<GroupBy>, EngineError> {
    let Some(function) = props.trimmed("groupbyfunction") else { return Ok(None) };
    let keys = props.text("groupbykeys", "");
    let tags = list(props, "groupbykeys", &keys)?.into_iter().map(|flag| flag != 0).collect();
    Ok(Some(GroupBy { function: function.to_owned(), tags }))
}

fn downsampling(props: &Props) -> Result<Option<Downsampling>, EngineError> {
    let Some(function) = props.trimmed("downsamplingfunction") else { return Ok(None) };
    let interval = props.whole("downsamplinginterval")?.unwrap_or(0);
    if interval == 0 {
        return Err(
            EngineError::usage("downsamplingfunction needs downsamplinginterval").hint("-p downsamplinginterval=300")
        );
    }
    Ok(Some(Downsampling { function: function.to_owned(), interval }))
}

fn scan_length(props: &Props) -> Result<Length, EngineError> {
    let max = props.whole("maxscanlength")?.unwrap_or(1_000) as usize;
    Ok(match props.text("scanlengthdistribution", "uniform").as_str() {
        "zipfian" => Length::Zipfian { min: 1, max },
        _ => Length::Uniform { min: 1, max },
    })
}
