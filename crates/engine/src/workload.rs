//! The workload of a spec, as one type: the loop is compiled once for each store, and not once for each pair of store and
//! workload. The branch that this costs always goes the same way; the builds that it saves are three in four.

use loadstone_load::core::{CoreLoad, CoreRun};
use loadstone_load::time_series::{TimeSeriesLoad, TimeSeriesRun};
use loadstone_load::{Check, Operation, Row, Workload};

use crate::error::EngineError;
use crate::spec::{Phase, TrialSpec, WorkloadSpec};

/// What a spec's operations are.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum SpecWorkload {
    /// A load of the core workload.
    CoreLoad(CoreLoad),
    /// A run of it.
    CoreRun(CoreRun),
    /// A load of the time series workload.
    TimeSeriesLoad(TimeSeriesLoad),
    /// A run of it.
    TimeSeriesRun(TimeSeriesRun),
}

impl SpecWorkload {
    /// The workload of a spec. An error when it has nothing to do.
    pub fn of(spec: &TrialSpec) -> Result<Self, EngineError> {
        let nothing = || {
            EngineError::usage("no operation has a proportion above 0")
                .hint("set readproportion, or another …proportion")
        };
        Ok(match (&spec.workload, spec.phase) {
            (WorkloadSpec::Core(core), Phase::Load) => Self::CoreLoad(CoreLoad::new(core.clone(), spec.seed)),
            (WorkloadSpec::Core(core), Phase::Run) => {
                Self::CoreRun(CoreRun::new(core.clone(), spec.seed).ok_or_else(nothing)?)
            }
            (WorkloadSpec::TimeSeries(series), Phase::Load) => {
                Self::TimeSeriesLoad(TimeSeriesLoad::new(series.clone(), spec.seed).map_err(EngineError::usage)?)
            }
            (WorkloadSpec::TimeSeries(series), Phase::Run) => {
                Self::TimeSeriesRun(TimeSeriesRun::new(series.clone(), spec.seed).map_err(EngineError::usage)?)
            }
        })
    }
}

macro_rules! each {
    ($workload:expr, $own:ident => $call:expr) => {
        match $workload {
            SpecWorkload::CoreLoad($own) => $call,
            SpecWorkload::CoreRun($own) => $call,
            SpecWorkload::TimeSeriesLoad($own) => $call,
            SpecWorkload::TimeSeriesRun($own) => $call,
        }
    };
}

impl Workload for SpecWorkload {
    #[inline]
    fn fill(&self, index: u64, operation: &mut Operation) {
        each!(self, own => own.fill(index, operation));
    }

    fn operations(&self) -> Option<u64> {
        each!(self, own => own.operations())
    }

    #[inline]
    fn field_names(&self) -> &[String] {
        each!(self, own => own.field_names())
    }

    #[inline]
    fn verifies(&self) -> bool {
        each!(self, own => own.verifies())
    }

    #[inline]
    fn verify(&self, operation: &Operation, read: &Row) -> Option<Check> {
        each!(self, own => own.verify(operation, read))
    }

    #[inline]
    fn insert_number(&self, record: u64) -> Option<u64> {
        each!(self, own => own.insert_number(record))
    }

    #[inline]
    fn insert_of(&self, operation: &Operation) -> Option<u64> {
        each!(self, own => own.insert_of(operation))
    }

    #[inline]
    fn index_of_insert(&self, number: u64) -> Option<u64> {
        each!(self, own => own.index_of_insert(number))
    }

    fn index_of_delete(&self, record: u64) -> Option<u64> {
        each!(self, own => own.index_of_delete(record))
    }
}
