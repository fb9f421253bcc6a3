//! The borders of a trial. They are one value, which is computed before any client starts and never changes.

use loadstone_load::Segment;
use loadstone_load::pace::{Pace, PaceCursor};

use loadstone_wire::error::EngineError;
use loadstone_wire::spec::TrialSpec;

/// A time that is never reached.
pub const NEVER: u64 = u64::MAX;
/// Overdue operations are still sent after the end of the window, for the window's length divided by this number.
const CUTOFF_SHARE: u64 = 10;
/// Maximum time after the end of the window during which overdue operations are still sent, ns.
const CUTOFF_NS_MAX: u64 = 5_000_000_000;

/// The cut-off of a window from `first_ns` to `end_ns`, after which overdue operations are no longer sent.
fn cutoff_ns_after(first_ns: u64, end_ns: u64) -> u64 {
    end_ns.saturating_add((end_ns.saturating_sub(first_ns) / CUTOFF_SHARE).min(CUTOFF_NS_MAX))
}

/// The borders of a trial, in ns on the clients' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Borders {
    /// Start of the load.
    pub start_ns: u64,
    /// Operations due (closed loop: sent) from this time on are counted.
    pub first_ns: u64,
    /// No operation is due (closed loop: sent) at or after this time; [`NEVER`] without a time limit.
    pub end_ns: u64,
    /// With a rate: overdue operations are still sent before this time; [`NEVER`] without a time limit.
    pub cutoff_ns: u64,
    /// The length of an interval; interval k begins at `first_ns` + k × this length.
    pub interval_ns: u64,
    /// With a rate: the index, in the whole trial, of the first counted operation.
    pub first_index: u64,
    /// Number of operations of this segment, including the warm-up; [`NEVER`] without a limit.
    pub steps: u64,
    /// Closed loop with a warm-up: the maximum number of counted operations of this segment; [`NEVER`] without a limit.
    pub counted: u64,
    /// With a rate and a limit on operations: the time at which the next operation would be due without the limit;
    /// otherwise 0.
    pub following_ns: u64,
    /// The cut-off that would apply if the window ended at `following_ns`. Operations sent at or after this cut-off
    /// show that the system did not keep up with the rate. [`NEVER`] without a limit on operations, or without a rate.
    pub overdue_ns: u64,
}

impl Borders {
    /// Borders without limits: all operations are counted, from time 0, in one interval.
    pub const UNLIMITED: Self = Self {
        start_ns: 0,
        first_ns: 0,
        end_ns: NEVER,
        cutoff_ns: NEVER,
        interval_ns: NEVER,
        first_index: 0,
        steps: NEVER,
        counted: NEVER,
        following_ns: 0,
        overdue_ns: NEVER,
    };

    /// The borders of a spec for a trial that starts at 0. `operations` limits the number of counted operations of the
    /// segment.
    pub fn plan(spec: &TrialSpec, pace: Option<&Pace>, operations: Option<u64>) -> Result<Self, EngineError> {
        let too_long = || EngineError::usage("the warm-up and the measured time together are too long");
        let warmup_ns = seconds_ns(spec.warmup_seconds);
        let end_ns = match spec.until.seconds {
            None => NEVER,
            Some(seconds) => warmup_ns.checked_add(seconds_ns(seconds)).ok_or_else(too_long)?,
        };
        let cutoff_ns = cutoff_ns_after(warmup_ns, end_ns);
        let first_index = pace.filter(|_| warmup_ns > 0).map_or(0, |pace| pace.first_due_at(warmup_ns));
        let limit = operations.unwrap_or(NEVER);
        let (steps, counted) = match pace {
            Some(_) => (spec.segment.share_of_total(first_index).saturating_add(limit), NEVER),
            None if warmup_ns > 0 => (NEVER, limit),
            None => (limit, NEVER),
        };
        let interval_ns = spec.interval_ms.checked_mul(1_000_000).ok_or_else(too_long)?;
        let following_ns = match pace {
            Some(pace) if steps != NEVER => pace.due_ns(spec.segment.global_index(steps), &mut PaceCursor::default()),
            _ => 0,
        };
        let overdue_ns = if following_ns == 0 { NEVER } else { cutoff_ns_after(warmup_ns, following_ns) };
        Ok(Self {
            start_ns: 0,
            first_ns: warmup_ns,
            end_ns,
            cutoff_ns,
            interval_ns,
            first_index,
            steps,
            counted,
            following_ns,
            overdue_ns,
        })
    }

    /// The same borders for a trial that starts at `start_ns`.
    #[must_use]
    pub fn starting_at(self, start_ns: u64) -> Self {
        let shift = |ns: u64| if ns == NEVER { NEVER } else { ns.saturating_add(start_ns) };
        Self {
            start_ns,
            first_ns: shift(self.first_ns),
            end_ns: shift(self.end_ns),
            cutoff_ns: shift(self.cutoff_ns),
            overdue_ns: shift(self.overdue_ns),
            following_ns: if self.following_ns == 0 { 0 } else { shift(self.following_ns) },
            ..self
        }
    }

    /// Whether an operation due (closed loop: sent) at `ns` is counted.
    #[inline]
    pub fn is_counted(&self, ns: u64) -> bool {
        ns >= self.first_ns && ns < self.end_ns
    }

    /// The number of the interval that contains a time at or after `first_ns`.
    #[inline]
    pub fn interval(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.first_ns) / self.interval_ns
    }

    /// The end of interval `k`.
    pub fn interval_end(&self, k: u64) -> u64 {
        self.first_ns.saturating_add((k + 1).saturating_mul(self.interval_ns)).min(self.end_ns)
    }

    /// The number of a segment's operations due in [`from_ns`, `to_ns`), both of which are at or after `first_ns`.
    pub fn count_due(&self, pace: &Pace, segment: Segment, from_ns: u64, to_ns: u64) -> u64 {
        let before = |ns: u64| {
            let index = pace.first_due_at(ns.saturating_sub(self.start_ns)).max(self.first_index);
            segment.share_of_total(index).min(self.steps)
        };
        before(to_ns).saturating_sub(before(from_ns))
    }
}

/// The interval that contains a time. A division is needed only when the interval changes.
#[derive(Debug, Default)]
pub struct IntervalCursor {
    from_ns: u64,
    /// Length of the interval, ns; 0 if the cursor is at a time that is not counted.
    length_ns: u64,
    interval: u64,
}

impl IntervalCursor {
    /// Moves to the interval that contains a time; `false` if that time is not counted.
    #[inline]
    pub fn seek_interval(&mut self, borders: &Borders, ns: u64) -> bool {
        self.contains(ns) || self.move_to(borders, ns)
    }

    /// Whether the interval contains a time.
    #[inline]
    pub fn contains(&self, ns: u64) -> bool {
        // One comparison checks both ends, because a time before the interval wraps around to a very large distance.
        ns.wrapping_sub(self.from_ns) < self.length_ns
    }

    /// The interval's number; after a time that is not counted, the interval of the last counted time.
    #[inline]
    pub fn interval(&self) -> u64 {
        self.interval
    }

    #[cold]
    fn move_to(&mut self, borders: &Borders, ns: u64) -> bool {
        if !borders.is_counted(ns) {
            self.length_ns = 0;
            return false;
        }
        self.interval = borders.interval(ns);
        self.from_ns = borders.first_ns + self.interval * borders.interval_ns;
        self.length_ns = borders.interval_ns.min(borders.end_ns - self.from_ns);
        true
    }
}

/// Converts seconds to ns, saturating at the range of the clock.
pub fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORDERS: Borders = Borders {
        start_ns: 1_000,
        first_ns: 1_500,
        end_ns: 2_500,
        cutoff_ns: 2_600,
        interval_ns: 300,
        ..Borders::UNLIMITED
    };

    #[test]
    fn last_interval_ends_with_the_window() {
        assert_eq!([1_500, 1_799, 1_800, 2_499].map(|ns| BORDERS.interval(ns)), [0, 0, 1, 3]);
        assert_eq!([0, 2, 3].map(|k| BORDERS.interval_end(k)), [1_800, 2_400, 2_500]);
        assert_eq!([1_499, 1_500, 2_499, 2_500].map(|ns| BORDERS.is_counted(ns)), [false, true, true, false]);
    }

    #[test]
    fn cursor_agrees_with_the_borders() {
        for borders in [BORDERS, Borders { end_ns: NEVER, ..BORDERS }, Borders::UNLIMITED] {
            let mut cursor = IntervalCursor::default();
            for ns in
                (0..4_000).chain((0..4_000).rev()).chain((0..40_000).map(|i| i * 7_919 % 4_001)).chain([NEVER - 1])
            {
                let expected = borders.is_counted(ns).then(|| borders.interval(ns));
                let interval = cursor.seek_interval(&borders, ns).then(|| cursor.interval());
                assert_eq!((interval, cursor.contains(ns)), (expected, expected.is_some()), "{ns} in {borders:?}");
            }
        }
    }
}
