//! Memory for rows: allocated once, aligned for direct I/O, in huge pages where the kernel has them.
//!
//! On virtual machines the first touch of a page can cost more than all later work on it (about 3 CPU-seconds for a GB), so the
//! memory of a sort is mapped once and used again for every chunk.

use std::ops::{Deref, DerefMut};

use crate::fs::ALIGNMENT;
use crate::sort::SortError;

/// Anonymous memory, zero at first, which is unmapped when it is dropped.
#[derive(Debug)]
pub struct Arena {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it owns its memory, as a boxed slice does.
unsafe impl Send for Arena {}
// SAFETY: shared references only read.
unsafe impl Sync for Arena {}

impl Arena {
    /// Memory of this many bytes. Nothing is resident before it is touched.
    pub fn new(bytes: usize) -> Result<Self, SortError> {
        let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        // SAFETY: a new private mapping, which touches nothing that exists.
        let start = unsafe {
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), bytes, access, flags | libc::MAP_NORESERVE, -1, 0)
        };
        if start == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(SortError::new(format!("cannot map {bytes} bytes of memory: {error}"))
                .hint("lower --memory, or raise the limit that `ulimit -v` shows"));
        }
        // SAFETY: advice about our own mapping; a kernel without huge pages refuses it, which changes nothing.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        Ok(Self { start: start.cast(), bytes })
    }

    /// The memory as 128-bit numbers.
    pub fn as_u128(&mut self) -> &mut [u128] {
        // SAFETY: the mapping is aligned to a page, ours alone while it is borrowed, and any bytes are a number.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<u128>()) }
    }
}

impl Deref for Arena {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is as long as that, and zero where it was not written.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl DerefMut for Arena {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and not used after this.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
