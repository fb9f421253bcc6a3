//! One trial: opens the store, connects every session, has it conducted, closes the store.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use loadstone_load::Workload;
use loadstone_load::pace::Pace;
use loadstone_stores::{Options, Store};

use crate::conductor::Conductor;
use crate::control::{Control, End};
use crate::course::{Acks, Course};
use crate::error::EngineError;
use crate::observer::{Observer, Opened};
use crate::spec::{Phase, TrialSpec};
use crate::workers::{Crew, Job};

/// Runs a trial on a store of type `S`.
pub fn run<S: Store, W: Workload + 'static>(
    spec: &TrialSpec,
    workload: W,
    controls: &Receiver<Control>,
    observer: &mut dyn Observer,
) -> Result<End, EngineError> {
    crate::clock::calibrate();
    let connecting = Instant::now();
    let workload = Arc::new(workload);
    let pace = Pace::new(&spec.pace, spec.seed).map_err(EngineError::usage)?;
    let driver_ns = crate::calibrate::driver_ns(&*workload, spec.seed);
    let clients = spec.segment.share(spec.clients);
    let store = S::open(&Options {
        properties: spec.store.properties.clone(),
        durability: spec.store.durability.into(),
        table: spec.workload.table().to_owned(),
        create: spec.creates(),
        clients: clients as usize,
    })?;
    let promise = store.promise();
    let operations = [spec.until.operations, workload.operations()].into_iter().flatten().min();
    let course = Course::new(spec.segment, operations.map_or(u64::MAX, |n| spec.segment.share(n)));
    if spec.warmup_seconds > 0.0 {
        course.warm_up();
    }
    let job = Job {
        store: Arc::new(store),
        workload: Arc::clone(&workload),
        course: Arc::new(course),
        pace: pace.map(Arc::new),
        acks: (spec.phase == Phase::Run).then(|| Arc::new(Acks::new())),
        spec: Arc::new(spec.clone()),
    };
    let course = Arc::clone(&job.course);
    let pace = job.pace.clone();
    let keep = Arc::clone(&job.store);
    let crew = Crew::hire(&job, clients)?;
    drop(job);
    observer.ready(&Opened { spec, promise: &promise, clients, driver_ns, connect: connecting.elapsed() });
    let operations = operations.map(|n| spec.segment.share(n));
    let mut conductor = Conductor { spec, operations, course: &course, pace: pace.as_deref(), crew, driver_ns };
    let (end, all_home) = conductor.conduct(controls, observer, &*keep);
    if all_home {
        let closed = Arc::try_unwrap(keep).map_or(Ok(()), Store::close);
        // What stopped a trial is told, not what closing the store then ran into.
        if !matches!(end, End::Failed(_)) {
            closed?;
        }
        return Ok(end);
    }
    // A client still sits in a call of the store: closing under it would crash, so the process ends without.
    std::mem::forget(keep);
    Ok(end)
}

impl TrialSpec {
    /// Whether a missing database may be made: by a load, and by a run that does nothing but insert.
    fn creates(&self) -> bool {
        use crate::spec::WorkloadSpec;
        let only_inserts = match &self.workload {
            WorkloadSpec::Core(core) => {
                let mix = core.mix;
                mix.insert > 0.0
                    && [mix.read, mix.update, mix.scan, mix.read_modify_write, mix.delete].iter().all(|&p| p <= 0.0)
            }
            WorkloadSpec::TimeSeries(_) => true,
        };
        self.phase == Phase::Load || only_inserts
    }
}
