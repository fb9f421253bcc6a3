//! The state that the clients of a trial share: the work, and a part that is the same for all workload kinds.

use std::fmt;

use loadstone_load::pace::Pace;
use loadstone_load::{StepId, Workload};
use loadstone_session::{Connection, Placement};

use crate::actor::Actor;
use crate::failures::Failures;
use crate::scheduler::Scheduler;
use loadstone_wire::error::EngineError;
use loadstone_wire::event::{Note, Sections};
use loadstone_wire::spec::TrialSpec;

/// The shared state of the clients of a trial.
#[derive(Debug)]
pub struct Task<W: ?Sized> {
    /// Chooses the next operation.
    pub scheduler: Scheduler,
    /// The due times of operations; `None` in a closed loop.
    pub pace: Option<Pace>,
    /// Error messages of failures.
    pub failures: Failures,
    /// The offset that converts a time on the clients' clock to ns since the Unix epoch.
    pub to_unix_ns: u64,
    pub seed: u64,
    /// The operations and their shared state.
    pub work: W,
}

/// The steps of a workload with operations of any type.
pub trait Steps {
    /// See [`Workload::step_of`].
    fn step_of(&self, index: u64) -> StepId;
}

impl<W: Workload> Steps for W {
    fn step_of(&self, index: u64) -> StepId {
        Workload::step_of(self, index)
    }
}

/// A workload kind, as seen by the conductor of a trial.
pub trait WorkKind: Steps + fmt::Debug + Send + Sync + 'static {
    /// Prepares for a probe of the driver's cost: a few operations in a closed loop, on the given number of threads.
    fn prepare_probe(&mut self, _spec: &TrialSpec, _operations: u64, _threads: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// Prepares for the trial, after the probe.
    fn prepare_trial(&mut self, _spec: &TrialSpec, _workers: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// Prepares to count operations by key range.
    fn count_by_range(&mut self, _spec: &TrialSpec, _placement: Option<Placement>) {}

    /// Notes for the user before the trial starts.
    fn opening_notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// Called when the trial starts, with the start on the clients' clock. Adding `to_unix_ns` gives ns since the Unix
    /// epoch.
    fn start_trial(&self, _start_ns: u64, _to_unix_ns: u64) {}

    /// Called by the conductor, which wakes at least every `awake_ns`, with the number of operations claimed so far.
    /// Returns the time of the next call.
    fn tick(&self, _claimed: u64, _now_ns: u64, _awake_ns: u64) -> u64 {
        u64::MAX
    }

    /// Called when all clients have stopped.
    fn end_trial(&self, _claimed: u64, _now_ns: u64) {}

    /// Notes about the system or the clients, based on the kind's figures.
    fn closing_notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// The kind's sections of the summary.
    fn summary_sections(&self, to_unix_ns: u64) -> Sections;
}

/// Work that can be performed in sessions of type `S`.
#[allow(async_fn_in_trait)]
pub trait Work<S: Connection>: Workload + WorkKind + Sized {
    /// The type that performs the operations.
    type Actor<'a>: Actor<Operation = Self::Operation>
    where
        Self: 'a,
        S: 'a;

    /// Creates an actor for one client of this worker.
    fn create_actor<'a>(task: &'a Task<Self>, session: &'a mut S, worker: usize) -> Self::Actor<'a>;

    /// Inspects the store before the trial starts. Called for one client of the first segment.
    async fn inspect_store(&self, _session: &mut S) {}
}
