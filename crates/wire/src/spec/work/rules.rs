//! The rules of a workload kind for a spec.

use loadstone_load::Refusal;

use crate::error::EngineError;
use crate::spec::{Phase, TrialSpec};

/// The rules of a workload kind for a spec.
pub trait WorkRules {
    /// The table of all operations; for files, their directory; empty if the work names its tables.
    #[expect(clippy::unnecessary_literal_bound, reason = "most kinds return a field")]
    fn table(&self) -> &str {
        ""
    }

    /// Whether a run of this work may create a missing database.
    fn creates(&self) -> bool {
        false
    }

    /// Whether this work has clients, due times and a store.
    fn has_clients(&self) -> bool {
        true
    }

    /// Refuses work that cannot be run. The refusal has the paths of fields in braces.
    fn validate(&self, spec: &TrialSpec) -> Result<(), Refusal>;

    /// Refuses work by rules that apply only without a front end.
    fn check(&self, _seed: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// Refuses a ledger for work that cannot have one.
    fn validate_ledger(&self, _phase: Phase) -> Result<(), Refusal> {
        Err(Refusal::new("this workload kind has no ledger", "leave {ledger} out"))
    }
}
