//! Runs: sorted chunks in files of the scratch directory. Each run has an index, which lists where the run's parts
//! start.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::sort::SortError;
use crate::sort::chunk::Chunk;
use crate::sort::files::{Files, join, read_all, rewrite_file, write_all};
use crate::sort::parallel::run_threads;
use crate::sort::progress::Progress;
use crate::sort::rows::ROW_BYTES;
use crate::sort::splitters::Splitters;
use crate::sort::spool::{Buffers, Keep, Spool};

/// The prefix of a run's file name.
const PREFIX: &str = "run-";
/// The suffix of an index's file name.
const SUFFIX: &str = ".index";

/// The rows of one part in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The number of the part.
    pub part: usize,
    /// The offset of the first row in the file, at the start of a block.
    pub offset: u64,
    /// Number of rows.
    pub rows: u64,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The path of its file.
    pub path: String,
    /// A slice for each part that has rows in the run.
    pub slices: Vec<Slice>,
}

/// Writes a sorted chunk as runs, one per element of `buffers`: each thread gathers some of the parts into its own
/// file.
pub fn spill_runs(
    chunk: &mut Chunk,
    splitters: &Splitters,
    (files, scratch, name, keep): (&dyn Files, &str, &str, Keep),
    buffers: &mut Vec<Buffers>,
    progress: &Progress,
) -> Result<(), SortError> {
    let parts = chunk.parts(splitters);
    let shares = shares(&parts, buffers.len());
    let sorted = chunk.sort_parts();
    let parts = &parts;
    let inputs = shares.into_iter().zip(buffers.drain(..)).enumerate();
    let spilled = run_threads(inputs, "internal error: a gathering thread panicked", |(i, (share, buffers))| {
        if share.is_empty() {
            return Ok(buffers);
        }
        let path = join(scratch, &format!("{PREFIX}{name}-{i}"));
        let (mut slices, bytes) = (Vec::new(), buffers.bytes());
        let renew = || Buffers::new(bytes);
        let buffers = rewrite_file((files, &path), buffers, renew, |buffers| {
            slices.clear();
            std::thread::scope(|scope| {
                let mut spool = Spool::create(scope, files, &path, keep, buffers, progress)?;
                let gathered = share.clone().try_for_each(|part| {
                    let offset = spool.align()?;
                    sorted.gather_rows(&parts[part], &mut spool, None)?;
                    slices.push(Slice { part, offset, rows: rows(&parts[part]) });
                    Ok(())
                });
                let filled = gathered.and_then(|()| spool.align().map(|_| ()));
                spool.finish(filled)
            })
        })?;
        slices.retain(|slice| slice.rows > 0);
        let index = serde_json::to_vec(&slices)
            .map_err(|error| SortError::new(format!("internal error: an index has no text: {error}")))?;
        write_all(files, &format!("{path}{SUFFIX}"), &index)?;
        Ok(buffers)
    })?;
    *buffers = spilled;
    Ok(())
}

fn rows(part: &[Range<usize>]) -> u64 {
    part.iter().map(|range| range.len() as u64).sum()
}

/// Divides the parts into `n` consecutive shares with about the same number of rows.
fn shares(parts: &[Vec<Range<usize>>], n: usize) -> Vec<Range<usize>> {
    let all: u64 = parts.iter().map(|part| rows(part)).sum();
    let mut before = 0;
    let middles: Vec<u64> = parts
        .iter()
        .map(|part| {
            let middle = before + rows(part) / 2;
            before += rows(part);
            middle
        })
        .collect();
    let end = |i: usize| {
        if i == n {
            parts.len()
        } else {
            middles.partition_point(|&middle| u128::from(middle) * (n as u128) < u128::from(all) * (i as u128))
        }
    };
    (0..n).map(|i| end(i)..end(i + 1)).collect()
}

/// Lists the runs of all segments in a scratch directory.
pub fn list(files: &dyn Files, scratch: &str) -> Result<Vec<Run>, SortError> {
    let entries = files.list_files(scratch)?.unwrap_or_default();
    let mut runs = Vec::new();
    for entry in entries.iter().filter(|entry| entry.name().starts_with(PREFIX)) {
        let Some(name) = entry.name().strip_suffix(SUFFIX) else { continue };
        let path = join(scratch, entry.name());
        let slices = serde_json::from_slice(&read_all(files, &path)?)
            .map_err(|error| SortError::new(format!("{path} is not an index of a run: {error}")).hint("sort again"))?;
        runs.push(Run { path: join(scratch, name), slices });
    }
    Ok(runs)
}

/// The number of bytes of a slice's rows.
pub fn bytes(slice: &Slice) -> u64 {
    slice.rows * ROW_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_every_part_once() {
        for sizes in [vec![5, 5], vec![100, 1, 1, 1], vec![0, 0, 7], vec![3], vec![0; 4], (0..50).collect()] {
            let parts: Vec<Vec<Range<usize>>> = sizes.iter().map(|&size| std::iter::once(0..size).collect()).collect();
            for n in 1..5 {
                let all: Vec<usize> = shares(&parts, n).into_iter().flatten().collect();
                assert_eq!(all, (0..parts.len()).collect::<Vec<_>>(), "{sizes:?} {n}");
            }
        }
    }
}
