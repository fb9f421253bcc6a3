//! The outcomes of a trial's files. They are sums, so the outcomes of segments can be added, and memory use does not
//! grow with the number of files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use loadstone_storage::content::Difference;
use loadstone_storage::fs::hdfs;
use loadstone_wire::files::{FilesSummary, Reached, WrongByte};

/// Maximum number of wrong bytes that are listed.
const WRONG_MAX: usize = 20;
/// Number of bytes in Hadoop's MB.
const MB: f64 = 1_048_576.0;

/// The times at which a file reached each step, ns on the clients' clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTimes {
    /// The file was open. Hadoop's task time begins here.
    pub opened: u64,
    /// The last buffer had been read, or its write had returned.
    pub returned: u64,
    /// The file system had all bytes; 0 if no flush was requested.
    pub flushed: u64,
    /// The device had all bytes; 0 if no sync was requested.
    pub durable: u64,
    /// The file was closed. Hadoop's task time ends here.
    pub closed: u64,
}

/// The outcome of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEnd {
    /// All required steps were done.
    Done,
    /// A step failed, or a read returned wrong bytes.
    Failed,
    /// The trial ended before the file was finished.
    Unfinished,
}

/// The part of a file that was compared with the bytes written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All bytes read were compared, or there was nothing to compare.
    Whole,
    /// Only the bytes that were read after finding Loadstone's mark were compared.
    Part,
    /// Nothing was compared, because no mark was found.
    Foreign,
}

/// The files of a trial. Its clients share this log.
#[derive(Debug, Default)]
pub struct FileLog {
    all: Mutex<FilesSummary>,
    /// Number of files that were begun.
    started: AtomicU64,
    /// Number of bytes read or written so far.
    transferred: AtomicU64,
}

/// Adds a file of this size that was opened at `opened` and reached a guarantee at `at`, on the clients' clock. `at`
/// is 0 if the file did not reach it.
fn add_reached(reached: &mut Reached, bytes: u64, opened: u64, at: u64, to_unix: u64) {
    if at == 0 {
        return;
    }
    reached.files += 1;
    reached.bytes += bytes;
    reached.ns = reached.ns.saturating_add(at.saturating_sub(opened));
    reached.last_unix_ns = reached.last_unix_ns.max(Some(at.wrapping_add(to_unix)));
}

impl FileLog {
    /// Records that a file was begun, because a client that hangs never adds its file.
    pub fn begin_file(&self, start: u64, to_unix: u64) {
        let start = start.wrapping_add(to_unix);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.first_start_unix_ns = Some(all.first_start_unix_ns.map_or(start, |first| first.min(start)));
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a file that was begun. Adding `to_unix` to a time on the clients' clock gives ns since the Unix epoch.
    pub fn add_file(&self, end: FileEnd, bytes: u64, compared: Compared, times: &FileTimes, to_unix: u64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.unverified += u64::from(compared != Compared::Whole);
        all.foreign += u64::from(compared == Compared::Foreign);
        if end != FileEnd::Done {
            all.failed += u64::from(end == FileEnd::Failed);
            all.lost_bytes += bytes;
            return;
        }
        let task_ns = times.closed.saturating_sub(times.opened).max(1);
        let rate = bytes as f64 / MB / (task_ns as f64 / 1e9);
        let done = times.closed.wrapping_add(to_unix);
        all.done += 1;
        all.bytes += bytes;
        all.task_ns = all.task_ns.saturating_add(task_ns);
        all.rate_sum += rate;
        all.rate_square_sum += rate * rate;
        all.rate_min = Some(all.rate_min.map_or(rate, |least| least.min(rate)));
        all.rate_max = Some(all.rate_max.map_or(rate, |most| most.max(rate)));
        if all.first_done_unix_ns.is_none() {
            all.first_done_bytes = self.transferred.load(Ordering::Relaxed);
        }
        all.first_done_unix_ns = Some(all.first_done_unix_ns.map_or(done, |first| first.min(done)));
        all.last_done_unix_ns = all.last_done_unix_ns.max(Some(done));
        add_reached(&mut all.returned, bytes, times.opened, times.returned, to_unix);
        add_reached(&mut all.flushed, bytes, times.opened, times.flushed, to_unix);
        add_reached(&mut all.durable, bytes, times.opened, times.durable, to_unix);
        add_reached(&mut all.closed, bytes, times.opened, times.closed, to_unix);
    }

    /// Counts bytes that were read or written.
    #[inline]
    pub fn add_bytes(&self, bytes: u64) {
        self.transferred.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stores the path of a file without Loadstone's mark.
    pub fn note_foreign(&self, file: &str) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.foreign_file.get_or_insert_with(|| file.to_owned());
    }

    /// Counts repeated requests.
    pub fn add_retries(&self, requests: u64) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).retried += requests;
    }

    /// Adds a wrong byte, unless the list is full.
    pub fn add_difference(&self, file: &str, difference: Difference) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.wrong.len() < WRONG_MAX {
            let Difference { offset, actual, expected } = difference;
            all.wrong.push(WrongByte { file: file.to_owned(), offset, actual, expected });
        }
    }

    /// The summary so far; `None` if no file was begun.
    pub fn summarize_files(&self) -> Option<FilesSummary> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let data_node_failures = hdfs::data_node_failures();
        let ended = all.done + all.failed;
        let unfinished = self.started.load(Ordering::Relaxed).saturating_sub(ended);
        all.first_start_unix_ns.is_some().then(|| FilesSummary { unfinished, data_node_failures, ..all.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_failed_file_count_as_lost() {
        let log = FileLog::default();
        let times = FileTimes { opened: 2, returned: 1_000_000_002, flushed: 0, durable: 0, closed: 2_000_000_002 };
        // The last file hangs.
        for start in [1, 3, 1, 5] {
            log.begin_file(start, 10);
        }
        log.add_file(FileEnd::Done, 2 << 20, Compared::Whole, &times, 10);
        log.add_file(FileEnd::Failed, 5 << 20, Compared::Foreign, &times, 10);
        log.add_file(FileEnd::Unfinished, 1, Compared::Part, &times, 10);
        let all = log.summarize_files().unwrap();
        assert_eq!((all.done, all.failed, all.unfinished), (1, 1, 2));
        assert_eq!((all.unverified, all.foreign), (2, 1));
        assert_eq!((all.bytes, all.lost_bytes), (2 << 20, (5 << 20) + 1));
        assert!((all.rate_sum - 1.0).abs() < 1e-9 && all.task_ns == 2_000_000_000);
        assert_eq!((all.first_start_unix_ns, all.last_done_unix_ns), (Some(11), Some(2_000_000_012)));
        assert_eq!((all.returned.ns, all.flushed.files, all.closed.ns), (1_000_000_000, 0, 2_000_000_000));
    }
}
