//! Against outputs of YCSB 0.17.0 (its `BasicTSDB`, verbose), and against itself.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::core::Mix;
use crate::operation::Selection;
use crate::segment::Segment;
use crate::values::Length;

const START: i64 = 1_500_000_000;

/// `recordcount=20 operationcount=10 fieldcount=2 fieldlength=8 tagcount=2 tagcardinality=1,2 insertstart=1500000000
/// randomtimeseriesorder=false`, the rest as it is.
fn spec() -> TimeSeriesSpec {
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

fn only(kind: Kind) -> Mix {
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

fn load(spec: TimeSeriesSpec) -> TimeSeriesLoad {
    TimeSeriesLoad::new(spec, 1).unwrap()
}

fn run(spec: TimeSeriesSpec) -> TimeSeriesRun {
    // Another seed than the load's, as it is when nobody sets one.
    TimeSeriesRun::new(spec, 2).unwrap()
}

fn operation(workload: &impl Workload, index: u64) -> Operation {
    let mut operation = Operation::default();
    workload.fill(index, &mut operation);
    operation
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().unwrap())
}

/// `key tag=value … timestamp`, as `BasicTSDB` prints it, and the value's bits.
fn written(operation: &Operation) -> (String, i64) {
    let mut text = String::from_utf8(operation.key.clone()).unwrap();
    let mut bits = 0;
    for (name, value) in operation.row.fields().flatten() {
        let name = String::from_utf8(name.to_vec()).unwrap();
        match name.as_str() {
            "YCSBV" => bits = number(value),
            "YCSBTS" => text += &format!(" YCSBTS={}", number(value)),
            _ => text += &format!(" {name}={}", String::from_utf8_lossy(value)),
        }
    }
    (text, bits)
}

fn points(spec: TimeSeriesSpec, count: u64) -> Vec<String> {
    let load = load(spec);
    (0..count).map(|index| written(&operation(&load, index)).0).collect()
}

/// As [`written`], of the point that a query asks for.
fn asked(operation: &Operation) -> String {
    let Selection::Names(clauses) = &operation.selection else { panic!("no clauses") };
    format!("{} {}", String::from_utf8_lossy(&operation.key), clauses.join(" "))
}

#[test]
fn a_load_writes_what_ycsb_writes() {
    let ycsb = "AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000000\n\
                AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAB YCSBTS=1500000000\n\
                AAAAAAAB AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000000\n\
                AAAAAAAB AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAB YCSBTS=1500000000\n\
                AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000060\n\
                AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAB YCSBTS=1500000060\n\
                AAAAAAAB AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000060\n\
                AAAAAAAB AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAB YCSBTS=1500000060\n\
                AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000120";
    assert_eq!(points(spec(), 20)[..9].join("\n"), ycsb);
    assert_eq!(points(spec(), 20)[19], "AAAAAAAB AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAB YCSBTS=1500000240");
    // The run's inserts begin anew.
    let run = run(TimeSeriesSpec { mix: only(Kind::Insert), ..spec() });
    assert_eq!(written(&operation(&run, 5)).0, points(spec(), 6)[5]);
}

#[test]
fn late_series_are_as_late_as_ycsbs() {
    let late = TimeSeriesSpec { delayed_series: 1.0, delayed_intervals: 3, ..spec() };
    let times = |spec, count| -> Vec<i64> {
        points(spec, count).iter().map(|p| p.rsplit_once('=').unwrap().1.parse::<i64>().unwrap() - START).collect()
    };
    assert_eq!(times(late, 12), [0, -60, -120, 0, 60, 0, -60, 60, 120, 60, 0, 120]);
    let minutes =
        TimeSeriesSpec { units: TimeUnit::Minutes, interval: 5, key_count: 1, delayed_series: 1.0, ..spec() };
    assert_eq!(times(minutes, 6), [0, -5, 300, 295, 600, 595]);
    // YCSB's own cardinalities and delays: 64 of the 640 series are late.
    let default = TimeSeriesSpec { tag_count: 4, tag_cardinality: vec![1, 2, 4, 8], key_count: 10, ..spec() };
    assert_eq!(times(default.clone(), 20), [0, -60, -120, -180, -240].repeat(4));
    assert_eq!(times(default.clone(), 640)[64..], [0; 576]);
    let last = "AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA AAAAAAAC=AAAAAAAC AAAAAAAD=AAAAAAAD YCSBTS=1499999760";
    assert_eq!(points(default, 20)[19], last);
}

#[test]
fn values_are_of_their_type() {
    let bits = |value_type| {
        let load = load(TimeSeriesSpec { value_type, ..spec() });
        (0..1_000).map(|index| written(&operation(&load, index)).1).collect::<Vec<_>>()
    };
    let whole = |bits: i64| i32::try_from(bits).is_ok();
    let float = |bits: i64| (0.0..100_000.0).contains(&f64::from_bits(bits as u64));
    assert!(bits(ValueType::Integers).iter().all(|&b| whole(b)));
    assert!(bits(ValueType::Floats).iter().all(|&b| float(b) && !whole(b)));
    let mixed = bits(ValueType::MixedNumbers);
    assert!(mixed.iter().all(|&b| float(b) || whole(b)));
    assert!((450..550).contains(&mixed.iter().filter(|&&b| whole(b)).count()));
}

/// Four series per metric, none written by YCSB for `2,1` and `1,2` with more tags than cardinalities.
#[test]
fn every_series_is_written_whatever_the_cardinalities() {
    for (tag_count, tag_cardinality, series) in [(2, vec![2, 1], 4), (4, vec![1, 2], 4), (3, vec![2, 1, 3], 12), (0, vec![], 2)] {
        for random_series_order in [false, true] {
            let spec = TimeSeriesSpec {
                tag_count,
                tag_cardinality: tag_cardinality.clone(),
                random_series_order,
                delayed_series: 0.0,
                ..spec()
            };
            let all = points(spec, series * 3);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len() as u64, series * 3);
            assert!(all[..series as usize].iter().all(|p| p.ends_with("=1500000000")), "{tag_cardinality:?}");
        }
    }
}

#[test]
fn shuffled_series_are_the_same_series() {
    let wide = TimeSeriesSpec { key_count: 5, tag_count: 3, tag_cardinality: vec![3, 1, 4], ..spec() };
    let sorted = |random_series_order| {
        let mut all = points(TimeSeriesSpec { random_series_order, ..wide.clone() }, 120);
        let first = all[0].clone();
        all.sort();
        (all, first)
    };
    assert_eq!(sorted(true).0, sorted(false).0);
    assert_ne!(points(TimeSeriesSpec { random_series_order: true, ..wide.clone() }, 60), points(wide, 60));
}

/// YCSB, `recordcount=20` and four series: six time steps from one before the start on, each once, in any order.
#[test]
fn shuffled_time_visits_ycsbs_steps() {
    let all = points(TimeSeriesSpec { random_time_order: true, delayed_series: 0.0, ..spec() }, 48);
    let mut steps = all.iter().step_by(4).map(|p| p.rsplit_once('=').unwrap().1.parse().unwrap()).collect::<Vec<i64>>();
    let in_order: Vec<i64> = (0..12).map(|step| START - 60 + 60 * step).collect();
    assert_ne!(steps, in_order);
    steps[..6].sort_unstable();
    steps[6..].sort_unstable();
    assert_eq!(steps, in_order);
    assert!(all.chunks(4).all(|step| step.iter().all(|p| p[p.len() - 10..] == step[0][step[0].len() - 10..])));
}

#[test]
fn sparsity_is_the_share_of_points_that_is_missing() {
    for sparsity in [0.25, 0.5, 0.9] {
        let sparse = TimeSeriesSpec { sparsity, delayed_series: 0.0, tag_cardinality: vec![2, 4], ..spec() };
        let load = load(sparse);
        let series = load.shape.layout.series();
        let mut last = None;
        for nth in 0..10_000 {
            let position = load.shape.layout.position(nth);
            assert!(last < Some(position));
            assert_eq!(load.shape.layout.before(position), nth);
            assert_eq!(load.shape.layout.before(position + 1), nth + 1);
            last = Some(position);
        }
        let steps = last.unwrap() as f64 / series as f64;
        assert!((10_000.0 / (steps * series as f64) - (1.0 - sparsity)).abs() < 0.01, "{sparsity}");
    }
}

#[test]
fn queries_have_ycsbs_clauses() {
    let reads = run(TimeSeriesSpec { mix: only(Kind::Read), delayed_series: 0.0, ..spec() });
    let of_ycsb: BTreeSet<String> = points(TimeSeriesSpec { delayed_series: 0.0, ..spec() }, 20).into_iter().collect();
    let ours: BTreeSet<String> = (0..2_000).map(|index| asked(&operation(&reads, index))).collect();
    assert_eq!(ours, of_ycsb, "each point of the complete steps is asked for, and no other");
    let spans = TimeSeriesSpec {
        query_span: 3_600,
        downsampling: Some(Downsampling { function: "SUM".to_owned(), interval: 300 }),
        group_by: Some(GroupBy { function: "max".to_owned(), tags: vec![true, false] }),
        delayed_series: 0.0,
        records: Some(4),
        ..spec()
    };
    let text = |mix, index| asked(&operation(&run(TimeSeriesSpec { mix, ..spans.clone() }), index));
    for kind in [Kind::Read, Kind::Scan] {
        let clauses = text(only(kind), 3).split_once(' ').unwrap().1.replace("=AAAAAAAB", "=AAAAAAAA");
        assert_eq!(clauses, "AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000000,1500003600 YCSBGB=max YCSBDS=SUM300");
    }
    let deletes = run(TimeSeriesSpec { mix: only(Kind::Delete), ..spans.clone() });
    assert_eq!(
        String::from_utf8(operation(&deletes, 3).key).unwrap(),
        "AAAAAAAB:AAAAAAAA:AAAAAAAB=AAAAAAAB:YCSBTS=1500000000,1500003600"
    );
    let random = TimeSeriesSpec { query_random_span: true, group_by: None, downsampling: None, ..spans };
    let random = run(TimeSeriesSpec { mix: only(Kind::Read), ..random });
    let ends: BTreeSet<i64> = (0..1_000)
        .map(|index| asked(&operation(&random, index)).rsplit_once(',').unwrap().1.parse::<i64>().unwrap() - START)
        .collect();
    assert_eq!(ends, (0..60).map(|n| n * 60).collect());
}

#[test]
fn deletes_without_a_span_are_ycsbs() {
    let deletes = run(TimeSeriesSpec { mix: only(Kind::Delete), ..spec() });
    assert_eq!(
        String::from_utf8(operation(&deletes, 5).key).unwrap(),
        "AAAAAAAA:AAAAAAAA=AAAAAAAA:AAAAAAAB=AAAAAAAB:YCSBTS=1500000060"
    );
}

/// Whatever the settings, a read asks for a point of the load, and an update writes one.
#[test]
fn queries_and_updates_name_points_of_the_load() {
    let base = TimeSeriesSpec {
        key_count: 5,
        tag_cardinality: vec![3, 4],
        delayed_series: 0.5,
        records: Some(500),
        mix: Mix { read: 0.4, scan: 0.2, update: 0.4, ..Mix::default() },
        ..spec()
    };
    let specs = [
        TimeSeriesSpec { units: TimeUnit::Hours, ..base.clone() },
        TimeSeriesSpec { random_series_order: true, random_time_order: true, ..base.clone() },
        TimeSeriesSpec { sparsity: 0.9, random_series_order: true, ..base.clone() },
        TimeSeriesSpec { sparsity: 0.5, keys: KeyDistribution::Zipfian, ..base.clone() },
        TimeSeriesSpec { insert_count: Some(130), keys: KeyDistribution::Sequential, ..base.clone() },
        // Fewer points than series, where YCSB ends.
        TimeSeriesSpec { records: Some(17), random_series_order: true, ..base.clone() },
        TimeSeriesSpec { records: Some(1), sparsity: 0.3, ..base },
    ];
    for (case, spec) in specs.into_iter().enumerate() {
        let loaded: BTreeSet<String> =
            points(spec.clone(), spec.loaded()).into_iter().collect();
        let run = run(spec);
        for index in 0..2_000 {
            let operation = operation(&run, index);
            let point = if operation.kind == Kind::Update { written(&operation).0 } else { asked(&operation) };
            assert!(loaded.contains(&point), "case {case}: {:?} of {point}", operation.kind);
        }
    }
}

#[test]
fn deletes_go_from_the_oldest_and_queries_stay_ahead() {
    let spec = TimeSeriesSpec {
        records: Some(4_000),
        mix: Mix { read: 0.5, update: 0.2, scan: 0.1, delete: 0.2, ..Mix::default() },
        delete_lag: 6,
        ..spec()
    };
    let mut left = points(spec.clone(), 4_000);
    left.reverse();
    let run = run(spec);
    for index in 0..10_000 {
        let operation = operation(&run, index);
        match operation.kind {
            Kind::Delete => {
                let gone = left.pop().unwrap();
                assert_eq!(String::from_utf8_lossy(&operation.key), gone.replace(' ', ":"));
            }
            Kind::Update => assert!(left[..left.len() - 6].contains(&written(&operation).0)),
            _ => assert!(left[..left.len() - 6].contains(&asked(&operation))),
        }
    }
    assert_eq!(left.len(), 2_000);
}

#[test]
fn segments_together_do_exactly_the_operations_of_the_whole() {
    let spec = TimeSeriesSpec {
        records: Some(1_000),
        sparsity: 0.25,
        query_span: 600,
        mix: Mix { read: 0.4, update: 0.2, insert: 0.2, scan: 0.1, delete: 0.1, ..Mix::default() },
        ..TimeSeriesSpec { start: Some(START), key_length: 8, ..TimeSeriesSpec::default() }
    };
    let hash_of = |workload: &dyn Workload, operation: &mut Operation, index| {
        workload.fill(index, operation);
        let mut hasher = DefaultHasher::new();
        (index, operation.kind, &operation.key, operation.record).hash(&mut hasher);
        match operation.kind {
            Kind::Insert | Kind::Update => operation.row.bytes().hash(&mut hasher),
            Kind::Delete => {}
            _ => asked(operation).hash(&mut hasher),
        }
        if operation.kind == Kind::Scan {
            operation.scan_count.hash(&mut hasher);
        }
        hasher.finish()
    };
    let make = |load: bool, seed| -> Box<dyn Workload> {
        if load {
            Box::new(TimeSeriesLoad::new(spec.clone(), seed).unwrap())
        } else {
            Box::new(TimeSeriesRun::new(spec.clone(), seed).unwrap())
        }
    };
    for phase in [true, false] {
        let sum_of = |n, seed| {
            (0..n).fold(0u64, |sum, k| {
                // Each segment is another process, with buffers of its own.
                let (own, segment) = (make(phase, seed), Segment { k, n });
                let mut operation = Operation::default();
                (0..segment.share(5_000)).fold(sum, |sum, step| {
                    sum.wrapping_add(hash_of(&*own, &mut operation, segment.index(step)))
                })
            })
        };
        let whole = sum_of(1, 5);
        assert_eq!(sum_of(2, 5), whole);
        assert_eq!(sum_of(7, 5), whole);
        assert_ne!(sum_of(1, 6), whole);
    }
}

#[test]
fn kinds_and_metrics_are_dealt_in_proportion() {
    let mix = Mix { read: 0.5, update: 0.2, insert: 0.15, scan: 0.1, delete: 0.05, ..Mix::default() };
    let hot = KeyDistribution::Hotspot { data_fraction: 0.2, operation_fraction: 0.8 };
    let spec = TimeSeriesSpec { mix, key_count: 10, keys: hot, records: Some(100_000), ..spec() };
    let run = run(TimeSeriesSpec { scan_length: Length::Uniform { min: 1, max: 50 }, ..spec });
    let (mut kinds, mut metrics, mut scans) = (BTreeMap::new(), [0u32; 10], BTreeSet::new());
    for index in 0..10_000 {
        let operation = operation(&run, index);
        *kinds.entry(operation.kind).or_insert(0) += 1;
        if operation.kind == Kind::Read {
            metrics[(operation.record / 2) as usize] += 1;
        }
        if operation.kind == Kind::Scan {
            scans.insert(operation.scan_count);
        }
    }
    let quotas = [(Kind::Read, 5_000), (Kind::Update, 2_000), (Kind::Insert, 1_500), (Kind::Scan, 1_000), (Kind::Delete, 500)];
    assert_eq!(kinds, BTreeMap::from(quotas));
    assert!((3_900..4_100).contains(&(metrics[0] + metrics[1])), "{metrics:?}");
    assert_eq!((scans.first(), scans.last()), (Some(&1), Some(&50)));
    let turns = TimeSeriesSpec { keys: KeyDistribution::Sequential, mix: only(Kind::Read), ..super::tests::spec() };
    let turns = TimeSeriesRun::new(turns, 1).unwrap();
    assert!((0..10).all(|index| operation(&turns, index).key.ends_with(if index % 2 == 0 { b"A" } else { b"B" })));
}

#[test]
fn what_the_load_wrote_is_found_right_and_anything_else_is_not() {
    let checked = TimeSeriesSpec { integrity: true, value_type: ValueType::Integers, ..spec() };
    // Values that YCSB wrote.
    let load = load(checked.clone());
    let values: Vec<i64> = (0..8).map(|index| written(&operation(&load, index)).1).collect();
    assert_eq!(values[..4], [2_105_875_969, 2_105_875_970, 2_105_875_969, 2_105_875_970]);
    assert_eq!(values[4..], [2_105_876_029, 2_105_876_030, 2_105_876_029, 2_105_876_030]);

    // Late, sparse, shuffled: all of them, with updates on top.
    let spec = TimeSeriesSpec {
        delayed_series: 0.7,
        sparsity: 0.5,
        random_series_order: true,
        random_time_order: true,
        mix: Mix { read: 0.7, update: 0.3, ..Mix::default() },
        key_count: 7,
        tag_cardinality: vec![3, 2],
        records: Some(2_000),
        ..checked
    };
    let mut store: BTreeMap<String, Row> = BTreeMap::new();
    let load = TimeSeriesLoad::new(spec.clone(), 1).unwrap();
    for index in 0..load.operations().unwrap() {
        let operation = operation(&load, index);
        store.insert(written(&operation).0, operation.row);
    }
    let run = run(spec);
    assert!(run.verifies());
    for index in 0..5_000 {
        let operation = operation(&run, index);
        if operation.kind == Kind::Update {
            store.insert(written(&operation).0, operation.row);
            continue;
        }
        let read = &store[&asked(&operation)];
        assert_eq!(run.verify(&operation, read), Some(Check::Right));
        if index % 500 == 1 {
            let other = store.values().find(|row| *row != read).unwrap();
            assert_eq!(run.verify(&operation, other), Some(Check::Wrong), "right in itself, but not asked for");
            let mut short = Row::default();
            let fields: Vec<_> = read.fields().flatten().collect();
            fields[1..].iter().for_each(|(name, value)| short.push(name, value));
            assert_eq!(run.verify(&operation, &short), Some(Check::Wrong), "a cell is missing");
            let mut long = read.clone();
            long.push(b"more", b"cells");
            assert_eq!(run.verify(&operation, &long), Some(Check::Wrong), "a cell too many");
            assert_eq!(run.verify(&operation, &Row::default()), Some(Check::Empty));
        }
    }
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let ok = spec;
    let by = |tags| Some(GroupBy { function: "sum".to_owned(), tags });
    let checked = TimeSeriesSpec { integrity: true, value_type: ValueType::Integers, ..ok() };
    for (spec, words) in [
        (TimeSeriesSpec { key_count: 0, ..ok() }, "fieldcount must be at least 1, got 0"),
        (TimeSeriesSpec { interval: 0, ..ok() }, "timestampinterval must be at least 1, got 0"),
        (TimeSeriesSpec { tag_cardinality: vec![1, 0], ..ok() }, "tagcardinality must be at least 1 for each tag, got 0 for tag 2"),
        (TimeSeriesSpec { key_length: 0, ..ok() }, "fieldlength must be at least 1, got 0"),
        (TimeSeriesSpec { key_length: 1, key_count: 53, ..ok() }, "fieldlength=1 has too few names for fieldcount: 53 are wanted"),
        (TimeSeriesSpec { tag_value_length: 1, tag_cardinality: vec![60], ..ok() }, "tagvaluelength=1 has too few names for tagcardinality: 60 are wanted"),
        (TimeSeriesSpec { key_count: 1 << 40, ..ok() }, "fieldcount must be at most 4294967295, got 1099511627776"),
        (TimeSeriesSpec { tag_cardinality: vec![1 << 31, 1 << 31], ..ok() }, "fieldcount × tagcardinality gives more than 2^63 series"),
        (TimeSeriesSpec { random_time_order: true, records: None, ..ok() }, "randomwritetimestamporder shuffles up to 16777216 time steps, recordcount gives 536870912"),
        (TimeSeriesSpec { sparsity: 1.0, ..ok() }, "sparsity must be from 0 to 0.9999, got 1"),
        (TimeSeriesSpec { delayed_intervals: 0, ..ok() }, "delayedintervals must be at least 1; for no delay set delayedseries to 0"),
        (TimeSeriesSpec { delayed_series: f64::NAN, ..ok() }, "delayedseries must be a number"),
        (TimeSeriesSpec { timestamp_key: "AAAAAAAB".to_owned(), ..ok() }, "timestampkey, valuekey and the tags must have different names"),
        (TimeSeriesSpec { start: None, ..ok() }, "insertstart, the first timestamp, must be given"),
        (TimeSeriesSpec { integrity: true, ..ok() }, "dataintegrity needs valuetype=integers"),
        (TimeSeriesSpec { query_span: 60, ..checked.clone() }, "dataintegrity needs querytimespan=0"),
        (TimeSeriesSpec { group_by: by(vec![true, true]), ..checked.clone() }, "dataintegrity needs no groupbyfunction"),
        (TimeSeriesSpec { start: None, ..checked.clone() }, "dataintegrity needs insertstart: a run at another time would not find what the load wrote"),
    ] {
        assert_eq!(TimeSeriesLoad::new(spec.clone(), 1).unwrap_err(), words);
        assert_eq!(TimeSeriesRun::new(spec, 1).unwrap_err(), words);
    }
    let mix = Mix { read_modify_write: 0.1, ..Mix::default() };
    for (spec, words) in [
        (TimeSeriesSpec { mix, ..ok() }, "readmodifywriteproportion must be 0: time series have no such operation"),
        (TimeSeriesSpec { mix: Mix::default(), ..ok() }, "one of the read, update, insert, scan and delete proportions must be above 0"),
        (TimeSeriesSpec { group_by: by(vec![true]), ..ok() }, "groupbykeys must name each of the 2 tags with 0 or 1, got 1"),
        (TimeSeriesSpec { keys: KeyDistribution::Latest, ..ok() }, "requestdistribution must be uniform, sequential, zipfian or hotspot: metrics have no age"),
        (TimeSeriesSpec { scan_length: Length::Uniform { min: 1, max: 0 }, ..ok() }, "maxscanlength must be at least 1, got 0"),
    ] {
        assert_eq!(TimeSeriesRun::new(spec, 1).unwrap_err(), words);
    }
    assert_eq!(TimeUnit::parse("Minutes"), Ok(TimeUnit::Minutes));
    assert_eq!(
        TimeUnit::parse("NANOSECONDS").unwrap_err(),
        "timestampunits must be milliseconds, seconds, minutes, hours or days, got \"NANOSECONDS\""
    );
    assert_eq!(ValueType::parse("mixed"), Ok(ValueType::MixedNumbers));
    assert!(ValueType::parse("strings").is_err());
}

#[test]
fn counts_and_starts_left_out_are_ycsbs() {
    let counts = |records, insert_count| {
        let spec = TimeSeriesSpec { records, insert_count, ..spec() };
        (spec.loads(), spec.loaded())
    };
    assert_eq!(counts(Some(20), None), (Some(20), 20));
    assert_eq!(counts(Some(20), Some(6)), (Some(6), 6));
    assert_eq!(counts(Some(20), Some(30)), (Some(30), 20));
    assert_eq!(counts(None, Some(6)), (Some(6), 6));
    assert_eq!(counts(Some(0), Some(0)), (None, 2_147_483_647));
    let start = |units| TimeSeriesSpec { units, ..TimeSeriesSpec::default() }.default_start(1_795_261_638_500);
    assert_eq!(start(TimeUnit::Seconds), 1_795_261_578);
    assert_eq!(start(TimeUnit::Milliseconds), 1_795_261_638_440);
    assert_eq!(start(TimeUnit::Hours), 1_795_261_638 - 216_000);
}

#[test]
fn a_spec_may_leave_out_what_is_default() {
    let text = r#"{"records": 20, "start": 5, "units": "minutes", "value_type": "mixednumbers",
        "group_by": {"function": "sum", "tags": [false, false, true, true]}}"#;
    let read: TimeSeriesSpec = serde_json::from_str(text).unwrap();
    assert_eq!(read.value_type, ValueType::MixedNumbers);
    assert_eq!(TimeSeriesSpec { records: None, start: None, group_by: None, ..read.clone() }, {
        TimeSeriesSpec { units: TimeUnit::Minutes, value_type: ValueType::MixedNumbers, ..TimeSeriesSpec::default() }
    });
    let again: TimeSeriesSpec = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
    assert_eq!(again, read);
    assert!(serde_json::from_str::<TimeSeriesSpec>(r#"{"recordcount": 20}"#).is_err());
}
