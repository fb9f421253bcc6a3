//! Memory with the alignment that O_DIRECT needs, in huge pages if the kernel provides them.
//!
//! On virtual machines the first touch of a page can cost more than all later work on it (about 3 CPU-seconds per GB),
//! so buffers are mapped once and reused. With direct I/O the kernel handles each page of a buffer separately, so 2 MiB
//! pages are cheaper.

use std::io;
use std::ops::{Deref, DerefMut};

use super::error::FsError;

/// The alignment of addresses, offsets and lengths for O_DIRECT: the largest logical block size of common devices.
/// According to open(2) the required alignment depends on the file system; a page is enough for all known file systems.
pub const ALIGNMENT: usize = 4_096;

/// Anonymous memory at an address that is a multiple of [`ALIGNMENT`], initially zero.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the buffer owns its memory, as a boxed slice does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps at least `bytes`, rounded up to a multiple of [`ALIGNMENT`]. No page is resident before it is touched.
    pub fn new(bytes: usize) -> Result<Self, FsError> {
        let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        // SAFETY: this creates a private mapping, which affects no existing memory.
        let start = unsafe {
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), bytes, access, flags | libc::MAP_NORESERVE, -1, 0)
        };
        if start == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            return Err(FsError::io("map", &format!("{bytes} bytes of memory"), &error)
                .hint("use less memory (--memory) or smaller buffers, or raise the limit that `ulimit -v` shows"));
        }
        // SAFETY: this is advice about our own mapping. A kernel without huge pages refuses it, which changes nothing.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        Ok(Self { start: start.cast(), bytes })
    }

    /// The memory as 128-bit numbers.
    pub fn as_u128(&mut self) -> &mut [u128] {
        // SAFETY: the mapping is page-aligned, is not shared while it is borrowed, and any bytes form a valid number.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<u128>()) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, and is zero where it was not written.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the mapping is not borrowed elsewhere.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length and is not used after this.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
