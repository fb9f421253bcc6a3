//! Measures the driver's own cost: runs the trial's operations on a null store for a short time before the trial.

use std::cell::Cell;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use loadstone_load::{Segment, Workload};

use crate::borders::{Borders, NEVER};
use crate::client::ClientContext;
use crate::clock::{Clock, Monotonic};
use crate::crew::Target;
use crate::failures::Failures;
use crate::pulse::{Pulse, TICK_NS};
use crate::recorder::{Recorder, RecorderShape};
use crate::scheduler::Scheduler;
use crate::task::{Task, WorkKind};
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::TrialSpec;

/// Operations per thread and probe. A probe takes about 50 µs, so that most probes are not interrupted on a busy host.
const OPERATIONS: u64 = 250;
/// Bytes per thread and probe, if operations are large.
const BYTES: u64 = 4 << 20;
/// Maximum number of probes. The shortest one counts, because any disturbance makes a probe longer.
const PROBES: u32 = 200;
/// After the first three probes, no probe starts later than this time after the first one started.
const BUDGET: Duration = Duration::from_millis(100);

/// The time that the timing loop, the work and the recorder take per operation, including the trial's sinks and ledger,
/// in ns. It is measured in a closed loop on `threads` concurrent threads (at most one per processor), which share
/// state as the clients of a trial do. Also returns the work.
pub fn driver_ns<W: Workload + WorkKind>(
    work: W,
    target: &dyn Target<W>,
    spec: &TrialSpec,
    threads: u64,
    stripe: u64,
) -> Result<(W, f64), EngineError> {
    let mut probe = Probe::new(work, spec, threads, stripe)?;
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    for number in 0..PROBES {
        if number > 2 && begin.elapsed() > BUDGET {
            break;
        }
        let ns = probe.measure_cost(target);
        best = best.min(ns as f64 * probe.recorders.len() as f64 / probe.borders.steps as f64);
    }
    Ok((probe.task.work, best))
}

/// A few operations of a trial, performed on a store that does nothing.
#[derive(Debug)]
pub struct Probe<W> {
    pub task: Task<W>,
    pub borders: Borders,
    stripe: u64,
    /// One recorder per thread is used for all measurements, because the first use of its memory is slower.
    pub recorders: Vec<Recorder>,
}

impl<W: Workload + WorkKind> Probe<W> {
    /// A probe with the sinks of a trial, and with the state that the trial's work prepares.
    pub fn new(mut work: W, spec: &TrialSpec, threads: u64, stripe: u64) -> Result<Self, EngineError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let threads = threads.clamp(1, processors);
        let most = (BYTES / work.operation_bytes().max(1)).clamp(1, OPERATIONS);
        let operations = work.operation_count().unwrap_or(u64::MAX).clamp(1, most * threads);
        let borders = Borders { steps: operations, ..Borders::UNLIMITED };
        let shape = RecorderShape {
            steps: work.step_names().len(),
            sinks: spec.sinks.clone(),
            open: false,
            deadline_ns: NEVER,
            to_unix_ns: 0,
        };
        let recorders = (0..threads).map(|_| Recorder::new(&shape, 1)).collect();
        work.prepare_probe(spec, operations, threads)?;
        let task = Task {
            failures: Failures::new(shape.steps),
            scheduler: Scheduler::new(Segment::default(), &borders, stripe).with_units(work.unit()),
            pace: None,
            to_unix_ns: 0,
            seed: spec.seed,
            work,
        };
        Ok(Self { task, borders, stripe, recorders })
    }

    /// Performs the operations once. Returns the time of the slowest thread, ns.
    pub fn measure_cost(&mut self, target: &dyn Target<W>) -> u64 {
        let unit = self.task.work.unit();
        self.task.scheduler = Scheduler::new(Segment::default(), &self.borders, self.stripe).with_units(unit);
        probe_ns(&self.task, target, &self.borders, &self.recorders)
    }
}

fn probe_ns<W: WorkKind>(task: &Task<W>, target: &dyn Target<W>, borders: &Borders, recorders: &[Recorder]) -> u64 {
    let pulse = Pulse::new("probe".to_owned(), 0, TICK_NS);
    let timed = |worker: usize, recorder: &Recorder| {
        let start = Monotonic.now_ns();
        let context = ClientContext { recorder, client: 0, worker, pulse: &pulse, stripe: &Cell::default() };
        target.probe_operations(task, borders, context);
        Monotonic.now_ns().saturating_sub(start)
    };
    let [first, rest @ ..] = recorders else { return 0 };
    if rest.is_empty() {
        return timed(0, first);
    }
    let start = Barrier::new(recorders.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = rest
            .iter()
            .zip(1..)
            .map(|(recorder, worker)| {
                let (start, timed) = (&start, &timed);
                scope.spawn(move || {
                    start.wait();
                    timed(worker, recorder)
                })
            })
            .collect();
        start.wait();
        let first_ns = timed(0, first);
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(first_ns, u64::max)
    })
}
