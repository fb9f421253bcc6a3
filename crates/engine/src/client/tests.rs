//! The timing loop against simulated time and a scripted store.

use std::rc::Rc;
use std::sync::Arc;

use loadstone_load::core::{CoreRun, CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::meter::{Grid, Reading};
use loadstone_load::pace::{Arrival, PaceSpec, RatePiece};
use loadstone_load::values::Length;
use loadstone_load::{Segment, Status};
use loadstone_stores::null::NullSession;

use super::*;
use crate::allocations;
use crate::clock::{Clock, ThreadTimer};
use crate::control::End;
use crate::event::Note;
use crate::notes;
use crate::observer::{Closed, Moment};
use crate::simulation::{Script, Scripted, SimTimer};
use crate::sink::Sink;
use crate::tape::{Readings, merge, sent_at_a_rate, totals};
use crate::workers::block_on;
use crate::workload::SpecWorkload;

const MS: u64 = 1_000_000;

fn spec(mix: Mix, operations: u64) -> CoreSpec {
    CoreSpec {
        table: "usertable".to_owned(),
        records: operations.max(1),
        insert_start: 0,
        insert_count: operations.max(1),
        field_count: 2,
        field_name_prefix: "field".to_owned(),
        field_length: Length::Constant { bytes: 10 },
        read_all_fields: true,
        write_all_fields: false,
        integrity: false,
        versions: false,
        mix,
        keys: KeyDistribution::Sequential,
        insert_order: InsertOrder::Ordered,
        zero_padding: 1,
        scan_length: Length::Constant { bytes: 1 },
        operations: Some(operations),
        insert_lag: 0,
    }
}

/// Reads of record 0, 1, 2 …: the record's number is the operation's index.
fn reads(operations: u64) -> CoreRun {
    CoreRun::new(spec(Mix { read: 1.0, ..Mix::default() }, operations), 1).unwrap()
}

fn number(key: &[u8]) -> u64 {
    std::str::from_utf8(&key[4..]).unwrap().parse().unwrap()
}

fn rate(per_second: f64) -> Pace {
    let rate = vec![RatePiece { from: per_second, to: per_second, seconds: 0.0 }];
    Pace::new(&PaceSpec::Open { rate, arrival: Arrival::Uniform }, 1).unwrap().unwrap()
}

struct Simulated {
    tapes: Vec<Arc<Tape>>,
    course: Course,
    elapsed_ns: u64,
}

/// Runs a segment of a workload in simulated time; each client has a tape of its own.
fn simulate<W: Workload>(
    workload: &W,
    pace: Option<&Pace>,
    clients: usize,
    segment: Segment,
    late_ns: u64,
    script: &Script,
) -> Simulated {
    let world = SimTimer::default();
    let course = Course::new(segment, segment.share(workload.operations().unwrap()));
    let acks = Acks::new();
    let inserts = InsertPolicy { retries: 0, interval_ns: 0, stop: false };
    let common = Common { workload, course: &course, pace, start_ns: 0, acks: Some(&acks), inserts, seed: 1 };
    let timer = world.waking_late(late_ns);
    let tapes: Vec<Arc<Tape>> = (0..clients).map(|_| Arc::new(Tape::new(&[Sink::HdrNs], pace.is_some(), 0))).collect();
    let mut sessions: Vec<Scripted> = tapes.iter().map(|_| Scripted::new(&world, script)).collect();
    let futures = sessions
        .iter_mut()
        .zip(&tapes)
        .map(|(session, tape)| Box::pin(drive(&common, &timer, session, tape)) as crate::simulation::Client<'_>)
        .collect();
    world.run(futures);
    let elapsed_ns = timer.now_ns();
    Simulated { tapes, course, elapsed_ns }
}

impl Simulated {
    fn service(&self) -> Readings {
        let mut all = merge(self.tapes.iter().filter_map(|tape| tape.service.as_ref()));
        all.retain(|(kind, _), _| *kind != Kind::Cleanup);
        all
    }

    fn response(&self) -> Reading {
        merge(self.tapes.iter().filter_map(|tape| tape.response.as_ref()))[&(Kind::Read, Status::Ok)].clone()
    }

    fn notes(&self, open: bool) -> Vec<Note> {
        let moment = Moment {
            tapes: &self.tapes,
            course: &self.course,
            start_ns: 0,
            interval_ns: (0, self.elapsed_ns),
            totals: totals(&self.tapes),
            operations: None,
        };
        notes::of(&Closed {
            moment,
            end: End::Done,
            start_unix_ns: 0,
            measured_ns: self.elapsed_ns,
            window_ns: self.elapsed_ns,
            unsent: 0,
            cpu_ns: [0, 0],
            device_bytes: [0, 0],
            driver_ns: 0.0,
            settle: None,
            embedded: true,
            collections: Vec::new(),
            open,
        })
    }

    fn has_note(&self, name: &str) -> bool {
        self.notes(true).iter().any(|note| note.name == name)
    }
}

fn reading(values: impl Iterator<Item = u64>) -> Reading {
    let grid = Grid::default();
    values.for_each(|value| grid.record(value));
    let mut reading = Reading::default();
    reading.add(&grid);
    reading
}

/// One client, 1,000 operations a second, 0.1 ms each, and one stall of a second: every operation that was due while the
/// backlog lasted has waited, and the response times say so to the nanosecond.
#[test]
fn a_stall_is_charged_to_every_operation_that_was_due_in_it() {
    const STALLED: u64 = 1_000;
    let script: Script = Rc::new(|key| (if number(key) == STALLED { 1_000 * MS } else { MS / 10 }, Status::Ok));
    let run = simulate(&reads(5_000), Some(&rate(1_000.0)), 1, Segment::default(), 0, &script);

    // Behind the stall the m-th operation is sent when those before it are done: at 1000 + 0.1·(m − 1) ms, due at m ms.
    let response_of = |index: u64| match index.checked_sub(STALLED) {
        Some(0) => 1_000 * MS,
        Some(m) => (1_000 * MS + m * MS / 10).saturating_sub(m * MS).max(MS / 10),
        None => MS / 10,
    };
    assert_eq!(run.response(), reading((0..5_000).map(response_of)));
    let affected = (0..5_000).filter(|&index| response_of(index) > MS / 10).count();
    assert_eq!(affected, 1_111);
    let longer: u64 = run.response().used().filter(|&(low, ..)| low > MS / 10).map(|(.., n)| n).sum();
    assert_eq!(longer, 1_111, "operations affected, as measured");

    let service = &run.service()[&(Kind::Read, Status::Ok)];
    assert_eq!(*service, reading((0..5_000).map(|index| if index == STALLED { 1_000 * MS } else { MS / 10 })));
    assert!(run.has_note("client-limited") && !run.has_note("generator-limited"));
}

#[test]
fn a_generator_that_wakes_late_accuses_itself_and_not_the_clients() {
    let script: Script = Rc::new(|_| (MS / 10, Status::Ok));
    let run = simulate(&reads(2_000), Some(&rate(100.0)), 4, Segment::default(), 2 * MS, &script);
    assert!(run.has_note("generator-limited") && !run.has_note("client-limited"));
    // Being late is part of the response all the same: the first operation is due at once, all others wake 2 ms late.
    assert_eq!(run.response(), reading((0..2_000).map(|i| if i == 0 { MS / 10 } else { 2 * MS + MS / 10 })));
    let punctual = simulate(&reads(2_000), Some(&rate(100.0)), 4, Segment::default(), 0, &script);
    assert!(!punctual.has_note("generator-limited") && !punctual.has_note("client-limited"));
}

#[test]
fn histograms_of_any_segmentation_add_up_to_the_whole() {
    let script: Script = Rc::new(|key| (MS / 10 + number(key) * 7_919 % MS, Status::Ok));
    let segments = |n: u64| {
        let (mut service, mut response) = (Readings::new(), Reading::default());
        for k in 0..n {
            let clients = Segment { k, n }.share(8) as usize;
            let run = simulate(&reads(4_000), Some(&rate(500.0)), clients, Segment { k, n }, 0, &script);
            for (key, reading) in run.service() {
                service.entry(key).or_default().merge(&reading);
            }
            response.merge(&run.response());
        }
        (service, response)
    };
    let whole = segments(1);
    assert_eq!(whole.1.count(), 4_000);
    for n in [2, 4, 7, 8] {
        assert_eq!(segments(n), whole, "{n} segments");
    }
}

#[test]
fn in_the_closed_loop_nothing_is_due_and_response_is_service() {
    let script: Script = Rc::new(|_| (MS, Status::Ok));
    let run = simulate(&reads(100), None, 4, Segment::default(), 0, &script);
    assert_eq!(run.elapsed_ns, 25 * MS, "four clients share a hundred operations of a millisecond");
    assert!(run.tapes.iter().all(|tape| tape.response.is_none() && tape.waits.is_none()));
}

#[test]
fn a_read_of_an_insert_under_way_is_not_yet_and_one_after_it_is_not_found() {
    // Only what was loaded is ever found; an insert takes 5 ms, a read 1 ms.
    let records = 1_000;
    let script: Script = Rc::new(move |key| match number(key) {
        loaded if loaded < records => (MS, Status::Ok),
        _ => (MS, Status::NotFound),
    });
    let inserting: Script = {
        let script = Rc::clone(&script);
        Rc::new(move |key| if number(key) >= 2_000 { (5 * MS, Status::Ok) } else { script(key) })
    };
    let mix = Mix { read: 0.5, insert: 0.5, ..Mix::default() };
    let keys = KeyDistribution::Latest;
    let base = CoreSpec { records, insert_count: records, keys, operations: Some(400), ..spec(mix, 400) };
    // With no lag, readers ask for records whose insert has just been handed out.
    let eager = CoreRun::new(CoreSpec { insert_lag: 0, ..base.clone() }, 3).unwrap();
    let run = simulate(&eager, None, 8, Segment::default(), 0, &inserting);
    let not_yet = run.service().get(&(Kind::Read, Status::NotYet)).map_or(0, Reading::count);
    let not_found = run.service().get(&(Kind::Read, Status::NotFound)).map_or(0, Reading::count);
    assert!(not_yet > 0, "some inserts were under way");
    assert!(not_found > 0, "and some were acknowledged and lost all the same");
    // One client cannot overtake itself: what it misses is really missing.
    let alone = simulate(&eager, None, 1, Segment::default(), 0, &inserting);
    assert!(!alone.service().contains_key(&(Kind::Read, Status::NotYet)));
}

#[test]
fn who_is_overtaken_by_a_delete_is_not_yet_and_who_is_not_finds_a_record_missing() {
    // Nothing is ever found.
    let script: Script = Rc::new(|_| (MS, Status::NotFound));
    let mix = Mix { read: 0.25, read_modify_write: 0.25, delete: 0.5, ..Mix::default() };
    // Few records are left at last, so that requests meet the next to be deleted.
    let few = CoreSpec { records: 210, insert_count: 210, insert_lag: 0, operations: Some(400), ..spec(mix, 400) };
    // As a trial runs it: a workload that does not hand on where deletes stand would find every record missing.
    let workload = SpecWorkload::CoreRun(CoreRun::new(few, 3).unwrap());
    let counted = |clients| {
        let run = simulate(&workload, None, clients, Segment::default(), 0, &script);
        let count = |kind, status| run.service().get(&(kind, status)).map_or(0, Reading::count);
        assert_eq!(count(Kind::Delete, Status::NotFound), 200, "who deletes does not excuse himself");
        assert!(count(Kind::Read, Status::NotFound) > 0);
        let totals = totals(&run.tapes);
        assert_eq!((totals.succeeded, totals.failed() + totals.not_yet), (0, 400));
        // A pair's first half is a read, and if that is overtaken, so is the other.
        assert_eq!(count(Kind::Read, Status::NotYet), totals.not_yet);
        [totals.not_yet, count(Kind::Update, Status::NotYet)]
    };
    assert!(counted(8).into_iter().all(|overtaken| overtaken > 0));
    // One client cannot overtake itself.
    assert_eq!(counted(1), [0, 0]);
}

#[test]
fn a_warm_up_ends_between_two_operations() {
    let course = Course::new(Segment { k: 1, n: 2 }, 3);
    course.warm_up();
    assert_eq!(course.claim(), Some(Claim { index: 1, measured: false }));
    course.measure(Some(2));
    assert_eq!((course.claimed(), course.claim()), (1, Some(Claim { index: 3, measured: true })));
    assert_eq!((course.claim().map(|claim| claim.index), course.claim(), course.claimed()), (Some(5), None, 3));
    // What has been claimed has begun, and another segment may be twice as far.
    assert_eq!([5, 7].map(|index| course.may_have_begun(index)), [true, false]);
    assert_eq!([12, 14].map(|index| course.may_have_begun(index)), [true, false]);
}

/// Ten operations a second are due in a second; the time is over while the generator sleeps, and every client has claimed.
#[test]
fn what_was_due_before_the_end_is_sent_after_it_unless_the_trial_is_interrupted() {
    let ended = |end: fn(&Course)| {
        let world = SimTimer::default();
        let (workload, pace) = (reads(100), rate(10.0));
        let course = Course::new(Segment::default(), 100);
        course.end_at(1_000 * MS);
        let inserts = InsertPolicy { retries: 0, interval_ns: 0, stop: false };
        let common = Common {
            workload: &workload,
            course: &course,
            pace: Some(&pace),
            start_ns: 0,
            acks: None,
            inserts,
            seed: 1,
        };
        // Everybody but who stops the clients wakes half a second late.
        let late = world.waking_late(500 * MS);
        let tape = Tape::new(&[Sink::HdrNs], true, 0);
        let script: Script = Rc::new(|_| (MS, Status::Ok));
        let mut sessions: Vec<Scripted> = (0..20).map(|_| Scripted::new(&world, &script)).collect();
        let mut futures: Vec<crate::simulation::Client<'_>> = sessions
            .iter_mut()
            .map(|session| Box::pin(drive(&common, &late, session, &tape)) as crate::simulation::Client<'_>)
            .collect();
        futures.push(Box::pin(async {
            world.until(1_000 * MS, || false).await;
            end(&course);
        }));
        world.run(futures);
        let tapes = [Arc::new(tape)];
        let totals = totals(&tapes);
        (sent_at_a_rate(&tapes), totals.measured, totals.late_generator)
    };
    assert_eq!(ended(Course::stop), (10, 10, 9), "the first is due at once");
    // Due at 0.6 s and later: awake at 1.1 s.
    assert_eq!(ended(Course::interrupt), (6, 6, 5), "the others are not among those sent, and told as that");
}

#[test]
fn a_client_rests_after_a_failure_and_nobody_measures_that() {
    let script: Script = Rc::new(|key| (MS, if number(key) < 3 { Status::ServiceUnavailable } else { Status::Ok }));
    let run = simulate(&reads(10), None, 1, Segment::default(), 0, &script);
    assert_eq!(run.elapsed_ns, 10 * MS + 3 * Scripted::REST_NS);
    let failed = &run.service()[&(Kind::Read, Status::ServiceUnavailable)];
    assert_eq!(*failed, reading([MS; 3].into_iter()));
}

#[test]
fn an_insert_that_nobody_has_begun_is_no_lost_record() {
    let acks = Acks::new();
    let later = 5 + (1 << 16);
    assert!(!acks.before(5, u64::MAX - 1), "claimed, not begun");
    acks.begin(5);
    assert!(!acks.before(5, 200), "under way");
    acks.done(5, 100);
    assert_eq!([99, 100].map(|sent| acks.before(5, sent)), [false, true]);
    // The slot is the later one's too.
    assert!(!acks.before(later, 200), "claimed, not begun");
    acks.begin(later);
    assert!(!acks.before(later, 200), "under way");
    assert!(acks.before(5, 200), "acknowledged long ago");
    acks.done(5, 300);
    assert!(!acks.before(later, 400), "a late word of the earlier one is not the later one's");
}

#[test]
fn an_insert_given_up_does_not_take_the_end_of_the_window_back() {
    let tape = Tape::new(&[Sink::HdrNs], false, 0);
    tape.finishes(true, true, false, 200);
    tape.finishes(true, false, false, 100);
    assert_eq!(totals(&[Arc::new(tape)]).last_done_ns, 200);
}

#[test]
fn every_attempt_of_an_insert_is_counted_and_the_load_stops_when_all_fail() {
    let load = loadstone_load::core::CoreLoad::new(spec(Mix::default(), 100), 1);
    let attempt = |retries, stop| {
        let world = SimTimer::default();
        let script: Script =
            Rc::new(|key| (MS, if number(key) == 10 { Status::ServiceUnavailable } else { Status::Ok }));
        let course = Course::new(Segment::default(), 100);
        let inserts = InsertPolicy { retries, interval_ns: 10 * MS, stop };
        let common = Common { workload: &load, course: &course, pace: None, start_ns: 0, acks: None, inserts, seed: 1 };
        let tape = Tape::new(&[Sink::HdrNs], false, 0);
        let mut session = Scripted::new(&world, &script);
        world.run(vec![Box::pin(drive(&common, &world, &mut session, &tape))]);
        let service = merge(tape.service.iter());
        let count = |status| service.get(&(Kind::Insert, status)).map_or(0, Reading::count);
        let failed = count(Status::ServiceUnavailable);
        assert!(world.now_ns() >= failed * Scripted::REST_NS, "the client rests after each");
        (count(Status::Ok), failed, course.reason().map(str::to_owned))
    };
    let (ok, failed, reason) = attempt(2, true);
    assert_eq!((ok, failed), (10, 3));
    assert_eq!(reason.unwrap(), "insert of user10 failed with SERVICE_UNAVAILABLE: scripted SERVICE_UNAVAILABLE");
    assert_eq!(attempt(0, false), (99, 1, None));
}

#[test]
fn words_belong_to_their_step_and_to_its_failure() {
    // Two time-outs, of which the first's words are kept, then a record that is not there.
    let script: Script = Rc::new(|key| match number(key) {
        3 | 4 => (MS, Status::Timeout),
        5 => (MS, Status::NotFound),
        _ => (MS, Status::Ok),
    });
    let run = simulate(&reads(10), None, 1, Segment::default(), 0, &script);
    assert_eq!(run.course.words(Kind::Read, Status::Timeout), Some("scripted TIMEOUT"));
    assert_eq!(run.service()[&(Kind::Read, Status::NotFound)].count(), 1);
    assert_eq!(run.course.words(Kind::Read, Status::NotFound), None);
    // The halves of a read-modify-write are counted as what they are, so their words are looked for there.
    let pairs = CoreRun::new(spec(Mix { read_modify_write: 1.0, ..Mix::default() }, 10), 1).unwrap();
    let run = simulate(&pairs, None, 1, Segment::default(), 0, &script);
    for kind in [Kind::Read, Kind::Update] {
        assert_eq!(run.service()[&(kind, Status::Timeout)].count(), 2);
        assert_eq!(run.course.words(kind, Status::Timeout), Some("scripted TIMEOUT"));
    }
}

/// A hundred times the operations, not one allocation more.
#[test]
fn the_loop_does_not_allocate_per_operation() {
    for pace in [None, Some(rate(1e9))] {
        let mix = Mix { read: 0.4, update: 0.3, insert: 0.1, scan: 0.1, read_modify_write: 0.1, delete: 0.0 };
        let count = |operations: u64| {
            let workload = CoreRun::new(spec(mix, operations.max(1_000)), 1).unwrap();
            let course = Course::new(Segment::default(), operations);
            let acks = Acks::new();
            let inserts = InsertPolicy { retries: 0, interval_ns: 0, stop: false };
            let tape = Tape::new(&[Sink::HdrNs, Sink::YcsbHdrUs], pace.is_some(), 0);
            let start_ns = ThreadTimer::default().now_ns();
            let common = Common {
                workload: &workload,
                course: &course,
                pace: pace.as_ref(),
                start_ns,
                acks: Some(&acks),
                inserts,
                seed: 1,
            };
            let before = allocations::on_this_thread();
            block_on(drive(&common, &ThreadTimer::default(), &mut NullSession, &tape));
            allocations::on_this_thread() - before
        };
        let (few, many) = (count(1_000), count(100_000));
        assert_eq!(few, many, "open loop: {}", pace.is_some());
        assert!(few > 0, "the allocator counts");
    }
}
