//! The timing loop against simulated time and a scripted store.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec, Mix};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::ledger::{Layout, Ledger, State};
use loadstone_load::meter::{Grid, Reading};
use loadstone_load::pace::{Arrival, Pace, PaceSpec, RatePiece};
use loadstone_load::values::Length;
use loadstone_load::{Kind, RecordWorkload, Segment, Status, Workload};
use loadstone_stores::null::NullSession;

use super::*;
use crate::actor::inserts::{InsertLog, InsertPolicy};
use crate::actor::misses::Misses;
use crate::allocations;
use crate::borders::{Ending, NEVER, window};
use crate::clock::{Clock, ThreadTimer};
use crate::control::End;
use crate::event::{Carried, Note, Unsettled};
use crate::failures::Failures;
use crate::mapping::Mapping;
use crate::notes;
use crate::observer::{Censored, Closed, Moment};
use crate::pulse::Pulse;
use crate::recorder::{Additions, Reader, Readings, Shape, totals};
use crate::scheduler::Scheduler;
use crate::simulation::{Script, Scripted, SimTimer};
use crate::sink::Sink;
use crate::workers::block_on;
use crate::workload::RecordsOf;

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

/// A trial in simulated time.
#[derive(Clone, Copy)]
struct Setting<'a> {
    pace: Option<&'a Pace>,
    clients: usize,
    segment: Segment,
    /// How much too late the generator wakes.
    late_ns: u64,
    /// Whether the clients share an executor, and do not have threads.
    executor: bool,
    warmup_ns: u64,
    /// The window; [`NEVER`]: up to the last operation.
    window_ns: u64,
    interval_ns: u64,
    insert_policy: InsertPolicy,
    /// What comes of inserts, if not what the script says.
    inserts: Option<&'a Script>,
    /// File of the ledger, if there is one.
    ledger: Option<&'a str>,
}

const KEEP_GOING: InsertPolicy = InsertPolicy { retries: 0, interval_ns: 0, stop: false };

impl<'a> Setting<'a> {
    fn new(pace: Option<&'a Pace>, clients: usize) -> Self {
        Self {
            pace,
            clients,
            segment: Segment::default(),
            late_ns: 0,
            executor: false,
            warmup_ns: 0,
            window_ns: NEVER,
            interval_ns: 1_000 * MS,
            insert_policy: KEEP_GOING,
            inserts: None,
            ledger: None,
        }
    }

    fn borders(&self, operations: Option<u64>) -> Borders {
        let timed = self.window_ns != NEVER;
        let end_ns = if timed { self.warmup_ns + self.window_ns } else { NEVER };
        let first_index = self.pace.map_or(0, |pace| pace.first_due_at(self.warmup_ns));
        let steps = operations.map_or(NEVER, |n| self.segment.share(n + first_index));
        Borders {
            start_ns: 0,
            first_ns: self.warmup_ns,
            end_ns,
            cutoff_ns: if timed { end_ns + (self.window_ns / 10).min(5_000 * MS) } else { NEVER },
            interval_ns: self.interval_ns,
            first_index,
            steps,
            counted: NEVER,
            following_ns: 0,
        }
    }
}

struct Simulated<W> {
    recorders: Vec<Arc<Recorder>>,
    task: Task<W>,
    borders: Borders,
    elapsed_ns: u64,
    /// By interval.
    additions: BTreeMap<u64, Additions>,
}

fn shape(open: bool) -> Shape {
    Shape { steps: Kind::COUNT, sinks: vec![Sink::HdrNs], open, deadline_ns: NEVER, to_unix_ns: 0 }
}

fn ledger(file: &str, setting: &Setting<'_>) -> Ledger<Mapping> {
    let layout = Layout { writes: 1_000, clients: setting.clients as u64, workers: 1, ticks: 8, exceptions: 1_000 };
    let mapping = Mapping::create(file, layout.words().unwrap()).unwrap();
    Ledger::create(mapping, layout, 1, setting.segment).unwrap()
}

fn task_of<W: Workload>(workload: W, pace: Option<&Pace>, borders: &Borders, setting: &Setting<'_>) -> Task<W> {
    Task {
        scheduler: Scheduler::new(setting.segment, borders, 1),
        pace: pace.cloned(),
        failures: Failures::new(workload.steps().len()),
        inserts: Some(InsertLog::new()),
        misses: Misses::default(),
        insert_policy: setting.insert_policy,
        ledger: setting.ledger.map(|file| ledger(file, setting)),
        seed: 1,
        workload,
    }
}

/// Runs a segment of a workload; each client has a recorder of its own.
fn run<W: RecordWorkload + 'static>(workload: W, setting: &Setting<'_>, script: &Script) -> Simulated<W> {
    run_in(&SimTimer::default(), workload, setting, script)
}

fn run_in<W: RecordWorkload + 'static>(
    world: &SimTimer,
    workload: W,
    setting: &Setting<'_>,
    script: &Script,
) -> Simulated<W> {
    let timed = setting.window_ns != NEVER;
    let borders = setting.borders(if timed { None } else { workload.operations() });
    let task = task_of(workload, setting.pace, &borders, setting);
    let clock = world.waking_late(setting.late_ns);
    let recorders: Vec<Arc<Recorder>> =
        (0..setting.clients).map(|_| Arc::new(Recorder::new(&shape(setting.pace.is_some()), 1))).collect();
    let mut sessions: Vec<Scripted> =
        recorders.iter().map(|_| Scripted::new(world, script).inserting(setting.inserts)).collect();
    let (mut reader, mut additions) = (Reader::new(recorders.clone()), BTreeMap::new());
    let pulse = Pulse::new("a thread".to_owned(), if setting.executor { setting.clients as u64 } else { 0 });
    let mut futures: Vec<crate::simulation::Client<'_>> = sessions
        .iter_mut()
        .zip(&recorders)
        .map(|(session, recorder)| {
            let place = Place { recorder, client: 0, worker: 0, pulse: &pulse };
            Box::pin(drive(&task, &borders, &clock, session, place)) as crate::simulation::Client<'_>
        })
        .collect();
    // As the conductor does.
    if timed {
        let (reader, additions) = (&mut reader, &mut additions);
        futures.push(Box::pin(pulse.beat(&borders, &clock, || clock.now_ns() > borders.cutoff_ns)));
        futures.push(Box::pin(async move {
            for interval in 0..=borders.interval(borders.end_ns - 1) {
                world.until(borders.interval_end(interval), || false).await;
                reader.read(borders.interval(world.now_ns().min(borders.end_ns - 1)), false, additions);
            }
        }));
    }
    world.run(futures);
    let elapsed_ns = clock.now_ns();
    reader.read(borders.interval(elapsed_ns.min(borders.end_ns - 1)), true, &mut additions);
    Simulated { recorders, task, borders, elapsed_ns, additions }
}

/// Runs a workload to its last operation.
fn simulate<W: RecordWorkload + 'static>(
    workload: W,
    pace: Option<&Pace>,
    clients: usize,
    segment: Segment,
    late_ns: u64,
    script: &Script,
) -> Simulated<W> {
    run(workload, &Setting { segment, late_ns, ..Setting::new(pace, clients) }, script)
}

impl<W> Simulated<W> {
    fn all(&self) -> Readings {
        let mut all = Additions::default();
        self.additions.values().for_each(|more| all.merge(more));
        all.latencies.retain(|(step, _), _| *step != Kind::Cleanup.step());
        all.latencies
    }

    fn service(&self) -> BTreeMap<(Kind, Status), Reading> {
        let all = self.all().into_iter();
        all.map(|((step, status), [service, ..])| ((Kind::ALL[usize::from(step.0)], status), service)).collect()
    }

    fn count(&self, kind: Kind, status: Status) -> u64 {
        self.service().get(&(kind, status)).map_or(0, Reading::count)
    }

    fn response(&self) -> Reading {
        self.all()[&(Kind::Read.step(), Status::Ok)][1].clone()
    }

    /// The lower bound of the response.
    fn lower(&self) -> Reading {
        self.all()[&(Kind::Read.step(), Status::Ok)][2].clone()
    }

    fn totals(&self) -> crate::recorder::Totals {
        totals(&self.recorders)
    }

    fn has_note(&self, name: &str) -> bool {
        let moment = Moment {
            recorders: &self.recorders,
            failures: &self.task.failures,
            borders: self.borders,
            totals: self.totals(),
            operations: None,
        };
        let notes: Vec<Note> = notes::of(&Closed {
            moment,
            end: End::Done,
            start_unix_ns: 0,
            window: crate::borders::Window { length_ns: self.elapsed_ns, completed: 0 },
            due: None,
            censored: Censored::default(),
            carried: Carried::default(),
            unsettled: Unsettled::default(),
            latencies: &self.all(),
            cpu_ns: [0, 0],
            device_bytes: [0, 0],
            threads: Vec::new(),
            clock: None,
            driver_ns: 0.0,
            settle: None,
            embedded: true,
            collections: Vec::new(),
            open: true,
        });
        notes.iter().any(|note| note.name == name)
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
    let run = simulate(reads(5_000), Some(&rate(1_000.0)), 1, Segment::default(), 0, &script);

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
    let run = simulate(reads(2_000), Some(&rate(100.0)), 4, Segment::default(), 2 * MS, &script);
    assert!(run.has_note("generator-limited") && !run.has_note("client-limited"));
    // Being late is part of the response all the same: the first operation is due at once, all others wake 2 ms late.
    assert_eq!(run.response(), reading((0..2_000).map(|i| if i == 0 { MS / 10 } else { 2 * MS + MS / 10 })));
    let punctual = simulate(reads(2_000), Some(&rate(100.0)), 4, Segment::default(), 0, &script);
    assert!(!punctual.has_note("generator-limited") && !punctual.has_note("client-limited"));
}

#[test]
fn histograms_of_any_segmentation_add_up_to_the_whole() {
    let script: Script = Rc::new(|key| (MS / 10 + number(key) * 7_919 % MS, Status::Ok));
    let pace = rate(500.0);
    let segments = |n: u64| {
        let mut all = Additions::default();
        for k in 0..n {
            let segment = Segment { k, n };
            let clients = segment.share(8) as usize;
            let run = simulate(reads(4_000), Some(&pace), clients, segment, 0, &script);
            run.additions.values().for_each(|more| all.merge(more));
        }
        all.latencies.remove(&(Kind::Cleanup.step(), Status::Ok));
        all.latencies
    };
    let whole = segments(1);
    assert_eq!(whole[&(Kind::Read.step(), Status::Ok)][1].count(), 4_000);
    for n in [2, 4, 7, 8] {
        assert_eq!(segments(n), whole, "{n} segments");
    }
}

#[test]
fn in_the_closed_loop_nothing_is_due_and_response_is_service() {
    let script: Script = Rc::new(|_| (MS, Status::Ok));
    let run = simulate(reads(100), None, 4, Segment::default(), 0, &script);
    assert_eq!(run.elapsed_ns, 25 * MS, "four clients share a hundred operations of a millisecond");
    assert!(run.recorders.iter().all(|recorder| recorder.waits.is_none()));
    assert_eq!(run.all()[&(Kind::Read.step(), Status::Ok)][1].count(), 0);
}

#[test]
fn a_missing_record_is_a_failure_only_if_its_insert_was_acknowledged() {
    // Only what was loaded is ever found; an insert takes 5 ms, a read 1 ms.
    let records = 1_000;
    let script: Script = Rc::new(move |key| (MS, if number(key) < records { Status::Ok } else { Status::NotFound }));
    let mix = Mix { read: 0.5, insert: 0.5, ..Mix::default() };
    let keys = KeyDistribution::Latest;
    // With no lag, readers ask for records whose insert has just been handed out.
    let base = CoreSpec { records, insert_count: records, keys, insert_lag: 0, ..spec(mix, 400) };
    let reads = |clients, insert: Status| {
        let inserts: Script = Rc::new(move |_| (5 * MS, insert));
        let eager = CoreRun::new(base.clone(), 3).unwrap();
        let run = run(eager, &Setting { inserts: Some(&inserts), ..Setting::new(None, clients) }, &script);
        [Status::NotYet, Status::NotFound].map(|status| run.count(Kind::Read, status))
    };
    let [not_yet, not_found] = reads(8, Status::Ok);
    assert!(not_yet > 0, "some inserts were under way");
    assert!(not_found > 0, "and some were acknowledged and lost all the same");
    // One client cannot overtake itself: what it misses is really missing.
    assert_eq!(reads(1, Status::Ok)[0], 0);
    // A time-out does not say whether the record is there: its absence is nobody's fault.
    for clients in [1, 8] {
        let [not_yet, not_found] = reads(clients, Status::Timeout);
        assert!(not_yet > 0 && not_found == 0, "{not_yet} {not_found}");
    }
}

#[test]
fn who_is_overtaken_by_a_delete_is_not_yet_and_who_is_not_finds_a_record_missing() {
    // Nothing is ever found.
    let script: Script = Rc::new(|_| (MS, Status::NotFound));
    let mix = Mix { read: 0.25, read_modify_write: 0.25, delete: 0.5, ..Mix::default() };
    // Few records are left at last, so that requests meet the next to be deleted.
    let few = CoreSpec { records: 210, insert_count: 210, insert_lag: 0, operations: Some(400), ..spec(mix, 400) };
    // As a trial runs it: a workload that does not hand on where deletes stand would find every record missing.
    let workload = || RecordsOf::Run(CoreRun::new(few.clone(), 3).unwrap());
    let counted = |clients| {
        let run = simulate(workload(), None, clients, Segment::default(), 0, &script);
        let count = |kind, status| run.service().get(&(kind, status)).map_or(0, Reading::count);
        assert_eq!(count(Kind::Delete, Status::NotFound), 200, "who deletes does not excuse himself");
        assert!(count(Kind::Read, Status::NotFound) > 0);
        let totals = run.totals();
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
fn a_client_rests_after_a_failure_and_nobody_measures_that() {
    let script: Script = Rc::new(|key| (MS, if number(key) < 3 { Status::ServiceUnavailable } else { Status::Ok }));
    let run = simulate(reads(10), None, 1, Segment::default(), 0, &script);
    assert_eq!(run.elapsed_ns, 10 * MS + 3 * Scripted::REST_NS);
    let failed = &run.service()[&(Kind::Read, Status::ServiceUnavailable)];
    assert_eq!(*failed, reading([MS; 3].into_iter()));
}

#[test]
fn an_insert_with_several_attempts_is_one_operation_and_the_load_stops_when_all_fail() {
    let attempt = |retries, stop, failing: u64| {
        let left = std::cell::Cell::new(failing);
        let script: Script = Rc::new(move |key| {
            let fails = number(key) == 10 && left.get() > 0;
            left.set(left.get() - u64::from(fails));
            (MS, if fails { Status::ServiceUnavailable } else { Status::Ok })
        });
        let load = CoreLoad::new(spec(Mix::default(), 100), 1);
        let insert_policy = InsertPolicy { retries, interval_ns: 10 * MS, stop };
        let run = run(load, &Setting { insert_policy, ..Setting::new(None, 1) }, &script);
        let failed = run.count(Kind::Insert, Status::ServiceUnavailable);
        assert!(run.elapsed_ns >= (run.totals().retried + failed) * Scripted::REST_NS, "the client rests after each");
        let reason = run.task.scheduler.reason().map(str::to_owned);
        (run.count(Kind::Insert, Status::Ok), failed, run.totals().retried, reason)
    };
    let (ok, failed, retried, reason) = attempt(2, true, 3);
    assert_eq!((ok, failed, retried), (10, 1, 2));
    assert_eq!(reason.unwrap(), "insert of user10 failed with SERVICE_UNAVAILABLE: scripted SERVICE_UNAVAILABLE");
    assert_eq!(attempt(0, false, 1), (99, 1, 0, None));
    assert_eq!(attempt(2, true, 2), (100, 0, 2, None), "the third attempt ends well");
}

#[test]
fn each_write_is_noted_once_and_those_that_were_slow_or_failed_with_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let mix = Mix { read: 0.2, update: 0.4, insert: 0.2, read_modify_write: 0.2, ..Mix::default() };
    let core = CoreSpec { versions: true, field_length: Length::Constant { bytes: 30 }, ..spec(mix, 200) };
    let workload = || CoreRun::new(core.clone(), 1).unwrap();
    // Every tenth answer is slow, every eleventh none.
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
    let run = run(workload(), &Setting { ledger: Some(&file), ..Setting::new(None, 3) }, &script);
    let ledger = run.task.ledger.as_ref().unwrap();
    ledger.settle();
    let steps = [Kind::Update, Kind::Insert];
    let counts = |status| steps.map(|step| run.count(step, status)).iter().sum::<u64>();
    let states: Vec<State> =
        (0..200).filter_map(|index| workload().write_number(index)).map(|n| ledger.state(n)).collect();
    let having = |wanted| states.iter().filter(|&&state| state == wanted).count() as u64;
    assert_eq!(states.len(), 160);
    assert_eq!((having(State::Acknowledged), having(State::Maybe)), (counts(Status::Ok), counts(Status::Timeout)));
    assert!(having(State::Maybe) > 5, "{states:?}");
    let exceptions: Vec<_> = ledger.exceptions().collect();
    for each in &exceptions {
        let ok = each.status == Some(Status::Ok);
        let state = ledger.state(workload().write_number(each.index).unwrap());
        assert_eq!(state, if ok { State::Acknowledged } else { State::Maybe });
        assert!(each.done > each.sent && (!ok || each.done - each.sent <= 150 * MS), "{each:?}");
    }
    let slow = exceptions.iter().filter(|each| each.status == Some(Status::Ok)).count();
    assert!(slow > 5 && exceptions.len() - slow == having(State::Maybe) as usize, "{exceptions:?}");
}

#[test]
fn a_write_that_was_late_because_its_client_was_busy_is_not_slow() {
    let directory = tempfile::tempdir().unwrap();
    let mix = Mix { update: 1.0, ..Mix::default() };
    let core = CoreSpec { versions: true, field_length: Length::Constant { bytes: 30 }, ..spec(mix, 100) };
    let (file, pace) = (directory.path().join("ledger").display().to_string(), rate(1_000.0));
    // The last one is due after 99 ms and sent after 495.
    let script: Script = Rc::new(|_| (5 * MS, Status::Ok));
    let setting = Setting { ledger: Some(&file), ..Setting::new(Some(&pace), 1) };
    let run = run(CoreRun::new(core, 1).unwrap(), &setting, &script);
    assert!(run.elapsed_ns >= 500 * MS);
    assert_eq!(run.task.ledger.unwrap().exceptions().count(), 0);
}

#[test]
fn a_message_belongs_to_its_step_and_to_its_failure() {
    // Two time-outs, of which the first's message is kept, then a record that is not there.
    let script: Script = Rc::new(|key| match number(key) {
        3 | 4 => (MS, Status::Timeout),
        5 => (MS, Status::NotFound),
        _ => (MS, Status::Ok),
    });
    let run = simulate(reads(10), None, 1, Segment::default(), 0, &script);
    assert_eq!(run.task.failures.message(Kind::Read.step(), Status::Timeout), Some("scripted TIMEOUT"));
    assert_eq!(run.service()[&(Kind::Read, Status::NotFound)].count(), 1);
    assert_eq!(run.task.failures.message(Kind::Read.step(), Status::NotFound), None);
    // The halves of a read-modify-write are counted as what they are, so their messages are looked for there.
    let pairs = CoreRun::new(spec(Mix { read_modify_write: 1.0, ..Mix::default() }, 10), 1).unwrap();
    let run = simulate(pairs, None, 1, Segment::default(), 0, &script);
    for kind in [Kind::Read, Kind::Update] {
        assert_eq!(run.service()[&(kind, Status::Timeout)].count(), 2);
        assert_eq!(run.task.failures.message(kind.step(), Status::Timeout), Some("scripted TIMEOUT"));
    }
}

#[test]
fn a_pair_whose_update_fails_has_failed() {
    // The read is the first call with a key, the update the second.
    let seen = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let script: Script = Rc::new(move |key| {
        let first = seen.borrow_mut().insert(key.to_vec());
        (MS, if first { Status::Ok } else { Status::Timeout })
    });
    let pairs = CoreRun::new(spec(Mix { read_modify_write: 1.0, ..Mix::default() }, 10), 1).unwrap();
    let run = simulate(pairs, None, 1, Segment::default(), 0, &script);
    assert_eq!(run.count(Kind::Read, Status::Ok), 10);
    assert_eq!(run.count(Kind::ReadModifyWrite, Status::Timeout), 10);
    assert_eq!((run.totals().succeeded, run.totals().failed()), (0, 10));
}

#[test]
fn a_late_answer_does_not_stretch_the_window() {
    // Ten clients, a millisecond each, and one answer 1.8 s late in a window of one second.
    let script: Script = Rc::new(|key| (if number(key) == 400 { 1_800 * MS } else { MS }, Status::Ok));
    let setting = Setting { window_ns: 1_000 * MS, ..Setting::new(None, 10) };
    let run = run(reads(1_000_000), &setting, &script);
    let totals = run.totals();
    let window = window(&run.borders, Ending::Time, &totals, None);
    assert_eq!(window.length_ns, 1_000 * MS);
    // What is sent in the last millisecond ends on or after the end, as does the late one.
    assert_eq!((totals.operations, window.completed), (9 * 1_000 + 41, 9 * 999 + 40));
    assert_eq!(run.elapsed_ns, 40 * MS + 1_800 * MS);
}

/// 500 operations a second for two seconds, four clients, the system silent from 1.0 to 2.1 s.
#[test]
fn a_stall_up_to_the_end_is_measured_to_the_last_operation() {
    let world = SimTimer::default();
    let (from, to) = (1_000 * MS, 2_100 * MS);
    let script = Scripted::silent_between(&world, from, to, MS / 2);
    let pace = rate(500.0);
    let setting = Setting { window_ns: 2_000 * MS, ..Setting::new(Some(&pace), 4) };
    let run = run_in(&world, reads(1_000_000), &setting, &script);
    assert_eq!(run.totals().operations, 1_000, "all that was due, some after the end");
    assert_eq!(run.response().count(), 1_000);
    let slow: u64 = run.response().used().filter(|&(low, ..)| low > 100 * MS).map(|(.., n)| n).sum();
    assert_eq!(slow, 500, "those due from 1.0 s on and the last before it");
}

/// Nobody runs for 0.3 s, while the system goes on to answer within half a millisecond.
#[test]
fn a_pause_of_the_engine_is_not_charged_to_the_system() {
    for (clients, executor) in [(1, false), (4, false), (1, true), (4, true)] {
        let world = SimTimer::default();
        world.pause_between(500 * MS + 300_000, 800 * MS);
        let script: Script = Rc::new(|_| (MS / 2, Status::Ok));
        let pace = rate(1_000.0);
        let setting = Setting { window_ns: 2_000 * MS, executor, ..Setting::new(Some(&pace), clients) };
        let run = run_in(&world, reads(1_000_000), &setting, &script);
        assert_eq!(run.lower().count(), 2_000);
        let above = |reading: &Reading| reading.used().filter(|&(low, ..)| low > MS / 2).map(|(.., n)| n).sum::<u64>();
        assert_eq!(above(&run.lower()), 0, "the system never took longer");
        assert!(above(&run.response()) > 300, "but users waited");
        let totals = run.totals();
        assert_eq!(totals.late_client, 0);
        assert!(totals.late_generator > 290, "{totals:?}");
    }
}

/// The system stalls, the engine runs: that no tick is ever quite on time takes nothing from what the system took.
#[test]
fn a_stall_of_the_system_is_not_charged_to_the_generator() {
    let pace = rate(400.0);
    for executor in [false, true] {
        let world = SimTimer::default();
        let script = Scripted::silent_between(&world, 500 * MS, 900 * MS, MS / 2);
        let late_ns = 60_000;
        let setting = Setting { window_ns: 2_000 * MS, late_ns, executor, ..Setting::new(Some(&pace), 4) };
        let run = run_in(&world, reads(1_000_000), &setting, &script);
        let totals = run.totals();
        assert_eq!(totals.late_generator, 0, "{totals:?}");
        let (upper, lower) = (run.response(), run.lower());
        let above =
            |reading: &Reading| reading.used().filter(|&(low, ..)| low > 100 * MS).map(|(.., n)| n).sum::<u64>();
        assert_eq!(above(&lower), above(&upper));
        assert!(lower.sum() * 100 > upper.sum() * 99, "{} of {}", lower.sum(), upper.sum());
    }
}

/// A wait is the client's as far as it would have been busy anyway.
#[test]
fn only_what_the_generator_delayed_is_taken_from_a_wait() {
    // Due at 100, the client free at 150, 20 of that because it had been sent late; sent at 155.
    assert_eq!(Wait::of(100, 150, 20, 155), Wait { client: 30, generator: 25 });
    assert_eq!(Wait::of(100, 150, 80, 155), Wait { client: 0, generator: 55 });
    assert_eq!(Wait::of(100, 90, 80, 103), Wait { client: 0, generator: 3 }, "idle before it was due: all made up for");
}

/// 1,000 operations a second; the system is silent for nearly all of a warm-up of three seconds.
#[test]
fn a_backlog_of_the_warm_up_is_told_and_adds_nothing_to_throughput() {
    let world = SimTimer::default();
    let script = Scripted::silent_between(&world, 50 * MS, 2_990 * MS, MS / 10);
    let pace = rate(1_000.0);
    let setting = Setting { warmup_ns: 3_000 * MS, window_ns: 1_000 * MS, ..Setting::new(Some(&pace), 4) };
    let run = run_in(&world, reads(1_000_000), &setting, &script);
    let (borders, totals) = (run.borders, run.totals());
    let due = borders.due(&pace, Segment::default(), borders.first_ns, borders.end_ns);
    assert!(totals.in_window > 3_000, "{totals:?}");
    assert_eq!(window(&borders, Ending::Time, &totals, Some(due)).completed, 1_000);
    // 4 clients finish 40 a millisecond; of 2,946 in all some 400 before the window.
    assert!((2_400..2_700).contains(&totals.carried), "{totals:?}");
    assert!((60 * MS..80 * MS).contains(&totals.carried_ns), "{totals:?}");
}

/// Everything that was due is exactly one of answered, failed and censored; latencies equal brute force.
#[test]
fn everything_due_is_answered_failed_or_censored_in_any_trial() {
    let mut draws = loadstone_load::random::Draws::at(20, 0, loadstone_load::random::Purpose::Deal);
    for case in 0..300 {
        let per_second = 20.0 + draws.below(2_000) as f64;
        let pace = rate(per_second);
        let window_ns = (200 + draws.below(2_000)) * MS;
        let from = draws.below(window_ns + 500 * MS);
        let to = from + draws.below(3_000) * MS;
        let warmup_ns = draws.below(3) * 100 * MS;
        let interval_ns = (100 + draws.below(400)) * MS;
        let segments = 1 + draws.below(3);
        let clients = (segments + draws.below(12)) as usize;
        let service_ns = 1 + draws.below(4 * MS);
        let mut due_of_all = 0;
        for k in 0..segments {
            let segment = Segment { k, n: segments };
            let own = segment.share(clients as u64) as usize;
            let setting = Setting { segment, warmup_ns, window_ns, interval_ns, ..Setting::new(Some(&pace), own) };
            let world = SimTimer::default();
            let script = Scripted::silent_between(&world, from, to, service_ns);
            let run = run_in(&world, reads(u64::MAX / 4), &setting, &script);
            let (borders, totals) = (run.borders, run.totals());
            let due = borders.due(&pace, segment, borders.first_ns, borders.end_ns);
            // By brute force: every index of the segment, one by one.
            let mut cursor = Cursor::default();
            let dues = (0..).map(|step| pace.due_ns(segment.index(step), &mut cursor));
            let counted = dues.take_while(|&ns| ns < borders.end_ns).filter(|&ns| ns >= borders.first_ns).count();
            assert_eq!(due, counted as u64, "case {case}: due");
            let left = run.recorders.iter().flat_map(|recorder| recorder.unfinished());
            let left: Vec<_> = left.filter(|one| one.counted).collect();
            let claimed = run.task.scheduler.claimed().max(segment.share(borders.first_index));
            let unclaimed = segment.share(pace.first_due_at(borders.end_ns)).saturating_sub(claimed);
            assert_eq!(totals.operations + left.len() as u64 + unclaimed, due, "case {case}: every operation is told");
            assert!(left.iter().all(|one| !one.sent), "case {case}: what was sent was answered");
            // Each interval has what was due in it; what ended in it was counted then.
            let ends: u64 = run.additions.values().map(|more| more.ended).sum();
            let in_window = totals.in_window;
            assert_eq!(run.additions.values().map(|more| more.completed).sum::<u64>(), in_window, "case {case}");
            assert!(ends >= in_window && in_window <= totals.succeeded + totals.warmup);
            for (&number, more) in &run.additions {
                let start = borders.first_ns + number * borders.interval_ns;
                let within = borders.due(&pace, segment, start, borders.interval_end(number));
                let counts: u64 = more.counts.iter().sum();
                assert!(counts <= within, "case {case}: interval {number} has {counts} of {within}");
                let reads = more.latencies.get(&(Kind::Read.step(), Status::Ok)).map_or(0, |each| each[1].count());
                assert_eq!(reads, counts, "case {case}: interval {number}");
            }
            let answered = run.additions.values().flat_map(|more| more.counts).sum::<u64>();
            assert_eq!(answered, totals.operations, "case {case}");
            due_of_all += due;
        }
        let setting = Setting { warmup_ns, window_ns, ..Setting::new(Some(&pace), 1) };
        let borders = setting.borders(None);
        let whole = borders.due(&pace, Segment::default(), borders.first_ns, borders.end_ns);
        assert_eq!(due_of_all, whole, "case {case}: segments add up");
    }
}

/// A hundred times the operations, not one allocation more.
#[test]
fn the_loop_does_not_allocate_per_operation() {
    for pace in [None, Some(rate(1e9))] {
        let mix = Mix { read: 0.4, update: 0.3, insert: 0.1, scan: 0.1, read_modify_write: 0.1, delete: 0.0 };
        let count = |operations: u64| {
            let workload = CoreRun::new(spec(mix, operations.max(1_000)), 1).unwrap();
            let start_ns = ThreadTimer::default().now_ns();
            let setting = Setting { interval_ns: NEVER / 2, ..Setting::new(pace.as_ref(), 1) };
            let borders = setting.borders(Some(operations)).starting_at(start_ns);
            let task = task_of(workload, pace.as_ref(), &borders, &setting);
            let shape = Shape { sinks: vec![Sink::HdrNs, Sink::YcsbHdrUs], ..shape(pace.is_some()) };
            let recorder = Recorder::new(&shape, 1);
            let before = allocations::on_this_thread();
            let pulse = Pulse::new("conductor".to_owned(), 0);
            let place = Place { recorder: &recorder, client: 0, worker: 0, pulse: &pulse };
            block_on(drive(&task, &borders, &ThreadTimer::default(), &mut NullSession, place));
            allocations::on_this_thread() - before
        };
        let (few, many) = (count(1_000), count(100_000));
        assert_eq!(few, many, "open loop: {}", pace.is_some());
        assert!(few > 0, "the allocator counts");
    }
}
