//! Operations in the format that YCSB's `BasicTSDB` prints, and the properties with which YCSB was run.

mod laws;
mod settings;
mod ycsb;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::core::Mix;
use crate::segment::Segment;
use crate::value_length::Length;

const START: i64 = 1_500_000_000;

/// `recordcount=20 operationcount=10 fieldcount=2 fieldlength=8 tagcount=2 tagcardinality=1,2 insertstart=1500000000
/// randomtimeseriesorder=false`, with default values for everything else.
fn series_spec() -> TimeSeriesSpec {
    TimeSeriesSpec {
        records: Some(20),
        operations: Some(10),
        key_count: 2,
        key_length: 8,
        tag_count: 2,
        tag_cardinality: vec![1, 2],
        start: Some(START),
        random_series_order: false,
        ..TimeSeriesSpec::default()
    }
}

fn mix_of(kind: Kind) -> Mix {
    let mut mix = Mix::default();
    match kind {
        Kind::Read => mix.read = 1.0,
        Kind::Update => mix.update = 1.0,
        Kind::Insert => mix.insert = 1.0,
        Kind::Scan => mix.scan = 1.0,
        _ => mix.delete = 1.0,
    }
    mix
}

fn create_load(spec: TimeSeriesSpec) -> TimeSeriesLoad {
    TimeSeriesLoad::new(spec, 1).unwrap()
}

fn create_run(spec: TimeSeriesSpec) -> TimeSeriesRun {
    // The seed differs from the load's seed, as in a run without a set seed.
    TimeSeriesRun::new(spec, 2).unwrap()
}

fn fill_operation(workload: &impl Workload<Operation = SeriesOperation>, index: u64) -> SeriesOperation {
    let mut operation = SeriesOperation::default();
    workload.fill_operation(index, &mut operation);
    operation
}

fn parse_number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().unwrap())
}

/// `key tag=value … timestamp` in the format of `BasicTSDB`, and the bits of the value.
fn format_write(operation: &SeriesOperation) -> (String, i64) {
    let mut parts = vec![String::from_utf8(operation.key.clone()).unwrap()];
    let mut bits = 0;
    for (name, value) in operation.row.fields().flatten() {
        match name {
            b"YCSBV" => bits = parse_number(value),
            b"YCSBTS" => parts.push(format!("YCSBTS={}", parse_number(value))),
            _ => parts.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))),
        }
    }
    (parts.join(" "), bits)
}

fn list_points(spec: TimeSeriesSpec, count: u64) -> Vec<String> {
    let load = create_load(spec);
    (0..count).map(|index| format_write(&fill_operation(&load, index)).0).collect()
}

/// The point that a query reads, in the format of [`format_write`].
fn format_query(operation: &SeriesOperation) -> String {
    format!("{} {}", String::from_utf8_lossy(&operation.key), operation.clauses.join(" "))
}
