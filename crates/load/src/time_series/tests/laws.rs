//! Properties that must hold for all settings.

use super::*;

/// YCSB omits half of the series for `2,1`, and for `1,2` with four tags.
#[test]
fn every_series_is_written_whatever_the_cardinalities() {
    for (tag_count, tag_cardinality, series) in
        [(2, vec![2, 1], 4), (4, vec![1, 2], 4), (3, vec![2, 1, 3], 12), (0, vec![], 2)]
    {
        for random_series_order in [false, true] {
            let spec = TimeSeriesSpec {
                tag_count,
                tag_cardinality: tag_cardinality.clone(),
                random_series_order,
                delayed_series: 0.0,
                ..series_spec()
            };
            let all = list_points(spec, series * 3);
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len() as u64, series * 3);
            assert!(all[..series as usize].iter().all(|p| p.ends_with("=1500000000")), "{tag_cardinality:?}");
        }
    }
}

#[test]
fn shuffled_series_are_the_same_series() {
    let wide = TimeSeriesSpec { key_count: 5, tag_count: 3, tag_cardinality: vec![3, 1, 4], ..series_spec() };
    let sorted = |random_series_order| {
        let mut all = list_points(TimeSeriesSpec { random_series_order, ..wide.clone() }, 120);
        all.sort();
        all
    };
    assert_eq!(sorted(true), sorted(false));
    assert_ne!(list_points(TimeSeriesSpec { random_series_order: true, ..wide.clone() }, 60), list_points(wide, 60));
}

#[test]
fn sparsity_is_the_share_of_missing_points() {
    for sparsity in [0.25, 0.5, 0.9] {
        let sparse = TimeSeriesSpec { sparsity, delayed_series: 0.0, tag_cardinality: vec![2, 4], ..series_spec() };
        let load = create_load(sparse);
        let series = load.shape.layout.series_count();
        let mut last = None;
        for nth in 0..10_000 {
            let position = load.shape.layout.position(nth);
            assert!(last < Some(position));
            assert_eq!(load.shape.layout.points_before(position), nth);
            assert_eq!(load.shape.layout.points_before(position + 1), nth + 1);
            last = Some(position);
        }
        let steps = last.unwrap() as f64 / series as f64;
        assert!((10_000.0 / (steps * series as f64) - (1.0 - sparsity)).abs() < 0.01, "{sparsity}");
    }
}

/// With any settings, reads query a point of the load, and updates write one.
#[test]
fn queries_and_updates_name_points_of_the_load() {
    let base = TimeSeriesSpec {
        key_count: 5,
        tag_cardinality: vec![3, 4],
        delayed_series: 0.5,
        records: Some(500),
        mix: Mix { read: 0.4, scan: 0.2, update: 0.4, ..Mix::default() },
        ..series_spec()
    };
    let specs = [
        TimeSeriesSpec { units: TimeUnit::Hours, ..base.clone() },
        TimeSeriesSpec { random_series_order: true, random_time_order: true, ..base.clone() },
        TimeSeriesSpec { sparsity: 0.9, random_series_order: true, ..base.clone() },
        TimeSeriesSpec { sparsity: 0.5, keys: KeyDistribution::Zipfian, ..base.clone() },
        TimeSeriesSpec { insert_count: Some(130), keys: KeyDistribution::Sequential, ..base.clone() },
        // There are fewer points than series; YCSB stops here.
        TimeSeriesSpec { records: Some(17), random_series_order: true, ..base.clone() },
        TimeSeriesSpec { records: Some(1), sparsity: 0.3, ..base },
    ];
    for (case, spec) in specs.into_iter().enumerate() {
        let loaded: BTreeSet<String> = list_points(spec.clone(), spec.count_loaded_points()).into_iter().collect();
        let run = create_run(spec);
        for index in 0..2_000 {
            let operation = fill_operation(&run, index);
            let point =
                if operation.kind == Kind::Update { format_write(&operation).0 } else { format_query(&operation) };
            assert!(loaded.contains(&point), "case {case}: {:?} of {point}", operation.kind);
        }
    }
}

#[test]
fn queries_stay_ahead_of_deletes() {
    let spec = TimeSeriesSpec {
        records: Some(4_000),
        mix: Mix { read: 0.5, update: 0.2, scan: 0.1, delete: 0.2, ..Mix::default() },
        delete_lag: 6,
        ..series_spec()
    };
    let mut left = list_points(spec.clone(), 4_000);
    left.reverse();
    let run = create_run(spec);
    for index in 0..10_000 {
        let operation = fill_operation(&run, index);
        match operation.kind {
            Kind::Delete => {
                let gone = left.pop().unwrap();
                assert_eq!(String::from_utf8_lossy(&operation.key), gone.replace(' ', ":"));
            }
            Kind::Update => assert!(left[..left.len() - 6].contains(&format_write(&operation).0)),
            _ => assert!(left[..left.len() - 6].contains(&format_query(&operation))),
        }
    }
    assert_eq!(left.len(), 2_000);
}

#[test]
fn segments_add_up_to_the_whole() {
    let spec = TimeSeriesSpec {
        records: Some(1_000),
        sparsity: 0.25,
        query_span: 600,
        mix: Mix { read: 0.4, update: 0.2, insert: 0.2, scan: 0.1, delete: 0.1, ..Mix::default() },
        start: Some(START),
        ..TimeSeriesSpec::default()
    };
    let hash_of = |workload: &dyn Workload<Operation = SeriesOperation>, operation: &mut SeriesOperation, index| {
        workload.fill_operation(index, operation);
        let mut hasher = DefaultHasher::new();
        (index, operation.kind, &operation.key, operation.series).hash(&mut hasher);
        match operation.kind {
            Kind::Insert | Kind::Update => operation.row.bytes().hash(&mut hasher),
            Kind::Delete => {}
            _ => format_query(operation).hash(&mut hasher),
        }
        if operation.kind == Kind::Scan {
            operation.scan_count.hash(&mut hasher);
        }
        hasher.finish()
    };
    let make = |load: bool, seed| -> Box<dyn Workload<Operation = SeriesOperation>> {
        if load {
            Box::new(TimeSeriesLoad::new(spec.clone(), seed).unwrap())
        } else {
            Box::new(TimeSeriesRun::new(spec.clone(), seed).unwrap())
        }
    };
    for phase in [true, false] {
        let sum_of = |n, seed| {
            (0..n).fold(0u64, |sum, k| {
                // Each segment runs in a separate process, with separate buffers.
                let (own, segment) = (make(phase, seed), Segment { k, n });
                let mut operation = SeriesOperation::default();
                (0..segment.share_of_total(5_000))
                    .fold(sum, |sum, step| sum.wrapping_add(hash_of(&*own, &mut operation, segment.global_index(step))))
            })
        };
        let whole = sum_of(1, 5);
        assert_eq!(sum_of(2, 5), whole);
        assert_eq!(sum_of(7, 5), whole);
        assert_ne!(sum_of(1, 6), whole);
    }
}

#[test]
fn kinds_and_metrics_occur_in_proportion() {
    let mix = Mix { read: 0.5, update: 0.2, insert: 0.15, scan: 0.1, delete: 0.05, ..Mix::default() };
    let hot = KeyDistribution::Hotspot { data_fraction: 0.2, operation_fraction: 0.8 };
    let spec = TimeSeriesSpec { mix, key_count: 10, keys: hot, records: Some(100_000), ..series_spec() };
    let run = create_run(TimeSeriesSpec { scan_length: Length::Uniform { min: 1, max: 50 }, ..spec });
    let (mut kinds, mut metrics, mut scans) = (BTreeMap::new(), [0u32; 10], BTreeSet::new());
    for index in 0..10_000 {
        let operation = fill_operation(&run, index);
        *kinds.entry(operation.kind).or_insert(0) += 1;
        if operation.kind == Kind::Read {
            metrics[(operation.series / 2) as usize] += 1;
        }
        if operation.kind == Kind::Scan {
            scans.insert(operation.scan_count);
        }
    }
    let quotas =
        [(Kind::Read, 5_000), (Kind::Update, 2_000), (Kind::Insert, 1_500), (Kind::Scan, 1_000), (Kind::Delete, 500)];
    assert_eq!(kinds, BTreeMap::from(quotas));
    assert!((3_900..4_100).contains(&(metrics[0] + metrics[1])), "{metrics:?}");
    assert_eq!((scans.first(), scans.last()), (Some(&1), Some(&50)));
    let turns = TimeSeriesSpec { keys: KeyDistribution::Sequential, mix: mix_of(Kind::Read), ..super::series_spec() };
    let turns = TimeSeriesRun::new(turns, 1).unwrap();
    assert!((0..10).all(|index| fill_operation(&turns, index).series / 2 == index % 2));
}

#[test]
fn verification_accepts_only_the_values_written() {
    let checked = TimeSeriesSpec { integrity: true, value_type: ValueType::Integers, ..series_spec() };
    // The values are as written by YCSB.
    let load = create_load(checked.clone());
    let values: Vec<i64> = (0..8).map(|index| format_write(&fill_operation(&load, index)).1).collect();
    assert_eq!(values[..4], [2_105_875_969, 2_105_875_970, 2_105_875_969, 2_105_875_970]);
    assert_eq!(values[4..], [2_105_876_029, 2_105_876_030, 2_105_876_029, 2_105_876_030]);

    // The spec has late, sparse and shuffled points, and updates.
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
    for index in 0..load.operation_count().unwrap() {
        let operation = fill_operation(&load, index);
        store.insert(format_write(&operation).0, operation.row);
    }
    let run = create_run(spec);
    assert!(run.has_read_checks());
    for index in 0..5_000 {
        let operation = fill_operation(&run, index);
        if operation.kind == Kind::Update {
            store.insert(format_write(&operation).0, operation.row);
            continue;
        }
        let read = &store[&format_query(&operation)];
        assert_eq!(run.verify_read(&operation, read), Some(Check::Right));
        if index % 500 == 1 {
            let other = store.values().find(|row| *row != read).unwrap();
            assert_eq!(run.verify_read(&operation, other), Some(Check::Wrong), "correct, but not requested");
            let mut short = Row::default();
            let fields: Vec<_> = read.fields().flatten().collect();
            for (name, value) in &fields[1..] {
                short.push_field(name, value);
            }
            assert_eq!(run.verify_read(&operation, &short), Some(Check::Wrong), "a cell is missing");
            let mut long = read.clone();
            long.push_field(b"more", b"cells");
            assert_eq!(run.verify_read(&operation, &long), Some(Check::Wrong), "a cell too many");
            assert_eq!(run.verify_read(&operation, &Row::default()), Some(Check::Empty));
        }
    }
}
