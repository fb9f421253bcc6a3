//! The counts of operations that fail, are retried, or do not find a record, and their entries in a ledger.

use super::*;

#[test]
fn missing_record_fails_only_after_an_acknowledged_insert() {
    // Reads find only loaded records. An insert takes 5 ms, and a read takes 1 ms.
    let records = 1_000;
    let script: Script =
        Rc::new(move |key| (MS, if parse_number(key) < records { Status::Ok } else { Status::NotFound }));
    let mix = Mix { read: 0.5, insert: 0.5, ..Mix::default() };
    let keys = KeyDistribution::Latest;
    // Without a lag, reads request records whose insert has only just been claimed.
    let base = CoreSpec { records, insert_count: records, keys, insert_lag: 0, ..core_spec(mix, 400) };
    let reads = |clients, insert: Status| {
        let inserts: Script = Rc::new(move |_| (5 * MS, insert));
        let eager = CoreRun::new(base.clone(), 3).unwrap();
        let run = run_workload(eager, &Setting { inserts: Some(&inserts), ..Setting::new(None, clients) }, &script);
        [Status::NotYet, Status::NotFound].map(|status| run.count_operations(Kind::Read, status))
    };
    let [not_yet, not_found] = reads(8, Status::Ok);
    assert!(not_yet > 0, "some inserts were in progress");
    assert!(not_found > 0, "and some were acknowledged and lost");
    // A single client cannot overtake itself: a record that it does not find is really missing.
    assert_eq!(reads(1, Status::Ok)[0], 0);
    // After a timeout, the record may or may not exist, so its absence is not a failure.
    for clients in [1, 8] {
        let [not_yet, not_found] = reads(clients, Status::Timeout);
        assert!(not_yet > 0 && not_found == 0, "{not_yet} {not_found}");
    }
}

#[test]
fn read_overtaken_by_a_delete_is_not_yet() {
    // Reads never find a record.
    let script: Script = Rc::new(|_| (MS, Status::NotFound));
    let mix = Mix { read: 0.25, read_modify_write: 0.25, delete: 0.5, ..Mix::default() };
    // Few records remain at the end, so that requests are for records that are deleted next.
    let few = CoreSpec { records: 210, insert_count: 210, insert_lag: 0, operations: Some(400), ..core_spec(mix, 400) };
    // The run is wrapped as in a trial: with a wrapper that does not forward `index_of_delete`, every record would
    // count as missing.
    let workload = || RecordsOf::Run(CoreRun::new(few.clone(), 3).unwrap());
    let counted = |clients| {
        let run = simulate_load(workload(), None, clients, Segment::default(), 0, &script);
        let count = |kind, status| run.service_readings().get(&(kind, status)).map_or(0, Reading::count);
        assert_eq!(count(Kind::Delete, Status::NotFound), 200, "a delete cannot overtake its own read");
        assert!(count(Kind::Read, Status::NotFound) > 0);
        let totals = run.totals();
        assert_eq!((totals.succeeded, totals.count_failed() + totals.not_yet), (0, 400));
        // The first half of a pair is a read. A delete that overtakes the first half also overtakes the second half.
        assert_eq!(count(Kind::Read, Status::NotYet), totals.not_yet);
        [totals.not_yet, count(Kind::Update, Status::NotYet)]
    };
    assert!(counted(8).into_iter().all(|overtaken| overtaken > 0));
    // A single client cannot overtake itself.
    assert_eq!(counted(1), [0, 0]);
}

#[test]
fn pause_after_a_failure_is_not_measured() {
    let script: Script =
        Rc::new(|key| (MS, if parse_number(key) < 3 { Status::ServiceUnavailable } else { Status::Ok }));
    let run = simulate_load(read_only_run(10), None, 1, Segment::default(), 0, &script);
    assert_eq!(run.elapsed_ns, 10 * MS + 3 * Scripted::REST_NS);
    let failed = &run.service_readings()[&(Kind::Read, Status::ServiceUnavailable)];
    assert_eq!(*failed, collect_reading([MS; 3].into_iter()));
}

#[test]
fn retried_insert_is_one_operation() {
    let attempt = |retries, stop, failing: u64| {
        let left = std::cell::Cell::new(failing);
        let script: Script = Rc::new(move |key| {
            let fails = parse_number(key) == 10 && left.get() > 0;
            left.set(left.get() - u64::from(fails));
            (MS, if fails { Status::ServiceUnavailable } else { Status::Ok })
        });
        let load = CoreLoad::new(core_spec(Mix::default(), 100), 1);
        let insert_policy = RetryPolicy { retries, interval_ns: 10 * MS, stop, delays: None };
        let run = run_workload(load, &Setting { insert_policy, ..Setting::new(None, 1) }, &script);
        let failed = run.count_operations(Kind::Insert, Status::ServiceUnavailable);
        assert!(run.elapsed_ns >= (run.count_retried() + failed) * Scripted::REST_NS, "the client rests after each");
        let reason = run.task.scheduler.failure().map(ToString::to_string);
        (run.count_operations(Kind::Insert, Status::Ok), failed, run.count_retried(), reason)
    };
    let (ok, failed, retried, reason) = attempt(2, true, 3);
    assert_eq!((ok, failed, retried), (10, 1, 2));
    assert_eq!(reason.unwrap(), "insert of user10 failed with SERVICE_UNAVAILABLE: scripted SERVICE_UNAVAILABLE");
    assert_eq!(attempt(0, false, 1), (99, 1, 0, None));
    assert_eq!(attempt(2, true, 2), (100, 0, 2, None), "the third attempt succeeds");
}

#[test]
fn ledger_records_each_write_once() {
    let directory = tempfile::tempdir().unwrap();
    let mix = Mix { read: 0.2, update: 0.4, insert: 0.2, read_modify_write: 0.2, ..Mix::default() };
    let core = CoreSpec { versions: true, field_length: Length::Constant { bytes: 30 }, ..core_spec(mix, 200) };
    let workload = || CoreRun::new(core.clone(), 1).unwrap();
    // Every tenth call is slow, and every eleventh call times out.
    let calls = std::cell::Cell::new(0u64);
    let script: Script = Rc::new(move |_| {
        calls.set(calls.get() + 1);
        match calls.get() {
            n if n % 10 == 0 => (150 * MS, Status::Ok),
            n if n % 11 == 0 => (MS, Status::Timeout),
            _ => (MS, Status::Ok),
        }
    });
    let file = directory.path().join("ledger").display().to_string();
    let run = run_workload(workload(), &Setting { ledger: Some(&file), ..Setting::new(None, 3) }, &script);
    let ledger = run.task.work.ledger.as_ref().unwrap();
    ledger.settle_writes();
    let steps = [Kind::Update, Kind::Insert];
    let counts = |status| steps.map(|step| run.count_operations(step, status)).iter().sum::<u64>();
    let states: Vec<WriteState> =
        (0..200).filter_map(|index| workload().write_number(index)).map(|n| ledger.state(n)).collect();
    let in_state = |expected| states.iter().filter(|&&state| state == expected).count() as u64;
    assert_eq!(states.len(), 160);
    assert_eq!(
        (in_state(WriteState::Acknowledged), in_state(WriteState::Maybe)),
        (counts(Status::Ok), counts(Status::Timeout))
    );
    assert!(in_state(WriteState::Maybe) > 5, "{states:?}");
    let exceptions: Vec<_> = ledger.exceptions().collect();
    for exception in &exceptions {
        let ok = exception.status == Some(Status::Ok);
        let state = ledger.state(workload().write_number(exception.index).unwrap());
        assert_eq!(state, if ok { WriteState::Acknowledged } else { WriteState::Maybe });
        assert!(
            exception.done > exception.sent && (!ok || exception.done - exception.sent <= 150 * MS),
            "{exception:?}"
        );
    }
    let slow = exceptions.iter().filter(|exception| exception.status == Some(Status::Ok)).count();
    assert!(slow > 5 && exceptions.len() - slow == in_state(WriteState::Maybe) as usize, "{exceptions:?}");
}

#[test]
fn write_delayed_by_its_client_is_not_slow() {
    let directory = tempfile::tempdir().unwrap();
    let mix = Mix { update: 1.0, ..Mix::default() };
    let core = CoreSpec { versions: true, field_length: Length::Constant { bytes: 30 }, ..core_spec(mix, 100) };
    let (file, pace) = (directory.path().join("ledger").display().to_string(), constant_rate(10_000.0));
    // The last operation is due after 10 ms, but sent after 89 ms.
    let script: Script = Rc::new(|_| (9 * MS / 10, Status::Ok));
    let setting = Setting { ledger: Some(&file), ..Setting::new(Some(&pace), 1) };
    let run = run_workload(CoreRun::new(core, 1).unwrap(), &setting, &script);
    assert!(run.elapsed_ns >= 90 * MS);
    assert_eq!(run.task.work.ledger.unwrap().exceptions().count(), 0);
}

#[test]
fn message_belongs_to_its_step_and_failure() {
    // There are two timeouts, of which only the first message is stored, followed by a missing record.
    let script: Script = Rc::new(|key| match parse_number(key) {
        3 | 4 => (MS, Status::Timeout),
        5 => (MS, Status::NotFound),
        _ => (MS, Status::Ok),
    });
    let run = simulate_load(read_only_run(10), None, 1, Segment::default(), 0, &script);
    assert_eq!(run.task.failures.message(Kind::Read.step(), Status::Timeout), Some("scripted TIMEOUT"));
    assert_eq!(run.service_readings()[&(Kind::Read, Status::NotFound)].count(), 1);
    assert_eq!(run.task.failures.message(Kind::Read.step(), Status::NotFound), None);
    // The halves of a read-modify-write are counted as read and update, so their messages are stored for these steps.
    let pairs = CoreRun::new(core_spec(Mix { read_modify_write: 1.0, ..Mix::default() }, 10), 1).unwrap();
    let run = simulate_load(pairs, None, 1, Segment::default(), 0, &script);
    for kind in [Kind::Read, Kind::Update] {
        assert_eq!(run.service_readings()[&(kind, Status::Timeout)].count(), 2);
        assert_eq!(run.task.failures.message(kind.step(), Status::Timeout), Some("scripted TIMEOUT"));
    }
}

#[test]
fn a_pair_whose_update_fails_has_failed() {
    // The first call with a key is the read, and the second call is the update.
    let keys = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let script: Script = Rc::new(move |key| {
        let first = keys.borrow_mut().insert(key.to_vec());
        (MS, if first { Status::Ok } else { Status::Timeout })
    });
    let pairs = CoreRun::new(core_spec(Mix { read_modify_write: 1.0, ..Mix::default() }, 10), 1).unwrap();
    let run = simulate_load(pairs, None, 1, Segment::default(), 0, &script);
    assert_eq!(run.count_operations(Kind::Read, Status::Ok), 10);
    assert_eq!(run.count_operations(Kind::ReadModifyWrite, Status::Timeout), 10);
    assert_eq!((run.totals().succeeded, run.totals().count_failed()), (0, 10));
}

#[test]
fn pair_is_unreached_only_if_both_calls_are() {
    // Of the first pair, no call reaches the store; of the second pair, only the update does not.
    let calls = std::cell::Cell::new(0);
    let script: Script = Rc::new(move |_| {
        calls.set(calls.get() + 1);
        if [1, 2, 4].contains(&calls.get()) { (0, Status::ServiceUnavailable) } else { (MS, Status::Ok) }
    });
    let pairs = CoreRun::new(core_spec(Mix { read_modify_write: 1.0, ..Mix::default() }, 10), 1).unwrap();
    let totals = simulate_load(pairs, None, 1, Segment::default(), 0, &script).totals();
    assert_eq!((totals.count_failed(), totals.unreached), (2, 1));
}
