//! Time: a clock to read and a timer to wait on, behind traits so that tests can simulate both.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::tsc;

/// Longest uninterrupted sleep, so that a client that waits for a far due time notices a stop.
pub const SLICE_NS: u64 = 20_000_000;

/// A clock in ns since an origin of its own; never goes back.
pub trait Clock {
    /// Now.
    fn now_ns(&self) -> u64;
}

/// A clock that can be waited on.
#[allow(async_fn_in_trait)]
pub trait Timer: Clock {
    /// Waits until `ns`, or until `stopped` says so (asked now and then).
    async fn until(&self, ns: u64, stopped: impl Fn() -> bool);

    /// Lets the other clients of this thread have a turn.
    async fn turn(&self);
}

/// The monotonic clock: the kernel's, or after [`calibrate`] the processor's counter on the kernel's scale.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

/// Makes the clock cheaper where that can be trusted; takes 20 ms.
pub fn calibrate() {
    tsc::calibrate(|| read(libc::CLOCK_MONOTONIC));
}

/// Compares [`Monotonic`] with the kernel's monotonic clock and has it follow that without a step; `None` where it is that.
/// To be called from one thread about once a second as long as anything is timed.
pub fn compare() -> Option<tsc::Agreement> {
    tsc::compare(|| read(libc::CLOCK_MONOTONIC))
}

static REVERSALS: AtomicU64 = AtomicU64::new(0);

/// ns from an earlier reading to a later one. If the clock went back between them it is 0, and counted in [`reversals`]: a
/// duration of 0 that is not one would pass for a fast operation.
///
/// For readings of one clock only. A due time is arithmetic, and an operation may well be ahead of it.
#[inline]
pub fn elapsed_ns(earlier: u64, later: u64) -> u64 {
    later.checked_sub(earlier).unwrap_or_else(reversed)
}

#[cold]
fn reversed() -> u64 {
    REVERSALS.fetch_add(1, Relaxed);
    0
}

/// How often [`elapsed_ns`] found the clock to have gone back, in this process. A trial with any is not to be trusted.
pub fn reversals() -> u64 {
    REVERSALS.load(Relaxed)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// ns since the Unix epoch.
pub fn unix_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        tsc::now_ns(|| read(libc::CLOCK_MONOTONIC))
    }
}

/// The timer of a client that has a thread of its own: it sleeps, or spins.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTimer {
    /// Burn the processor instead of sleeping (`spin.sleep`): less late by some 50 µs.
    pub spin: bool,
}

impl ThreadTimer {
    /// A timer for the calling thread, whose sleeps are no longer rounded up by the kernel's default of 50 µs.
    pub fn for_this_thread(spin: bool) -> Self {
        // SAFETY: a plain setting of the calling thread; a kernel that refuses it leaves the default.
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
    async fn until(&self, ns: u64, stopped: impl Fn() -> bool) {
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
    async fn turn(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_back_is_counted() {
        let before = reversals();
        assert_eq!((elapsed_ns(5, 7), elapsed_ns(5, 5)), (2, 0));
        assert_eq!(reversals(), before);
        assert_eq!(elapsed_ns(7, 5), 0);
        assert_eq!(reversals(), before + 1);
    }

    #[test]
    fn the_clock_is_the_kernels_as_long_as_it_is_compared() {
        calibrate();
        for _ in 0..3 {
            let agreement = compare();
            let (before, now, after) = (read(libc::CLOCK_MONOTONIC), Monotonic.now_ns(), read(libc::CLOCK_MONOTONIC));
            let off = agreement.map_or(0, |found| found.offset_ns_max);
            assert!((before.saturating_sub(off + 1_000_000)..=after + off + 1_000_000).contains(&now));
        }
    }
}
