//! The rules that a workload kind applies to a spec.

use loadstone_load::Refusal;

use crate::error::EngineError;
use crate::spec::{Phase, TrialSpec};

/// The rules that a workload kind applies to a spec.
pub trait WorkRules {
    /// The table of all operations, or the directory of all files; empty if the work itself names its tables.
    #[expect(clippy::unnecessary_literal_bound, reason = "most kinds return a field")]
    fn table_name(&self) -> &str {
        ""
    }

    /// Whether a run of this work may create a missing database.
    fn may_create_database(&self) -> bool {
        false
    }

    /// Whether this work has clients, due times and a store.
    fn has_clients(&self) -> bool {
        true
    }

    /// Refuses work that cannot be run. In the refusal, paths of fields are in braces.
    fn validate_trial(&self, spec: &TrialSpec) -> Result<(), Refusal>;

    /// Refuses work by further rules, which [`TrialSpec::check`] applies and [`TrialSpec::validate`] does not.
    fn check_work(&self, _seed: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// Refuses a ledger for work that does not support one.
    fn validate_ledger(&self, _phase: Phase) -> Result<(), Refusal> {
        Err(Refusal::new("this workload kind has no ledger", "leave {ledger} out"))
    }
}
