//! Tests with logs that grow, end in the middle of a line, are truncated by a restart, or come from other collectors.

use std::fs;
use std::io::Write;

use super::*;

const START: &str = "[2026-11-27T17:17:48.074+0000][0.015s][info][gc] Using G1\n";

/// Creates a log in a temporary file, and opens the collections of a cluster with one node, which writes this log.
fn watch_log(name: &str, text: &str) -> (PathBuf, ClusterCollections) {
    let path = std::env::temp_dir().join(format!("loadstone-gc-{}-{name}.log", std::process::id()));
    fs::write(&path, text).unwrap();
    let paths = [("a:1".to_owned(), path.to_str().unwrap().to_owned())].into();
    let collections = ClusterCollections::from_paths(["a:1".to_owned()].into_iter(), &paths);
    (path, collections)
}

fn append_text(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Formats the log line of a collection that freed 39 MiB.
fn format_pause(number: u32, time: &str) -> String {
    let kind = "Pause Young (Normal) (G1 Evacuation Pause)";
    format!("[2026-11-27T17:17:53.295+0000][5.236s][info][gc] GC({number}) {kind} 63M->24M(1024M) {time}\n")
}

#[test]
fn pauses_since_the_start_are_added() {
    let (path, mut collections) = watch_log("sums", &format!("{START}{}", format_pause(0, "900.000ms")));
    append_text(&path, &format_pause(1, "800.000ms"));
    collections.begin_interval();
    append_text(&path, &(format_pause(2, "10.000ms") + "[1s][info][gc] GC(3) Concurrent Mark Cycle 22.714ms\n"));
    append_text(&path, "[1s][info][gc,start] GC(4) Pause Young (Normal) (G1 Evacuation Pause)\n");
    append_text(&path, "[1s][info][gc] GC(4) Pause Remark 27M->27M(1024M) 30.000ms\r\n");
    let garbage = collections.read_interval();
    let expected = Garbage { count: 2.0, max_ms: 30.0, sum_ms: 40.0, deviation_ms: 10.0, bytes: f64::from(39 << 20) };
    assert_eq!(garbage, expected);
    assert_eq!(collections.read_interval(), Garbage::default());
    append_text(&path, &format_pause(5, "1.500ms"));
    let garbage = collections.read_interval();
    assert_eq!((garbage.count, garbage.sum_ms), (1.0, 1.5));
    assert_eq!((collections.total().count, collections.total().max_ms), (3.0, 30.0));
    assert_eq!(collections.describe_unknown(), None);
    fs::remove_file(path).unwrap();
}

#[test]
fn half_a_line_counts_once_complete() {
    let (path, mut collections) = watch_log("half", START);
    let line = format_pause(0, "2.000ms");
    append_text(&path, &line[..line.len() - 5]);
    collections.begin_interval();
    assert_eq!(collections.read_interval(), Garbage::default());
    append_text(&path, &line[line.len() - 5..]);
    assert_eq!((collections.read_interval().count, collections.total().sum_ms), (1.0, 2.0));
    fs::remove_file(path).unwrap();
}

#[test]
fn log_that_begins_again_has_no_counts() {
    let later = START.replace("17:17:48", "17:18:20");
    let longer = later.clone() + &format_pause(0, "3.000ms").repeat(9);
    for (name, text) in [("cut", START[..20].to_owned()), ("restarted", later), ("outgrown", longer)] {
        let (path, mut collections) = watch_log(name, START);
        collections.begin_interval();
        append_text(&path, &format_pause(0, "2.000ms"));
        let garbage = collections.read_interval();
        assert_eq!((garbage.count, garbage.sum_ms), (1.0, 2.0), "{name}");
        fs::write(&path, text).unwrap();
        for _ in 0..2 {
            assert_eq!((collections.read_interval(), collections.total()), Default::default(), "{name}");
        }
        assert!(collections.describe_unknown().unwrap().contains("began again"), "{name}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn deleted_or_foreign_logs_have_no_counts() {
    let (path, mut collections) = watch_log("deleted", START);
    fs::remove_file(path).unwrap();
    assert_eq!(collections.read_interval(), Garbage::default());
    assert!(collections.describe_unknown().unwrap().contains("cannot be read"));
    let (path, mut collections) = watch_log("long", START);
    append_text(&path, &"x".repeat(CHUNK_BYTES));
    assert_eq!(collections.read_interval(), Garbage::default());
    assert!(collections.describe_unknown().unwrap().contains("a line is too long"));
    fs::remove_file(path).unwrap();
    let paths = [("a:1".to_owned(), std::env::temp_dir().to_str().unwrap().to_owned())].into();
    let collections = ClusterCollections::from_paths(["a:1".to_owned()].into_iter(), &paths);
    assert!(collections.describe_unknown().unwrap().contains("is not a file"));
}

#[test]
fn only_collectors_with_pauses_are_counted() {
    let line = |collector: &str| START.replace("G1", collector);
    for (text, reason) in [
        (line("The Z Garbage Collector"), "the collector The Z Garbage Collector has no pauses"),
        (line("Shenandoah"), "the collector Shenandoah has no pauses"),
        ("2021-04-20T10:00:00.1+0000: 1.2: [GC (Allocation Failure) 0.01 secs]\n".to_owned(), "is not a log"),
        (START.trim_end().to_owned(), "is not a log"),
        (String::new(), "is not a log"),
    ] {
        let (path, collections) = watch_log("collector", &text);
        assert!(collections.describe_unknown().unwrap().contains(reason), "{text}");
        fs::remove_file(path).unwrap();
    }
    let (path, mut collections) = watch_log("cms", &line("Concurrent Mark Sweep"));
    append_text(&path, "[1s][info][gc] GC(1) Pause Young (Allocation Failure) 272M->12M(1014M) 11.250ms\n");
    append_text(&path, "[1s][info][gc] GC(2) Pause Initial Mark 12M->12M(1014M) 0.250ms\n");
    assert_eq!((collections.read_interval().count, collections.total().sum_ms), (2.0, 11.5));
    fs::remove_file(path).unwrap();
}

#[test]
fn one_node_without_a_log_hides_all_counts() {
    let (path, _) = watch_log("partial", START);
    let paths = [("a:1".to_owned(), path.to_str().unwrap().to_owned())].into();
    let addresses = ["a:1".to_owned(), "b:1".to_owned()].into_iter();
    let mut collections = ClusterCollections::from_paths(addresses, &paths);
    append_text(&path, &format_pause(0, "2.000ms"));
    assert_eq!((collections.read_interval(), collections.total()), Default::default());
    assert!(collections.describe_unknown().unwrap().contains("runs no node at b:1"));
    fs::remove_file(path).unwrap();
}
