//! Compares the formats with the output of YCSB 0.17.0 for the same latencies.

use std::sync::Arc;

use loadstone_load::Kind::{Cleanup, Insert, Read, ReadModifyWrite, Scan, Update};
use loadstone_load::{Kind, Status};

use super::config::{Exporter, Interval, Reporting};
use super::measure::metrics;
use super::report::{Overall, lines, percentile_label, raw_announcement, raw_text, render};
use super::status::{Progress, StatusLine};
use loadstone_measure::recorder::{Recorder, RecorderShape, StepRecord};
use loadstone_measure::sink::StepTimes;
use loadstone_wire::sink::Sink;

fn reporting(sinks: Vec<Sink>) -> Reporting {
    Reporting {
        sinks,
        interval: Interval::Op,
        percentiles: vec![95.0, 99.0],
        verbose: false,
        each_error: false,
        tracked: Vec::new(),
        exporter: Exporter::Text,
        export_file: None,
        raw_file: None,
        raw_no_summary: false,
        hdr_files: None,
        status_seconds: None,
        label: String::new(),
    }
}

/// A recorder of steps with the given latencies (µs) and completion times (Unix ms).
fn recorder(sinks: &[Sink], steps: &[(Kind, Status, u64, u64)]) -> Vec<Arc<Recorder>> {
    let shape =
        RecorderShape { steps: Kind::COUNT, sinks: sinks.to_vec(), open: false, deadline_ns: u64::MAX, to_unix_ns: 0 };
    let recorder = Recorder::new(&shape, 1);
    for &(kind, status, us, unix_ms) in steps {
        // Latencies are truncated to whole µs, so the fraction must not appear.
        let done = unix_ms * 1_000_000;
        let sent = done - us * 1_000 - 999;
        let times = StepTimes { due: sent, sent, done };
        recorder.record_step(StepRecord { id: kind.step(), status, times, lateness: None, interval: 0 });
    }
    vec![Arc::new(recorder)]
}

fn ok(kind: Kind, points: &[(u64, u64)]) -> Vec<(Kind, Status, u64, u64)> {
    points.iter().map(|&(unix_ms, us)| (kind, Status::Ok, us, unix_ms)).collect()
}

/// Compares with the report of a YCSB run that had the same raw points.
#[test]
fn hdrhistogram_and_raw_report_equals_that_of_ycsb() {
    let sinks = vec![Sink::YcsbHdrUs, Sink::YcsbRaw];
    let mut steps = ok(
        Kind::Read,
        &[(1_795_253_383_625, 4_708), (1_795_253_383_635, 2_141), (1_795_253_383_661, 2_972), (1_795_253_383_662, 861)],
    );
    steps.extend(ok(
        Kind::Update,
        &[
            (1_795_253_383_614, 5_599),
            (1_795_253_383_632, 6_296),
            (1_795_253_383_637, 2_230),
            (1_795_253_383_640, 3_377),
            (1_795_253_383_657, 912),
            (1_795_253_383_658, 1_111),
        ],
    ));
    steps.extend(ok(Kind::Cleanup, &[(1_795_253_383_663, 1)]));
    let reporting = Reporting { raw_file: Some("raw.txt".to_owned()), ..reporting(sinks.clone()) };
    let measured = metrics(&recorder(&sinks, &steps), &reporting);
    let overall = Overall { measured_ns: 263_000_000, succeeded: 10, ..Overall::default() };
    let report = render(&lines(&overall, &measured, &reporting), Exporter::Text);
    let output = raw_announcement(&measured, &reporting) + &report;
    assert_eq!(output, include_str!("../fixtures/ycsb/raw2.out"));
    assert_eq!(raw_text(&measured, &reporting), include_str!("../fixtures/ycsb/raw.txt"));
}

#[test]
fn metrics_are_in_the_order_of_javas_map() {
    let order = |kinds: &[(Kind, Status)]| {
        let steps: Vec<_> = kinds.iter().map(|&(kind, status)| (kind, status, 5, 1_000)).collect();
        let sinks = [Sink::YcsbHdrUs];
        let measured = metrics(&recorder(&sinks, &steps), &reporting(sinks.to_vec()));
        measured.into_iter().map(|metric| metric.name).collect::<Vec<_>>().join(" ")
    };
    let good = |kinds: &[Kind]| order(&kinds.iter().map(|&kind| (kind, Status::Ok)).collect::<Vec<_>>());
    assert_eq!(good(&[Insert, Cleanup]), "CLEANUP INSERT");
    assert_eq!(good(&[Read, Update, Cleanup]), "READ CLEANUP UPDATE");
    assert_eq!(good(&[Read, Insert, Cleanup]), "READ CLEANUP INSERT");
    assert_eq!(good(&[Insert, Scan, Cleanup]), "CLEANUP INSERT SCAN");
    assert_eq!(good(&[Read, Update, ReadModifyWrite, Cleanup]), "READ READ-MODIFY-WRITE CLEANUP UPDATE");
    assert_eq!(
        order(&[
            (Read, Status::Ok),
            (Read, Status::NotFound),
            (Update, Status::Ok),
            (Update, Status::Error),
            (ReadModifyWrite, Status::Ok),
            (Cleanup, Status::Ok),
        ]),
        "READ UPDATE-FAILED READ-MODIFY-WRITE CLEANUP UPDATE READ-FAILED"
    );
}

#[test]
fn failed_kind_is_listed_with_zero_operations() {
    let sinks = [Sink::YcsbHdrUs];
    let reporting = reporting(sinks.to_vec());
    let measured = metrics(&recorder(&sinks, &[(Kind::Read, Status::NotFound, 7, 1_000)]), &reporting);
    let text = render(
        &lines(&Overall { measured_ns: 1_000_000_000, succeeded: 0, ..Overall::default() }, &measured, &reporting),
        Exporter::Text,
    );
    for line in [
        "[READ], Operations, 0",
        "[READ], AverageLatency(us), NaN",
        "[READ], MinLatency(us), 9223372036854775807",
        "[READ], MaxLatency(us), 0",
        "[READ], Return=NOT_FOUND, 1",
        "[READ-FAILED], Operations, 1",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in\n{text}");
    }
}

/// Compares with the output of `HdrHistogram` 2.1.4 for the values from 1 to 10000 µs, each recorded once.
#[test]
fn percentiles_are_those_of_javas_library() {
    let sinks = [Sink::YcsbHdrUs];
    let steps: Vec<_> = (1..=10_000).map(|us| (Kind::Read, Status::Ok, us, 100_000)).collect();
    let mut reporting = reporting(sinks.to_vec());
    reporting.percentiles = vec![50.0, 95.0, 99.0, 99.9];
    let measured = metrics(&recorder(&sinks, &steps), &reporting);
    let text = render(
        &lines(&Overall { measured_ns: 1, succeeded: 1, ..Overall::default() }, &measured, &reporting),
        Exporter::Text,
    );
    for line in [
        "[READ], AverageLatency(us), 5000.898",
        "[READ], MaxLatency(us), 10007",
        "[READ], 50thPercentileLatency(us), 5003",
        "[READ], 95thPercentileLatency(us), 9503",
        "[READ], 99thPercentileLatency(us), 9903",
        "[READ], 99.9PercentileLatency(us), 9991",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} in\n{text}");
    }
}

#[test]
fn json_is_formatted_as_by_jackson() {
    let sinks = [Sink::YcsbHdrUs];
    let reporting = reporting(sinks.to_vec());
    let measured = metrics(&recorder(&sinks, &ok(Kind::Read, &[(1_000, 5)])), &reporting);
    let all = lines(&Overall { measured_ns: 197_000_000, succeeded: 10, ..Overall::default() }, &measured, &reporting);
    let array = render(&all, Exporter::JsonArray);
    assert!(array.starts_with(
        "[ {\n  \"metric\" : \"OVERALL\",\n  \"measurement\" : \"RunTime(ms)\",\n  \"value\" : 197\n}, {\n"
    ));
    assert!(array.contains("\"value\" : 50.76142131979695\n") && array.ends_with("\n} ]"));
    assert!(serde_json::from_str::<serde_json::Value>(&array).is_ok());
    let stream = render(&all, Exporter::Json);
    assert!(stream.contains("\n} {\n") && stream.ends_with('}'));
}

#[test]
fn status_line_covers_only_its_interval() {
    let sinks = [Sink::YcsbHdrUs];
    let reporting = Reporting { label: "LBL ".to_owned(), ..reporting(sinks.to_vec()) };
    let recorders = recorder(&sinks, &ok(Kind::Read, &[(1_000, 4_708)]));
    let mut line = StatusLine::default();
    let at = |elapsed_ms: u64, done| Progress {
        elapsed_ns: elapsed_ms * 1_000_000,
        interval_ns: 1_000_000_000,
        done,
        of: Some(100),
    };
    let first = line.next("2026-11-21 09:30:06:491", at(1_000, 1), &metrics(&recorders, &reporting), &reporting);
    assert_eq!(
        first,
        "LBL 2026-11-21 09:30:06:491 1 sec: 1 operations; 1 current ops/sec; est completion in 1 minute \
         [READ: Count=1, Max=4711, Min=4708, Avg=4710, 90=4711, 99=4711, 99.9=4711, 99.99=4711] "
    );
    let second = line.next("t", at(2_000, 1), &metrics(&recorders, &reporting), &reporting);
    assert_eq!(
        second,
        "LBL t 2 sec: 1 operations; 0 current ops/sec; est completion in 3 minutes \
         [READ: Count=0, Max=0, Min=9223372036854775807, Avg=NaN, 90=0, 99=0, 99.9=0, 99.99=0] "
    );
    let empty = StatusLine::default().next("t", at(0, 0), &[], &reporting);
    assert_eq!(empty, "LBL t 0 sec: 0 operations; ");
}

#[test]
fn rate_of_a_short_interval_is_finite() {
    let reporting = reporting(vec![]);
    let line = |interval_ns| {
        let progress = Progress { elapsed_ns: 2_000_000_000, interval_ns, done: 300, of: None };
        StatusLine::default().next("t", progress, &[], &reporting)
    };
    assert_eq!(line(500_000), "t 2 sec: 300 operations; 600000 current ops/sec; ");
    assert_eq!(line(0), "t 2 sec: 300 operations; ");
}

#[test]
fn whole_percentiles_are_labelled_with_english_ordinals() {
    let label = |percentile| percentile_label(percentile).replace("PercentileLatency(us)", "");
    let whole = [0., 1., 2., 3., 4., 10., 11., 12., 13., 21., 22., 23., 50., 95., 99., 100., 101., 111., 112., 121.];
    let labels = whole.map(label).join(" ");
    assert_eq!(
        labels,
        "0th 1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 23rd 50th 95th 99th 100th 101st 111th 112th 121st"
    );
    assert_eq!(label(99.9), "99.9");
    assert_eq!(label(99.99), "99.99");
    assert_eq!(label(0.5), "0.5");
    assert_eq!(label(1e-5), "1.0E-5");
    assert_eq!(label(1e10), "2147483647th");
    assert_eq!(label(-10.0), "-10th");
    assert_eq!(label(f64::NAN), "NaN");
    assert_eq!(label(f64::INFINITY), "Infinity");
    assert_eq!(percentile_label(95.0), "95thPercentileLatency(us)");
}
