//! The ledger of the run's writes: its size, and how clients use it.

use loadstone_load::ledger::{Exception, Ledger, LedgerLayout, Pen, WriteState};
use loadstone_load::{Segment, Status};
use loadstone_session::Session;

use crate::mapping::Mapping;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::TrialSpec;

/// Interval between ticks of a ledger, ns, until half of its ticks are used. Until a quarter is used, there is a tick
/// whenever the conductor wakes: more frequent ticks make the order of more writes known.
const TICK_NS: u64 = 10_000_000;
/// Interval between later ticks, ns, for runs of several days.
const COARSE_TICK_NS: u64 = 1_000_000_000;
/// Maximum number of ticks, which take 16 MiB. With a rate, they suffice for four minutes of fine ticks, 43 minutes of
/// ticks every 10 ms, and six days of coarse ticks.
const TICKS: u64 = 1 << 20;
/// Writes per second for which a run without a limit on operations reserves space; no engine exceeds this rate. The
/// space is at most 1 GiB.
const WRITES_PER_SECOND: f64 = 4e6;
const WRITES_MAX: u64 = 1 << 32;
/// Maximum number of writes that were slow or not acknowledged; 32 MiB.
const EXCEPTIONS_MAX: u64 = 1 << 20;

/// The interval between ticks of a ledger after the given number of ticks, if the conductor wakes every `awake_ns`.
pub fn tick_ns(ticks: u64, awake_ns: u64) -> u64 {
    match ticks {
        _ if ticks < TICKS / 4 => awake_ns.min(TICK_NS),
        _ if ticks < TICKS / 2 => TICK_NS,
        _ => COARSE_TICK_NS,
    }
}

/// Creates the ledger of a trial if its spec requests one.
pub fn create_ledger(spec: &TrialSpec, workers: u64) -> Result<Option<Ledger<Mapping>>, EngineError> {
    let Some(ledger) = &spec.ledger else { return Ok(None) };
    let layout = ledger_layout(spec, workers);
    let length = layout
        .word_count()
        .ok_or_else(|| EngineError::usage("a ledger for that many writes does not fit in memory"))?;
    let mapping = Mapping::create_file(&ledger.file, length)?;
    Ledger::create_in(mapping, layout, spec.identify_run(), spec.segment).map(Some).map_err(EngineError::failed)
}

/// If the spec requests a ledger, creates one in memory for a probe of the driver's cost.
pub fn create_for_probe(spec: &TrialSpec, writes: u64, workers: u64) -> Result<Option<Ledger<Mapping>>, EngineError> {
    if spec.ledger.is_none() {
        return Ok(None);
    }
    let layout = LedgerLayout { writes, clients: workers, workers, ticks: 1, exceptions: 1 };
    let memory = Mapping::map_memory(layout.word_count().unwrap_or_default())
        .map_err(|error| EngineError::failed(format!("cannot allocate the ledger of a probe: {error}")))?;
    Ledger::create_in(memory, layout, spec.identify_run(), Segment::default()).map(Some).map_err(EngineError::failed)
}

fn ledger_layout(spec: &TrialSpec, workers: u64) -> LedgerLayout {
    let by_time = spec
        .until
        .seconds
        .map_or(f64::INFINITY, |seconds| (seconds + spec.warmup_seconds) * WRITES_PER_SECOND * spec.segment.n as f64);
    // Writes that are sent before the window do not count towards this limit.
    let by_count = spec.until.operations.filter(|_| spec.warmup_seconds == 0.0);
    let writes = by_count.unwrap_or(u64::MAX).min(by_time as u64).clamp(1, WRITES_MAX);
    let clients = spec.segment.share_of_total(spec.clients);
    LedgerLayout { writes, clients, workers, ticks: TICKS, exceptions: writes.min(EXCEPTIONS_MAX) }
}

/// One client's access to the ledger.
#[derive(Debug)]
pub struct LedgerWriter<'a> {
    pub ledger: &'a Ledger<Mapping>,
    /// The pen of the client's worker.
    pub pen: Pen<'a>,
}

impl LedgerWriter<'_> {
    /// Notes the write with this number after its last attempt. `ready_ns` is not after the time of the claim or the
    /// due time, whichever is later.
    #[inline]
    pub fn note_write(&self, number: u64, state: WriteState, ready_ns: u64, how: Exception) {
        // Exceptions are written before the bits, because readers assume that an acknowledged write without an
        // exception was fast.
        if state != WriteState::Acknowledged || how.done.saturating_sub(ready_ns) > self.ledger.slow_ns() {
            self.ledger.add_exception(how);
        }
        self.pen.note_state(number, state);
    }
}

/// The known state of a write after an attempt with this status. A write that the store neither acknowledged nor
/// refused may have been applied, or may still be applied. A batched write may never be sent.
#[inline]
pub fn write_state<S: Session>(session: &S, status: Status) -> WriteState {
    match status {
        Status::Ok => WriteState::Acknowledged,
        _ if session.is_refusal(status) => WriteState::Refused,
        _ => WriteState::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::simulation::{Scripted, SimTimer};

    #[test]
    fn outcome_determines_the_expected_presence() {
        let session = Scripted::new(&SimTimer::default(), &(Rc::new(|_: &[u8]| (0u64, Status::Ok)) as _));
        for status in Status::ALL {
            let expected = match status {
                Status::Ok => WriteState::Acknowledged,
                Scripted::REFUSAL => WriteState::Refused,
                _ => WriteState::Maybe,
            };
            assert_eq!(write_state(&session, status), expected, "{}", status.name());
        }
    }

    #[test]
    fn ledger_has_room_for_every_write() {
        let with = |operations: Option<u64>, seconds: Option<f64>, warmup_seconds| {
            let mut spec = TrialSpec::parse(include_str!("../../../wire/fixtures/trial-spec-1.json")).unwrap();
            spec.until = loadstone_wire::spec::Until { operations, seconds };
            ledger_layout(&TrialSpec { warmup_seconds, ..spec }, 2).writes
        };
        assert_eq!(with(Some(1_000), Some(60.0), 0.0), 1_000);
        assert_eq!(with(Some(1_000), Some(60.0), 30.0), 360_000_000, "the warm-up does not count towards the limit");
        assert_eq!(with(None, Some(1e9), 0.0), WRITES_MAX);
        assert_eq!(with(Some(1_000), None, 1.0), WRITES_MAX);
    }
}
