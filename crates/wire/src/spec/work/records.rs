//! Workload kind: records with fields.

use loadstone_load::Refusal;
use loadstone_load::core::CoreSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::WorkRules;
use crate::merge_fields_of;
use crate::merge_rule::Merge;
use crate::spec::{Phase, TrialSpec};

impl WorkRules for CoreSpec {
    fn table_name(&self) -> &str {
        &self.table
    }

    fn may_create_database(&self) -> bool {
        let mix = self.mix;
        mix.insert > 0.0
            && [mix.read, mix.update, mix.scan, mix.read_modify_write, mix.delete].iter().all(|&p| p <= 0.0)
    }

    fn validate_trial(&self, spec: &TrialSpec) -> Result<(), Refusal> {
        self.check_spec(spec.phase == Phase::Run)
    }

    fn validate_ledger(&self, phase: Phase) -> Result<(), Refusal> {
        if phase == Phase::Load {
            return Err(Refusal::new(
                "a ledger is for a run, not for a load",
                "load with {work.versions}=true and a seed, then run with the same seed and {ledger}=FILE",
            ));
        }
        if !self.versions {
            return Err(Refusal::new(
                "a ledger needs values that identify their writes",
                "set {work.versions} to true",
            ));
        }
        Ok(())
    }
}

/// Operations by key range and by the interval in which they were due. A key range consists of the keys whose copies
/// were on the same servers when the trial began. All tables are empty if segments had different ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRanges {
    /// The length of an interval, ns.
    pub interval_ns: u64,
    /// The share of the partitioner's values that belong to each range.
    pub shares: Vec<f64>,
    /// Operations that were sent, for each range, by interval; without operations whose outcome is `NOT_YET`.
    pub sent: Vec<Vec<u64>>,
    /// The times, in ascending order, by which `good` is divided, ns.
    pub deadlines_ns: Vec<u64>,
    /// For each deadline, operations that succeeded by this deadline but not by the previous one, by range and interval
    /// as in `sent`.
    pub good: Vec<Vec<Vec<u64>>>,
}

impl Merge for KeyRanges {
    fn merge(&mut self, other: Self) {
        if (self.interval_ns, &self.shares, &self.deadlines_ns)
            != (other.interval_ns, &other.shares, &other.deadlines_ns)
        {
            *self = Self::default();
            return;
        }
        let own = self.sent.iter_mut().chain(self.good.iter_mut().flatten()).flatten();
        let added = other.sent.into_iter().chain(other.good.into_iter().flatten()).flatten();
        own.zip(added).for_each(|(own, added)| own.merge(added));
    }
}

/// Reads that did not find a record inserted by another segment: `loadstone ledger --events` decides how they count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unsettled {
    /// Number of reads.
    pub count: u64,
    /// The first reads; further reads are only counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Missed>,
}

merge_fields_of!(Unsettled: count, first);

/// A read that did not find a record inserted by another segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// The index of the insert in the whole trial.
    pub index: u64,
    /// Time at which the read was sent, ns since the Unix epoch.
    pub sent_unix_ns: u64,
}
