use super::*;
use crate::keys::{InsertOrder, KeyDistribution};
use crate::row::Projection;
use crate::segment::Segment;
use crate::value_length::Length;
use crate::version::{self, Origin, Version};
use std::hash::{DefaultHasher, Hash, Hasher};

fn core_spec() -> CoreSpec {
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
    workload.fill_operation(index, &mut operation);
    let mut hasher = DefaultHasher::new();
    (index, operation.kind, &operation.key, operation.row.bytes(), operation.scan_count).hash(&mut hasher);
    hasher.finish()
}

/// The operations of a trial do not depend on the clients that perform them: every division into segments gives the
/// same set of operations.
#[test]
fn segments_add_up_to_the_whole() {
    let workload = CoreRun::new(core_spec(), 5).unwrap();
    let whole = (0..10_000).fold(0u64, |sum, i| sum.wrapping_add(hash_of(&workload, i)));
    for n in [1, 2, 7] {
        let mut sum = 0u64;
        for k in 0..n {
            // Each segment runs in a separate process, which builds its workload from the same spec.
            let own = CoreRun::new(core_spec(), 5).unwrap();
            let segment = Segment { k, n };
            for step in 0..segment.share_of_total(10_000) {
                sum = sum.wrapping_add(hash_of(&own, segment.global_index(step)));
            }
        }
        assert_eq!(sum, whole, "{n} segments");
    }
    let other = CoreRun::new(core_spec(), 6).unwrap();
    assert_ne!((0..10_000).fold(0u64, |sum, i| sum.wrapping_add(hash_of(&other, i))), whole);
}

#[test]
fn run_inserts_continue_without_gap() {
    let workload = CoreRun::new(core_spec(), 5).unwrap();
    let mut operation = Operation::default();
    let mut next = 1_000;
    for index in 0..10_000 {
        workload.fill_operation(index, &mut operation);
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
    let workload = CoreRun::new(CoreSpec { mix, keys, ..core_spec() }, 5).unwrap();
    let mut operation = Operation::default();
    let mut gone = 0;
    for index in 0..9_000 {
        workload.fill_operation(index, &mut operation);
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
    let workload = CoreRun::new(CoreSpec { integrity: true, ..core_spec() }, 5).unwrap();
    let load = CoreLoad::new(CoreSpec { integrity: true, ..core_spec() }, 5);
    let mut operation = Operation::default();
    load.fill_operation(3, &mut operation);
    let stored = operation.row.clone();
    assert_eq!(stored.fields().flatten().next().unwrap().0, b"field1", "Java's order");
    assert_eq!(workload.verify_read(&operation, &stored), Some(Check::Right));
    let mut bytes = stored.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let mut wrong = Row::default();
    wrong.decode_fields(&bytes, Projection::All).unwrap();
    assert_eq!(workload.verify_read(&operation, &wrong), Some(Check::Wrong));
    let mut short = Row::default();
    short.decode_fields(stored.bytes(), Projection::One(b"field3")).unwrap();
    assert_eq!(workload.verify_read(&operation, &short), Some(Check::Wrong), "a missing field is wrong");
    assert_eq!(workload.verify_read(&operation, &Row::default()), Some(Check::Empty));
}

#[test]
fn versions_name_the_write_of_every_value() {
    let spec = CoreSpec { versions: true, ..core_spec() };
    let (workload, load) = (CoreRun::new(spec.clone(), 5).unwrap(), CoreLoad::new(spec, 5));
    let mut operation = Operation::default();
    load.fill_operation(3, &mut operation);
    let stored = operation.row.clone();
    let version = |key: &[u8], name: &[u8], value: &[u8]| match workload.find_origin(key, name, value) {
        Some(Origin::Own(version)) => Some(version),
        _ => None,
    };
    assert_eq!(stored.fields().count(), 10);
    for (name, value) in stored.fields().flatten() {
        assert_eq!(version(&operation.key, name, value), Some(Version::from_load(3)));
    }
    assert_eq!(workload.verify_read(&operation, &stored), Some(Check::Right));
    let mut bytes = stored.bytes().to_vec();
    let start = bytes.windows(4).position(|window| window == b"L000").unwrap();
    bytes[start + 12] ^= 1;
    let mut wrong = Row::default();
    wrong.decode_fields(&bytes, Projection::All).unwrap();
    assert_eq!(workload.verify_read(&operation, &wrong), Some(Check::Wrong));
    load.fill_operation(4, &mut operation);
    assert_eq!(workload.verify_read(&operation, &stored), Some(Check::Wrong), "another record's");
    let mut written = 0;
    for index in 0..200 {
        workload.fill_operation(index, &mut operation);
        if matches!(operation.kind, Kind::Insert | Kind::Update | Kind::ReadModifyWrite) {
            for (name, value) in operation.row.fields().flatten() {
                assert_eq!(version(&operation.key, name, value), Some(Version::from_run(index)));
                written += 1;
            }
        }
    }
    assert!(written > 200, "{written} values");
}

/// Collects the write operations at `indices`.
fn collect_writes(workload: &impl Workload<Operation = Operation>, indices: std::ops::Range<u64>) -> Vec<Operation> {
    let mut writes = Vec::new();
    for index in indices {
        let mut operation = Operation::default();
        workload.fill_operation(index, &mut operation);
        if matches!(operation.kind, Kind::Insert | Kind::Update | Kind::ReadModifyWrite) {
            writes.push(operation);
        }
    }
    writes
}

#[test]
fn expected_values_equal_written_values() {
    for field_length in
        [Length::Constant { bytes: 100 }, Length::Uniform { min: 21, max: 90 }, Length::Constant { bytes: 70_000 }]
    {
        for write_all_fields in [false, true] {
            let spec = CoreSpec { versions: true, write_all_fields, field_length: field_length.clone(), ..core_spec() };
            let load = CoreLoad::new(spec.clone(), 5);
            let run = CoreRun::new(spec, 5).unwrap().with_number(Some(77));
            let (mut expected, mut values) = (Vec::new(), 0);
            let writes = collect_writes(&run, 0..60).into_iter().map(|write| (Version::from_run(write.index), write));
            let loads = collect_writes(&load, 0..9).into_iter().map(|write| (Version::from_load(write.index), write));
            for (version, write) in writes.chain(loads) {
                for (name, value) in write.row.fields().flatten() {
                    let field = run.field_names().iter().position(|own| own.as_bytes() == name).unwrap();
                    assert!(run.expect_value(version, write.record, &write.key, field, &mut expected));
                    assert_eq!(expected, value);
                    values += 1;
                }
                assert!(!run.expect_value(version, 2_000_000, &write.key, 0, &mut expected), "another record");
            }
            assert!(values > 90);
        }
    }
}

#[test]
fn whole_values_of_sampled_reads_are_compared() {
    let spec = CoreSpec { versions: true, ..core_spec() };
    let (run, load) = (CoreRun::new(spec.clone(), 5).unwrap().with_number(Some(77)), CoreLoad::new(spec.clone(), 5));
    let mut operation = Operation::default();
    load.fill_operation(3, &mut operation);
    let right = operation.row.clone();
    let mut zeroed = Row::default();
    for (name, value) in right.fields().flatten() {
        zeroed.push_with(name, value.len(), |out| out[..version::LEN].copy_from_slice(&value[..version::LEN]));
    }
    let compared: Vec<u64> = (0..10_000).filter(|&index| run.is_value_compared(index)).collect();
    assert!((500..750).contains(&compared.len()), "{} of 10,000", compared.len());
    operation.index = compared[0];
    assert_eq!(run.verify_read(&operation, &right), Some(Check::Right));
    assert_eq!(run.verify_read(&operation, &zeroed), Some(Check::Wrong), "a right version and a wrong remainder");
    operation.index = (0..99).find(|&index| !run.is_value_compared(index)).unwrap();
    assert_eq!(run.verify_read(&operation, &zeroed), Some(Check::Right), "not in the sample");
}

#[test]
fn values_of_two_runs_share_no_remainder() {
    let spec = CoreSpec { versions: true, ..core_spec() };
    let writes = |number| collect_writes(&CoreRun::new(spec.clone(), 5).unwrap().with_number(Some(number)), 0..200);
    for (first, second) in writes(1).iter().zip(writes(2)) {
        assert_eq!((&first.key, first.record), (&second.key, second.record), "operations do not depend on the number");
        for ((name, value), (second_name, second_value)) in
            first.row.fields().flatten().zip(second.row.fields().flatten())
        {
            assert_eq!(name, second_name);
            assert_ne!(value[version::LEN..], second_value[version::LEN..]);
        }
    }
}

#[test]
fn versions_are_refused_where_values_cannot_carry_them() {
    let with = |field_length| CoreSpec { versions: true, field_length, ..core_spec() }.check_versions();
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
    let both = CoreSpec { versions: true, integrity: true, ..core_spec() };
    assert!(both.check_versions().unwrap_err().message.contains("mutually exclusive"));
    assert_eq!(CoreSpec { versions: false, ..both }.check_versions(), Ok(()));
}
