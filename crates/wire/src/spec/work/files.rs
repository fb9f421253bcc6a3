//! Workload kind: whole files. Outcomes are sums, so segments can be added, and memory use does not grow with the
//! number of files.

use loadstone_load::Refusal;
use loadstone_load::pace::PaceSpec;
use loadstone_storage::file_operations::{FilesSpec, FilesWork};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::WorkRules;
use crate::error::EngineError;
use crate::merge_rule::{Merge, max_known, merge_fields, min_known};
use crate::spec::TrialSpec;

impl WorkRules for FilesSpec {
    fn table_name(&self) -> &str {
        &self.directory
    }

    fn may_create_database(&self) -> bool {
        true
    }

    fn validate_trial(&self, spec: &TrialSpec) -> Result<(), Refusal> {
        if spec.warmup_seconds > 0.0 {
            return Err(Refusal::new(
                "work on files cannot have a warm-up: a file counts from its first byte",
                "leave the warm-up out",
            ));
        }
        if !matches!(spec.pace, PaceSpec::Closed) {
            return Err(Refusal::new(
                "work on files cannot have a rate: a client writes a file as fast as it can",
                "leave the rate out, and use fewer clients for less load",
            ));
        }
        Ok(())
    }

    fn check_work(&self, seed: u64) -> Result<(), EngineError> {
        let files = FilesWork::new(self.clone(), seed);
        files.map(drop).map_err(|(message, hint)| EngineError::usage(message).hint(hint))
    }
}

/// The files of a trial or of a segment. Every figure is a sum, a minimum or a maximum, so segments can be merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesSummary {
    /// Files that were completed.
    pub done: u64,
    /// Files with a failed step or wrong content: none of their bytes count.
    pub failed: u64,
    /// Files that were begun but not completed when the trial ended: their bytes are not included in any figure of the
    /// files.
    pub unfinished: u64,
    /// Files that were read but not completely compared.
    pub unverified: u64,
    /// Unverified files without Loadstone's mark. If other files have the mark, these files were damaged or replaced.
    #[serde(default)]
    pub foreign: u64,
    /// The path of a file without Loadstone's mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_file: Option<String>,
    /// Requests repeated after a failure: reads after a new request to HDFS's name node, writes after reopening the
    /// file.
    #[serde(default)]
    pub retried: u64,
    /// Failed attempts to read from or write to an HDFS data node. After most of them, another node is used.
    #[serde(default)]
    pub data_node_failures: u64,
    /// Bytes read or written in completed files.
    pub bytes: u64,
    /// Bytes read or written in files that were not completed.
    pub lost_bytes: u64,
    /// Sum of the times from open to close over completed files, ns: the divisor of Hadoop's `Throughput`.
    pub task_ns: u64,
    /// Sum of the rates of completed files, each in MB (2^20 bytes) per second.
    pub rate_sum: f64,
    /// Sum of the squared rates of completed files.
    pub rate_square_sum: f64,
    /// The lowest rate of any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_min: Option<f64>,
    /// The highest rate of any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_max: Option<f64>,
    /// Time at which the first file was begun, ns since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_start_unix_ns: Option<u64>,
    /// Time at which the first file was completed; until then, all clients were working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_done_unix_ns: Option<u64>,
    /// Bytes read or written in all files until the first file was completed. A rate computed from this figure is valid
    /// for this segment only.
    #[serde(default)]
    pub first_done_bytes: u64,
    /// Time at which the last file was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_done_unix_ns: Option<u64>,
    /// Files for which every call returned.
    pub returned: Reached,
    /// Files that the file system had received completely, if a flush was requested.
    pub flushed: Reached,
    /// Files that the devices had received completely, if a sync was requested.
    pub durable: Reached,
    /// Files that were closed.
    pub closed: Reached,
    /// The first bytes that differed from the bytes written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongByte>,
}

impl Merge for FilesSummary {
    fn merge(&mut self, other: Self) {
        merge_fields!(self, other: done, failed, unfinished, unverified, foreign);
        self.foreign_file = self.foreign_file.take().or(other.foreign_file);
        merge_fields!(self, other: retried, data_node_failures, bytes, lost_bytes, task_ns);
        self.rate_sum += other.rate_sum;
        self.rate_square_sum += other.rate_square_sum;
        self.rate_min = min_known(self.rate_min, other.rate_min);
        self.rate_max = max_known(self.rate_max, other.rate_max);
        self.first_start_unix_ns = min_known(self.first_start_unix_ns, other.first_start_unix_ns);
        self.first_done_unix_ns = min_known(self.first_done_unix_ns, other.first_done_unix_ns);
        self.last_done_unix_ns = max_known(self.last_done_unix_ns, other.last_done_unix_ns);
        merge_fields!(self, other: returned, flushed, durable, closed, wrong);
    }
}

/// Number of files that reached a given state, and the times at which they reached it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// Number of completed files that reached the state.
    pub files: u64,
    /// The bytes of the completed files that reached the state.
    pub bytes: u64,
    /// Sum of the times from opening a file to reaching the state, ns.
    pub ns: u64,
    /// The last time at which a file reached the state, ns since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unix_ns: Option<u64>,
}

impl Merge for Reached {
    fn merge(&mut self, other: Self) {
        merge_fields!(self, other: files, bytes, ns);
        self.last_unix_ns = max_known(self.last_unix_ns, other.last_unix_ns);
    }
}

/// A byte that differs from the byte written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrongByte {
    /// The path of the file.
    pub file: String,
    /// The byte's offset in the file.
    pub offset: u64,
    /// The byte that was read.
    #[serde(rename = "found")]
    pub actual: u8,
    /// The byte that was written.
    pub expected: u8,
}
