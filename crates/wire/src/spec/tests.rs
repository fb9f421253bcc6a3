use super::*;
use proptest::prelude::*;

const SPEC: &str = include_str!("../../fixtures/trial-spec-1.json");

/// Every released version must remain readable.
#[test]
fn a_spec_of_version_1_is_read() {
    let spec = TrialSpec::parse(SPEC).unwrap();
    assert_eq!((spec.store.name.as_str(), spec.clients), ("rocksdb", 8));
    assert_eq!(spec.segment, Segment::default(), "omitted fields have their defaults");
    let WorkSpec::Records(records) = &spec.work else { panic!("{:?}", spec.work) };
    assert_eq!((spec.spec, records.field_count), (2, 10));
    let again = TrialSpec::parse(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!(again, spec, "it is written as version 2, and reads back the same");
}

#[test]
fn fingerprint_covers_operations_alone() {
    let parse = |from: &str, to: &str| {
        let text = SPEC.replace(from, to);
        assert!(from.is_empty() || text != SPEC, "{from} is in the fixture");
        TrialSpec::parse(&text).unwrap()
    };
    let own = parse("", "").fingerprint();
    assert_eq!(own, parse("", "").fingerprint());
    for (from, to) in [
        ("\"seed\": ", "\"seed\": 1"),
        ("\"clients\": 8", "\"clients\": 9"),
        ("\"read\": 0.5", "\"read\": 0.4"),
        ("\"operations\": 1000", "\"operations\": 1001"),
    ] {
        assert_ne!(parse(from, to).fingerprint(), own, "{to}");
    }
    let mut other = parse("", "");
    other.segment = Segment { k: 1, n: 2 };
    other.ledger = Some(LedgerSpec { file: "another".to_owned() });
    other.store.properties.insert("port".to_owned(), "1".to_owned());
    let other = TrialSpec { run: Some(7), lease_ms: Some(5), wait_for_start: true, interval_ms: 7, ..other };
    assert_eq!(other.fingerprint(), own);
}

#[test]
fn invalid_spec_is_refused_with_the_reason() {
    for (from, to, expected) in [
        ("\"spec\": 1", "\"spec\": 3", "version 3"),
        ("\"phase\": \"run\"", "\"phase\": \"load\", \"warmup_seconds\": 1", "warmup_seconds"),
        ("\"clients\": 8", "\"clients\": 0", "at least 1"),
        ("\"clients\": 8", "\"clients\": -1", "cannot be read"),
        ("\"clients\": 8", "\"cleints\": 8", "cleints"),
        ("{\n  \"operations\": 1000\n }", "{}", "never end"),
        ("{\n  \"operations\": 1000\n }", "{\"seconds\": -1}", "seconds"),
        ("\"interval_ms\": 1000", "\"interval_ms\": 0", "interval_ms"),
        ("\"insert_start\": 0", "\"insert_start\": 1", "is beyond work.records"),
        ("\"field_count\": 10", "\"field_count\": 0", "work.field_count"),
        ("\"mode\": \"closed\"", "\"mode\": \"open\", \"rate\": [], \"arrival\": \"uniform\"", "rate"),
    ] {
        let text = SPEC.replace(from, to);
        assert_ne!(text, SPEC, "{from} is in the fixture");
        let error = TrialSpec::parse(&text).unwrap_err();
        assert!(error.message.contains(expected) && error.is_usage(), "{to}: {error}");
    }
}

proptest! {
    /// Invalid input from a broken lab must not crash an engine.
    #[test]
    fn no_text_makes_the_parser_panic(at in 0usize..SPEC.len(), bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
        let mut text = SPEC.as_bytes().to_vec();
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
        let _ = TrialSpec::parse(&String::from_utf8_lossy(&text));
    }
}
