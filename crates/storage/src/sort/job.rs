//! The settings of a sort, and the stages of a job.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fs::{Location, Scheme};
use crate::sort::SortError;

loadstone_load::named_variants! {
    /// One stage of a job. Stages run one after the other; the segments of a stage run at the same time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Stage {
        /// Check input and output, remove the remains of a killed job, and create the scratch directory. Runs as one
        /// segment.
        Prepare = "prepare",
        /// Write TeraGen's rows.
        Generate = "generate",
        /// Sample the keys.
        Sample = "sample",
        /// Read the input and write sorted runs.
        Sort = "sort",
        /// Read the input, sort it in memory and write the output. Each segment reads all of the input.
        SortInMemory = "sort in memory",
        /// Merge the runs into the parts of the output.
        Merge = "merge",
        /// Check the order of the input and compute its checksum. Only a report is written.
        Validate = "validate",
        /// Compare the output with the input, and rename the output to its final name. Runs as one segment.
        Commit = "commit",
        /// Remove the scratch directory. Runs as one segment.
        Abandon = "abandon",
    }
}

/// The data to generate, sort or validate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The directory to read: a path or `hdfs://…`; absent for TeraGen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The directory to write. For TeraValidate: the directory of the report, if a report is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Number of rows to generate.
    #[serde(default)]
    pub rows: u64,
    /// Number of files to write.
    #[serde(default = "default_count")]
    pub parts: u64,
    /// Memory per segment, in bytes.
    pub memory_bytes: u64,
    /// Number of computing threads per segment. Additional threads wait for disks.
    #[serde(default = "default_count")]
    pub threads: u64,
    /// Replication of the output on HDFS; absent: the default of HDFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u16>,
    /// Number of copies of each run of an external sort on HDFS. A run with one copy is lost if its data node is lost.
    #[serde(default = "default_copies", skip_serializing_if = "is_one")]
    pub run_replication: u16,
    /// Block size on HDFS, in bytes; absent: the default of HDFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Settings of the HDFS client, under Hadoop's names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// Whether all local files bypass the page cache (`O_DIRECT`). The output of a sort always does so if possible.
    #[serde(default)]
    pub direct: bool,
    /// Whether a sort compares each row of its input with the row that TeraGen generates for the same row number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
            rows: 0,
            parts: 1,
            memory_bytes: MEMORY_MIN,
            threads: 1,
            replication: None,
            run_replication: 1,
            block_bytes: None,
            properties: BTreeMap::new(),
            direct: false,
            verify: false,
        }
    }
}

fn default_count() -> u64 {
    1
}

fn default_copies() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_one(copies: &u16) -> bool {
    *copies == 1
}

/// The minimum memory: with less, two chunks would be too small to be worth sorting.
pub const MEMORY_MIN: u64 = 64 << 20;
/// The minimum memory for a job on HDFS.
const HDFS_MEMORY_MIN: u64 = 128 << 20;
/// The maximum number of parts that the digits in their names allow.
const PARTS_MAX: u64 = 100_000;
impl Job {
    /// Refuses settings that are out of range.
    pub fn check(&self) -> Result<(), SortError> {
        let min = if self.needs_hdfs() { HDFS_MEMORY_MIN } else { MEMORY_MIN };
        if self.memory_bytes < min {
            let (min, got) = (min >> 20, self.memory_bytes);
            return Err(SortError::usage(format!("memory must be at least {min} MiB, got {got} bytes"))
                .hint(format!("use --memory {min}MiB or more")));
        }
        if self.parts == 0 || self.parts > PARTS_MAX {
            return Err(SortError::usage(format!("parts must be 1 to {PARTS_MAX}, got {}", self.parts))
                .hint("use as many parts as there are processors, or disks"));
        }
        if self.threads == 0 || self.threads > 1_024 {
            return Err(SortError::usage(format!("threads must be 1 to 1024, got {}", self.threads))
                .hint("use as many threads as there are processors"));
        }
        Ok(())
    }

    /// Refuses an output within the input, and an input within the output: removing the outer directory would also
    /// remove the inner one.
    pub fn refuse_nesting(&self) -> Result<(), SortError> {
        let (Some(input), Some(output)) = (&self.input, &self.output) else { return Ok(()) };
        let (reads, writes) = (resolve(input)?, resolve(output)?);
        let relation = if writes.starts_with(&reads) {
            "the output {output} is within the input {input}"
        } else if reads.starts_with(&writes) {
            "the input {input} is within the output {output}"
        } else {
            return Ok(());
        };
        Err(SortError::usage(relation.replace("{output}", output).replace("{input}", input))
            .hint("choose an output next to the input"))
    }

    /// Whether the job needs an HDFS client.
    pub(super) fn needs_hdfs(&self) -> bool {
        [&self.input, &self.output].into_iter().flatten().any(|place| place.starts_with("hdfs:"))
    }
}

/// The default port of a name node in a URI, which can be omitted.
const NAME_NODE_PORT: &str = ":8020";

/// A location as a comparable path: file system, server and directory. Symbolic links in local paths are resolved as
/// far as the path exists.
fn resolve(place: &str) -> Result<PathBuf, SortError> {
    let Location { scheme, authority, path } = Location::parse(place)?;
    if scheme == Scheme::Hdfs {
        let server = authority.strip_suffix(NAME_NODE_PORT).unwrap_or(&authority);
        return Ok(Path::new("hdfs:")
            .join(server)
            .join(normalise(Path::new(&path)).strip_prefix("/").unwrap_or(Path::new(""))));
    }
    let path = Path::new(&path);
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let Some((ancestor, real)) = existing else { return Ok(normalise(path)) };
    Ok(normalise(&real.join(path.strip_prefix(ancestor).unwrap_or(Path::new("")))))
}

/// The path without `.` and `..` components.
fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_input_and_output_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        std::fs::create_dir_all(directory.path().join("in/sub")).unwrap();
        std::os::unix::fs::symlink(directory.path().join("in"), directory.path().join("link")).unwrap();
        let refusal = |input: &str, output: &str| {
            let [input, output] = [input, output].map(|place| Some(place.replace('~', home)));
            Job { input, output, ..Job::default() }.refuse_nesting().err()
        };
        for (input, output) in [
            ("~/in", "~/in/out"),
            ("~/in", "~/in"),
            ("~/in", "~/link/out"),
            ("~/link", "~/in/new/out"),
            ("~/in", "~/other/../in/out"),
            ("~/in/sub", "~/in"),
            ("~/link/sub", "~/in"),
            ("file://~/in", "~/in/out"),
            ("hdfs://nn/data", "hdfs://nn:8020/data/out"),
        ] {
            let refusal = refusal(input, output).unwrap_or_else(|| panic!("{input} {output}"));
            assert!(refusal.usage && refusal.message.contains(" is within the "), "{refusal:?}");
        }
        for (input, output) in [
            ("~/in", "~/in2"),
            ("~/in", "~/out"),
            ("~/in/sub", "~/in/sub2"),
            ("hdfs://nn/data", "hdfs://other/data/out"),
            ("~/in", "hdfs://nn~/in/out"),
        ] {
            assert_eq!(refusal(input, output), None, "{input} {output}");
        }
    }
}
