//! Runs one trial: opens the store, connects every session, runs the conductor and closes the store.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use loadstone_load::Workload;
use loadstone_load::pace::Pace;
use loadstone_session::Options;

use crate::borders::{Borders, NEVER, seconds_ns};
use crate::clock::{Clock, Monotonic, unix_ns};
use crate::conductor::Conductor;
use crate::control::{Control, End};
use crate::crew::{OpenedStore, Target};
use crate::failures::Failures;
use crate::observer::{self, Observer};
use crate::recorder::RecorderShape;
use crate::scheduler::Scheduler;
use crate::task::{Task, WorkKind};
use crate::worker_threads::{WorkerJob, WorkerThreads, count_threads};
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::TrialSpec;

/// Number of operations that a worker claims at once if their order does not matter. With a larger number, one worker
/// would still have a batch to perform when the other workers are done.
const STRIPE_MAX: u64 = 32;
/// With fewer operations per worker than this, operations are claimed one by one.
const STRIPED_MIN: u64 = 10_000;

/// Runs a trial of the given work on a target.
pub fn run_trial<W: Workload + WorkKind>(
    spec: &TrialSpec,
    mut work: W,
    target: &dyn Target<W>,
    controls: &Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<End, EngineError> {
    crate::clock::calibrate();
    let connecting = Instant::now();
    let pace = Pace::new(&spec.pace, spec.seed).map_err(EngineError::usage)?;
    let clients = spec.segment.share_of_total(spec.clients);
    let driving = target.driving_mode();
    let (by_thread, workers) = count_threads(&driving, clients, spec.executors);
    let operations = [spec.until.operations, work.operation_count()].into_iter().flatten().min();
    let unit = work.unit();
    let operations = operations.map(|n| spec.segment.share_of_total(n.div_ceil(unit)) * unit);
    // The times in a ledger are the times of claims, and an operation claimed in a batch might be sent much later.
    let stripe = if pace.is_none() && spec.ledger.is_none() && work.any_order() {
        stripe_length(operations, workers)
    } else {
        1
    };
    let driver_ns;
    (work, driver_ns) = crate::calibrate::driver_ns(work, target, spec, workers, stripe)?;
    let OpenedStore { store, crew } = target.open_store(&Options {
        properties: spec.store.properties.clone(),
        durability: spec.store.durability,
        table: spec.work.rules().table_name().to_owned(),
        create: spec.may_create_database(),
        clients: clients as usize,
    })?;
    let guarantee = store.guarantee();
    let borders = Borders::plan(spec, pace.as_ref(), operations)?;
    let steps = work.step_names();
    let shape = RecorderShape {
        steps: steps.len(),
        sinks: spec.sinks.clone(),
        open: pace.is_some(),
        deadline_ns: spec.deadline_ms.map_or(NEVER, |ms| seconds_ns(ms / 1e3)),
        to_unix_ns: unix_ns().wrapping_sub(Monotonic.now_ns()),
    };
    work.prepare_trial(spec, workers)?;
    if spec.key_ranges {
        work.count_by_range(spec, store.placement());
    }
    let task = Arc::new(Task {
        failures: Failures::new(shape.steps),
        scheduler: Scheduler::new(spec.segment, &borders, stripe).with_units(unit),
        pace,
        to_unix_ns: shape.to_unix_ns,
        seed: spec.seed,
        work,
    });
    let job = WorkerJob {
        crew: Arc::new(crew(Arc::clone(&task), by_thread)),
        task: Arc::clone(&task) as _,
        shape,
        spec: Arc::new(spec.clone()),
        stack_bytes: driving.stack_bytes,
        workers,
        connections: store.connections(clients),
    };
    let workers = WorkerThreads::start(&job, clients)?;
    drop(job);
    observer.report_ready(&observer::OpenedTrial {
        spec,
        guarantee: &guarantee,
        steps,
        clients,
        driver_ns,
        notes: &task.work.opening_notes(),
        connect: connecting.elapsed(),
    });
    let mut conductor = Conductor::new(spec, operations, &*task, workers, driver_ns);
    let (end, all_ended) = conductor.conduct_trial(borders, controls, observer, &store);
    if all_ended {
        let closed = store.close();
        // The failure that stopped the trial is reported, rather than a later failure to close the store.
        if !matches!(end, End::Failed(_)) {
            closed?;
        }
        return Ok(end);
    }
    // A client is still in a call to the store. Closing the store now could crash, so the process exits without closing
    // it.
    std::mem::forget(store);
    Ok(end)
}

/// The number of operations that a worker claims at once.
fn stripe_length(operations: Option<u64>, workers: u64) -> u64 {
    if operations.is_some_and(|n| n / workers.max(1) < STRIPED_MIN) { 1 } else { STRIPE_MAX }
}
