//! Tests of the timing loop in simulated time with a scripted store.

mod outages;
mod outcomes;
mod timing;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec, Mix};
use loadstone_load::histogram::{Grid, Reading};
use loadstone_load::keys::{InsertOrder, KeyDistribution};
use loadstone_load::ledger::{Ledger, LedgerLayout, LedgerRun, WriteState};
use loadstone_load::pace::{Arrival, Pace, PaceCursor, PaceSpec, RatePiece};
use loadstone_load::value_length::Length;
use loadstone_load::{Kind, RecordWorkload, Segment, Status};
use loadstone_session::erased::VirtualSession;
use loadstone_session::null::NullSession;

use crate::allocations;
use crate::mapping::Mapping;
use crate::records::inserts::InsertLog;
use crate::records::{Records, RecordsOf};
use crate::retry::RetryPolicy;
use crate::simulation::{Script, Scripted, SimTimer};
use loadstone_measure::borders::Borders;
use loadstone_measure::borders::NEVER;
use loadstone_measure::client::{ClientContext, drive_client, drive_closed, drive_thread};
use loadstone_measure::clock::Timer;
use loadstone_measure::clock::{Clock, ThreadTimer};
use loadstone_measure::control::End;
use loadstone_measure::diagnostics;
use loadstone_measure::failures::Failures;
use loadstone_measure::lateness::Wait;
use loadstone_measure::observer::{Censored, Closed, Moment};
use loadstone_measure::pulse::{Pulse, TICK_NS};
use loadstone_measure::recorder::Recorder;
use loadstone_measure::recorder::RecorderShape;
use loadstone_measure::recorder::reader::{IntervalAdditions, Readings, RecorderReader, read_totals};
use loadstone_measure::scheduler::Scheduler;
use loadstone_measure::task::Task;
use loadstone_measure::window::{Ending, Window, build_window};
use loadstone_wire::event::{Carried, Sections};
use loadstone_wire::sink::Sink;

const MS: u64 = 1_000_000;

fn core_spec(mix: Mix, operations: u64) -> CoreSpec {
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

/// Reads of records 0, 1, 2 …: the number of the record is the index of the operation.
fn read_only_run(operations: u64) -> CoreRun {
    CoreRun::new(core_spec(Mix { read: 1.0, ..Mix::default() }, operations), 1).unwrap()
}

fn parse_number(key: &[u8]) -> u64 {
    std::str::from_utf8(&key[4..]).unwrap().parse().unwrap()
}

fn constant_rate(per_second: f64) -> Pace {
    let rate = vec![RatePiece { from: per_second, to: per_second, seconds: 0.0 }];
    Pace::new(&PaceSpec::Open { rate, arrival: Arrival::Uniform }, 1).unwrap().unwrap()
}

/// A trial in simulated time.
#[derive(Clone, Copy)]
struct Setting<'a> {
    pace: Option<&'a Pace>,
    clients: usize,
    segment: Segment,
    /// Delay with which the generator wakes.
    late_ns: u64,
    /// Whether the clients share an executor; otherwise each has a thread.
    executor: bool,
    warmup_ns: u64,
    /// The length of the window; with [`NEVER`], the window lasts until the last operation.
    window_ns: u64,
    interval_ns: u64,
    insert_policy: RetryPolicy,
    /// The script for inserts, if it is a separate one.
    inserts: Option<&'a Script>,
    /// File for the ledger, if there is one.
    ledger: Option<&'a str>,
}

const KEEP_GOING: RetryPolicy = RetryPolicy { retries: 0, interval_ns: 0, stop: false, delays: None };

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
        let has_window = self.window_ns != NEVER;
        let end_ns = if has_window { self.warmup_ns + self.window_ns } else { NEVER };
        let first_index = self.pace.map_or(0, |pace| pace.first_due_at(self.warmup_ns));
        let steps = operations.map_or(NEVER, |n| self.segment.share_of_total(n + first_index));
        Borders {
            start_ns: 0,
            first_ns: self.warmup_ns,
            end_ns,
            cutoff_ns: if has_window { end_ns + (self.window_ns / 10).min(5_000 * MS) } else { NEVER },
            interval_ns: self.interval_ns,
            first_index,
            steps,
            counted: NEVER,
            following_ns: 0,
            overdue_ns: NEVER,
        }
    }
}

struct Simulated<W> {
    recorders: Vec<Arc<Recorder>>,
    task: Task<Records<W>>,
    borders: Borders,
    elapsed_ns: u64,
    /// The recordings of each interval.
    additions: BTreeMap<u64, IntervalAdditions>,
}

fn shape(open: bool) -> RecorderShape {
    RecorderShape { steps: Kind::COUNT, sinks: vec![Sink::HdrNs], open, deadline_ns: NEVER, to_unix_ns: 0 }
}

fn create_ledger(file: &str, setting: &Setting<'_>) -> Ledger<Mapping> {
    let layout =
        LedgerLayout { writes: 1_000, clients: setting.clients as u64, workers: 1, ticks: 8, exceptions: 1_000 };
    let mapping = Mapping::create_file(file, layout.word_count().unwrap()).unwrap();
    Ledger::create_in(mapping, layout, LedgerRun { seed: 1, ..LedgerRun::default() }, setting.segment).unwrap()
}

fn task_of<W: RecordWorkload>(
    workload: W,
    pace: Option<&Pace>,
    borders: &Borders,
    setting: &Setting<'_>,
) -> Task<Records<W>> {
    let mut work = Records::new(workload);
    work.inserts = Some(InsertLog::default());
    work.insert_policy = setting.insert_policy;
    work.ledger = setting.ledger.map(|file| create_ledger(file, setting));
    Task {
        scheduler: Scheduler::new(setting.segment, borders, 1),
        pace: pace.cloned(),
        failures: Failures::new(work.workload.step_names().len()),
        to_unix_ns: 0,
        seed: 1,
        work,
    }
}

/// Runs a segment of a workload in which each client has a separate recorder.
fn run_workload<W: RecordWorkload + fmt::Debug + 'static>(
    workload: W,
    setting: &Setting<'_>,
    script: &Script,
) -> Simulated<W> {
    run_in(&SimTimer::default(), workload, setting, script)
}

fn run_in<W: RecordWorkload + fmt::Debug + 'static>(
    timer: &SimTimer,
    workload: W,
    setting: &Setting<'_>,
    script: &Script,
) -> Simulated<W> {
    let has_window = setting.window_ns != NEVER;
    let borders = setting.borders(if has_window { None } else { workload.operation_count() });
    let task = task_of(workload, setting.pace, &borders, setting);
    let clock = timer.waking_late(setting.late_ns);
    let recorders: Vec<Arc<Recorder>> =
        (0..setting.clients).map(|_| Arc::new(Recorder::new(&shape(setting.pace.is_some()), 1))).collect();
    let mut sessions: Vec<Scripted> =
        recorders.iter().map(|_| Scripted::new(timer, script).with_inserts(setting.inserts)).collect();
    let (mut reader, mut additions) = (RecorderReader::new(recorders.clone()), BTreeMap::new());
    let pulse = Pulse::new("a thread".to_owned(), if setting.executor { setting.clients as u64 } else { 0 }, TICK_NS);
    let stripes: Vec<_> = recorders.iter().map(|_| Cell::default()).collect();
    let mut futures: Vec<crate::simulation::SimulatedClient<'_>> = sessions
        .iter_mut()
        .zip(recorders.iter().zip(&stripes))
        .map(|(session, (recorder, stripe))| {
            let context = ClientContext { recorder, client: 0, worker: 0, pulse: &pulse, stripe };
            Box::pin(drive_client(&task, &borders, &clock, session, context)) as crate::simulation::SimulatedClient<'_>
        })
        .collect();
    // The conductor of a real trial also beats a pulse, and reads the recorders once per interval.
    if has_window {
        let (reader, additions) = (&mut reader, &mut additions);
        futures.push(Box::pin(pulse.beat_until(&borders, &clock, || clock.now_ns() > borders.cutoff_ns)));
        futures.push(Box::pin(async move {
            for interval in 0..=borders.interval(borders.end_ns - 1) {
                timer.wait_until(borders.interval_end(interval), || false).await;
                reader.read_intervals(borders.interval(timer.now_ns().min(borders.end_ns - 1)), false, additions);
            }
        }));
    }
    timer.run_clients(futures);
    let elapsed_ns = clock.now_ns();
    reader.read_intervals(borders.interval(elapsed_ns.min(borders.end_ns - 1)), true, &mut additions);
    Simulated { recorders, task, borders, elapsed_ns, additions }
}

/// Runs a workload until its last operation.
fn simulate_load<W: RecordWorkload + fmt::Debug + 'static>(
    workload: W,
    pace: Option<&Pace>,
    clients: usize,
    segment: Segment,
    late_ns: u64,
    script: &Script,
) -> Simulated<W> {
    run_workload(workload, &Setting { segment, late_ns, ..Setting::new(pace, clients) }, script)
}

impl<W> Simulated<W> {
    fn all_readings(&self) -> Readings {
        let mut all = IntervalAdditions::default();
        self.additions.values().for_each(|more| all.merge_additions(more));
        all.latencies.retain(|(step, _), _| *step != Kind::Cleanup.step());
        all.latencies
    }

    fn service_readings(&self) -> BTreeMap<(Kind, Status), Reading> {
        let all = self.all_readings().into_iter();
        all.map(|((step, status), [service, ..])| ((Kind::ALL[usize::from(step.0)], status), service)).collect()
    }

    fn count_operations(&self, kind: Kind, status: Status) -> u64 {
        self.service_readings().get(&(kind, status)).map_or(0, Reading::count)
    }

    fn response_reading(&self) -> Reading {
        self.all_readings()[&(Kind::Read.step(), Status::Ok)][1].clone()
    }

    /// The lower bounds of the response times.
    fn lower_bound(&self) -> Reading {
        self.all_readings()[&(Kind::Read.step(), Status::Ok)][2].clone()
    }

    fn totals(&self) -> loadstone_measure::recorder::reader::Totals {
        read_totals(&self.recorders)
    }

    /// Attempts that failed and were retried.
    fn count_retried(&self) -> u64 {
        self.totals().retried.iter().sum()
    }

    fn has_note(&self, name: &str) -> bool {
        let moment = Moment {
            recorders: &self.recorders,
            failures: &self.task.failures,
            borders: self.borders,
            totals: self.totals(),
            operations: None,
        };
        let all = self.all_readings();
        let closed = Closed {
            moment,
            end: End::Done,
            start_unix_ns: 0,
            window: Window { length_ns: self.elapsed_ns, completed: 0 },
            due: None,
            censored: Censored::default(),
            carried: Carried::default(),
            notes: Vec::new(),
            sections: Sections::default(),
            latencies: &all,
            cpu_ns: [0, 0],
            device_bytes: [0, 0],
            threads: Vec::new(),
            clock: None,
            driver_ns: 0.0,
            settle: None,
            embedded: true,
            collections: Vec::new(),
            connection_attempts: None,
            server_events: Vec::new(),
            open: true,
        };
        let mut notes = diagnostics::notes(&closed);
        notes.extend(diagnostics::generator_limited(&closed, false));
        notes.iter().any(|note| note.name == name)
    }
}

fn collect_reading(values: impl Iterator<Item = u64>) -> Reading {
    let grid = Grid::default();
    values.for_each(|value| grid.record_value(value));
    let mut reading = Reading::default();
    reading.add_grid(&grid);
    reading
}
