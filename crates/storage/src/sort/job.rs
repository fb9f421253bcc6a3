//! What is to be sorted, and how the memory for it is cut.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sort::SortError;
use crate::sort::chunk::Chunk;
use crate::sort::input::ALIGNED_ROWS;
use crate::sort::read_ahead;
use crate::sort::rows::ROW_BYTES;
use crate::sort::spool::BUFFERS;

/// One stage of a job. The stages of a job follow each other; the segments of a stage run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Look at the input and the output, remove what a killed job left, make the scratch directory. One segment.
    Prepare,
    /// Write TeraGen's rows.
    Generate,
    /// Take a sample of the keys.
    Sample,
    /// Read the input and write sorted runs.
    Sort,
    /// Read the input and write the output, where all of it fits into memory. One segment.
    SortInMemory,
    /// Merge the runs into the parts of the output.
    Merge,
    /// Look at order and checksum of the input, and write nothing but a report.
    Validate,
    /// Compare what was read with what was written, and give the output its name. One segment.
    Commit,
    /// Remove the scratch directory. One segment.
    Abandon,
}

impl Stage {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Generate => "generate",
            Self::Sample => "sample",
            Self::Sort => "sort",
            Self::SortInMemory => "sort in memory",
            Self::Merge => "merge",
            Self::Validate => "validate",
            Self::Commit => "commit",
            Self::Abandon => "abandon",
        }
    }
}

/// What is generated, sorted or validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The directory that is read, by its path or as `hdfs://…`; none for TeraGen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The directory that is written. TeraValidate writes its report there, if at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Rows to generate.
    #[serde(default)]
    pub rows: u64,
    /// Files that are written.
    #[serde(default = "one")]
    pub parts: u64,
    /// Memory of each segment, bytes.
    pub memory_bytes: u64,
    /// Threads of each segment that compute; others wait for disks.
    #[serde(default = "one")]
    pub threads: u64,
    /// Copies of the output that HDFS keeps; its default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u16>,
    /// Bytes of a block of HDFS; its default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Settings of the client of HDFS, as Hadoop names them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
    /// `O_DIRECT` for local files: past the page cache.
    #[serde(default)]
    pub direct: bool,
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
            block_bytes: None,
            properties: BTreeMap::new(),
            direct: false,
        }
    }
}

fn one() -> u64 {
    1
}

/// Memory of the process itself: code, stacks, clients of HDFS.
const RESERVE: u64 = 24 << 20;
/// The same of the client of HDFS, beside what it holds for each open file: 21 MB were measured on a small one.
const HDFS_RESERVE: u64 = 32 << 20;
/// Blocks that it holds for each file that is written: its own buffer, and packets that are under way.
const HDFS_BLOCKS: u64 = 4;
/// The least memory that is enough for two chunks that are worth sorting.
pub const MEMORY_MIN: u64 = 64 << 20;
/// The same with HDFS.
const HDFS_MEMORY_MIN: u64 = 128 << 20;
/// More parts than a directory should have files, and than names have digits for.
const PARTS_MAX: u64 = 100_000;
/// The unit of blocks: whole rows and whole blocks of a disk.
const UNIT: u64 = ALIGNED_ROWS * ROW_BYTES as u64;
/// The largest block: larger ones are no faster on any disk.
const BLOCK_MAX: u64 = 40 * UNIT;
/// The same for reading runs, of which there are many: less fresh memory, and still long reads.
const RUN_BLOCK_MAX: u64 = 10 * UNIT;

/// How the memory of a segment is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// What is read and written at once.
    pub block: usize,
    /// Rows of an external sort's chunk, of which there are two.
    pub chunk: usize,
    /// Rows of a chunk if there is only one.
    pub whole: usize,
    /// What merges share.
    pub merge: u64,
    /// Threads that compute.
    pub threads: u64,
    /// Whether a client of HDFS has buffers of its own for every file that is read.
    pub on_hdfs: bool,
}

impl Job {
    /// Refuses what cannot be done.
    pub fn check(&self) -> Result<(), SortError> {
        let min = if self.on_hdfs() { HDFS_MEMORY_MIN } else { MEMORY_MIN };
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

    /// Whether a client of HDFS is needed.
    fn on_hdfs(&self) -> bool {
        [&self.input, &self.output].into_iter().flatten().any(|place| place.starts_with("hdfs:"))
    }

    /// How the memory is cut.
    pub fn sizes(&self) -> Sizes {
        let block = (self.memory_bytes / 64 / self.threads.max(2) * 2 / UNIT * UNIT).clamp(UNIT, BLOCK_MAX);
        let client = if self.on_hdfs() { HDFS_RESERVE + HDFS_BLOCKS * self.threads * block } else { 0 };
        let budget = self.memory_bytes.saturating_sub(RESERVE + client);
        let rest = budget.saturating_sub(self.threads * BUFFERS as u64 * block);
        let rows = |bytes: u64| ((bytes as f64 / Chunk::OVERHEAD) as u64 / UNIT).max(1) * UNIT;
        Sizes {
            block: block as usize,
            chunk: rows(rest / 2) as usize,
            whole: rows(rest) as usize,
            merge: budget,
            threads: self.threads,
            on_hdfs: self.on_hdfs(),
        }
    }
}

impl Sizes {
    /// How many merges there are at once, and the block that they read runs by.
    pub fn merges(&self, runs: usize, parts: usize) -> Result<(usize, usize), SortError> {
        let each = read_ahead::BUFFERS * if self.on_hdfs { 2 } else { 1 };
        let buffers = (runs.max(1) * each) as u64;
        let write = (BUFFERS * self.block) as u64;
        for merges in (1..=self.threads.min(parts.max(1) as u64)).rev() {
            let block = (self.merge / merges).saturating_sub(write) / buffers / UNIT * UNIT;
            if block > 0 {
                return Ok((merges as usize, block.min(RUN_BLOCK_MAX) as usize));
            }
        }
        let needed = RESERVE + write + buffers * UNIT;
        Err(SortError::usage(format!("{runs} runs are too many for one merge in the memory that is allowed"))
            .hint(format!("use --memory {}MiB or more", (needed >> 20) + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_less_than_the_memory() {
        for memory_bytes in [MEMORY_MIN, 200 << 20, 1 << 30, 2_000_000_000, 64 << 30] {
            for threads in [1, 2, 7, 64] {
                let job = Job { memory_bytes, threads, ..Job::default() };
                let sizes = job.sizes();
                let spools = threads as usize * BUFFERS * sizes.block;
                let chunks = (2.0 * Chunk::OVERHEAD * sizes.chunk as f64) as usize;
                assert!(threads == 64 || (chunks + spools) as u64 <= memory_bytes, "{job:?}: {sizes:?}");
                let (merges, block) = sizes.merges(12, 7).unwrap();
                let merging = merges * (12 * 2 * block + BUFFERS * sizes.block);
                assert!(merging as u64 <= memory_bytes, "{job:?}: {merges} of {block}");
            }
        }
        assert!(Job::default().sizes().merges(100_000, 1).unwrap_err().usage);
    }
}
