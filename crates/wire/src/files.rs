//! The outcomes of a trial's files: sums, so that segments can be added up and memory does not grow with their number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::merge::{Merge, max_known, min_known};

/// The files of a trial or of a segment. Every figure is a sum, a minimum or a maximum, so that segments can be merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesSummary {
    /// Files that are done.
    pub done: u64,
    /// Files with a failed step or wrong content: none of their bytes count.
    pub failed: u64,
    /// Files that were begun but not done when the trial ended: their bytes count in no file figure.
    pub unfinished: u64,
    /// Files that were read but not compared, at least in part.
    pub unverified: u64,
    /// Unverified files without a mark of Loadstone. If other files have marks, these were damaged or replaced.
    #[serde(default)]
    pub foreign: u64,
    /// One of them, by its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_file: Option<String>,
    /// Requests repeated after a failure: reads for which HDFS's name node was asked again, writes whose file was reopened.
    #[serde(default)]
    pub retried: u64,
    /// Attempts to read from or write to a data node of HDFS that failed. Most go on with another node.
    #[serde(default)]
    pub data_node_failures: u64,
    /// Bytes moved, of files that are done.
    pub bytes: u64,
    /// Bytes moved, of files that are not done.
    pub lost_bytes: u64,
    /// Sum over files that are done, from opened to closed, ns: what Hadoop's `Throughput` divides by.
    pub task_ns: u64,
    /// Sum of the rates of files that are done, MB (2^20 bytes) per second each.
    pub rate_sum: f64,
    /// Sum of the squares of these rates.
    pub rate_square_sum: f64,
    /// The lowest rate of any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_min: Option<f64>,
    /// The highest rate of any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_max: Option<f64>,
    /// When the first file was begun, ns since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_start_unix_ns: Option<u64>,
    /// When the first file was done: until then, all clients were working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_done_unix_ns: Option<u64>,
    /// Bytes moved until then, of all files: a rate computed from this holds for this segment only.
    #[serde(default)]
    pub first_done_bytes: u64,
    /// When the last file was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_done_unix_ns: Option<u64>,
    /// When every call had returned.
    pub returned: Reached,
    /// When the file system had all bytes, if that was requested.
    pub flushed: Reached,
    /// When the devices had all bytes, if that was requested.
    pub durable: Reached,
    /// When the files were closed.
    pub closed: Reached,
    /// The first bytes that differ from what was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongByte>,
}

impl Merge for FilesSummary {
    fn merge(&mut self, other: Self) {
        self.done.merge(other.done);
        self.failed.merge(other.failed);
        self.unfinished.merge(other.unfinished);
        self.unverified.merge(other.unverified);
        self.foreign.merge(other.foreign);
        self.foreign_file = self.foreign_file.take().or(other.foreign_file);
        self.retried.merge(other.retried);
        self.data_node_failures.merge(other.data_node_failures);
        self.bytes.merge(other.bytes);
        self.lost_bytes.merge(other.lost_bytes);
        self.task_ns.merge(other.task_ns);
        self.rate_sum += other.rate_sum;
        self.rate_square_sum += other.rate_square_sum;
        self.rate_min = min_known(self.rate_min, other.rate_min);
        self.rate_max = max_known(self.rate_max, other.rate_max);
        self.first_start_unix_ns = min_known(self.first_start_unix_ns, other.first_start_unix_ns);
        self.first_done_unix_ns = min_known(self.first_done_unix_ns, other.first_done_unix_ns);
        self.last_done_unix_ns = max_known(self.last_done_unix_ns, other.last_done_unix_ns);
        self.returned.merge(other.returned);
        self.flushed.merge(other.flushed);
        self.durable.merge(other.durable);
        self.closed.merge(other.closed);
        self.wrong.extend(other.wrong);
    }
}

/// How many files reached a guarantee, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// Files that are done and reached it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of the times from opening until then, ns.
    pub ns: u64,
    /// The last instant, ns since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unix_ns: Option<u64>,
}

impl Merge for Reached {
    fn merge(&mut self, other: Self) {
        self.files.merge(other.files);
        self.bytes.merge(other.bytes);
        self.ns.merge(other.ns);
        self.last_unix_ns = max_known(self.last_unix_ns, other.last_unix_ns);
    }
}

/// A byte that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrongByte {
    /// The path of the file.
    pub file: String,
    /// Its offset in the file.
    pub offset: u64,
    /// The byte that was read.
    pub found: u8,
    /// The byte that was written.
    pub expected: u8,
}
