//! Compares operations with the output of YCSB 0.17.0.

use super::*;

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
    assert_eq!(list_points(series_spec(), 20)[..9].join("\n"), ycsb);
    assert_eq!(list_points(series_spec(), 20)[19], "AAAAAAAB AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAB YCSBTS=1500000240");
    // The run's inserts start at the first point again.
    let run = create_run(TimeSeriesSpec { mix: mix_of(Kind::Insert), ..series_spec() });
    assert_eq!(format_write(&fill_operation(&run, 5)).0, list_points(series_spec(), 6)[5]);
}

#[test]
fn late_series_are_as_late_as_ycsbs() {
    let late = TimeSeriesSpec { delayed_series: 1.0, delayed_intervals: 3, ..series_spec() };
    let times = |spec, count| -> Vec<i64> {
        list_points(spec, count).iter().map(|p| p.rsplit_once('=').unwrap().1.parse::<i64>().unwrap() - START).collect()
    };
    assert_eq!(times(late, 12), [0, -60, -120, 0, 60, 0, -60, 60, 120, 60, 0, 120]);
    let minutes =
        TimeSeriesSpec { units: TimeUnit::Minutes, interval: 5, key_count: 1, delayed_series: 1.0, ..series_spec() };
    assert_eq!(times(minutes, 6), [0, -5, 300, 295, 600, 595]);
    // YCSB's default cardinalities and delays: 64 of the 640 series are late.
    let default = TimeSeriesSpec { tag_count: 4, tag_cardinality: vec![1, 2, 4, 8], key_count: 10, ..series_spec() };
    assert_eq!(times(default.clone(), 20), [0, -60, -120, -180, -240].repeat(4));
    assert_eq!(times(default.clone(), 640)[64..], [0; 576]);
    let last = "AAAAAAAA AAAAAAAA=AAAAAAAA AAAAAAAB=AAAAAAAA AAAAAAAC=AAAAAAAC AAAAAAAD=AAAAAAAD YCSBTS=1499999760";
    assert_eq!(list_points(default, 20)[19], last);
}

#[test]
fn values_are_of_their_type() {
    let bits = |value_type| {
        let load = create_load(TimeSeriesSpec { value_type, ..series_spec() });
        (0..1_000).map(|index| format_write(&fill_operation(&load, index)).1).collect::<Vec<_>>()
    };
    let whole = |bits: i64| i32::try_from(bits).is_ok();
    let float = |bits: i64| (0.0..100_000.0).contains(&f64::from_bits(bits as u64));
    assert!(bits(ValueType::Integers).iter().all(|&b| whole(b)));
    assert!(bits(ValueType::Floats).iter().all(|&b| float(b) && !whole(b)));
    let mixed = bits(ValueType::MixedNumbers);
    assert!(mixed.iter().all(|&b| float(b) || whole(b)));
    assert!((450..550).contains(&mixed.iter().filter(|&&b| whole(b)).count()));
}

/// YCSB with `recordcount=20` and four series writes six time steps, beginning one step before the start, each once and
/// in any order.
#[test]
fn shuffled_time_visits_ycsbs_steps() {
    let all = list_points(TimeSeriesSpec { random_time_order: true, delayed_series: 0.0, ..series_spec() }, 48);
    let mut steps = all.iter().step_by(4).map(|p| p.rsplit_once('=').unwrap().1.parse().unwrap()).collect::<Vec<i64>>();
    let in_order: Vec<i64> = (0..12).map(|step| START - 60 + 60 * step).collect();
    assert_ne!(steps, in_order);
    steps[..6].sort_unstable();
    steps[6..].sort_unstable();
    assert_eq!(steps, in_order);
    assert!(all.chunks(4).all(|step| step.iter().all(|p| p[p.len() - 10..] == step[0][step[0].len() - 10..])));
}

#[test]
fn queries_have_ycsbs_clauses() {
    let reads = create_run(TimeSeriesSpec { mix: mix_of(Kind::Read), delayed_series: 0.0, ..series_spec() });
    let of_ycsb: BTreeSet<String> =
        list_points(TimeSeriesSpec { delayed_series: 0.0, ..series_spec() }, 20).into_iter().collect();
    let generated: BTreeSet<String> = (0..2_000).map(|index| format_query(&fill_operation(&reads, index))).collect();
    assert_eq!(generated, of_ycsb, "queries request exactly the points of the complete steps");
    let spans = TimeSeriesSpec {
        query_span: 3_600,
        downsampling: Some(Downsampling { function: "SUM".to_owned(), interval: 300 }),
        group_by: Some(GroupBy { function: "max".to_owned(), tags: vec![true, false] }),
        delayed_series: 0.0,
        records: Some(4),
        ..series_spec()
    };
    let text = |mix, index| format_query(&fill_operation(&create_run(TimeSeriesSpec { mix, ..spans.clone() }), index));
    for kind in [Kind::Read, Kind::Scan] {
        let clauses = text(mix_of(kind), 3).split_once(' ').unwrap().1.replace("=AAAAAAAB", "=AAAAAAAA");
        assert_eq!(clauses, "AAAAAAAA AAAAAAAB=AAAAAAAA YCSBTS=1500000000,1500003600 YCSBGB=max YCSBDS=SUM300");
    }
    let deletes = create_run(TimeSeriesSpec { mix: mix_of(Kind::Delete), ..spans.clone() });
    assert_eq!(
        String::from_utf8(fill_operation(&deletes, 3).key).unwrap(),
        "AAAAAAAB:AAAAAAAA:AAAAAAAB=AAAAAAAB:YCSBTS=1500000000,1500003600"
    );
    let random = TimeSeriesSpec { query_random_span: true, group_by: None, downsampling: None, ..spans };
    let random = create_run(TimeSeriesSpec { mix: mix_of(Kind::Read), ..random });
    let ends: BTreeSet<i64> = (0..1_000)
        .map(|index| {
            format_query(&fill_operation(&random, index)).rsplit_once(',').unwrap().1.parse::<i64>().unwrap() - START
        })
        .collect();
    assert_eq!(ends, (0..60).map(|n| n * 60).collect());
}

#[test]
fn deletes_without_a_span_are_ycsbs() {
    let deletes = create_run(TimeSeriesSpec { mix: mix_of(Kind::Delete), ..series_spec() });
    assert_eq!(
        String::from_utf8(fill_operation(&deletes, 5).key).unwrap(),
        "AAAAAAAA:AAAAAAAA=AAAAAAAA:AAAAAAAB=AAAAAAAB:YCSBTS=1500000060"
    );
}
