//! The workload kinds. Each kind has its operations, the actor that performs them, the state that its clients share,
//! and its section of the summary.

#![allow(missing_docs, reason = "fields whose names say everything")]

/// Calls the same method on the variant that `self` has: a load or a run.
macro_rules! either {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self {
            Self::Load(load) => load.$method($($argument),*),
            Self::Run(run) => run.$method($($argument),*),
        }
    };
}

/// A workload that is either a load or a run with the same type of operations.
macro_rules! load_or_run {
    ($workload:ident, $operation:ty) => {
        impl Workload for $workload {
            type Operation = $operation;

            fn step_names(&self) -> &'static [&'static str] {
                either!(self.step_names())
            }

            #[inline]
            fn fill_operation(&self, index: u64, operation: &mut $operation) {
                either!(self.fill_operation(index, operation))
            }

            fn step_of(&self, index: u64) -> StepId {
                either!(self.step_of(index))
            }

            fn operation_count(&self) -> Option<u64> {
                either!(self.operation_count())
            }

            fn any_order(&self) -> bool {
                either!(self.any_order())
            }
        }
    };
}

/// Implements `Workload` for the type of a workload kind by forwarding to its field `workload`. The type also contains
/// the state that clients share.
macro_rules! forward_workload {
    ($kind:ident $(<$parameter:ident: $bound:path>)?, $operation:ty) => {
        impl$(<$parameter: $bound>)? Workload for $kind$(<$parameter>)? {
            type Operation = $operation;

            fn step_names(&self) -> &'static [&'static str] {
                self.workload.step_names()
            }

            #[inline]
            fn fill_operation(&self, index: u64, operation: &mut $operation) {
                self.workload.fill_operation(index, operation);
            }

            fn step_of(&self, index: u64) -> StepId {
                self.workload.step_of(index)
            }

            fn operation_count(&self) -> Option<u64> {
                self.workload.operation_count()
            }

            fn any_order(&self) -> bool {
                self.workload.any_order()
            }

            fn unit(&self) -> u64 {
                self.workload.unit()
            }

            fn operation_bytes(&self) -> u64 {
                self.workload.operation_bytes()
            }
        }
    };
}

pub mod columns;
pub mod files;
pub mod mapping;
pub mod record_trials;
pub mod records;
pub mod retry;
pub mod series;
pub mod sort;
pub mod statement_actor;
pub mod statements;
pub mod stores;
pub mod stress;

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod loop_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod worker_tests;
