//! One trial: opens the store, connects every session, runs the conductor, closes the store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use loadstone_load::pace::Pace;
use loadstone_stores::{Connection, Options, Store};

use crate::actor::inserts::{InsertLog, InsertPolicy};
use crate::actor::misses::Misses;
use crate::actor::{Task, Work};
use crate::borders::{Borders, NEVER, seconds_ns};
use crate::clock::{Clock, Monotonic, unix_ns};
use crate::conductor::Conductor;
use crate::control::{Control, End};
use crate::error::EngineError;
use crate::failures::Failures;
use crate::file_log::FileLog;
use crate::ledger;
use crate::observer::{Observer, Opened};
use crate::recorder::Shape;
use crate::scheduler::Scheduler;
use crate::spec::{Phase, TrialSpec};
use crate::worker_threads::{Job, WorkerThreads, threads};

/// How many operations a client claims at once where their order does not matter. With more, one client would still have a
/// batch to do when the others are done.
const STRIPE_MAX: u64 = 32;
/// With fewer operations per client than this, they are claimed one by one.
const STRIPED_MIN: u64 = 10_000;

/// Runs a trial on a store of type `S`; sessions of type `N` do nothing, for a probe of the driver.
pub fn run<S: Store, N: Connection + Default, W: Work<S::Session> + Work<N> + Send + Sync>(
    spec: &TrialSpec,
    workload: W,
    controls: &Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<End, EngineError> {
    crate::clock::calibrate();
    let connecting = Instant::now();
    let pace = Pace::new(&spec.pace, spec.seed).map_err(EngineError::usage)?;
    let clients = spec.segment.share(spec.clients);
    let (by_thread, workers) = threads::<S>(clients, spec.executors);
    let operations = [spec.until.operations, workload.operations()].into_iter().flatten().min();
    let unit = workload.unit();
    let operations = operations.map(|n| spec.segment.share(n.div_ceil(unit)) * unit);
    // A ledger's times are those of claims: an operation that was claimed with others could be sent much later.
    let stripe = if by_thread && pace.is_none() && spec.ledger.is_none() && workload.any_order() {
        stripe(operations, clients)
    } else {
        1
    };
    let (workload, driver_ns) = crate::calibrate::driver_ns::<N, W>(workload, spec, workers, stripe)?;
    let store = S::open(&Options {
        properties: spec.store.properties.clone(),
        durability: spec.store.durability.into(),
        table: spec.work.table().to_owned(),
        create: spec.creates(),
        clients: clients as usize,
    })?;
    let guarantee = store.guarantee();
    let borders = Borders::plan(spec, pace.as_ref(), operations)?;
    let shape = Shape {
        steps: workload.steps().len(),
        sinks: spec.sinks.clone(),
        open: pace.is_some(),
        deadline_ns: spec.deadline_ms.map_or(NEVER, |ms| seconds_ns(ms / 1e3)),
        to_unix_ns: unix_ns().wrapping_sub(Monotonic.now_ns()),
    };
    let task = Arc::new(Task {
        failures: Failures::new(shape.steps),
        scheduler: Scheduler::new(spec.segment, &borders, stripe).in_units(unit),
        pace,
        inserts: (spec.phase == Phase::Run).then(InsertLog::new),
        misses: Misses::default(),
        compared: AtomicU64::new(0),
        insert_policy: InsertPolicy {
            retries: spec.inserts.retries,
            interval_ns: seconds_ns(spec.inserts.retry_seconds),
            stop: spec.phase == Phase::Load && !spec.inserts.keep_going,
        },
        ledger: ledger::create(spec, workers)?,
        files: FileLog::default(),
        to_unix_ns: shape.to_unix_ns,
        seed: spec.seed,
        workload,
    });
    let job = Job { store: Arc::new(store), task: Arc::clone(&task), shape, spec: Arc::new(spec.clone()) };
    let keep = Arc::clone(&job.store);
    let workers = WorkerThreads::start(&job, clients)?;
    drop(job);
    observer.ready(&Opened {
        spec,
        guarantee: &guarantee,
        steps: task.workload.steps(),
        clients,
        driver_ns,
        overwrites: workers.overwrites(),
        connect: connecting.elapsed(),
    });
    let mut conductor = Conductor::new(spec, operations, &task, workers, driver_ns);
    let (end, all_ended) = conductor.conduct(borders, controls, observer, &keep);
    if all_ended {
        let closed = Arc::try_unwrap(keep).map_or(Ok(()), Store::close);
        // The failure that stopped the trial is reported, not that of closing the store afterwards.
        if !matches!(end, End::Failed(_)) {
            closed?;
        }
        return Ok(end);
    }
    // A client is still in a call of the store: closing it now could crash, so the process ends without closing it.
    std::mem::forget(keep);
    Ok(end)
}

/// How many operations a client claims at once.
fn stripe(operations: Option<u64>, clients: u64) -> u64 {
    if operations.is_some_and(|n| n / clients.max(1) < STRIPED_MIN) { 1 } else { STRIPE_MAX }
}

impl TrialSpec {
    /// Whether a missing database may be created: by a load, and by a run that only inserts.
    fn creates(&self) -> bool {
        use crate::spec::WorkSpec;
        let only_inserts = match &self.work {
            WorkSpec::Records(records) => {
                let mix = records.mix;
                mix.insert > 0.0
                    && [mix.read, mix.update, mix.scan, mix.read_modify_write, mix.delete].iter().all(|&p| p <= 0.0)
            }
            WorkSpec::TimeSeries(_) | WorkSpec::Files(_) => true,
            WorkSpec::Sort(_) => false,
        };
        self.phase == Phase::Load || only_inserts
    }
}
