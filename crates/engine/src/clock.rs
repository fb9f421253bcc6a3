//! Time: a clock to read and a timer to wait on, behind traits so that tests can simulate both.

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
        tsc::now_ns().unwrap_or_else(|| read(libc::CLOCK_MONOTONIC))
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
