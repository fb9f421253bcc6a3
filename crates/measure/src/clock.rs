//! Time: a clock to read and a timer to wait on. Both are traits, so that tests can simulate them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::tsc;

/// An operation that waits longer than this time before it is sent counts as late, ns.
pub const LATE_NS: u64 = 1_000_000;

/// Maximum length of an uninterrupted sleep, ns, so that a client that waits for a distant due time notices a stop.
pub const SLICE_NS: u64 = 20_000_000;

/// A clock in ns since an arbitrary origin. It never goes back.
pub trait Clock {
    /// The current time.
    fn now_ns(&self) -> u64;
}

/// A clock on which a client can wait.
#[allow(async_fn_in_trait)]
pub trait Timer: Clock {
    /// Waits until `ns`, or until `stopped`, which is called occasionally, returns true.
    async fn wait_until(&self, ns: u64, stopped: impl Fn() -> bool);

    /// Yields to the other clients of this thread.
    async fn yield_to_clients(&self);
}

/// The monotonic clock: the kernel's clock or, after [`calibrate`], the processor's counter calibrated against it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

/// Switches to the processor's counter, which is cheaper, if it can be trusted. This takes 20 ms.
pub fn calibrate() {
    tsc::calibrate(|| read_clock(libc::CLOCK_MONOTONIC));
}

/// Compares [`Monotonic`] with the kernel's monotonic clock, and adjusts `Monotonic` without a step; `None` if
/// `Monotonic` is the kernel's clock. Call this from one thread about once a second during measurements.
pub fn compare_clocks() -> Option<tsc::Agreement> {
    tsc::compare_clocks(|| read_clock(libc::CLOCK_MONOTONIC))
}

static REVERSALS: AtomicU64 = AtomicU64::new(0);

/// Time from an earlier reading to a later reading, ns. If the clock went back between them, the result is 0, and
/// [`count_reversals`] counts the case, because a wrong duration of 0 would look like a fast operation.
///
/// Use this only for readings of one clock. A due time is computed, not read.
#[inline]
pub fn elapsed_ns(earlier: u64, later: u64) -> u64 {
    later.checked_sub(earlier).unwrap_or_else(resume_time)
}

#[cold]
fn resume_time() -> u64 {
    REVERSALS.fetch_add(1, Relaxed);
    0
}

/// Number of times that [`elapsed_ns`] found the clock set back. The results of a trial with a reversal cannot be
/// trusted.
pub fn count_reversals() -> u64 {
    REVERSALS.load(Relaxed)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct, and both clocks exist on every Linux system.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The current time, ns since the Unix epoch.
pub fn unix_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        tsc::now_ns(|| read_clock(libc::CLOCK_MONOTONIC))
    }
}

/// The timer of a client on a separate thread. It sleeps or spins.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTimer {
    /// Spin instead of sleeping (`spin.sleep`), which makes operations about 50 µs less late.
    pub spin: bool,
}

impl ThreadTimer {
    /// Creates a timer for the calling thread, whose sleeps are then no longer lengthened by the kernel's default slack
    /// of 50 µs.
    pub fn for_this_thread(spin: bool) -> Self {
        // SAFETY: changes a setting of the calling thread. If the kernel refuses, the default remains in effect.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
        Self { spin }
    }
}

impl Clock for ThreadTimer {
    #[inline]
    fn now_ns(&self) -> u64 {
        Monotonic.now_ns()
    }
}

impl Timer for ThreadTimer {
    async fn wait_until(&self, ns: u64, stopped: impl Fn() -> bool) {
        loop {
            let now = self.now_ns();
            if now >= ns || stopped() {
                return;
            }
            if self.spin {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(Duration::from_nanos((ns - now).min(SLICE_NS)));
            }
        }
    }

    #[inline]
    async fn yield_to_clients(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_back_is_counted() {
        let before = count_reversals();
        assert_eq!((elapsed_ns(5, 7), elapsed_ns(5, 5)), (2, 0));
        assert_eq!(count_reversals(), before);
        assert_eq!(elapsed_ns(7, 5), 0);
        assert_eq!(count_reversals(), before + 1);
    }

    #[test]
    fn clock_follows_the_kernel_clock() {
        calibrate();
        for _ in 0..3 {
            let agreement = compare_clocks();
            let (before, now, after) =
                (read_clock(libc::CLOCK_MONOTONIC), Monotonic.now_ns(), read_clock(libc::CLOCK_MONOTONIC));
            let off = agreement.map_or(0, |agreement| agreement.offset_ns_max);
            assert!((before.saturating_sub(off + 1_000_000)..=after + off + 1_000_000).contains(&now));
        }
    }
}
