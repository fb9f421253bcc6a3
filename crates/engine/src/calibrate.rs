//! The driver's own cost: the trial's operations on a null store, for a short time before the trial.

use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use loadstone_load::Segment;
use loadstone_stores::Connection;

use crate::actor::inserts::InsertPolicy;
use crate::actor::misses::Misses;
use crate::actor::{Task, Work};
use crate::borders::{Borders, NEVER};
use crate::client::{ClientContext, drive_thread};
use crate::clock::{Clock, Monotonic, ThreadTimer};
use crate::failures::Failures;
use crate::file_log::FileLog;
use crate::pulse::{Pulse, TICK_NS};
use crate::recorder::{Recorder, Shape};
use crate::scheduler::Scheduler;
use crate::sink::Sink;

/// Operations of a thread per probe: about 50 µs, so that on a busy host most probes are not interrupted.
const OPERATIONS: u64 = 250;
/// Bytes of a thread per probe, where operations are large.
const BYTES: u64 = 4 << 20;
/// The minimum of this many probes counts: any disturbance makes a probe longer.
const PROBES: u32 = 200;
/// No probe starts after this.
const BUDGET: Duration = Duration::from_millis(100);

/// ns per operation that the timing loop, the workload and the recorder take in the closed loop, with this many concurrent
/// threads: what clients share in a trial, these threads share too. Returns the workload as well.
pub fn driver_ns<N: Connection + Default, W: Work<N> + Send + Sync>(
    workload: W,
    seed: u64,
    threads: u64,
    stripe: u64,
) -> (W, f64) {
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let threads = threads.clamp(1, processors);
    let most = (BYTES / workload.operation_bytes().max(1)).clamp(1, OPERATIONS);
    let operations = workload.operations().unwrap_or(u64::MAX).clamp(1, most * threads);
    let borders = Borders { steps: operations, ..Borders::UNLIMITED };
    let shape = Shape {
        steps: workload.steps().len(),
        sinks: vec![Sink::HdrNs],
        open: false,
        deadline_ns: NEVER,
        to_unix_ns: 0,
    };
    // One recorder per thread for all probes: only the first probe touches its memory for the first time.
    let recorders: Vec<Recorder> = (0..threads).map(|_| Recorder::new(&shape, 1)).collect();
    let mut task = Task {
        failures: Failures::new(shape.steps),
        scheduler: Scheduler::new(Segment::default(), &borders, stripe).in_units(workload.unit()),
        pace: None,
        inserts: None,
        ledger: None,
        misses: Misses::default(),
        compared: AtomicU64::new(0),
        insert_policy: InsertPolicy { retries: 0, interval_ns: 0, stop: false },
        files: FileLog::default(),
        to_unix_ns: 0,
        seed,
        workload,
    };
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    for probe in 0..PROBES {
        if probe > 2 && begin.elapsed() > BUDGET {
            break;
        }
        task.scheduler = Scheduler::new(Segment::default(), &borders, stripe).in_units(task.workload.unit());
        let ns = probe_ns::<N, W>(&task, &borders, &recorders);
        best = best.min(ns as f64 * threads as f64 / operations as f64);
    }
    (task.workload, best)
}

/// The time of the slowest thread.
fn probe_ns<N: Connection + Default, W: Work<N> + Send + Sync>(
    task: &Task<W>,
    borders: &Borders,
    recorders: &[Recorder],
) -> u64 {
    let pulse = Pulse::new("probe".to_owned(), 0, TICK_NS);
    let timed = |recorder: &Recorder| {
        let start = Monotonic.now_ns();
        let context = ClientContext { recorder, client: 0, worker: 0, pulse: &pulse };
        drive_thread(task, borders, ThreadTimer::default(), &mut N::default(), context);
        Monotonic.now_ns().saturating_sub(start)
    };
    let [first, others @ ..] = recorders else { return 0 };
    if others.is_empty() {
        return timed(first);
    }
    let start = Barrier::new(recorders.len());
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .iter()
            .map(|recorder| {
                let (start, timed) = (&start, &timed);
                scope.spawn(move || {
                    start.wait();
                    timed(recorder)
                })
            })
            .collect();
        start.wait();
        let first_ns = timed(first);
        others.into_iter().filter_map(|other| other.join().ok()).fold(first_ns, u64::max)
    })
}
