//! Workload kind: YCSB's time series.

use loadstone_load::Refusal;
use loadstone_load::time_series::TimeSeriesSpec;

use super::rules::WorkRules;
use crate::spec::{Phase, TrialSpec};

impl WorkRules for TimeSeriesSpec {
    fn table(&self) -> &str {
        &self.table
    }

    fn creates(&self) -> bool {
        true
    }

    fn validate(&self, spec: &TrialSpec) -> Result<(), Refusal> {
        self.check(spec.phase == Phase::Run)
    }
}
