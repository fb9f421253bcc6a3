//! The speed of the disk itself, to compare a sort with.

use std::time::Instant;

use crate::fs::AlignedBuffer;
use crate::sort::SortError;
use crate::sort::files::{Files, join, read_exactly};
use crate::sort::rows::Rows;

/// Bytes that are written and read. More would take longer and show the same speed.
const BYTES: u64 = 64 * BLOCK as u64;
/// Bytes at a time: whole rows and whole disk blocks.
const BLOCK: usize = 4_096_000;

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Of writing, until the device has it.
    pub write: f64,
    /// Of reading.
    pub read: f64,
}

/// Writes a file of rows and reads it back, with one thread that waits for each block. The file is kept.
pub fn measure(files: &dyn Files, directory: &str, name: &str) -> Result<Speed, SortError> {
    let path = join(directory, name);
    let mut buffer = AlignedBuffer::new(BLOCK)?;
    // Not zeros, which some disks do not store.
    Rows::from(0).fill(&mut buffer[..BLOCK]);
    let start = Instant::now();
    let mut file = files.create(&path, Some(1))?;
    for _ in 0..BYTES / BLOCK as u64 {
        file.write(&buffer[..BLOCK])?;
    }
    file.finish(true)?;
    let written = start.elapsed().as_secs_f64();
    let mut file = files.open(&path)?;
    let start = Instant::now();
    for block in 0..BYTES / BLOCK as u64 {
        read_exactly(&mut *file, &path, &mut buffer[..BLOCK], block * BLOCK as u64, BLOCK)?;
    }
    let read = start.elapsed().as_secs_f64();
    Ok(Speed { write: BYTES as f64 / written, read: BYTES as f64 / read })
}
