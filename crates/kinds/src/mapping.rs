//! A file that is mapped as words of memory. The kernel writes them back even if this process is killed.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;

use loadstone_wire::error::EngineError;

/// A shared mapping of a whole file, or memory without a file.
#[derive(Debug)]
pub struct Mapping {
    start: *mut AtomicU64,
    length: usize,
}

// SAFETY: the memory belongs to the mapping until it is dropped, and all accesses to it are atomic.
unsafe impl Send for Mapping {}
// SAFETY: same reason as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates a file of `length` words that are all zero. Its space is allocated at once: if the device became full
    /// later, a write to the mapped memory would kill the process.
    pub fn create_file(path: &str, length: usize) -> Result<Self, EngineError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(|error| {
            let hint = if error.kind() == std::io::ErrorKind::AlreadyExists {
                "remove the file, or name another: a ledger holds one run"
            } else {
                "name a file in a writable directory"
            };
            EngineError::usage(format!("cannot create the ledger {path}: {error}")).hint(hint)
        })?;
        let mapping = allocate_blocks(&file, length * 8).and_then(|()| Self::map_file(&file, length));
        mapping.map_err(|error| {
            let _ = std::fs::remove_file(path);
            EngineError::failed(format!("cannot create the ledger {path} of {} bytes: {error}", length * 8))
                .hint("free space, or set operationcount: the ledger takes 2 bits per write")
        })
    }

    /// Maps an existing file.
    pub fn open_file(path: &str) -> Result<Self, EngineError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        file.and_then(|file| Self::map_file(&file, (file.metadata()?.len() / 8) as usize)).map_err(|error| {
            EngineError::usage(format!("cannot read the ledger {path}: {error}"))
                .hint("give the file that ledger= named in the run")
        })
    }

    /// Maps memory without a file; all words are zero.
    pub fn map_memory(length: usize) -> std::io::Result<Self> {
        Self::map_words(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, length)
    }

    fn map_file(file: &File, length: usize) -> std::io::Result<Self> {
        Self::map_words(libc::MAP_SHARED, file.as_raw_fd(), length)
    }

    fn map_words(flags: libc::c_int, file: libc::c_int, length: usize) -> std::io::Result<Self> {
        if length == 0 {
            return Ok(Self { start: std::ptr::null_mut(), length });
        }
        // SAFETY: creates a new mapping, with an open file or without a file, and checks the result.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length * 8, libc::PROT_READ | libc::PROT_WRITE, flags, file, 0) };
        if start == libc::MAP_FAILED {
            Err(std::io::Error::last_os_error())
        } else {
            Ok(Self { start: start.cast(), length })
        }
    }
}

/// Sets the length of the file, and allocates its space if the file system supports that.
fn allocate_blocks(file: &File, bytes: usize) -> std::io::Result<()> {
    file.set_len(bytes as u64)?;
    // SAFETY: the file is open.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EOPNOTSUPP) { Ok(()) } else { Err(error) }
}

impl AsRef<[AtomicU64]> for Mapping {
    fn as_ref(&self) -> &[AtomicU64] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: this number of words is mapped at this address, aligned to a page, until the value is dropped.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the range was mapped, and no reference to it remains.
            unsafe { libc::munmap(self.start.cast(), self.length * 8) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn mapping_writes_through_and_never_overwrites_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger").display().to_string();
        let mapping = Mapping::create_file(&path, 3).unwrap();
        mapping.as_ref()[2].store(7, Ordering::Relaxed);
        assert_eq!(std::fs::read(&path).unwrap()[16..24], 7u64.to_ne_bytes());
        drop(mapping);
        let again = Mapping::create_file(&path, 3).unwrap_err();
        assert!(again.message.contains(&path) && again.is_usage(), "{again}");
        let open = Mapping::open_file(&path).unwrap();
        assert_eq!((open.as_ref().len(), open.as_ref()[2].load(Ordering::Relaxed)), (3, 7));
        assert!(Mapping::open_file(&format!("{path}-not")).is_err());
    }
}
