use super::*;
use crate::keys::{InsertOrder, KeyDistribution};
use crate::row::Wanted;
use crate::segment::Segment;
use crate::values::Length;
use std::hash::{DefaultHasher, Hash, Hasher};

fn spec() -> CoreSpec {
    CoreSpec {
        table: "usertable".to_owned(),
        records: 1_000,
        insert_start: 0,
        insert_count: 1_000,
        field_count: 10,
        field_name_prefix: "field".to_owned(),
        field_length: Length::Constant { bytes: 100 },
        read_all_fields: true,
        write_all_fields: false,
        integrity: false,
        versions: false,
        mix: Mix { read: 0.5, update: 0.3, insert: 0.1, scan: 0.05, read_modify_write: 0.05, delete: 0.0 },
        keys: KeyDistribution::Latest,
        insert_order: InsertOrder::Hashed,
        zero_padding: 1,
        scan_length: Length::Uniform { min: 1, max: 100 },
        operations: Some(10_000),
        insert_lag: 8,
    }
}

fn hash_of(workload: &impl Workload<Operation = Operation>, index: u64) -> u64 {
    let mut operation = Operation::default();
    workload.fill(index, &mut operation);
    let mut hasher = DefaultHasher::new();
    (index, operation.kind, &operation.key, operation.row.bytes(), operation.scan_count).hash(&mut hasher);
    hasher.finish()
}

/// The operations of a trial do not depend on who performs them: any segmentation gives the same set.
#[test]
fn segments_together_do_exactly_the_operations_of_the_whole() {
    let workload = CoreRun::new(spec(), 5).unwrap();
    let whole = (0..10_000).fold(0u64, |sum, i| sum.wrapping_add(hash_of(&workload, i)));
    for n in [1, 2, 7] {
        let mut sum = 0u64;
        for k in 0..n {
            // Each segment is another process: it builds its own workload from the same spec.
            let own = CoreRun::new(spec(), 5).unwrap();
            let segment = Segment { k, n };
            for step in 0..segment.share(10_000) {
                sum = sum.wrapping_add(hash_of(&own, segment.index(step)));
            }
        }
        assert_eq!(sum, whole, "{n} segments");
    }
    let other = CoreRun::new(spec(), 6).unwrap();
    assert_ne!((0..10_000).fold(0u64, |sum, i| sum.wrapping_add(hash_of(&other, i))), whole);
}

#[test]
fn inserts_of_a_run_take_the_next_numbers_without_gap() {
    let workload = CoreRun::new(spec(), 5).unwrap();
    let mut operation = Operation::default();
    let mut next = 1_000;
    for index in 0..10_000 {
        workload.fill(index, &mut operation);
        if operation.kind == Kind::Insert {
            assert_eq!(operation.record, next);
            assert_eq!(workload.index_of_insert(next - 1_000), Some(index));
            next += 1;
        } else {
            assert!(operation.record < next.saturating_sub(8).max(1_000), "reads stay behind the inserts");
        }
    }
    assert_eq!(next, 2_000);
}

#[test]
fn deletes_move_a_window_over_the_records() {
    let mix = Mix { read: 0.8, insert: 0.1, delete: 0.1, ..Mix::default() };
    let keys = KeyDistribution::Uniform;
    let workload = CoreRun::new(CoreSpec { mix, keys, ..spec() }, 5).unwrap();
    let mut operation = Operation::default();
    let mut gone = 0;
    for index in 0..9_000 {
        workload.fill(index, &mut operation);
        match operation.kind {
            Kind::Delete => {
                assert_eq!(operation.record, gone);
                gone += 1;
            }
            Kind::Read => assert!(operation.record >= gone, "a deleted record is not read"),
            _ => {}
        }
    }
    assert_eq!(gone, 900);
}

#[test]
fn integrity_is_checked_field_by_field() {
    let workload = CoreRun::new(CoreSpec { integrity: true, ..spec() }, 5).unwrap();
    let load = CoreLoad::new(CoreSpec { integrity: true, ..spec() }, 5);
    let mut operation = Operation::default();
    load.fill(3, &mut operation);
    let stored = operation.row.clone();
    assert_eq!(stored.fields().flatten().next().unwrap().0, b"field1", "Java's order");
    assert_eq!(workload.verify(&operation, &stored), Some(Check::Right));
    let mut bytes = stored.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let mut wrong = Row::default();
    wrong.read(&bytes, Wanted::All).unwrap();
    assert_eq!(workload.verify(&operation, &wrong), Some(Check::Wrong));
    let mut short = Row::default();
    short.read(stored.bytes(), Wanted::One(b"field3")).unwrap();
    assert_eq!(workload.verify(&operation, &short), Some(Check::Wrong), "a missing field is wrong");
    assert_eq!(workload.verify(&operation, &Row::default()), Some(Check::Empty));
}

#[test]
fn versions_name_the_write_of_every_value() {
    let spec = CoreSpec { versions: true, ..spec() };
    let (workload, load) = (CoreRun::new(spec.clone(), 5).unwrap(), CoreLoad::new(spec, 5));
    let mut operation = Operation::default();
    load.fill(3, &mut operation);
    let stored = operation.row.clone();
    let version = |key: &[u8], name: &[u8], value: &[u8]| Stamp::of(5, key).read(value, name);
    assert_eq!(stored.fields().count(), 10);
    for (name, value) in stored.fields().flatten() {
        assert_eq!(version(&operation.key, name, value), Some(Version::load(3)));
    }
    assert_eq!(workload.verify(&operation, &stored), Some(Check::Right));
    let mut bytes = stored.bytes().to_vec();
    let start = bytes.windows(4).position(|window| window == b"L000").unwrap();
    bytes[start + 12] ^= 1;
    let mut wrong = Row::default();
    wrong.read(&bytes, Wanted::All).unwrap();
    assert_eq!(workload.verify(&operation, &wrong), Some(Check::Wrong));
    load.fill(4, &mut operation);
    assert_eq!(workload.verify(&operation, &stored), Some(Check::Wrong), "another record's");
    let mut written = 0;
    for index in 0..200 {
        workload.fill(index, &mut operation);
        if matches!(operation.kind, Kind::Insert | Kind::Update | Kind::ReadModifyWrite) {
            for (name, value) in operation.row.fields().flatten() {
                assert_eq!(version(&operation.key, name, value), Some(Version::run(index)));
                written += 1;
            }
        }
    }
    assert!(written > 200, "{written} values");
}

#[test]
fn versions_are_refused_where_values_cannot_carry_them() {
    let with = |field_length| CoreSpec { versions: true, field_length, ..spec() }.check_versions();
    assert_eq!(with(Length::Constant { bytes: 21 }), Ok(()));
    assert_eq!(with(Length::Histogram { block: 21, counts: vec![1, 2] }), Ok(()));
    for short in [
        Length::Constant { bytes: 20 },
        Length::Uniform { min: 20, max: 100 },
        Length::Zipfian { min: 1, max: 100 },
        Length::Histogram { block: 20, counts: vec![1, 2] },
        Length::Histogram { block: 100, counts: vec![1] },
    ] {
        assert!(with(short).unwrap_err().message.contains("at least 21 bytes"));
    }
    let both = CoreSpec { versions: true, integrity: true, ..spec() };
    assert!(both.check_versions().unwrap_err().message.contains("exclude each other"));
    assert_eq!(CoreSpec { versions: false, ..both }.check_versions(), Ok(()));
}
