//! One stage of a sort.

use loadstone_load::Refusal;
use loadstone_storage::sort::job::{Job, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::WorkRules;
use crate::error::EngineError;
use crate::merge::Merge;
use crate::merge_fields_of;
use crate::spec::TrialSpec;

/// One stage of a sort. The stages run one after another; their caller is the barrier between them.
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

    fn validate(&self, _spec: &TrialSpec) -> Result<(), Refusal> {
        Ok(())
    }

    fn check(&self, _seed: u64) -> Result<(), EngineError> {
        Ok(self.job.check()?)
    }
}

/// Progress of a stage of a sort, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sorted {
    /// Rows done.
    pub rows: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

merge_fields_of!(Sorted: rows, bytes_read, bytes_written);

/// The result of a stage of a sort.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SortSummary {
    /// The stage.
    pub stage: String,
    /// Rows and bytes processed.
    #[serde(flatten)]
    pub sorted: Sorted,
    /// Duration, seconds.
    pub seconds: f64,
    /// The checksum of the rows in TeraValidate's format: of this segment, or of all rows after `validate` or `commit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The complete result of validation: after `validate` by one segment, or `commit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

impl Merge for SortSummary {
    fn merge(&mut self, other: Self) {
        self.sorted.merge(other.sorted);
        self.seconds = self.seconds.max(other.seconds);
        // A checksum is a sum over the rows, in hexadecimal digits.
        let number = |text: Option<&String>| u128::from_str_radix(text?, 16).ok();
        let sum = number(self.checksum.as_ref()).zip(number(other.checksum.as_ref()));
        self.checksum = sum.map(|(own, other)| format!("{:x}", own.wrapping_add(other)));
        // Complete only after the last stage, which a single segment runs.
        self.validation = None;
    }
}

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// Rows in the output.
    pub rows: u64,
    /// Files of the output.
    pub parts: u64,
    /// Rows with the same key as the preceding row.
    pub duplicates: u64,
    /// Rows that are out of order, or that TeraGen did not generate.
    pub faults: u64,
    /// The first of these faults, one line per fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_faults: Vec<String>,
}
