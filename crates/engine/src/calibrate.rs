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
use crate::error::EngineError;
use crate::failures::Failures;
use crate::file_log::FileLog;
use crate::ledger;
use crate::pulse::{Pulse, TICK_NS};
use crate::recorder::{Recorder, Shape};
use crate::scheduler::Scheduler;
use crate::spec::TrialSpec;

/// Operations of a thread per probe: about 50 µs, so that on a busy host most probes are not interrupted.
const OPERATIONS: u64 = 250;
/// Bytes of a thread per probe, where operations are large.
const BYTES: u64 = 4 << 20;
/// The minimum of this many probes counts: any disturbance makes a probe longer.
const PROBES: u32 = 200;
/// No probe starts after this.
const BUDGET: Duration = Duration::from_millis(100);

/// ns per operation that the timing loop, the workload, the recorder with the sinks of the trial and its ledger take in the
/// closed loop, with this many concurrent threads: what clients share in a trial, these threads share too. Returns the
/// workload as well.
pub fn driver_ns<N: Connection + Default, W: Work<N> + Send + Sync>(
    workload: W,
    spec: &TrialSpec,
    threads: u64,
    stripe: u64,
) -> Result<(W, f64), EngineError> {
    let mut probe = Probe::new::<N>(workload, spec, threads, stripe)?;
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    for number in 0..PROBES {
        if number > 2 && begin.elapsed() > BUDGET {
            break;
        }
        let ns = probe.measure::<N>();
        best = best.min(ns as f64 * probe.recorders.len() as f64 / probe.borders.steps as f64);
    }
    Ok((probe.task.workload, best))
}

/// Some operations of a trial on a store that does nothing.
struct Probe<W> {
    task: Task<W>,
    borders: Borders,
    stripe: u64,
    /// One per thread for all measurements: only the first touches its memory for the first time.
    recorders: Vec<Recorder>,
}

impl<W: Send + Sync> Probe<W> {
    fn new<N: Connection + Default>(
        workload: W,
        spec: &TrialSpec,
        threads: u64,
        stripe: u64,
    ) -> Result<Self, EngineError>
    where
        W: Work<N>,
    {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let threads = threads.clamp(1, processors);
        let most = (BYTES / workload.operation_bytes().max(1)).clamp(1, OPERATIONS);
        let operations = workload.operations().unwrap_or(u64::MAX).clamp(1, most * threads);
        let borders = Borders { steps: operations, ..Borders::UNLIMITED };
        let shape = Shape {
            steps: workload.steps().len(),
            sinks: spec.sinks.clone(),
            open: false,
            deadline_ns: NEVER,
            to_unix_ns: 0,
        };
        let recorders = (0..threads).map(|_| Recorder::new(&shape, 1)).collect();
        let task = Task {
            failures: Failures::new(shape.steps),
            scheduler: Scheduler::new(Segment::default(), &borders, stripe).in_units(workload.unit()),
            pace: None,
            inserts: None,
            ledger: ledger::create_for_probe(spec, operations, threads)?,
            misses: Misses::default(),
            compared: AtomicU64::new(0),
            insert_policy: InsertPolicy { retries: 0, interval_ns: 0, stop: false },
            files: FileLog::default(),
            to_unix_ns: 0,
            seed: spec.seed,
            workload,
        };
        Ok(Self { task, borders, stripe, recorders })
    }

    /// Performs the operations once: the time of the slowest thread, ns.
    fn measure<N: Connection + Default>(&mut self) -> u64
    where
        W: Work<N>,
    {
        let unit = self.task.workload.unit();
        self.task.scheduler = Scheduler::new(Segment::default(), &self.borders, self.stripe).in_units(unit);
        probe_ns::<N, W>(&self.task, &self.borders, &self.recorders)
    }
}

fn probe_ns<N: Connection + Default, W: Work<N> + Send + Sync>(
    task: &Task<W>,
    borders: &Borders,
    recorders: &[Recorder],
) -> u64 {
    let pulse = Pulse::new("probe".to_owned(), 0, TICK_NS);
    let timed = |worker: usize, recorder: &Recorder| {
        let start = Monotonic.now_ns();
        let context = ClientContext { recorder, client: 0, worker, pulse: &pulse };
        drive_thread(task, borders, ThreadTimer::default(), &mut N::default(), context);
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

#[cfg(test)]
mod tests {
    use loadstone_load::core::CoreRun;
    use loadstone_load::ledger::State;
    use loadstone_stores::null::NullSession;

    use super::*;
    use crate::sink::Sink;
    use crate::spec::{LedgerSpec, WorkSpec};

    #[test]
    fn probe_uses_ledger_and_sinks_of_trial() {
        let mut spec = TrialSpec::parse(include_str!("../fixtures/trial-spec-1.json")).unwrap();
        spec.sinks = vec![Sink::HdrNs, Sink::YcsbRaw];
        spec.ledger = Some(LedgerSpec { file: "/nonexistent/ledger".to_owned() });
        let WorkSpec::Records(core) = &mut spec.work else { panic!("{:?}", spec.work) };
        core.versions = true;
        core.mix.read = 0.0;
        core.mix.update = 1.0;
        let workload = CoreRun::new(core.clone(), 1).unwrap();
        let mut probe = Probe::new::<NullSession>(workload, &spec, 2, 1).unwrap();
        probe.measure::<NullSession>();
        let ledger = probe.task.ledger.as_ref().unwrap();
        ledger.settle();
        assert!((0..probe.borders.steps).all(|write| ledger.state(write) == State::Acknowledged));
        assert!(probe.recorders.iter().all(|recorder| recorder.ycsb.len() == 1));
    }
}
