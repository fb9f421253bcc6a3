//! Operations by key range and interval, which show an outage of a part of the keys.

use std::sync::atomic::{AtomicU32, Ordering};

use loadstone_load::Status;
use loadstone_load::pace::PaceSpec;
use loadstone_session::Placement;
use loadstone_wire::event::KeyRanges;
use loadstone_wire::spec::TrialSpec;

/// Maximum number of key ranges. With many servers, nearly every part of the ring has different servers.
const RANGES_MAX: usize = 64;
/// Maximum number of counters; 32 MiB.
const COUNTERS_MAX: usize = 1 << 23;
/// The default deadlines, from `DEADLINE_MS_MIN`, each twice the previous one: up to 102 s. The lab chooses one after the
/// trial, when it knows the latencies before the fault.
const DEADLINES: u32 = 12;
const DEADLINE_MS_MIN: f64 = 50.0;

/// The counts of an engine.
#[derive(Debug)]
pub struct RangeCounts {
    placement: Placement,
    intervals: usize,
    interval_ns: u64,
    deadlines_ns: Vec<u64>,
    /// For each range and interval: operations sent, and operations that succeeded by each deadline but not by the
    /// previous one.
    counters: Box<[AtomicU32]>,
}

impl RangeCounts {
    /// Counts for a trial; `None` if the spec requests none, operations have no due times, the trial has no time limit,
    /// the placement of the keys is unknown, or there would be too many key ranges or counters.
    pub fn new(spec: &TrialSpec, placement: Option<Placement>) -> Option<Self> {
        let placement = placement.filter(|placement| placement.shares.len() <= RANGES_MAX)?;
        if !spec.key_ranges || spec.pace == PaceSpec::Closed {
            return None;
        }
        let intervals = (spec.until.seconds? * 1e3 / spec.interval_ms as f64).ceil() as usize;
        let deadlines_ms = match spec.deadline_ms {
            Some(deadline_ms) => vec![deadline_ms],
            None => (0..DEADLINES).map(|at| DEADLINE_MS_MIN * f64::from(1 << at)).collect(),
        };
        let counters = placement.shares.len().checked_mul(intervals)?.checked_mul(1 + deadlines_ms.len())?;
        if counters > COUNTERS_MAX {
            return None;
        }
        Some(Self {
            placement,
            intervals,
            interval_ns: spec.interval_ms.checked_mul(1_000_000)?,
            deadlines_ns: deadlines_ms.iter().map(|ms| (ms * 1e6).round() as u64).collect(),
            counters: (0..counters).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    /// The counters of a key in an interval; `None` after the end.
    fn find_counters(&self, key: &[u8], interval: u64) -> Option<&[AtomicU32]> {
        let interval = usize::try_from(interval).ok().filter(|&interval| interval < self.intervals)?;
        let (width, range) = (1 + self.deadlines_ns.len(), self.placement.find_range(key));
        self.counters.get((range * self.intervals + interval) * width..)?.get(..width)
    }

    /// Counts an operation that is being sent. Cold, because most trials do not call it.
    #[cold]
    pub fn count_sent(&self, key: &[u8], interval: u64) {
        if let Some([sent, ..]) = self.find_counters(key, interval) {
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the outcome of an operation. An operation with the status `NOT_YET` cannot be judged, so it no longer
    /// counts as sent.
    #[cold]
    pub fn count_outcome(&self, key: &[u8], interval: u64, status: Status, response_ns: u64) {
        let Some([sent, good @ ..]) = self.find_counters(key, interval) else { return };
        if status == Status::NotYet {
            sent.fetch_sub(1, Ordering::Relaxed);
        } else if status.is_ok()
            && let Some(at) = self.deadlines_ns.iter().position(|&deadline_ns| response_ns <= deadline_ns)
        {
            good[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The section of the summary.
    pub fn section(&self) -> KeyRanges {
        let width = 1 + self.deadlines_ns.len();
        let counts = |which: usize| {
            let column: Vec<u64> =
                self.counters.iter().skip(which).step_by(width).map(|n| n.load(Ordering::Relaxed).into()).collect();
            column.chunks(self.intervals.max(1)).map(<[u64]>::to_vec).collect()
        };
        KeyRanges {
            interval_ns: self.interval_ns,
            shares: self.placement.shares.clone(),
            deadlines_ns: self.deadlines_ns.clone(),
            sent: counts(0),
            good: (1..width).map(counts).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use loadstone_wire::merge_rule::Merge;

    use super::*;

    fn spec(seconds: Option<f64>, deadline_ms: Option<f64>) -> TrialSpec {
        let mut spec = TrialSpec::parse(include_str!("../../../wire/fixtures/trial-spec-1.json")).unwrap();
        spec.until.seconds = seconds;
        spec.pace = serde_json::from_str(
            r#"{"mode": "open", "rate": [{"from": 100, "to": 100, "seconds": 0}], "arrival": "uniform"}"#,
        )
        .unwrap();
        TrialSpec { key_ranges: true, interval_ms: 100, deadline_ms, ..spec }
    }

    fn placement(ranges: usize) -> Placement {
        let parts = (0..ranges).map(|range| (range as u64 * 64, vec![range]));
        Placement::new(|key| u64::from(key[0]), 256, parts).unwrap()
    }

    #[test]
    fn operations_count_in_the_range_of_their_key() {
        let counts = RangeCounts::new(&spec(Some(0.3), Some(10.0)), Some(placement(4))).unwrap();
        for (key, interval, status, response_ns) in [
            (0, 0, Status::Ok, 1),
            (63, 0, Status::Ok, 10_000_000),
            (64, 1, Status::Ok, 10_000_001),
            (128, 2, Status::Timeout, 1),
            (255, 2, Status::NotYet, 1),
            (255, 3, Status::Ok, 1),
        ] {
            counts.count_sent(&[key], interval);
            counts.count_outcome(&[key], interval, status, response_ns);
        }
        counts.count_sent(&[200], 1);
        let mut section = counts.section();
        assert_eq!(section.interval_ns, 100_000_000);
        assert_eq!(section.sent, [[2, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]);
        assert_eq!(section.good, [[[2, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]]);
        let copy = section.clone();
        section.merge(copy);
        assert_eq!(section.sent[0], [4, 0, 0]);
        assert_eq!(section.good[0][0], [4, 0, 0]);
        section.merge(KeyRanges::default());
        assert_eq!(section, KeyRanges::default(), "segments with different ranges cannot be added");
    }

    #[test]
    fn successes_count_by_deadline() {
        let counts = RangeCounts::new(&spec(Some(0.1), None), Some(placement(1))).unwrap();
        for response_ms in [50, 51, 102_400, 102_401] {
            counts.count_sent(&[0], 0);
            counts.count_outcome(&[0], 0, Status::Ok, response_ms * 1_000_000);
        }
        let section = counts.section();
        assert_eq!(section.sent, [[4]]);
        assert_eq!(section.good.concat().concat(), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn counts_need_due_times_and_a_placement() {
        let complete = spec(Some(1.0), None);
        assert!(RangeCounts::new(&complete, Some(placement(4))).is_some());
        assert!(RangeCounts::new(&complete, None).is_none());
        assert!(RangeCounts::new(&spec(None, None), Some(placement(4))).is_none());
        assert!(RangeCounts::new(&spec(Some(1e8), None), Some(placement(4))).is_none());
        assert!(
            RangeCounts::new(&TrialSpec { pace: PaceSpec::Closed, ..complete.clone() }, Some(placement(4))).is_none()
        );
        assert!(RangeCounts::new(&TrialSpec { key_ranges: false, ..complete }, Some(placement(4))).is_none());
    }
}
