//! The processor's timestamp counter as a clock in ns that is kept in agreement with the kernel's monotonic clock.
//!
//! `clock_gettime` orders its reading of the counter after all preceding instructions, which drains the pipeline twice
//! per operation: about 5 % of a RocksDB read of 4 µs. A plain reading may be a few ns early, which is negligible for
//! any store. The counter is used only if the kernel itself uses it to keep time, and thus guarantees that its rate is
//! constant and equal on every processor. A comparison over 20 ms gives the initial rate; [`compare_clocks`] finds and
//! corrects its error.

mod lines;
mod watch;

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lines::Lines;
pub use watch::Agreement;
use watch::{Advice, ClockReading, Watch};

/// Duration of the first comparison of the two clocks. Each end is known to within about 15 ns, so the rate is known to
/// within 2 millionths.
const COMPARED: Duration = Duration::from_millis(20);
/// Number of readings per comparison, of which the tightest is used.
const TRIES: u32 = 64;
/// The kernel's clock source.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

static COUNTER: TickCounter = TickCounter::new();

/// A counter that is used as a clock if possible.
#[derive(Debug)]
struct TickCounter {
    lines: Lines,
    /// Locked during a comparison; readings need only the lines.
    watch: Mutex<Option<Watch>>,
}

impl TickCounter {
    const fn new() -> Self {
        Self { lines: Lines::new(), watch: Mutex::new(None) }
    }

    /// Uses the counter from now on, unless it is already in use or no rate can be computed from the two readings.
    fn begin_counter(&self, first: ClockReading, last: impl FnOnce() -> ClockReading) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.is_none()
            && let Some(new) = Watch::new(first, last())
        {
            self.lines.begin_line((first.ticks, first.ns), new.rate());
            *watch = Some(new);
        }
    }

    /// Compares the counter with the kernel's clock, and corrects it.
    fn compare_clocks(&self, now: impl FnOnce() -> ClockReading, vouched: impl FnOnce() -> bool) -> Option<Agreement> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = watch.as_mut()?;
        // Once only the kernel's clock is used, no comparison is needed.
        if watch.agreement().jumps == 0 {
            let now = now();
            match watch.compare_reading(now, self.lines.read_ns(|| now.ticks, || now.ns), vouched()) {
                Advice::Keep => {}
                Advice::Steer(ns_per_tick) => self.lines.steer_rate(ns_per_tick),
                Advice::Leave { lead_ns } => self.lines.leave_line(lead_ns),
            }
        }
        Some(watch.agreement())
    }
}

/// The current time in ns on the scale of the monotonic clock: from the counter, or from `kernel_ns` if the counter is
/// not used. Unless the counter goes back, the result is never less than the result of a reading that finished before
/// this one began.
#[inline]
pub fn now_ns(kernel_ns: impl FnOnce() -> u64) -> u64 {
    COUNTER.lines.read_ns(ticks, kernel_ns)
}

/// Compares the clocks. From now on, uses the counter if the kernel uses it. Called before any measurement.
pub fn calibrate(monotonic_ns: impl Fn() -> u64) {
    if cfg!(target_arch = "x86_64") && fs::read_to_string(SOURCE).is_ok_and(|name| name.trim() == "tsc") {
        let first = tightest_reading(&monotonic_ns);
        thread::sleep(COMPARED);
        COUNTER.begin_counter(first, || tightest_reading(&monotonic_ns));
    }
}

/// Compares the counter with the kernel's clock, makes it follow this clock, and returns the agreement so far; `None`
/// if the counter is not used. Call it from one thread about once a second during measurements. It takes about 20 µs
/// and does not block readers. Once `jumps` is not 0, the times of the trial cannot be trusted.
pub fn compare_clocks(monotonic_ns: impl Fn() -> u64) -> Option<Agreement> {
    // A failed read (because no file descriptor is available) is not evidence against the counter.
    let vouched = || fs::read_to_string(SOURCE).map_or(true, |name| name.trim() == "tsc");
    COUNTER.compare_clocks(|| tightest_reading(&monotonic_ns), vouched)
}

/// Reads both clocks as close together as possible.
fn tightest_reading(monotonic_ns: &impl Fn() -> u64) -> ClockReading {
    let read = |_| {
        let (before, ticks, after) = (monotonic_ns(), ticks(), monotonic_ns());
        ClockReading { width_ns: after - before, ticks, ns: before + (after - before) / 2 }
    };
    (1..TRIES).map(read).fold(read(0), ClockReading::min)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction, and Linux allows it in user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests;
