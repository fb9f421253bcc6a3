//! Merges the runs of a part into the file of that part.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::fs::AlignedBuffer;
use crate::sort::SortError;
use crate::sort::checksum::Checksum;
use crate::sort::chunk::entry;
use crate::sort::files::Files;
use crate::sort::progress::Progress;
use crate::sort::read_ahead::{self, BlockRequest, RowCursor, Source};
use crate::sort::runs::Run;
use crate::sort::spool::{Buffers, Keep, Spool};
use crate::sort::tournament::{END, Tournament};

/// Number of threads that read for one merge: one thread keeps the disk busy while the other passes on a buffer.
const READERS: usize = 2;

/// The memory of one merge, reused for each part.
#[derive(Debug)]
pub struct MergeMemory {
    /// Two buffers for each run.
    pub read: Vec<AlignedBuffer>,
    /// Buffers of the output.
    pub write: Buffers,
}

/// Merges the slices of a part into a file. Returns the checksum of the rows, and the memory for reuse.
pub fn merge(
    files: &dyn Files,
    runs: &[Run],
    part: usize,
    (path, keep): (&str, Keep),
    memory: MergeMemory,
    progress: &Progress,
) -> Result<(Checksum, MergeMemory), SortError> {
    let (requests, pending) = channel::<BlockRequest>();
    let pending = Mutex::new(pending);
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| read_ahead::serve_requests(&pending, progress));
        }
        let MergeMemory { mut read, write } = memory;
        let mut cursors = Vec::new();
        for (run, slice) in runs.iter().flat_map(|run| run.slices.iter().map(move |slice| (run, slice))) {
            if slice.part != part {
                continue;
            }
            let source = Source {
                file: Arc::new(Mutex::new(files.open_file(&run.path)?)),
                path: Arc::from(run.path.as_str()),
                offset: slice.offset,
                rows: slice.rows,
            };
            let (Some(first), Some(other)) = (read.pop(), read.pop()) else {
                return Err(SortError::new("internal error: a merge has too few buffers"));
            };
            cursors.push(RowCursor::open(source, requests.clone(), [first, other])?);
        }
        drop(requests);
        let mut spool = Spool::create(scope, files, path, keep, write, progress)?;
        let mut sum = Checksum::default();
        let mut counted = 0;
        let merged = merge_rows(&mut cursors, &mut spool, &mut sum, (progress, &mut counted));
        let write = spool.finish(merged).inspect_err(|_| progress.forget_rows(counted))?;
        read.extend(cursors.into_iter().flat_map(RowCursor::close));
        Ok((sum, MergeMemory { read, write }))
    })
}

/// Number of rows after which progress is counted.
const COUNTED: u64 = 10_000;

fn merge_rows(
    cursors: &mut [RowCursor],
    to: &mut Spool<'_>,
    sum: &mut Checksum,
    (progress, counted): (&Progress, &mut u64),
) -> Result<(), SortError> {
    let head = |cursor: &RowCursor, run: usize| cursor.row().map_or(END, |row| entry(row, run as u64));
    let mut tournament = Tournament::new(cursors.iter().enumerate().map(|(run, cursor)| head(cursor, run)).collect());
    let mut merged = 0;
    while let (run, least) = tournament.least_entry()
        && least != END
    {
        let cursor = &mut cursors[run];
        if let Some(row) = cursor.row() {
            *to.row()? = *row;
            sum.add_rows(row);
        }
        cursor.advance_row()?;
        tournament.replace_least(head(cursor, run));
        merged += 1;
        if merged == COUNTED {
            progress.rows(merged);
            *counted += merged;
            merged = 0;
        }
    }
    progress.rows(merged);
    *counted += merged;
    Ok(())
}
