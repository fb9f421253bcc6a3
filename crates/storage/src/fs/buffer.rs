//! Memory with the alignment that O_DIRECT needs.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The alignment of addresses, offsets and lengths for O_DIRECT: the largest logical block of common devices. By open(2) it
/// depends on the file system; a page is enough for all that we know.
pub const ALIGNMENT: usize = 4_096;

/// Bytes at an address that is a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A zeroed buffer of at least `bytes`, rounded up to a multiple of [`ALIGNMENT`].
    ///
    /// # Panics
    ///
    /// If `bytes` exceeds the address space.
    pub fn new(bytes: usize) -> Self {
        let size = bytes.max(1).next_multiple_of(ALIGNMENT);
        let layout = Layout::from_size_align(size, ALIGNMENT).expect("a buffer is smaller than the address space");
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        Self { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: allocated with this size, initialised, owned.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this size, initialised, owned and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
