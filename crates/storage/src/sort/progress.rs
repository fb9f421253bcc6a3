//! The progress of a stage, which other threads can read, and the request to stop the stage.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::sort::SortError;

/// Counters shared by all threads of a stage. They only increase, with one exception: if a file must be rewritten, its
/// rows are subtracted, so that each row counts once.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
    stop: AtomicBool,
}

/// The values of the counters at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Number of processed rows.
    pub rows: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Progress {
    /// Counts rows.
    pub fn rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Relaxed);
    }

    /// Subtracts rows of a file that could not be written.
    pub fn forget_rows(&self, rows: u64) {
        self.rows.fetch_sub(rows, Relaxed);
    }

    /// Counts bytes read. Fails if the stage must stop.
    pub fn read(&self, bytes: usize) -> Result<(), SortError> {
        self.read.fetch_add(bytes as u64, Relaxed);
        self.go_on()
    }

    /// Counts bytes written. Fails if the stage must stop.
    pub fn add_written(&self, bytes: usize) -> Result<(), SortError> {
        self.written.fetch_add(bytes as u64, Relaxed);
        self.go_on()
    }

    /// Makes the stage end soon with an error.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    fn go_on(&self) -> Result<(), SortError> {
        if self.stop.load(Relaxed) { Err(SortError::stop()) } else { Ok(()) }
    }

    /// The progress so far.
    pub fn done(&self) -> Done {
        Done { rows: self.rows.load(Relaxed), read: self.read.load(Relaxed), written: self.written.load(Relaxed) }
    }
}
