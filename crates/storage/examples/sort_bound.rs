//! `make bench`: compares the time of the in-memory sort with a lower bound for any sort of the rows with the same
//! number of threads. The bound is the time to sort one entry of 16 bytes per row and to copy each row once. All
//! memory is touched before timing starts, and the sort and the bound are timed alternately.
//!
//! For comparison, the same entries are also sorted, in the engine's groups, in two ways: with the standard library's
//! `sort_unstable`, as the engine does, and with the radix sort of the crate `rdst`, which considers only the key.
//!
//! Prints a line of JSON for each repeat: the seconds for the two sorts, for the bound's two parts, and for the
//! engine's sort.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use loadstone_storage::fs::{AlignedBuffer, FileKind, FileStat};
use loadstone_storage::sort::SortError;
use loadstone_storage::sort::chunk::{Chunk, entry};
use loadstone_storage::sort::files::{Append, Files, ReadAt};
use loadstone_storage::sort::input::{ALIGNED_ROWS, Input};
use loadstone_storage::sort::progress::Progress;
use loadstone_storage::sort::rows::{KEY_BYTES, ROW_BYTES, Rows};
use loadstone_storage::sort::splitters::{Key, Splitters};
use rdst::{RadixKey, RadixSort};

/// Number of entries that the engine sorts together: 16 pieces of 40,960 rows.
const GROUP: usize = 16 * 40 * ALIGNED_ROWS as usize;

/// An entry that is ordered by its key alone, not by its position.
#[derive(Clone, Copy)]
struct ByKey(u128);

impl RadixKey for ByKey {
    const LEVELS: usize = KEY_BYTES;

    fn get_level(&self, level: usize) -> u8 {
        self.0.to_be_bytes()[KEY_BYTES - 1 - level]
    }
}

/// The time in which this number of threads sorts all groups, in seconds.
fn time_sort<T: Send>(entries: &mut [T], threads: usize, sort: impl Fn(&mut [T]) + Sync) -> f64 {
    let start = Instant::now();
    let groups = Mutex::new(entries.chunks_mut(GROUP));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(group) = groups.lock().ok().and_then(|mut groups| groups.next()) {
                    sort(group);
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}

/// A file of TeraGen's rows. In the first sort, reads generate the rows in the reader's buffer. In later sorts, the
/// buffer still contains them.
#[derive(Default)]
struct Made {
    rows: u64,
    there: AtomicBool,
}

struct Maker<'a>(&'a AtomicBool);

impl ReadAt for Maker<'_> {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, SortError> {
        if !self.0.load(Relaxed) {
            let whole = buffer.len() / ROW_BYTES * ROW_BYTES;
            Rows::from(offset / ROW_BYTES as u64).fill(&mut buffer[..whole]);
        }
        Ok(buffer.len())
    }
}

impl Files for &'static Made {
    fn list_files(&self, _: &str) -> Result<Option<Vec<FileStat>>, SortError> {
        let (path, bytes) = ("rows".to_owned(), self.rows * ROW_BYTES as u64);
        Ok(Some(vec![FileStat { path, kind: FileKind::File, bytes, replication: None, block_bytes: None }]))
    }

    fn open_file(&self, _: &str) -> Result<Box<dyn ReadAt>, SortError> {
        Ok(Box::new(Maker(&self.there)))
    }

    fn has_file(&self, _: &str) -> Result<bool, SortError> {
        Ok(true)
    }

    fn create_file(&self, path: &str, _: Option<u16>) -> Result<Box<dyn Append>, SortError> {
        Err(SortError::new(format!("{path} cannot be written")))
    }

    fn make_directory(&self, _: &str) -> Result<(), SortError> {
        Ok(())
    }

    fn rename_file(&self, _: &str, _: &str) -> Result<(), SortError> {
        Ok(())
    }

    fn remove_file(&self, _: &str) -> Result<(), SortError> {
        Ok(())
    }

    fn sync_directory(&self, _: &str) -> Result<(), SortError> {
        Ok(())
    }
}

fn main() -> Result<(), SortError> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>().unwrap_or(1));
    let (rows, repeats) = (arguments.next().unwrap_or(10_000_000), arguments.next().unwrap_or(5));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let files: &'static Made = Box::leak(Box::new(Made { rows: rows as u64, there: AtomicBool::new(false) }));
    let input = Input::list(&files, "made")?;
    let pieces = input.pieces(40 * ALIGNED_ROWS);
    let mut chunk = Chunk::new(pieces.iter().map(loadstone_storage::sort::input::Piece::room).sum())?;
    let progress = Progress::default();
    let mut to = AlignedBuffer::new(rows * ROW_BYTES)?;
    to.fill(1);
    let sample: Vec<Key> = (0..1 << 16)
        .map(|i| {
            let mut row = [0; ROW_BYTES];
            Rows::from((i * rows / (1 << 16)) as u64).fill(&mut row);
            std::array::from_fn::<u8, KEY_BYTES, _>(|byte| row[byte])
        })
        .collect();
    let splitters = Splitters::from_sample(sample, threads);
    let mut run_engine = |to: &mut AlignedBuffer| -> Result<[f64; 2], SortError> {
        let start = Instant::now();
        chunk.fill_chunk(&pieces, (&files, &input), None, 2 * threads, &progress)?;
        let filled = start.elapsed().as_secs_f64();
        let parts = chunk.parts(&splitters);
        let sorted = chunk.sort_parts();
        let mut rest = &mut to[..rows * ROW_BYTES];
        std::thread::scope(|scope| {
            let mut gathering = Vec::new();
            for part in &parts {
                let own;
                let length: usize = part.iter().map(ExactSizeIterator::len).sum();
                (own, rest) = std::mem::take(&mut rest).split_at_mut(length * ROW_BYTES);
                gathering.push(scope.spawn(move || sorted.gather_into(part, own)));
            }
            gathering.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(SortError::stop())))
        })?;
        Ok([filled, start.elapsed().as_secs_f64() - filled])
    };
    run_engine(&mut to)?;
    files.there.store(true, Relaxed);
    let from: Vec<[u8; ROW_BYTES]> = to[..rows * ROW_BYTES].as_chunks().0.to_vec();
    assert!(from.is_sorted_by_key(|row| entry(row, 0)), "the rows are not sorted");
    // The bound sorts rows in TeraGen's order, as the engine does. If the entries pointed at sorted rows, the rows
    // would be copied in sequential order.
    let mut unsorted = vec![[0; ROW_BYTES]; rows];
    Rows::from(0).fill(unsorted.as_flattened_mut());
    drop(from);
    let entries: Vec<u128> = unsorted.iter().enumerate().map(|(i, row)| entry(row, i as u64)).collect();
    let mut sorting = entries.clone();
    let mut by_key: Vec<ByKey> = entries.iter().copied().map(ByKey).collect();
    let share = rows.div_ceil(threads);
    for repeat in 0..repeats {
        let (mut standard, mut radix) = (0.0, 0.0);
        // The sort that runs first alternates between repeats, so that changes in the machine's speed favour neither.
        for side in [repeat % 2, 1 - repeat % 2] {
            if side == 0 {
                sorting.copy_from_slice(&entries);
                standard = time_sort(&mut sorting, threads, <[u128]>::sort_unstable);
            } else {
                by_key.iter_mut().zip(&entries).for_each(|(to, from)| to.0 = *from);
                radix = time_sort(&mut by_key, threads, RadixSort::radix_sort_unstable);
            }
        }
        let sorted = sorting.iter().map(|entry| entry >> 48).eq(by_key.iter().map(|entry| entry.0 >> 48));
        assert!(sorted, "the two sorts differ");
        sorting.copy_from_slice(&entries);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for own in sorting.chunks_mut(share) {
                scope.spawn(|| own.sort_unstable());
            }
        });
        let sorted = start.elapsed().as_secs_f64();
        let unsorted = &unsorted;
        std::thread::scope(|scope| {
            for (own, to) in sorting.chunks(share).zip(to[..rows * ROW_BYTES].chunks_mut(share * ROW_BYTES)) {
                scope.spawn(move || {
                    for (entry, to) in own.iter().zip(to.as_chunks_mut::<ROW_BYTES>().0) {
                        *to = unsorted[(entry & 0xFFFF_FFFF) as usize];
                    }
                });
            }
        });
        let gathered = start.elapsed().as_secs_f64() - sorted;
        let [filled, merged] = run_engine(&mut to)?;
        let line = format!(
            "{{\"rdst\": {radix:.4}, \"sort_unstable\": {standard:.4}, \"bound\": [{sorted:.4}, {gathered:.4}], \"loadstone\": [{filled:.4}, {merged:.4}], \"ratio\": {:.4}}}\n",
            (sorted + gathered) / (filled + merged)
        );
        let _ = std::io::stdout().write_all(line.as_bytes());
    }
    Ok(())
}
