//! The processor's time stamp counter as a clock in ns, set against the kernel's monotonic clock once.
//!
//! `clock_gettime` orders its reading of the counter against everything before it, which drains the pipeline twice per
//! operation: on a RocksDB read of 4 µs that is some 5 %. A plain reading may be a few ns early, which no store notices.
//! It is used only where the kernel itself keeps time by the counter, and so vouches that it is constant and the same on
//! every processor.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// How long the two clocks are compared. Each end is known to some 15 ns, so the rate is to 2 millionths.
const COMPARED: Duration = Duration::from_millis(20);
/// Readings at each end, of which the tightest counts.
const TRIES: u32 = 64;

static SCALE: OnceLock<Scale> = OnceLock::new();

/// What turns ticks into ns.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    base_ticks: u64,
    base_ns: u64,
    /// ns per tick, in units of 2^−32.
    ns_per_tick: u64,
}

impl Scale {
    /// The line through two readings of (ticks, ns).
    fn through((ticks, ns): (u64, u64), (later_ticks, later_ns): (u64, u64)) -> Option<Self> {
        let elapsed_ticks = later_ticks.checked_sub(ticks).filter(|&ticks| ticks > 0)?;
        let ns_per_tick = (u128::from(later_ns.checked_sub(ns)?) << 32) / u128::from(elapsed_ticks);
        Some(Self { base_ticks: ticks, base_ns: ns, ns_per_tick: u64::try_from(ns_per_tick).ok()? })
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        let elapsed = u128::from(ticks.wrapping_sub(self.base_ticks)) * u128::from(self.ns_per_tick);
        self.base_ns + (elapsed >> 32) as u64
    }
}

/// Now in ns on the monotonic clock's scale; `None` where the counter is not used.
#[inline]
pub fn now_ns() -> Option<u64> {
    SCALE.get().map(|scale| scale.ns(ticks()))
}

/// Compares the clocks and uses the counter from now on, where the kernel does. Called once, before anything is timed.
pub fn calibrate(monotonic_ns: impl Fn() -> u64) {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if !cfg!(target_arch = "x86_64") || !source.is_ok_and(|name| name.trim() == "tsc") {
        return;
    }
    let first = tightest(&monotonic_ns);
    thread::sleep(COMPARED);
    if let Some(scale) = Scale::through(first, tightest(&monotonic_ns)) {
        SCALE.get_or_init(|| scale);
    }
}

/// A reading of both clocks, as close together as it gets.
fn tightest(monotonic_ns: &impl Fn() -> u64) -> (u64, u64) {
    let read = |_| {
        let (before, ticks, after) = (monotonic_ns(), ticks(), monotonic_ns());
        (after - before, (ticks, before + (after - before) / 2))
    };
    (0..TRIES).map(read).min().map_or((0, 0), |(_, reading)| reading)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux leaves it to user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_two_readings_gives_both_back() {
        let scale = Scale::through((1_000, 50), (2_601_000, 1_000_050)).unwrap();
        assert_eq!(scale.ns(1_000), 50);
        assert!(scale.ns(2_601_000).abs_diff(1_000_050) <= 1);
        // A century later at 2.6 GHz nothing overflows.
        let century_ns = 3_155_760_000u64 * 1_000_000_000;
        let ticks = (u128::from(century_ns) * 26 / 10) as u64 + 1_000;
        assert!(scale.ns(ticks).abs_diff(century_ns + 50) < century_ns / 1_000_000_000);
        assert!(Scale::through((5, 5), (5, 9)).is_none());
    }
}
