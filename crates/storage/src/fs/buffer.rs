//! Memory with the alignment that O_DIRECT needs, in huge pages where the kernel has them.
//!
//! On virtual machines the first touch of a page can cost more than all later work on it (about 3 CPU-seconds for a GB), so
//! buffers are mapped once and used again. With direct I/O the kernel handles each page of a buffer: 2 MiB at a time is cheaper.

use std::alloc::{Layout, handle_alloc_error};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The alignment of addresses, offsets and lengths for O_DIRECT: the largest logical block of common devices. By open(2) it
/// depends on the file system; a page is enough for all that we know.
pub const ALIGNMENT: usize = 4_096;

/// Anonymous memory at an address that is a multiple of [`ALIGNMENT`]; unmapped when it is dropped.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its memory, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A zeroed buffer of at least `bytes`, rounded up to a multiple of [`ALIGNMENT`]. Nothing is resident before it is touched.
    /// Aborts like any allocation if there is no memory.
    pub fn new(bytes: usize) -> Self {
        Self::map(bytes).unwrap_or_else(|_| {
            handle_alloc_error(Layout::from_size_align(bytes, ALIGNMENT).unwrap_or(Layout::new::<u8>()))
        })
    }

    /// The same; an error if the memory cannot be mapped.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        // SAFETY: a new private mapping, which touches nothing that exists.
        let start = unsafe {
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), bytes, access, flags | libc::MAP_NORESERVE, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: advice about our own mapping; a kernel without huge pages refuses it, which changes nothing.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, bytes })
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is as long as that, and zero where it was not written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and not used after this.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
