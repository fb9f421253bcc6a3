//! The window of a trial, and with it the numerator and the denominator of the throughput.

use crate::borders::{Borders, NEVER};
use crate::recorder::reader::Totals;

/// How the load of a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The load reached the end of its time.
    Time,
    /// All operations of the load finished.
    Count,
    /// The load was stopped at `at_ns`, when `completed` operations had succeeded.
    Stopped {
        at_ns: u64,
        /// Number of operations that had succeeded by then.
        completed: u64,
    },
}

/// The numerator and the denominator of the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Time from the first counted time to the end of the window, ns.
    pub length_ns: u64,
    /// Number of operations that succeeded in the window.
    pub completed: u64,
}

/// The window of a trial, calculated from the trial's totals after the wait for its clients.
///
/// With a time limit, the window is as long as this limit, no matter when the last answer arrived. Operations that
/// succeeded within it count, whenever they were sent. With a rate, the count is at most the number of operations that
/// were `due` in the window and did not fail: completing a backlog of the warm-up in the window does not add to its
/// throughput. With a rate and a number of operations, the window lasts at least until the next operation would be due.
/// If a store buffers writes (`BATCHED_OK`), the final flush belongs to the window, because these writes count.
pub fn build_window(borders: &Borders, ending: Ending, drained: &Totals, due: Option<u64>) -> Window {
    let held_back = drained.batched > 0;
    let counted_ns = if borders.following_ns == NEVER { 0 } else { borders.following_ns }.max(drained.last_done_ns);
    let (end_ns, completed) = match ending {
        Ending::Time if !held_back => (borders.end_ns, drained.in_window),
        Ending::Time => (borders.end_ns.max(drained.closed_ns), drained.succeeded),
        Ending::Count if !held_back => (counted_ns, drained.succeeded),
        Ending::Count => (counted_ns.max(drained.closed_ns), drained.succeeded),
        Ending::Stopped { at_ns, completed } if !held_back => (at_ns, completed),
        Ending::Stopped { at_ns, .. } => (at_ns.max(drained.closed_ns), drained.succeeded),
    };
    let completed =
        due.map_or(completed, |due| completed.min(due.saturating_sub(drained.count_failed() + drained.not_yet)));
    Window { length_ns: end_ns.saturating_sub(borders.first_ns), completed }
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
    fn late_answer_moves_neither_window_nor_throughput() {
        let drained = Totals { succeeded: 1_462, in_window: 1_452, last_done_ns: 3_300, ..Totals::default() };
        assert_eq!(build_window(&BORDERS, Ending::Time, &drained, None), Window { length_ns: 1_000, completed: 1_452 });
    }

    #[test]
    fn a_final_flush_belongs_to_the_window() {
        let totals = Totals { succeeded: 90, in_window: 80, batched: 90, closed_ns: 4_500, ..Totals::default() };
        assert_eq!(build_window(&BORDERS, Ending::Time, &totals, None), Window { length_ns: 3_000, completed: 90 });
        let early = Totals { closed_ns: 2_000, ..totals };
        assert_eq!(build_window(&BORDERS, Ending::Time, &early, None).length_ns, 1_000, "no shorter than the set time");
    }

    #[test]
    fn count_ends_with_last_answer_stop_with_stop() {
        let drained = Totals { succeeded: 9, in_window: 9, last_done_ns: 2_100, ..Totals::default() };
        assert_eq!(build_window(&BORDERS, Ending::Count, &drained, None), Window { length_ns: 600, completed: 9 });
        let stopped = Ending::Stopped { at_ns: 1_900, completed: 4 };
        assert_eq!(build_window(&BORDERS, stopped, &drained, None), Window { length_ns: 400, completed: 4 });
    }

    #[test]
    fn backlog_of_warm_up_is_not_throughput() {
        let drained = Totals { operations: 1_000, succeeded: 990, in_window: 3_949, ..Totals::default() };
        assert_eq!(
            build_window(&BORDERS, Ending::Time, &drained, Some(1_000)).completed,
            990,
            "ten of those due failed"
        );
        // The number carried over from the warm-up equals the number that was unfinished at the end.
        let even = Totals { in_window: 800, ..drained };
        assert_eq!(build_window(&BORDERS, Ending::Time, &even, Some(1_000)).completed, 800);
    }

    #[test]
    fn count_at_rate_ends_when_next_is_due() {
        let borders = Borders { following_ns: 2_500, ..BORDERS };
        let drained = Totals { operations: 10, succeeded: 10, last_done_ns: 2_410, ..Totals::default() };
        assert_eq!(
            build_window(&borders, Ending::Count, &drained, Some(10)),
            Window { length_ns: 1_000, completed: 10 }
        );
        let late = Totals { last_done_ns: 2_700, ..drained };
        assert_eq!(build_window(&borders, Ending::Count, &late, Some(10)).length_ns, 1_200);
    }
}
