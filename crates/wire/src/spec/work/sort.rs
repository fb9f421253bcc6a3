//! Workload kind: one stage of a sort.

use loadstone_load::Refusal;
use loadstone_storage::sort::job::{Job, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::WorkRules;
use crate::error::EngineError;
use crate::merge_fields_of;
use crate::merge_rule::Merge;
use crate::spec::TrialSpec;

/// One stage of a sort. The stages run one after another; the caller acts as the barrier between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortSpec {
    /// The stage.
    pub stage: Stage,
    /// The job to generate, sort or validate: the same for every stage and segment.
    pub job: Job,
}

impl WorkRules for SortSpec {
    fn has_clients(&self) -> bool {
        false
    }

    fn validate_trial(&self, _spec: &TrialSpec) -> Result<(), Refusal> {
        Ok(())
    }

    fn check_work(&self, _seed: u64) -> Result<(), EngineError> {
        Ok(self.job.check()?)
    }
}

/// Progress of a sort's stage since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sorted {
    /// Rows processed.
    pub rows: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
    /// Number of bytes written.
    pub bytes_written: u64,
}

merge_fields_of!(Sorted: rows, bytes_read, bytes_written);

/// The result of a sort's stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SortSummary {
    /// The name of the stage.
    pub stage: String,
    /// Rows and bytes processed.
    #[serde(flatten)]
    pub sorted: Sorted,
    /// Duration of the stage, seconds.
    pub seconds: f64,
    /// The checksum of the rows in TeraValidate's format: of this segment's rows or, after `validate` or `commit`, of
    /// all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The complete result of the validation: after `commit`, or after `validate` with one segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

impl Merge for SortSummary {
    fn merge(&mut self, other: Self) {
        self.sorted.merge(other.sorted);
        self.seconds = self.seconds.max(other.seconds);
        // A checksum is a sum over the rows, as a hexadecimal number.
        let number = |text: Option<&String>| u128::from_str_radix(text?, 16).ok();
        let sum = number(self.checksum.as_ref()).zip(number(other.checksum.as_ref()));
        self.checksum = sum.map(|(own, other)| format!("{:x}", own.wrapping_add(other)));
        // The validation is complete only after the last stage, which a single segment runs.
        self.validation = None;
    }
}

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// Number of rows in the output.
    pub rows: u64,
    /// Number of files in the output.
    pub parts: u64,
    /// Number of rows with the same key as the preceding row.
    pub duplicates: u64,
    /// Number of rows that are out of order, or that TeraGen did not generate.
    pub faults: u64,
    /// The first faults, one line per fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_faults: Vec<String>,
}
