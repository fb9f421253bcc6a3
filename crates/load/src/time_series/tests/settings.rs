//! Tests of settings: refusals and defaults.

use super::*;

#[test]
fn impossible_settings_are_refused_by_name() {
    let ok = series_spec;
    let by = |tags| Some(GroupBy { function: "sum".to_owned(), tags });
    let checked = TimeSeriesSpec { integrity: true, value_type: ValueType::Integers, ..ok() };
    for (spec, message) in [
        (TimeSeriesSpec { key_count: 0, ..ok() }, "fieldcount must be at least 1, got 0"),
        (TimeSeriesSpec { interval: 0, ..ok() }, "timestampinterval must be at least 1, got 0"),
        (
            TimeSeriesSpec { tag_cardinality: vec![1, 0], ..ok() },
            "tagcardinality must be at least 1 for each tag, got 0 for tag 2",
        ),
        (TimeSeriesSpec { key_length: 0, ..ok() }, "fieldlength must be at least 1, got 0"),
        (
            TimeSeriesSpec { key_length: 1, key_count: 53, ..ok() },
            "fieldlength=1 has too few names for fieldcount: 53 are required",
        ),
        (
            TimeSeriesSpec { tag_value_length: 1, tag_cardinality: vec![60], ..ok() },
            "tagvaluelength=1 has too few names for tagcardinality: 60 are required",
        ),
        (TimeSeriesSpec { key_count: 1 << 40, ..ok() }, "fieldcount must be at most 4294967295, got 1099511627776"),
        (
            TimeSeriesSpec { tag_cardinality: vec![1 << 31, 1 << 31], ..ok() },
            "fieldcount × tagcardinality gives more than 2^63 series",
        ),
        (
            TimeSeriesSpec { random_time_order: true, records: None, ..ok() },
            "randomwritetimestamporder shuffles at most 16777216 time steps, but recordcount gives 536870912",
        ),
        (TimeSeriesSpec { sparsity: 1.0, ..ok() }, "sparsity must be from 0 to 0.9999, got 1"),
        (
            TimeSeriesSpec { delayed_intervals: 0, ..ok() },
            "delayedintervals must be at least 1; for no delay, set delayedseries to 0",
        ),
        (TimeSeriesSpec { delayed_series: f64::NAN, ..ok() }, "delayedseries must be a number"),
        (
            TimeSeriesSpec { timestamp_key: "AAAAAAAB".to_owned(), ..ok() },
            "timestampkey, valuekey and the tags must have different names",
        ),
        (TimeSeriesSpec { start: None, ..ok() }, "insertstart, the first timestamp, must be set"),
        (TimeSeriesSpec { integrity: true, ..ok() }, "dataintegrity needs valuetype=integers"),
        (TimeSeriesSpec { query_span: 60, ..checked.clone() }, "dataintegrity needs querytimespan=0"),
        (
            TimeSeriesSpec { group_by: by(vec![true, true]), ..checked.clone() },
            "dataintegrity needs queries without groupbyfunction",
        ),
        (
            TimeSeriesSpec { start: None, ..checked.clone() },
            "dataintegrity needs insertstart: a run at another time would not find what the load wrote",
        ),
    ] {
        assert_eq!(TimeSeriesLoad::new(spec.clone(), 1).err().as_deref(), Some(message));
        assert_eq!(TimeSeriesRun::new(spec, 1).err().as_deref(), Some(message));
    }
    let mix = Mix { read_modify_write: 0.1, ..Mix::default() };
    for (spec, message) in [
        (TimeSeriesSpec { mix, ..ok() }, "readmodifywriteproportion must be 0: time series have no such operation"),
        (
            TimeSeriesSpec { mix: Mix::default(), ..ok() },
            "one of the read, update, insert, scan and delete proportions must be above 0",
        ),
        (
            TimeSeriesSpec { group_by: by(vec![true]), ..ok() },
            "groupbykeys must have a 0 or 1 for each of the 2 tags, got 1",
        ),
        (
            TimeSeriesSpec { keys: KeyDistribution::Latest, ..ok() },
            "requestdistribution must be uniform, sequential, zipfian or hotspot: metrics are not inserted in order",
        ),
        (
            TimeSeriesSpec { scan_length: Length::Uniform { min: 1, max: 0 }, ..ok() },
            "maxscanlength must be at least 1, got 0",
        ),
    ] {
        assert_eq!(TimeSeriesRun::new(spec, 1).err().as_deref(), Some(message));
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
        let spec = TimeSeriesSpec { records, insert_count, ..series_spec() };
        (spec.points_loaded(), spec.count_loaded_points())
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
