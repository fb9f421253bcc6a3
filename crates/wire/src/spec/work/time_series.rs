//! Workload kind: YCSB's time series.

use loadstone_load::Refusal;
use loadstone_load::time_series::TimeSeriesSpec;

use super::rules::WorkRules;
use crate::spec::{Phase, TrialSpec};

impl WorkRules for TimeSeriesSpec {
    fn table_name(&self) -> &str {
        &self.table
    }

    fn may_create_database(&self) -> bool {
        true
    }

    fn validate_trial(&self, spec: &TrialSpec) -> Result<(), Refusal> {
        self.check_spec(spec.phase == Phase::Run)
    }
}
