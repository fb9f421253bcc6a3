//! io_uring for local files: several buffers in flight per file, one system call per buffer.
//!
//! A write returns when its buffer is queued; a read-ahead is queued when it is announced. The next call submits the
//! queue to the kernel, and waits in the same system call if it must.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use crate::fs::{ALIGNMENT, AlignedBuffer};

/// The size of a huge page.
const HUGE: usize = 2 << 20;

/// The state of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferSlot {
    Free,
    /// The owner of the buffer is filling or reading it.
    Held,
    /// The buffer is in flight, with its range of the file and the number of bytes already transferred.
    Busy {
        write: bool,
        offset: u64,
        bytes: usize,
        done: usize,
    },
    /// The buffer was read from this range of the file.
    Read {
        offset: u64,
        bytes: usize,
    },
}

/// A ring and its buffers.
pub struct Ring {
    uring: IoUring,
    slots: Vec<BufferSlot>,
    /// The buffers of all slots, one after the other.
    memory: AlignedBuffer,
    /// Bytes per slot.
    slot_bytes: usize,
    /// Whether the buffers are registered with the kernel.
    registered: bool,
    busy: usize,
    /// Number of queued operations that have not been submitted to the kernel yet.
    queued: usize,
    /// The first failure that has not been returned yet, with its offset.
    failed: Option<(u64, io::Error)>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// An error, preceded by the offset in the file at which it occurred.
pub type Failed = (u64, io::Error);

impl Ring {
    /// The reason why this process cannot use io_uring; `None` if it can.
    pub fn find_refusal() -> Option<io::Error> {
        IoUring::new(1).err()
    }

    /// A ring with `depth` buffers for accesses of up to `bytes` each.
    pub fn new(depth: usize, bytes: usize) -> io::Result<Self> {
        let slots = vec![BufferSlot::Free; depth.max(1)];
        let entries = slots.len().next_power_of_two() as u32;
        // Completions are processed when this thread enters the kernel for another reason (Linux 5.19).
        let cooperative = IoUring::builder().setup_coop_taskrun().build(entries);
        let uring = cooperative.or_else(|_| IoUring::new(entries))?;
        // A read that crosses a page boundary needs an additional page.
        let slot_bytes = bytes.next_multiple_of(ALIGNMENT) + ALIGNMENT;
        let room = slots.len() * slot_bytes;
        let room = if room > HUGE { room.next_multiple_of(HUGE) } else { room };
        let memory = AlignedBuffer::new(room).map_err(io::Error::other)?;
        let vectors: Vec<_> = memory
            .chunks_exact(slot_bytes)
            .take(slots.len())
            .map(|buffer| libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() })
            .collect();
        // SAFETY: the buffers live as long as the ring; see `Drop`.
        let registered = unsafe { uring.submitter().register_buffers(&vectors) }.is_ok();
        Ok(Self { uring, slots, memory, slot_bytes, registered, busy: 0, queued: 0, failed: None })
    }

    /// Maximum number of bytes per access.
    pub fn buffer_bytes(&self) -> usize {
        self.slot_bytes - ALIGNMENT
    }

    /// The number of buffers.
    pub fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Takes a free buffer; waits for one if necessary.
    pub fn take_slot(&mut self, file: &File) -> Result<usize, Failed> {
        loop {
            if let Some(slot) = self.slots.iter().position(|slot| *slot == BufferSlot::Free) {
                self.enter_kernel(0).map_err(|error| (0, error))?;
                self.slots[slot] = BufferSlot::Held;
                return Ok(slot);
            }
            self.wait_for_completion(file)?;
        }
    }

    /// The bytes of a buffer.
    pub fn bytes(&mut self, slot: usize) -> &mut [u8] {
        &mut self.memory[slot * self.slot_bytes..][..self.slot_bytes]
    }

    /// Queues the write of a held buffer.
    pub fn write(&mut self, file: &File, slot: usize, offset: u64, bytes: usize) -> Result<(), Failed> {
        self.slots[slot] = BufferSlot::Busy { write: true, offset, bytes, done: 0 };
        self.busy += 1;
        self.push_request(file, slot).map_err(|error| (offset, error))?;
        // With a single buffer, the write cannot overlap with the filling of another buffer.
        if self.depth() == 1 { self.wait_for_completion(file) } else { Ok(()) }
    }

    /// Queues a read if a buffer is free. Returns whether it was queued.
    pub fn read(&mut self, file: &File, offset: u64, bytes: usize) -> Result<bool, Failed> {
        let Some(slot) = self.slots.iter().position(|slot| *slot == BufferSlot::Free) else { return Ok(false) };
        self.slots[slot] = BufferSlot::Busy { write: false, offset, bytes, done: 0 };
        self.busy += 1;
        self.push_request(file, slot).map_err(|error| (offset, error))?;
        Ok(true)
    }

    /// Frees every held buffer; with `expected`, also every buffer that was read at a different offset.
    pub fn release_slots(&mut self, expected: Option<u64>) {
        for slot in &mut self.slots {
            match *slot {
                BufferSlot::Held => *slot = BufferSlot::Free,
                BufferSlot::Read { offset, .. } if expected.is_some_and(|expected| expected != offset) => {
                    *slot = BufferSlot::Free;
                }
                _ => {}
            }
        }
    }

    /// Waits for the read at an offset, and first queues it if necessary. Returns its buffer and the number of bytes
    /// read.
    pub fn fetch_bytes(&mut self, file: &File, offset: u64, bytes: usize) -> Result<(usize, usize), Failed> {
        let known = |slot: &BufferSlot| match *slot {
            BufferSlot::Busy { write: false, offset: start, bytes: len, .. } => start == offset && len >= bytes,
            BufferSlot::Read { offset: start, .. } => start == offset,
            _ => false,
        };
        if !self.slots.iter().any(known) {
            while !self.read(file, offset, bytes)? {
                // Announced reads that were not fetched are dropped in favour of this read.
                self.release_slots(Some(offset));
                if !self.slots.contains(&BufferSlot::Free) {
                    self.wait_for_completion(file)?;
                }
            }
        }
        loop {
            let ready =
                self.slots.iter().position(|slot| matches!(slot, BufferSlot::Read { offset: at, .. } if *at == offset));
            if let Some(slot) = ready {
                self.enter_kernel(0).map_err(|error| (offset, error))?;
                let BufferSlot::Read { bytes: read, .. } = self.slots[slot] else { continue };
                self.slots[slot] = BufferSlot::Held;
                return Ok((slot, read.min(bytes)));
            }
            self.wait_for_completion(file)?;
        }
    }

    /// Waits until nothing is in flight.
    pub fn drain_writes(&mut self, file: &File) -> Result<(), Failed> {
        while self.busy > 0 {
            self.wait_for_completion(file)?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until an operation in flight completes.
    fn wait_for_completion(&mut self, file: &File) -> Result<(), Failed> {
        if self.busy > 0 {
            self.enter_kernel(1).map_err(|error| (0, error))?;
            self.reap_completions(file);
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Submits the queue and waits for this many completions.
    fn enter_kernel(&mut self, wait: usize) -> io::Result<()> {
        if self.queued == 0 && wait == 0 {
            return Ok(());
        }
        loop {
            match self.uring.submit_and_wait(wait) {
                Ok(_) => break,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.queued = 0;
        Ok(())
    }

    fn push_request(&mut self, file: &File, slot: usize) -> io::Result<()> {
        let BufferSlot::Busy { write, offset, bytes, done } = self.slots[slot] else { return Ok(()) };
        let fd = types::Fd(file.as_raw_fd());
        let (at, left) = (offset + done as u64, (bytes - done) as u32);
        let start = self.bytes(slot)[done..].as_mut_ptr();
        let entry = match (write, self.registered) {
            (true, true) => opcode::WriteFixed::new(fd, start, left, slot as u16).offset(at).build(),
            (true, false) => opcode::Write::new(fd, start, left).offset(at).build(),
            (false, true) => opcode::ReadFixed::new(fd, start, left, slot as u16).offset(at).build(),
            (false, false) => opcode::Read::new(fd, start, left).offset(at).build(),
        };
        // SAFETY: the ring owns the buffer, which is not accessed until its completion is reaped. The file outlives the
        // wait, because each owner waits before it closes the file.
        let pushed = unsafe { self.uring.submission().push(&entry.user_data(slot as u64)) };
        pushed.map_err(|_| io::Error::other("the submission queue is full"))?;
        self.queued += 1;
        Ok(())
    }

    /// Processes completions, and continues partial operations.
    fn reap_completions(&mut self, file: &File) {
        loop {
            // The completion queue is borrowed again for each entry, because continuing an entry needs the ring.
            let next = self.uring.completion().next();
            let Some(done) = next else { break };
            let slot = done.user_data() as usize;
            let BufferSlot::Busy { write, offset, bytes, done: before } = self.slots[slot] else { continue };
            let result = done.result();
            let transferred = usize::try_from(result).unwrap_or(0);
            let all = before + transferred;
            let retry = result == -libc::EINTR || result == -libc::EAGAIN;
            // O_DIRECT cannot continue at an unaligned offset, so the file ended there.
            let ended = !write && (transferred == 0 || all % ALIGNMENT != 0);
            if retry || (result > 0 && all < bytes && !ended) {
                self.slots[slot] = BufferSlot::Busy { write, offset, bytes, done: all };
                if let Err(error) = self.push_request(file, slot) {
                    self.failed.get_or_insert((offset, error));
                    self.slots[slot] = BufferSlot::Free;
                    self.busy -= 1;
                }
                continue;
            }
            self.busy -= 1;
            self.slots[slot] = if write { BufferSlot::Free } else { BufferSlot::Read { offset, bytes: all } };
            if result < 0 {
                self.slots[slot] = BufferSlot::Free;
                self.failed.get_or_insert((offset + before as u64, io::Error::from_raw_os_error(-result)));
            } else if write && transferred == 0 {
                let error = io::Error::new(io::ErrorKind::WriteZero, "the file system wrote nothing");
                self.failed.get_or_insert((offset + before as u64, error));
            }
        }
    }

    /// Waits for all operations in flight. Partial operations are not continued, because no file is given.
    pub fn abandon_requests(&mut self) {
        while self.busy > 0 {
            if self.enter_kernel(1).is_err() {
                return;
            }
            while self.uring.completion().next().is_some() {
                self.busy = self.busy.saturating_sub(1);
            }
        }
        self.slots.fill(BufferSlot::Free);
        self.failed = None;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel must not write to freed buffers.
        self.abandon_requests();
    }
}
