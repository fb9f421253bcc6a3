//! The workload of a spec, as one type for each kind of operation: the loop is compiled once for each store and kind, and not
//! for each store and workload. The branch that this costs is perfectly predictable.

use std::ops::Deref;

use loadstone_load::core::{CoreLoad, CoreRun, CoreSpec, Mix};
use loadstone_load::time_series::{SeriesOperation, SeriesWorkload, TimeSeriesLoad, TimeSeriesRun, TimeSeriesSpec};
use loadstone_load::{Check, Operation, RecordWorkload, Row, StepId, Workload};
use loadstone_storage::store::FileSession;
use loadstone_storage::work::{FileOperation, Files, FilesSpec};
use loadstone_stores::Session;

use crate::actor::files::Files as FilesActor;
use crate::actor::overwrites::{Overwrites, find_overwrites};
use crate::actor::records::Records;
use crate::actor::series::Series;
use crate::actor::{Task, Work};
use crate::error::EngineError;
use crate::spec::Phase;

/// The workload on YCSB's records: a load or a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has only one")]
pub enum RecordsOf {
    Load(CoreLoad),
    Run(CoreRun),
}

impl RecordsOf {
    /// The workload of a phase, in the run with this number. An error if it has no operations.
    pub fn new(spec: &CoreSpec, phase: Phase, seed: u64, run: Option<u64>) -> Result<Self, EngineError> {
        Ok(match phase {
            Phase::Load => Self::Load(CoreLoad::new(spec.clone(), seed)),
            Phase::Run => Self::Run(CoreRun::new(spec.clone(), seed).ok_or_else(Mix::refuse_empty)?.with_number(run)),
        })
    }
}

/// The workload on YCSB's time series: a load or a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a process has only one")]
pub enum SeriesOf {
    Load(TimeSeriesLoad),
    Run(TimeSeriesRun),
}

impl SeriesOf {
    /// The workload of a phase. An error if the spec is invalid.
    pub fn new(spec: &TimeSeriesSpec, phase: Phase, seed: u64) -> Result<Self, EngineError> {
        Ok(match phase {
            Phase::Load => Self::Load(TimeSeriesLoad::new(spec.clone(), seed).map_err(EngineError::usage)?),
            Phase::Run => Self::Run(TimeSeriesRun::new(spec.clone(), seed).map_err(EngineError::usage)?),
        })
    }
}

macro_rules! workload {
    ($workload:ident, $operation:ty) => {
        impl Workload for $workload {
            type Operation = $operation;

            fn steps(&self) -> &'static [&'static str] {
                match self {
                    Self::Load(load) => load.steps(),
                    Self::Run(run) => run.steps(),
                }
            }

            #[inline]
            fn fill(&self, index: u64, operation: &mut $operation) {
                match self {
                    Self::Load(load) => load.fill(index, operation),
                    Self::Run(run) => run.fill(index, operation),
                }
            }

            fn step_of(&self, index: u64) -> StepId {
                match self {
                    Self::Load(load) => load.step_of(index),
                    Self::Run(run) => run.step_of(index),
                }
            }

            fn operations(&self) -> Option<u64> {
                match self {
                    Self::Load(load) => load.operations(),
                    Self::Run(run) => run.operations(),
                }
            }

            fn any_order(&self) -> bool {
                match self {
                    Self::Load(load) => load.any_order(),
                    Self::Run(run) => run.any_order(),
                }
            }
        }
    };
}

workload!(RecordsOf, Operation);
workload!(SeriesOf, SeriesOperation);

impl RecordWorkload for RecordsOf {
    #[inline]
    fn field_names(&self) -> &[String] {
        match self {
            Self::Load(load) => load.field_names(),
            Self::Run(run) => run.field_names(),
        }
    }

    // A load reads and deletes nothing, and no operation depends on its inserts.

    #[inline]
    fn verifies(&self) -> bool {
        matches!(self, Self::Run(run) if run.verifies())
    }

    #[inline]
    fn verify(&self, operation: &Operation, read: &Row) -> Option<Check> {
        if let Self::Run(run) = self { run.verify(operation, read) } else { None }
    }

    #[inline]
    fn compares(&self, index: u64) -> bool {
        matches!(self, Self::Run(run) if run.compares(index))
    }

    #[inline]
    fn insert_number(&self, record: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.insert_number(record) } else { None }
    }

    fn index_of_insert(&self, number: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.index_of_insert(number) } else { None }
    }

    #[inline]
    fn write_number(&self, index: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.write_number(index) } else { None }
    }

    fn index_of_delete(&self, record: u64) -> Option<u64> {
        if let Self::Run(run) = self { run.index_of_delete(record) } else { None }
    }
}

impl SeriesWorkload for SeriesOf {
    fn verifies(&self) -> bool {
        matches!(self, Self::Run(run) if run.verifies())
    }

    fn verify(&self, operation: &SeriesOperation, read: &Row) -> Option<Check> {
        if let Self::Run(run) = self { run.verify(operation, read) } else { None }
    }
}

impl<S: Session, W: RecordWorkload + 'static> Work<S> for W {
    type Actor<'a>
        = Records<'a, S, W>
    where
        W: 'a,
        S: 'a;

    fn actor<'a>(task: &'a Task<Self>, session: &'a mut S, worker: usize) -> Self::Actor<'a> {
        Records::new(task, session, worker)
    }

    async fn find_overwrites(&self, session: &mut S) -> Option<Overwrites> {
        find_overwrites(self, session).await
    }
}

impl<S: Session> Work<S> for SeriesOf {
    type Actor<'a>
        = Series<'a, S, Self>
    where
        S: 'a;

    fn actor<'a>(task: &'a Task<Self>, session: &'a mut S, _worker: usize) -> Self::Actor<'a> {
        Series::new(task, session)
    }
}

/// The workload on files. A type of this crate, since a foreign one could come to implement `RecordWorkload`.
#[derive(Debug)]
pub struct FilesOf(Files);

impl FilesOf {
    /// The workload of a spec. An error if the spec is invalid.
    pub fn new(spec: &FilesSpec, seed: u64) -> Result<Self, EngineError> {
        let files = Files::new(spec.clone(), seed);
        files.map(Self).map_err(|(message, hint)| EngineError::usage(message).hint(hint))
    }
}

impl Deref for FilesOf {
    type Target = Files;

    #[inline]
    fn deref(&self) -> &Files {
        &self.0
    }
}

impl Workload for FilesOf {
    type Operation = FileOperation;

    fn steps(&self) -> &'static [&'static str] {
        self.0.steps()
    }

    #[inline]
    fn fill(&self, index: u64, operation: &mut FileOperation) {
        self.0.fill(index, operation);
    }

    fn step_of(&self, index: u64) -> StepId {
        self.0.step_of(index)
    }

    fn operations(&self) -> Option<u64> {
        self.0.operations()
    }

    fn any_order(&self) -> bool {
        self.0.any_order()
    }

    fn unit(&self) -> u64 {
        self.0.unit()
    }

    fn operation_bytes(&self) -> u64 {
        self.0.operation_bytes()
    }
}

impl<S: FileSession> Work<S> for FilesOf {
    type Actor<'a>
        = FilesActor<'a, S>
    where
        S: 'a;

    fn actor<'a>(task: &'a Task<Self>, session: &'a mut S, _worker: usize) -> Self::Actor<'a> {
        FilesActor::new(task, session)
    }
}
