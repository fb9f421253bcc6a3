//! How a segment's memory is divided.

use crate::sort::SortError;
use crate::sort::chunk::Chunk;
use crate::sort::input::ALIGNED_ROWS;
use crate::sort::job::Job;
use crate::sort::read_ahead;
use crate::sort::rows::ROW_BYTES;
use crate::sort::spool::BUFFERS;

/// Memory for the code and the stacks of the process.
const RESERVE: u64 = 24 << 20;
/// Memory of the HDFS client, without its buffers for open files: 21 MB were measured on a small cluster.
const HDFS_RESERVE: u64 = 32 << 20;
/// Number of blocks that the client holds for each file being written: its buffer, and packets in flight.
const HDFS_BLOCKS: u64 = 4;
/// Block sizes are multiples of this size, which contains whole rows and whole disk blocks.
const UNIT: u64 = ALIGNED_ROWS * ROW_BYTES as u64;
/// Maximum block size: larger blocks were not faster.
const BLOCK_MAX: u64 = 40 * UNIT;
/// Maximum block size for reading runs. There are many runs, and blocks of [`BLOCK_MAX`] would touch more new memory.
const RUN_BLOCK_MAX: u64 = 10 * UNIT;

/// How a segment's memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes read or written at a time.
    pub block: usize,
    /// Bytes of rows in each of the two chunks of an external sort.
    pub chunk: usize,
    /// Bytes of rows in the single chunk of an in-memory sort.
    pub whole: usize,
    /// Bytes shared by all merges.
    pub merge: u64,
    /// Number of computing threads.
    pub threads: u64,
    /// Whether there is an HDFS client, which has separate buffers for each file being read.
    pub on_hdfs: bool,
}

impl Sizes {
    /// Divides the memory of a job.
    pub fn new(job: &Job) -> Self {
        let block = (job.memory_bytes / 64 / job.threads.max(2) * 2 / UNIT * UNIT).clamp(UNIT, BLOCK_MAX);
        let client = if job.needs_hdfs() { HDFS_RESERVE + HDFS_BLOCKS * job.threads * block } else { 0 };
        let budget = job.memory_bytes.saturating_sub(RESERVE + client);
        let rest = budget.saturating_sub(job.threads * BUFFERS as u64 * block);
        let rows = |bytes: u64| ((bytes as f64 / Chunk::OVERHEAD) as u64 / UNIT).max(1) * UNIT;
        Self {
            block: block as usize,
            chunk: rows(rest / 2) as usize,
            whole: rows(rest) as usize,
            merge: budget,
            threads: job.threads,
            on_hdfs: job.needs_hdfs(),
        }
    }

    /// The number of concurrent merges, and the block size with which they read runs.
    pub fn plan_merges(&self, runs: usize, parts: usize) -> Result<(usize, usize), SortError> {
        let per_run = read_ahead::BUFFERS * if self.on_hdfs { 2 } else { 1 };
        let buffers = (runs.max(1) * per_run) as u64;
        let write = (BUFFERS * self.block) as u64;
        for merges in (1..=self.threads.min(parts.max(1) as u64)).rev() {
            let block = (self.merge / merges).saturating_sub(write) / buffers / UNIT * UNIT;
            if block > 0 {
                return Ok((merges as usize, block.min(RUN_BLOCK_MAX) as usize));
            }
        }
        let needed = RESERVE + write + buffers * UNIT;
        Err(SortError::usage(format!("{runs} runs cannot be merged in the memory allowed"))
            .hint(format!("use --memory {}MiB or more", (needed >> 20) + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::job::MEMORY_MIN;

    #[test]
    fn allocations_fit_into_memory() {
        for memory_bytes in [MEMORY_MIN, 200 << 20, 1 << 30, 2_000_000_000, 64 << 30] {
            for threads in [1, 2, 7, 64] {
                let job = Job { memory_bytes, threads, ..Job::default() };
                let sizes = Sizes::new(&job);
                let spools = threads as usize * BUFFERS * sizes.block;
                let chunks = (2.0 * Chunk::OVERHEAD * sizes.chunk as f64) as usize;
                assert!(threads == 64 || (chunks + spools) as u64 <= memory_bytes, "{job:?}: {sizes:?}");
                let (merges, block) = sizes.plan_merges(12, 7).unwrap();
                let merging = merges * (12 * 2 * block + BUFFERS * sizes.block);
                assert!(merging as u64 <= memory_bytes, "{job:?}: {merges} of {block}");
            }
        }
        assert!(Sizes::new(&Job::default()).plan_merges(100_000, 1).unwrap_err().usage);
    }
}
