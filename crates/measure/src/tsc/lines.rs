//! A corrected clock: a sequence of straight lines that convert the counter's ticks to ns.
//!
//! The clock must never appear to go back, no matter which threads read it while it is being corrected. Each tick
//! therefore has the same time for all readers. A line is valid from its beginning to the end of its `span`, and a span
//! that has been read can only be lengthened. A correction closes the last line at the end of its span, at most
//! [`STRIDE`] ticks after the last reading. The next line begins there, with the same time and another rate. A reader
//! that stalls between loading a line and reading the counter, for however long, still gets the same time for its
//! ticks. (If the counter itself goes back, this is not detected here, because readings store nothing; the next
//! comparison finds it.)
//!
//! The beginning and the rate of a published line never change, and the line is never freed, because a reader may be
//! using it. This costs about 64 bytes per correction.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The number of ticks (a few ms) by which readers lengthen the last line. A correction begins where a span ends.
/// The number is even: see [`CLOSED`].
const STRIDE: u64 = 1 << 22;
/// Flag in a span: the span is final, and another line follows. Without this flag, all spans are even.
const CLOSED: u64 = 1;

#[derive(Debug)]
struct Line {
    base_ticks: u64,
    base_ns: u64,
    /// The slope of the line, in units of 2^−32.
    ns_per_tick: u64,
    /// Number of ticks after `base_ticks` for which the line is valid; 0 if `lead_ns` is set.
    span: AtomicU64,
    /// Set before the span is closed, and read only after that.
    next: AtomicPtr<Line>,
    /// Set when the counter is abandoned in favour of the kernel's clock: the counter's lead over this clock.
    lead_ns: Option<u64>,
}

impl Line {
    fn new(base_ticks: u64, base_ns: u64, ns_per_tick: u64) -> Self {
        let next = AtomicPtr::new(ptr::null_mut());
        Self { base_ticks, base_ns, ns_per_tick, span: AtomicU64::new(STRIDE), next, lead_ns: None }
    }

    #[inline]
    fn after(&self, elapsed_ticks: u64) -> u64 {
        let ns = (u128::from(elapsed_ticks) * u128::from(self.ns_per_tick)) >> 32;
        self.base_ns + ns as u64
    }
}

/// A clock made of lines. Any thread may read it, but only one thread at a time may correct it.
#[derive(Debug)]
pub struct Lines {
    /// The current line, or an earlier line; null before the first.
    current: AtomicPtr<Line>,
}

impl Lines {
    /// Creates a clock without lines, which returns the time of the kernel's clock.
    pub const fn new() -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Starts the first line, through (ticks, ns).
    pub fn begin_line(&self, (ticks, ns): (u64, u64), ns_per_tick: u64) {
        self.current.store(Box::into_raw(Box::new(Line::new(ticks, ns, ns_per_tick))), Release);
    }

    /// The current time, ns.
    #[inline]
    pub fn read_ns(&self, ticks: impl FnOnce() -> u64, kernel_ns: impl FnOnce() -> u64) -> u64 {
        let Some(line) = self.line() else { return kernel_ns() };
        let ticks = ticks();
        let elapsed = ticks.wrapping_sub(line.base_ticks);
        // One comparison checks both ends, because ticks before the line wrap around to a very large distance.
        if elapsed < line.span.load(Relaxed) { line.after(elapsed) } else { self.read_beyond(line, ticks, kernel_ns) }
    }

    /// Lengthens the last line, or finds the line for `ticks`.
    #[cold]
    #[inline(never)]
    fn read_beyond(&self, mut line: &Line, ticks: u64, kernel_ns: impl FnOnce() -> u64) -> u64 {
        loop {
            if let Some(lead_ns) = line.lead_ns {
                return line.base_ns.max(kernel_ns() + lead_ns);
            }
            let elapsed = ticks.wrapping_sub(line.base_ticks);
            // The counter was read just before the line began, or on a processor (or after a suspend) whose counter is
            // behind.
            if elapsed > u64::MAX / 2 {
                return line.base_ns;
            }
            let span = line.span.load(Acquire);
            if elapsed < span {
                return line.after(elapsed);
            }
            if span & CLOSED == 0 {
                let longer = (elapsed / STRIDE + 1) * STRIDE;
                // Another reader or a correction may have been faster. In both cases, the span is read again.
                let _ = line.span.compare_exchange(span, longer, Relaxed, Relaxed);
                continue;
            }
            let next = line.next.load(Acquire);
            let _ = self.current.compare_exchange(ptr::from_ref(line).cast_mut(), next, Release, Relaxed);
            // SAFETY: a closed line has a successor, and lines are never freed.
            line = unsafe { &*next };
        }
    }

    /// Sets the rate of the clock from the end of the last line's span. Only one thread at a time may correct the
    /// clock.
    pub fn steer_rate(&self, ns_per_tick: u64) {
        self.follow_line(|base_ticks, base_ns| Line::new(base_ticks, base_ns, ns_per_tick));
    }

    /// Switches to the kernel's clock plus the counter's lead over it. The clock stops (for a few ms) until this sum
    /// has reached the latest time that may have been read. Only one thread at a time may correct the clock.
    pub fn leave_line(&self, lead_ns: u64) {
        let kernel_line = |base_ticks, base_ns| Line {
            span: AtomicU64::new(0),
            lead_ns: Some(lead_ns),
            ..Line::new(base_ticks, base_ns, 0)
        };
        if let Some(line) = self.follow_line(kernel_line) {
            // Takes effect at once, because a counter that has stopped would never reach the end of the span.
            self.current.store(line, Release);
        }
    }

    /// Closes the last line and appends a line, which `make` creates from its first ticks and ns. Returns the new line;
    /// `None` if the counter is not in use.
    fn follow_line(&self, make: impl Fn(u64, u64) -> Line) -> Option<*mut Line> {
        let mut last = self.line()?;
        while last.span.load(Acquire) & CLOSED != 0 {
            // SAFETY: a closed line has a successor, and lines are never freed.
            last = unsafe { &*last.next.load(Acquire) };
        }
        if last.lead_ns.is_some() {
            return None;
        }
        let mut span = last.span.load(Relaxed);
        loop {
            let line = Box::into_raw(Box::new(make(last.base_ticks + span, last.after(span))));
            last.next.store(line, Release);
            match last.span.compare_exchange(span, span | CLOSED, Release, Relaxed) {
                Ok(_) => return Some(line),
                // A reader has lengthened the line. Readers follow `next` only after the span is closed.
                Err(longer) => {
                    // SAFETY: the span was not closed, so no other thread has followed `next` to this line.
                    drop(unsafe { Box::from_raw(line) });
                    span = longer;
                }
            }
        }
    }

    #[inline]
    fn line(&self) -> Option<&Line> {
        // SAFETY: the pointer is null, or points to a line that is never freed.
        unsafe { self.current.load(Acquire).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use super::*;

    const ONE: u64 = 1 << 32;

    fn time_at(lines: &Lines, ticks: u64) -> u64 {
        lines.read_ns(|| ticks, || unreachable!("the counter is in use"))
    }

    #[test]
    fn a_line_is_exact_for_a_century() {
        let lines = Lines::new();
        assert_eq!(lines.read_ns(|| 5, || 77), 77, "without a line, the kernel's clock is read");
        lines.begin_line((1_000, 50), ONE * 10 / 26);
        assert_eq!(time_at(&lines, 1_000), 50);
        assert!(time_at(&lines, 2_601_000).abs_diff(1_000_050) <= 1);
        let century_ns = 3_155_760_000u64 * 1_000_000_000;
        let ticks = (u128::from(century_ns) * 26 / 10) as u64 + 1_000;
        assert!(time_at(&lines, ticks).abs_diff(century_ns + 50) < century_ns / 1_000_000_000);
        assert_eq!(time_at(&lines, 999), 50, "just before the first reading");
    }

    #[test]
    fn correction_keeps_the_time_of_earlier_ticks() {
        let lines = Lines::new();
        lines.begin_line((0, 0), ONE);
        let earlier = time_at(&lines, STRIDE + 5);
        lines.steer_rate(ONE / 2);
        assert_eq!(time_at(&lines, STRIDE + 5), earlier);
        assert_eq!(time_at(&lines, 2 * STRIDE), 2 * STRIDE, "the old line is valid to the end of its span");
        assert_eq!(time_at(&lines, 2 * STRIDE + 100), 2 * STRIDE + 50);
        assert_eq!(time_at(&lines, 2 * STRIDE - 1), 2 * STRIDE, "a late reader does not see the clock go back");
        // Makes two consecutive corrections without a reading between them.
        lines.steer_rate(ONE);
        lines.steer_rate(2 * ONE);
        assert_eq!(time_at(&lines, 5 * STRIDE), 2 * STRIDE + STRIDE / 2 + STRIDE + 2 * STRIDE);
    }

    #[test]
    fn the_kernels_clock_takes_over_without_going_back() {
        let lines = Lines::new();
        lines.begin_line((0, 1_000), ONE);
        assert_eq!(time_at(&lines, 500), 1_500);
        lines.leave_line(0);
        let floor = 1_000 + STRIDE;
        assert_eq!(lines.read_ns(|| 0, || 1_400), floor, "it stands still until the kernel's clock has caught up");
        assert_eq!(lines.read_ns(|| 0, || floor + 1), floor + 1);
        lines.steer_rate(ONE);
        lines.leave_line(9);
        assert_eq!(lines.read_ns(|| 0, || floor + 2), floor + 2, "the switch is permanent");
    }

    /// A reading that begins after another has finished never returns an earlier time.
    #[test]
    fn readings_never_decrease_while_the_clock_is_corrected() {
        for leaves in [false, true] {
            let lines = Lines::new();
            lines.begin_line((0, 0), ONE);
            let (counter, newest) = (AtomicU64::new(0), AtomicU64::new(0));
            let ticks = || counter.fetch_add(STRIDE / 64, SeqCst);
            let read = || {
                let before = newest.load(SeqCst);
                let now = lines.read_ns(ticks, || counter.load(SeqCst));
                assert!(now >= before, "{now} after {before}");
                newest.fetch_max(now, SeqCst);
            };
            thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| (0..200_000).for_each(|_| read()));
                }
                // The rates differ by a factor, so that using the wrong line would be noticed.
                for round in 0..20_000u64 {
                    lines.steer_rate(ONE / 2 + round % 7 * ONE / 4);
                    read();
                }
                if leaves {
                    lines.leave_line(newest.load(SeqCst).saturating_sub(counter.load(SeqCst)));
                    (0..20_000).for_each(|_| read());
                }
            });
        }
    }
}
