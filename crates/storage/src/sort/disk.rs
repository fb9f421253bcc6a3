//! The speed of the disk alone, as a reference for a sort.

use std::time::Instant;

use crate::fs::AlignedBuffer;
use crate::sort::SortError;
use crate::sort::files::{Files, join, read_exactly};
use crate::sort::rows::Rows;

/// Number of bytes written and read. More bytes would take longer and give the same speed.
const BYTES: u64 = 64 * BLOCK as u64;
/// Bytes per access: whole rows and whole disk blocks.
const BLOCK: usize = 4_096_000;

/// Speeds in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Write speed, measured until the data is on the device.
    pub write: f64,
    /// Read speed.
    pub read: f64,
}

/// Writes a file of rows and reads it back, with a single thread that waits for each block. The file is not deleted.
pub fn measure(files: &dyn Files, directory: &str, name: &str) -> Result<Speed, SortError> {
    let path = join(directory, name);
    let mut buffer = AlignedBuffer::new(BLOCK)?;
    // The buffer is not zero, because some disks do not store zeros.
    Rows::from(0).fill(&mut buffer[..BLOCK]);
    let start = Instant::now();
    let mut file = files.create_file(&path, Some(1))?;
    for _ in 0..BYTES / BLOCK as u64 {
        file.write_bytes(&buffer[..BLOCK])?;
    }
    file.finish_file(true)?;
    let written = start.elapsed().as_secs_f64();
    let mut file = files.open_file(&path)?;
    let start = Instant::now();
    for block in 0..BYTES / BLOCK as u64 {
        read_exactly(&mut *file, &path, &mut buffer[..BLOCK], block * BLOCK as u64, BLOCK)?;
    }
    let read = start.elapsed().as_secs_f64();
    Ok(Speed { write: BYTES as f64 / written, read: BYTES as f64 / read })
}
