//! What the driver itself costs: the trial's own operations on the null store, for a moment, before the trial.

use std::time::{Duration, Instant};

use loadstone_load::{Segment, Workload};
use loadstone_stores::null::NullSession;

use crate::client::{Common, InsertPolicy, drive};
use crate::clock::ThreadTimer;
use crate::course::Course;
use crate::sink::Sink;
use crate::tape::Tape;
use crate::workers::block_on;

/// Operations per probe: some 50 µs, so that on a busy host most probes are not interrupted.
const OPERATIONS: u64 = 250;
/// The least of this many probes counts: whatever disturbs a probe makes it longer.
const PROBES: u32 = 200;
/// No probe starts after this.
const BUDGET: Duration = Duration::from_millis(100);

/// ns per operation that the timing loop, the workload and the meter take, in the closed loop on one thread.
pub fn driver_ns<W: Workload>(workload: &W, seed: u64) -> f64 {
    let operations = workload.operations().unwrap_or(OPERATIONS).clamp(1, OPERATIONS);
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    // One tape for all probes: the first one pays for touching its memory.
    let tape = Tape::new(&[Sink::HdrNs], false, 0);
    for probe in 0..PROBES {
        if probe > 2 && begin.elapsed() > BUDGET {
            break;
        }
        let course = Course::new(Segment::default(), operations);
        let inserts = InsertPolicy { retries: 0, interval_ns: 0, stop: false };
        let common = Common { workload, course: &course, pace: None, start_ns: 0, acks: None, inserts, seed };
        let timer = ThreadTimer::default();
        let mut session = NullSession;
        let start = Instant::now();
        block_on(drive(&common, &timer, &mut session, &tape));
        best = best.min(start.elapsed().as_nanos() as f64 / operations as f64);
    }
    best
}
